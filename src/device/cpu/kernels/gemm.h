/* Products of stacks of matrices, out[b] = a[b] w[b] + bias: what product and matmul are made of. The second operand
 * lies in packed panels (weights), or in any strides and is packed block by block into scratch, or, for few rows, piece
 * by piece on the stack.
 *
 * The work is cut into items: `item_rows` rows times `item_panels` panels of one matrix. How it is cut depends only on
 * the shapes. */
#ifndef BERTH_DEVICE_CPU_KERNELS_GEMM_H
#define BERTH_DEVICE_CPU_KERNELS_GEMM_H

#include "device/cpu/kernels/chain_run.h"
#include "device/cpu/kernels/gemm_tile.h"

typedef struct gemm {
  /* Given by the call. Matrices are the axes over which the second operand changes; the others count as rows. */
  uint32_t n_matrix_axes, n_row_axes;
  int64_t matrix_dim[BERTH_MAX_RANK], a_matrix[BERTH_MAX_RANK], b_matrix[BERTH_MAX_RANK]; /* strides */
  int64_t row_dim[BERTH_MAX_RANK], a_row[BERTH_MAX_RANK];
  int64_t matrices, rows, depth, columns;
  int64_t a_step, b_step, b_column; /* strides: a along K, b along K and along N */
  bool is_packed;                   /* b consists of panels; its strides are unused */
  bool has_epilogue;                /* more than a clamp */
  /* How the work is cut. */
  int64_t panels, block_rows, item_rows, item_panels;
  bool goes_down; /* neighbouring items share columns, so that weights are read once; otherwise they share rows */
  bool packs_a, packs_b; /* into scratch, block by block */
  bool packs_pieces;     /* of b, one after the other on the stack: with so few rows, each panel serves one tile */
  berth_type a_type, b_type,
      out_type; /* f32, f16 or bf16: other types are converted to f32 in scratch; packed f16 in registers */
} gemm;

/* What is known only during a run. */
typedef struct gemm_data {
  const void *a, *b;
  const void *bias; /* NULL: none */
  berth_type bias_type;
  const void *sum; /* of the result's type, added to it; may alias it; NULL: nothing */
  void *out;
  float low, high;
  const chain_run *epilogue; /* NULL: none */
  float *scratch;
} gemm_data;

/* a [batch..., M, K] and b [batch..., K, N] over the batch axes of the result, to which both broadcast. For packed
 * panels, b_batch is NULL. */
typedef struct gemm_shape {
  uint32_t batch_rank;
  const int64_t *batch, *a_batch, *b_batch;
  int64_t m, k, n, a_row, a_step, b_step, b_column;
  bool has_epilogue;
  berth_type a_type, b_type, out_type;
} gemm_shape;

#define gemm_plan BERTH__PER_ISA(berth__gemm_plan)
#define gemm_items BERTH__PER_ISA(berth__gemm_items)
#define gemm_grain BERTH__PER_ISA(berth__gemm_grain)
#define gemm_scratch BERTH__PER_ISA(berth__gemm_scratch)
#define gemm_scratch_most BERTH__PER_ISA(berth__gemm_scratch_most)
#define gemm_run BERTH__PER_ISA(berth__gemm_run)
#define gemm_pack_rows BERTH__PER_ISA(berth__gemm_pack_rows)
#define gemm_pack_panel BERTH__PER_ISA(berth__gemm_pack_panel)
#define gemm_pack_halves BERTH__PER_ISA(berth__gemm_pack_halves)

void gemm_plan(const gemm_shape *shape, gemm *g);
int64_t gemm_items(const gemm *g);
int64_t gemm_grain(const gemm *g);
uint64_t gemm_scratch(const gemm *g);      /* bytes */
uint64_t gemm_scratch_most(const gemm *g); /* enough for smaller shapes, too */
void gemm_run(const gemm *g, const gemm_data *data, int64_t begin, int64_t end);

/* One panel: `rows` rows of `columns` <= VF_PANEL columns with any strides, padded with zeros. */
void gemm_pack_panel(float *panel, const float *from, int64_t rows, int64_t columns, int64_t row_stride,
                     int64_t column_stride);
/* The same from f16 or bf16. */
void gemm_pack_halves(float *panel, berth_type type, const uint16_t *from, int64_t rows, int64_t columns,
                      int64_t row_stride, int64_t column_stride);
/* n rows with elements `step` apart, each copied to a run of to_stride >= depth + VF_LANES elements; those past depth
 * may be overwritten. row_stride: the distance between rows if it is constant, otherwise 0. */
void gemm_pack_rows(float *to, int64_t to_stride, const float *const *rows, int64_t n, int64_t row_stride,
                    int64_t depth, int64_t step);

#endif
