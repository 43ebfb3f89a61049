/* From a call of an op to kernels. Each file of lower/ lowers a group of ops; ops.def names the function of each op.
 *
 * A lowering sees a call as a kernel of src/ops does, but without data: shapes, strides, types, attributes. It makes
 * one or a few kernels, which run in order, each after the writes of those before it. Numbers are 32 bits wide whatever
 * their type is; loads and stores convert from and to their storage (kernel.h):
 *
 *   f32 f64 f16 bf16     as f32
 * i8 i16 i32 i64       as i32    i8 and i16 wrap to their width; i64 must fit, which the host checks when it writes
 *   u8 u16 u32 u64 bool  as u32    u8 and u16 wrap; bool is 0 or 1
 *
 * The reference kernel of the op (src/ops/family_*.c) defines what is right. */
#ifndef BERTH_KERNEL_LOWER_H
#define BERTH_KERNEL_LOWER_H

#include "base/profile.h"
#include "kernel/kernel.h"
#include "ops/op.h"

/* What a kernel's buffer refers to (berth__kernel_buffer.operand). */
#define BERTH__OPERAND_SCRATCH 0x10000u   /* the step's scratch */
#define BERTH__OPERAND_CONDITION 0x20000u /* + g: condition g */
static inline uint32_t berth__operand_in(uint32_t i) { return i; }
static inline uint32_t berth__operand_out(const berth_op_call *call, uint32_t i) { return call->n_in + i; }

/* A step that runs only if a condition, an element in the arena, has this value. */
typedef struct berth__step_condition {
  bool sense;
  berth__storage storage;
  uint64_t at; /* in bytes; only the offset in its word matters */
} berth__step_condition;

typedef struct berth__lowering {
  berth_context *ctx;
  const berth__kernel_limits *limits;
  const berth__op *op;
  const berth_op_call *call;
  const berth__storage *storage; /* one per operand and then one per result; NULL: follows from their types */
  const uint64_t *at;            /* offsets of operands and then results, in bytes; NULL: unknown */
  const berth__step_condition *conditions;
  uint32_t n_conditions;
  berth__kernel **kernels; /* the result */
  size_t n_kernels, capacity;
} berth__lowering;

/* Rows, columns and depth from which on matrix units are used; below, f32 stays f32. */
#define BERTH__MATRIX_LINES 9
#define BERTH__MATRIX_DEPTH 16

typedef struct berth__lower_row {
  berth_status (*lower)(berth__lowering *l, berth_error *err);                        /* NULL: the op has no kernels */
  uint64_t (*scratch)(const berth_op_call *call, const berth__kernel_limits *limits); /* bytes */
} berth__lower_row;

/* Fills kernels; UNSUPPORTED with a reason if there are none. The caller sets all other fields of `lowering`;
 * berth__lowering_free frees the kernels, also after a failure. */
berth_status berth__lower_call(berth__lowering *lowering, berth_error *err);
void berth__lowering_free(berth__lowering *lowering);
bool berth__lower_has(const berth__op *op);
uint64_t berth__lower_scratch(const berth__op *op, const berth_op_call *call, const berth__kernel_limits *limits);

/* ---- For lowerings (lower/common.c) ---- */

/* A new kernel, named after the op; it begins with the conditions. NULL if memory ran out: everything below accepts
 * NULL and does nothing, and berth__l_end reports it. */
berth__kernel *berth__l_begin(berth__lowering *l, const char *what);
/* Closes what berth__l_begin and berth__l_each opened, and appends the kernel to the list. */
berth_status berth__l_end(berth__lowering *l, berth__kernel *k, berth_error *err);
/* One thread per element of `count`, in flat order: sets group_size and n_groups, and puts everything up to
 * berth__l_end inside `if (index < count)`. No barriers after it.
 *
 * If these are the elements of a contiguous result 0, and several of them share a word, there is one thread per word:
 * the code that follows is inside a loop over its elements as well, and berth__l_store of element `index` collects the
 * bits until the word is complete, so that no other thread writes to it. Such a kernel must not read what it has
 * stored. */
berth__x berth__l_each(berth__lowering *l, berth__kernel *k, int64_t count);
/* The same with always one thread per element: for kernels that read what they have stored. */
berth__x berth__l_each_alone(berth__lowering *l, berth__kernel *k, int64_t count);

/* One thread for several elements of very many, so that it can load all of them before it stores the first: for kernels
 * that overwrite what they load, where a compiler cannot move loads ahead. Sets their indices and returns how many they
 * are. Those past the end load the last element, and is_there is false; BERTH__X_NONE: all are there. */
#define BERTH__EACH_AHEAD 4u
uint32_t berth__l_each_ahead(berth__lowering *l, berth__kernel *k, int64_t count, berth__x *index, berth__x *is_there);

/* The buffer of an operand or a result. */
uint32_t berth__l_in(const berth__lowering *l, berth__kernel *k, uint32_t i);
uint32_t berth__l_out(const berth__lowering *l, berth__kernel *k, uint32_t i);
uint32_t berth__l_scratch(berth__kernel *k, berth__storage storage);
static inline bool berth__l_has(const berth__lowering *l, uint32_t i) {
  return i < l->call->n_in && l->call->in[i].type != BERTH_TYPE_NONE;
}

/* The number type that elements of a type are computed in (bool as BOOL), and their default storage: their own width,
 * but 32 bits for types of 64, since a kernel has no more. */
berth__number berth__l_number(berth_type type);
berth__storage berth__l_storage(berth_type type);

/* A flat index to coordinates, and coordinates to an element's position in a tensor. */
void berth__l_unravel(berth__kernel *k, berth__x index, uint32_t rank, const int64_t *dim, berth__x *at);
berth__x berth__l_place(berth__kernel *k, const berth_tensor *tensor, const berth__x *at);
/* The same for a tensor that is broadcast to `rank` axes. */
berth__x berth__l_place_broadcast(berth__kernel *k, const berth_tensor *tensor, uint32_t rank, const berth__x *at);
/* The position of element `index`, in row-major order, of a tensor. */
berth__x berth__l_place_flat(berth__kernel *k, const berth_tensor *tensor, berth__x index);

/* The storage of an operand; results are numbered after the operands. */
berth__storage berth__l_storage_of(const berth__lowering *l, uint32_t operand);
/* The bytes of its elements there, each counted once; 0 if it is left out. For reports. */
double berth__l_bytes(const berth__lowering *l, uint32_t operand);
/* The buffer of an operand or a result as words, or as bits of a width, whatever its element type is. */
uint32_t berth__l_buffer(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__storage storage);

/* An element, in its number type; and storing one: converted to the result's type, wrapped if that is narrow. */
berth__x berth__l_load(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place);
void berth__l_store(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place, berth__x value);
/* The same without conversion to the result's type: a value of the storage's number, or bool. */
void berth__l_store_bits(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__storage storage,
                         berth__x place, berth__x value);
/* A value in the number type of `type`, wrapped to the type's bits. */
berth__x berth__l_wrap(berth__kernel *k, berth__x value, berth_type type);
/* A value of any number type converted to `type` like the op `cast`. */
berth__x berth__l_cast(berth__kernel *k, berth__x value, berth_type from, berth_type to);

/* lower/math.c: f32 functions that take more than one instruction; and one step of a chain. */
berth__x berth__l_unary(berth__kernel *k, berth__op_code op, berth__x a);
/* A whole chain or epilogue (ops/chain.h): the first registers are the operands. */
struct berth__chain;
berth__x berth__l_chain(berth__kernel *k, const struct berth__chain *chain, const berth__x *operands);

#endif
