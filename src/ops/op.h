/* What an op is. An op knows nothing about graphs, plans or devices: it infers types and shapes, defines how its work
 * can be split and what scratch it needs, and has a plain reference kernel.
 *
 * ops.def has one row per op; a family (one file) contains what its ops have in common. */
#ifndef BERTH_OPS_OP_H
#define BERTH_OPS_OP_H

#include <stdbool.h>

#include "base/context.h"

/* A dimension inside the library: an extent (>= 0), a named one (berth__dim_named(i) of the graph's i-th name), or one
 * that depends on named ones and is unknown until they are bound. */
#define BERTH__DIM_UNKNOWN INT64_MIN
static inline bool berth__dim_is_fixed(int64_t dim) { return dim >= 0; }
static inline int64_t berth__dim_named(uint32_t index) { return -1 - (int64_t)index; }
static inline bool berth__dim_is_named(int64_t dim) { return dim < 0 && dim != BERTH__DIM_UNKNOWN; }
static inline uint32_t berth__dim_index(int64_t dim) { return (uint32_t)(-1 - dim); }

typedef struct berth__shape {
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
} berth__shape;

typedef struct berth__op berth__op;

/* Input and output of inference. Omitted operands have type BERTH_TYPE_NONE. Attributes are in the order of the
 * family's declaration, with defaults filled in. Errors need not name the node: the caller prepends it. */
typedef struct berth__infer {
  const berth__op *op;
  const berth_type *in_type;
  const berth__shape *in_shape;
  const void *const *in_data; /* the elements of constant operands; NULL if they are not known yet */
  /* Bounds of the elements of other operands, if known; NULL: for none. */
  const void *const *in_least, *const *in_most;
  bool wants_bounds; /* requests upper bounds for extents that depend on unknown elements */
  uint32_t n_in, n_out;
  const berth_attr *attrs;
  berth_type *out_type;
  berth__shape *out_shape;
  int64_t (*resolve)(const struct berth__infer *infer, const berth_dim *dim); /* a dimension of a DIMS attribute */
  const char *(*dim_name)(const struct berth__infer *infer, int64_t dim);     /* of a named dim; NULL: shown as "?" */
  void *graph;                                                                /* only for resolve and dim_name */
} berth__infer;

/* Output `out` of a call as a view of operand 0: an element offset and strides. False: it cannot be a view. `in` is
 * operand 0 in memory (possibly strided); `shape` is the output's inferred shape. */
typedef bool (*berth__view_fn)(const berth_tensor *in, const berth_attr *attrs, const berth__shape *shape,
                               berth_type type, uint32_t out, int64_t *offset, int64_t *stride);

#define BERTH__ATTR_OPERANDS 8

typedef struct berth__family {
  const berth_attr *attrs; /* all attributes of the family's ops, with defaults; a NULL `name` ends the list */
  uint32_t n_attrs;
  uint32_t required; /* bit k: attribute k must be given */
  berth_status (*infer)(berth__infer *infer, berth_error *err);
  /* Optional: the shapes of the results when a run reaches the call and infer would be slow; has the scratch. */
  berth_status (*find)(const berth_op_call *call, berth__shape *shapes, berth_error *err);
  int64_t (*items)(const berth_op_call *call);    /* NULL: one item */
  uint64_t (*scratch)(const berth_op_call *call); /* NULL: none. Bytes for one call on one worker */
  berth_status (*kernel)(const berth_op_call *call, berth_error *err);
  berth__view_fn view; /* NULL: never a view */
  uint32_t valued;     /* bit k: shapes depend on the elements of operand k */
  uint32_t bounded;    /* bit k: of those; without the elements of operand k, extents still have an upper bound */
  uint8_t bound_attr;  /* attribute + 1 that is required for `bounded`; 0: none */
  /* attr_of[k] - 1 is the attribute that can replace operand k; 0: none. Constant operands become attributes before a
   * plan is made, because views are derived from attributes only. */
  uint8_t attr_of[BERTH__ATTR_OPERANDS];
  uint32_t (*in_place_of)(const berth_attr *attrs); /* NULL: as in the op's row, regardless of attributes */
  uint32_t (*in_place_rest)(const berth_attr *attrs, uint32_t out); /* for outputs from 1 on; NULL: none overwrites */
  /* over_attr - 1 is the attribute (0 or 1) that lets the result overwrite operand 0, at the price of scratch: set by
   * the planner if it makes the arena smaller. 0: none. */
  uint8_t over_attr;
  /* Whether it may be set for operand 0 and a result of these shapes, which are fixed. */
  bool (*may_lie_over)(const berth_attr *attrs, const berth__shape *x, const berth__shape *out);
  uint32_t may_lack;     /* bit k: operand k may be omitted, even if others follow it or their number is arbitrary */
  uint32_t unit_last;    /* bit k: strided operand k must have stride 1 on its last axis */
  uint8_t any_attr;      /* attribute + 1 that lets operand 0 have any strides, despite unit_last; 0: none */
  uint32_t takes_blocks; /* bit k: operand k may have a block type; other ops never get one */
  bool takes_unaligned;  /* its kernels accept unaligned operands: weights in a mapped file */
  bool packs;            /* its result is a weight for its kernels: kept regardless of its size, and never recomputed */
  bool is_random;        /* each call is a separate draw: never folded at compile time, and no two calls are merged */
  bool is_loop;          /* an end of a loop: neither folded nor merged */
} berth__family;

#define BERTH__ANY 255u /* any number of operands or outputs */
#define BERTH__ALL UINT32_MAX

typedef enum berth__op_code {
#define BERTH_OP(name, ...) BERTH__OP_##name,
#include "ops/ops.def"
  BERTH__OP_COUNT,
  BERTH__OP_CUSTOM = BERTH__OP_COUNT
} berth__op_code;

/* The positions of operands and attributes. */
#define BERTH_OP(...)
#define BERTH_OPERANDS(...) \
  enum {                    \
    __VA_ARGS__             \
  };
#define BERTH_ATTRS(...) \
  enum {                 \
    __VA_ARGS__          \
  };
#include "ops/ops.def"

typedef enum berth__op_tier {
  BERTH__PUBLIC,
  BERTH__MADE /* only made by rewriting */
} berth__op_tier;

struct berth__op {
  const char *name;
  berth__op_code code;
  berth__op_tier tier;
  const berth__family *family;
  uint32_t min_in, max_in;
  uint32_t min_out, max_out;
  uint32_t in_place; /* bit k: the kernel may write output 0 over operand k if shape and element size are equal */
  uint32_t strided;  /* bit k: the kernel accepts operand k with any strides; bit 31 stands for all above */
  const berth_op_desc *custom; /* registered ops only */
};

/* The required value of call->user: a registered op's own pointer, or the op itself for a built-in one. */
static inline void *berth__op_user(const berth__op *op) {
  return op->custom ? op->custom->user : (void *)(uintptr_t)op;
}

/* Bit k: a call with these attributes may write output 0 over operand k. */
static inline uint32_t berth__op_in_place(const berth__op *op, const berth_attr *attrs) {
  return op->family->in_place_of != NULL ? op->family->in_place_of(attrs) : op->in_place;
}

/* The same for any output. An op that may overwrite operands with several outputs may do so with all of them at
 * once. */
static inline uint32_t berth__op_in_place_at(const berth__op *op, const berth_attr *attrs, uint32_t out) {
  const uint32_t *custom = op->custom != NULL ? op->custom->in_places : NULL;
  if (out == 0) return berth__op_in_place(op, attrs) | (custom != NULL ? custom[0] : 0);
  if (custom != NULL) return custom[out];
  return op->family->in_place_rest != NULL ? op->family->in_place_rest(attrs, out) : 0;
}

/* Kernels of built-in ops find their op through call->user. */
static inline berth__op_code berth__call_code(const berth_op_call *call) {
  return ((const berth__op *)call->user)->code;
}

/* Whether a strided operand must have a last axis of stride 1. */
static inline bool berth__op_wants_unit_last(const berth__op *op, const berth_attr *attrs, uint32_t operand) {
  const berth__family *family = op->family;
  if (operand >= 32 || (family->unit_last >> operand & 1u) == 0) return false;
  return operand != 0 || family->any_attr == 0 || attrs[family->any_attr - 1].i == 0;
}

static inline bool berth__op_takes_strided(const berth__op *op, uint32_t operand) {
  return (op->strided >> (operand > 31 ? 31 : operand)) & 1u;
}

/* Whether the kernel accepts operand k with its actual strides. */
bool berth__op_takes(const berth__op *op, const berth_attr *attrs, uint32_t operand, const berth_tensor *tensor);

/* Ops that only use their operand's shape, never its elements. */
static inline bool berth__op_reads_shape_only(const berth__op *op) {
  return op->code == BERTH__OP_shape || op->code == BERTH__OP_size;
}

/* Positions of the operands and results of the two ends of a loop (family_loop.c). */
enum {
  BERTH__LOOP_TRIPS = 0, /* operands of loop_begin; the first values of carried ones are from 2 on */
  BERTH__LOOP_CONDITION = 1,
  BERTH__LOOP_ROUND = 0, /* results of loop_begin, and the first operands of loop_end */
  BERTH__LOOP_STARTS = 1,
  BERTH__LOOP_CARRIED = 2, /* results of loop_begin from here on */
  BERTH__LOOP_END_TRIPS = 2,
  BERTH__LOOP_END_CONDITION = 3,
  BERTH__LOOP_END_CARRIED = 4, /* operands of loop_end from here on; then the next values, then the scanned ones */
  BERTH__LOOP_ROUNDS = 0,      /* results of loop_end */
  BERTH__LOOP_AGAIN = 1,
  BERTH__LOOP_LAST = 2 /* and from here on; then the stacked ones */
};

/* The number of values that a loop_end with this many operands and results carries. */
static inline uint32_t berth__loop_end_carried(uint32_t n_in, uint32_t n_out) { return n_in - n_out - 2; }

/* NULL if there is none. Built-in ops first, then the context's own. */
const berth__op *berth__op_find(const berth_context *ctx, const char *name);
const berth__op *berth__op_builtin(berth__op_code code);

/* ---- Helpers for families (common.c) -------------------------------------------------------------------------- */

bool berth__type_is_float(berth_type type); /* f32 f64 f16 bf16 */
bool berth__type_is_int(berth_type type);   /* types that fit in i64: i8 u8 i16 u16 i32 u32 i64; not bool, not u64 */
/* Fails with "operand 1 has type i32, expected f32" or similar. */
berth_status berth__want_type(const berth__infer *infer, uint32_t operand, berth_type type, berth_error *err);
berth_status berth__want_same_type(const berth__infer *infer, uint32_t a, uint32_t b, berth_error *err);
berth_status berth__want_float(const berth__infer *infer, uint32_t operand, berth_error *err);
berth_status berth__want_numeric(const berth__infer *infer, uint32_t operand, berth_error *err); /* float or integer */
berth_status berth__want_bits(const berth__infer *infer, uint32_t operand, berth_error *err);    /* integer or bool */
void berth__int_limits(berth_type type, int64_t *low, int64_t *high); /* of an integer type or bool */
berth_status berth__want_rank(const berth__infer *infer, uint32_t operand, uint32_t min, uint32_t max,
                              berth_error *err);
/* -rank <= axis < rank; made non-negative. */
berth_status berth__want_axis(int64_t axis, uint32_t rank, uint32_t *out, berth_error *err);
/* Two dimensions that must be equal: returns the one that is known better. Unknown ones are accepted and are checked
 * when they are bound. */
berth_status berth__same_dim(int64_t a, int64_t b, const char *what, int64_t *out, berth_error *err);
/* numpy broadcasting. */
berth_status berth__broadcast(const berth__shape *a, const berth__shape *b, berth__shape *out, berth_error *err);
/* Arithmetic on dimensions: fixed if both are fixed, the dimension itself if the other one has no effect, otherwise
 * unknown. Fails on overflow and on negative results. */
berth_status berth__dim_add(int64_t a, int64_t b, int64_t *out, berth_error *err);
berth_status berth__dim_mul(int64_t a, int64_t b, int64_t *out, berth_error *err);
/* The number of elements: false as long as a dimension is not fixed, or if it overflows. */
bool berth__shape_count(const berth__shape *shape, int64_t *out);
bool berth__shape_equal(const berth__shape *a, const berth__shape *b);
/* Writes "[2, 3, ?]" into a caller's buffer, for messages. */
#define BERTH__SHAPE_TEXT 256
const char *berth__shape_text(const berth__shape *shape, char text[BERTH__SHAPE_TEXT]);

/* On tensors: elements; contiguity; contiguous strides. Tensors have fixed, checked extents. */
int64_t berth__count(const berth_tensor *tensor);
uint64_t berth__tensor_bytes(const berth_tensor *tensor); /* of its elements, contiguous, in their own type */
bool berth__is_contiguous(const berth_tensor *tensor);
void berth__contiguous_strides(uint32_t rank, const int64_t *dim, int64_t *stride);

/* The number of work items of a call; none if every output is empty, whatever the kernel would return. */
int64_t berth__op_items(const berth__op *op, const berth_op_call *call);

/* Element access for kernels that are not worth a loop per type: any type through f64, or through i64 (exact for all
 * integer types and bool; u64 wraps). Stores convert like the op cast: f64 to integers truncates and saturates, NaN
 * becomes 0; i64 to smaller integers wraps; to bool: x != 0; to floats: rounds once. See elementwise.h for whole
 * blocks. */
double berth__load_f64(const berth_tensor *tensor, int64_t element_index);
void berth__store_f64(const berth_tensor *tensor, int64_t element_index, double value);
int64_t berth__load_i64(const berth_tensor *tensor, int64_t element_index);
void berth__store_i64(const berth_tensor *tensor, int64_t element_index, int64_t value);

/* Goes over the elements [begin, end) of a row-major index space and keeps one memory index per tensor.
 *   for (berth__walk w = berth__walk_start(rank, dim, begin, ...); ...) */
typedef struct berth__walk {
  uint32_t rank, n;
  const int64_t *dim;
  int64_t at[BERTH_MAX_RANK];
  const int64_t *stride[4];
  int64_t index[4]; /* element index in each tensor */
} berth__walk;
/* stride[k] are tensor k's strides over the index space's axes (0 if broadcast). n <= 4. */
void berth__walk_start(berth__walk *walk, uint32_t rank, const int64_t *dim, uint32_t n, const int64_t *const *stride,
                       int64_t begin);
void berth__walk_next(berth__walk *walk);
/* A tensor's strides over a larger, broadcast index space of `rank` axes. */
void berth__broadcast_strides(const berth_tensor *tensor, uint32_t rank, const int64_t *dim, int64_t *stride);

#endif
