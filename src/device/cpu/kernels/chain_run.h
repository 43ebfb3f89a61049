/* Running chains (ops/chain.h) over rows: for the kernels of `chain`, and for products and convolutions, which apply
 * them to their results while these are still in the cache. */
#ifndef BERTH_DEVICE_CPU_KERNELS_CHAIN_RUN_H
#define BERTH_DEVICE_CPU_KERNELS_CHAIN_RUN_H

#include "device/cpu/kernels/chain_steps.h"
#include "ops/chain.h"

/* An operand along the axes of the run; broadcast axes have stride 0. */
typedef struct chain_operand {
  const char *data;
  berth_type type;
  int64_t stride[BERTH_MAX_RANK];
} chain_operand;

/* One loop over a block: a step, or two fused steps. */
typedef struct chain_loop {
  chain_step run;
  uint8_t in[4];  /* registers */
  uint8_t result; /* register */
  uint8_t slot;   /* where the results lie: results that are never used at the same time may share one */
} chain_loop;

/* What is decided before the first row. The axes are those of the result, with neighbours joined if this is possible
 * for every operand. The last axis is the columns, the others together are the rows. */
typedef struct chain_run {
  berth__chain chain;
  berth_type type; /* of the result, which is contiguous; elements are converted as the op cast does */
  char *out;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t rows, columns;
  bool is_turned; /* an operand is contiguous along columns: process several rows together */
  chain_operand operand[BERTH__CHAIN_OPERANDS];
  chain_loop loop[BERTH__CHAIN_STEPS];
  uint32_t n_loops, n_slots;
  /* Repeated to a vector: the constants, and the reciprocals of those that pairs divide by. */
  float number[BERTH__CHAIN_NUMBERS][VF_LANES], reciprocal[BERTH__CHAIN_NUMBERS][VF_LANES];
  int64_t width; /* elements per block: everything that a block needs stays in the L1 cache */
} chain_run;

#define chain_prepare BERTH__PER_ISA(berth__chain_prepare)
#define chain_rows BERTH__PER_ISA(berth__chain_rows)
#define epilogue_prepare BERTH__PER_ISA(berth__epilogue_prepare)
#define epilogue_rows BERTH__PER_ISA(berth__epilogue_rows)
#define epilogue_rows_from BERTH__PER_ISA(berth__epilogue_rows_from)
#define epilogue_clamp BERTH__PER_ISA(berth__epilogue_clamp)

/* Each operand broadcasts against out. The attributes must outlive the run. They were checked when the graph was built
 * (berth__chain_read); false: they cannot be read. */
bool chain_prepare(chain_run *run, const berth_tensor *in, uint32_t n_in, const berth_tensor *out,
                   const berth_attr *code, const berth_attr *numbers);
/* Rows [row, row + n_rows), columns [column, column + n_columns) of run->rows and run->columns. */
void chain_rows(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns);

/* An epilogue: the chain after a product or a convolution. Operand 0 is the result itself, already computed in place
 * (f32, contiguous); `extra` are the others. With an empty code there is nothing to do (false). Here the columns are
 * the result's last axis, and the rows all its other axes. */
bool epilogue_prepare(chain_run *run, const berth_tensor *extra, uint32_t n_extra, const berth_tensor *out,
                      const berth_attr *code, const berth_attr *numbers);
void epilogue_rows(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns);
/* The same for a result of another type, which has been computed elsewhere: `from` is f32, has rows from_stride apart,
 * and begins with the element (row, column). */
void epilogue_rows_from(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns,
                        const float *from, int64_t from_stride);
/* For epilogues without extra operands. True if the whole epilogue consists of relu, clamp, min and max with constants,
 * which kernels apply in registers: min(*high, max(*low, x)), NaN stays. An empty code counts too, with infinite
 * bounds. */
bool epilogue_clamp(const berth_attr *code, const berth_attr *numbers, float *low, float *high);

/* An epilogue in the form in which kernels apply it: bounds in registers, or a chain over finished results. */
typedef struct epilogue_form {
  float low, high; /* infinite if there is nothing to do in registers */
  bool is_chain;
  chain_run chain;
} epilogue_form;

#define epilogue_read BERTH__PER_ISA(berth__epilogue_read)
/* first: the index of the epilogue's first own operand. */
void epilogue_read(epilogue_form *e, const berth_op_call *call, uint32_t first, const berth_attr *code,
                   const berth_attr *numbers);
/* Finishes rows of which the columns [column, column + n_columns) are computed. */
static inline void epilogue_finish(const epilogue_form *e, int64_t row, int64_t n_rows, int64_t column,
                                   int64_t n_columns) {
  if (e->is_chain) epilogue_rows(&e->chain, row, n_rows, column, n_columns);
}

#endif
