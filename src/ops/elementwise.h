/* Blocks of elements. Kernels compute in one of four classes (f32 for f32, f16 and bf16; f64; i64 for integers and
 * bool; u64, which few ops support), on short contiguous blocks. Strides, broadcasting and the other types are handled
 * here, when blocks are gathered and scattered; a contiguous operand whose type is its class is used in place. */
#ifndef BERTH_OPS_ELEMENTWISE_H
#define BERTH_OPS_ELEMENTWISE_H

#include "ops/registry.h"

#define BERTH__BLOCK 256 /* elements: three blocks of 8 bytes each fit in the L1 cache */

typedef enum berth__class {
  BERTH__CLASS_F32,
  BERTH__CLASS_F64,
  BERTH__CLASS_I64,
  BERTH__CLASS_U64,
  BERTH__CLASSES
} berth__class;
berth__class berth__class_of(berth_type type);
berth_type berth__class_type(berth__class cls);
bool berth__is_class_type(berth_type type); /* f32, f64, i64, u64: elements can be used in place */

/* Gathers count elements from data[index], `step` apart, to a block. Types: of that class; to f64: any. */
void berth__gather(berth__class cls, void *dst, berth_type type, const void *data, int64_t index, int64_t step,
                   int64_t count);
void berth__gather_f64(double *dst, berth_type type, const void *data, int64_t index, int64_t step, int64_t count);
/* Scatters a block of a class to elements of any type, converted like the op cast. */
void berth__scatter(berth__class cls, const void *src, berth_type type, void *data, int64_t index, int64_t step,
                    int64_t count);

/* Goes over the elements [begin, end) of a row-major index space in runs: stretches in which every tensor advances by
 * its own constant step. Axes that are contiguous in all tensors are merged, so a contiguous call is one run. */
typedef struct berth__runs {
  uint32_t rank, n;
  int64_t dim[BERTH_MAX_RANK];
  int64_t stride[4][BERTH_MAX_RANK];
  const int64_t *strides[4];
  berth__walk walk; /* over all axes but the last */
  int64_t inner;    /* position on the last axis */
  int64_t left;
  int64_t index[4], step[4]; /* the current run, per tensor */
  int64_t count;
} berth__runs;

/* stride[k] as for berth__walk_start. The strides are copied. */
void berth__runs_shape(berth__runs *runs, uint32_t rank, const int64_t *dim, uint32_t n, const int64_t *const *stride);
void berth__runs_start(berth__runs *runs, int64_t begin, int64_t end);
bool berth__runs_next(berth__runs *runs); /* false: no more. */
/* The index space of out[0], with out[0] first and then the operands, broadcast to it. */
void berth__runs_of_call(berth__runs *runs, const berth_op_call *call);

/* Computes `count` elements of a block from one or two others, which do not overlap it. `state` is passed through from
 * the family. */
typedef void (*berth__block_fn)(void *out, const void *const *in, int64_t count, const void *state);
/* Runs fn over the call's elements: operands become blocks of class `in_class`, results are blocks of `out_class`. */
void berth__map_blocks(const berth_op_call *call, berth__class in_class, berth__class out_class, berth__block_fn fn,
                       const void *state);

/* The sum of a block in a fixed order that allows several additions in flight. */
double berth__block_sum(const double *values, int64_t count);

/* For families whose items are elements of output 0. */
int64_t berth__items_elements(const berth_op_call *call);
/* For families that work along one axis of operand 0: its lines. */
typedef struct berth__lines {
  int64_t outer, length, inner; /* line i starts at (i / inner) * length * inner + i % inner, with stride inner */
} berth__lines;
berth__lines berth__lines_of(const berth_tensor *tensor, int64_t axis);
static inline int64_t berth__line_start(const berth__lines *lines, int64_t line) {
  return line / lines->inner * lines->length * lines->inner + line % lines->inner;
}

#endif
