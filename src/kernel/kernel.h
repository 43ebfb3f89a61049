/* The kernel language: the form of a kernel before it is rendered to a device's source.
 *
 * A kernel is a linear list of instructions with blocks (loop, if) in it. Every thread of every workgroup runs the
 * list. Each instruction has a number; instructions refer to the results of earlier ones that are visible to them (in
 * the same block or an enclosing one). All numbers are 32 bits wide.
 *
 * Kernels are made by the functions below. These simplify while they build (constant folding, index arithmetic with
 * value ranges, common subexpressions), so a lowering may write the general form and gets the short one. Nothing here
 * knows about ops, plans or devices. */
#ifndef BERTH_KERNEL_KERNEL_H
#define BERTH_KERNEL_KERNEL_H

#include <stdbool.h>

#include "base/context.h"

typedef enum berth__number {
  BERTH__NUM_F32,
  BERTH__NUM_I32,
  BERTH__NUM_U32,
  BERTH__NUM_BOOL
} berth__number;

typedef enum berth__inst_code {
#define BERTH__INST(name, operands, kind) BERTH__INST_##name,
#include "kernel/kernel.def"
#undef BERTH__INST
  BERTH__INST_COUNT
} berth__inst_code;

typedef enum berth__inst_kind {
  BERTH__INST_PURE,
  BERTH__INST_READ,
  BERTH__INST_ACT,
  BERTH__INST_BLOCK
} berth__inst_kind;

/* The number of an instruction, which stands for its result. */
typedef uint32_t berth__x;
#define BERTH__X_NONE UINT32_MAX

typedef struct berth__inst {
  uint8_t code;   /* berth__inst_code */
  uint8_t type;   /* berth__number of the result */
  uint16_t depth; /* number of enclosing blocks */
  uint32_t bits;  /* see kernel.def */
  berth__x in[3];
  int64_t low, high; /* integers: the range of the result */
} berth__inst;

/* The storage of a buffer's elements: one of a plan's storages, by its type. Memory consists of words; elements of one
 * or two bytes are packed four or two to a word, the first in the low bits, and loads unpack them:
 *
 * f32 i32 u32   one word each
 * f16 bf16      two to a word, f32 in a kernel; stores round to nearest even
 * i16 u16       two to a word, i32 and u32 in a kernel; stores keep the low bits
 *   i8 u8 bool    four to a word, i32 and u32
 *
 * A store changes only the bits of its own element, even if others write the rest of the word at the same time. */
typedef berth_type berth__storage;
#define BERTH__STORAGES 14u /* entries of a table indexed by storage */
berth__number berth__storage_number(berth__storage storage);
static inline uint32_t berth__storage_per_word(berth__storage storage) {
  return 4u / berth_type_storage(storage).bytes;
}

#define BERTH__KERNEL_BUFFERS 24u /* offsets of this many fit the push constants of every device */

typedef struct berth__kernel_buffer {
  berth__storage storage;
  bool is_read, is_written; /* set by loads and stores */
  bool is_early;            /* loaded before an `await` */
  bool is_contended;        /* several threads write to one word of it at once: set by store_max */
  uint32_t operand;         /* for the maker's use: see lower.h */
  uint32_t skip;            /* during construction: elements of the first word that precede the buffer */
} berth__kernel_buffer;

typedef struct berth__kernel_array {
  berth__number type;
  uint32_t count;
  berth__storage storage; /* of a shared array of f32: stores round to this, f16 or bf16 */
  /* Of a shared array that lies over earlier ones: 1 + the number of the first of them, at whose beginning it begins.
   * What is stored in it is lost when something is stored in those, and the other way round. 0: it lies alone. */
  uint32_t over;
} berth__kernel_array;

#define BERTH__KERNEL_ARRAYS 8u

/* A piece of a matrix in a shared array, in each of several slots: lines (rows of the left side, columns of the right
 * one) of a certain depth. If there is one slot, it stands for all. */
typedef struct berth__kernel_tile {
  uint32_t array;
  uint32_t lines, depth, slots;
  bool is_deep;   /* elements are contiguous along the depth; otherwise along lines */
  uint32_t pitch; /* stride between lines, or between steps of the depth */
  /* If not 0, the layout of warpgroups: this many neighbours, 128 bytes, are a row, and all rows of one group of them
   * precede those of the next. The eight 16-byte pieces of row r are swizzled: piece p is stored at position p xor r %
   * 8. */
  uint32_t row;
} berth__kernel_tile;
static inline uint32_t berth__tile_slot(const berth__kernel_tile *tile) {
  return (tile->is_deep ? tile->lines : tile->depth) * tile->pitch;
}
#define BERTH__ROW_BYTES 128u
#define BERTH__ROW_PIECES 8u

/* Sums of products, initially 0: one for each pair of a line of the left tile and one of the right. */
typedef struct berth__kernel_sums {
  berth__kernel_tile left, right;
  berth__number type;  /* f32, or wrapping i32 */
  berth_compute kind;  /* of f32: factors are rounded to it */
  uint32_t together;   /* adjacent columns that one thread has, 1, 2 or 4 */
  uint32_t group_rows; /* if each thread computes its own sums: threads along the rows */
  /* 0 or 1, or the number of consecutive parts into which the workgroup's threads are divided: each multiplies its
   * share of the depth and has its own sums (split-K). After a `join`, and before an `each`, every part has its share
   * of the final sums. */
  uint32_t parts;
  /* Asynchronous, for warpgroups: a slot may be reused only when the next one has been multiplied, or an `each`
   * begins. */
  bool is_late;
  bool by_fours; /* of f32: each thread multiplies, and loads four adjacent elements of a tile at once */
  bool has_rows; /* a row belongs to BERTH__ROW_THREADS adjacent threads, which can fold it */
  /* For cooperative matrices: 1 + the number of a shared array of f32 by which sums reach the threads, as many at a
   * time as there is room for. 0: there is none. */
  uint32_t stage;
} berth__kernel_sums;

static inline uint32_t berth__sums_parts(const berth__kernel_sums *sums) { return sums->parts > 1 ? sums->parts : 1; }

#define BERTH__KERNEL_SUMS 4u
#define BERTH__THREAD_SUMS 128u /* the most that a thread has */
#define BERTH__ROW_THREADS 4u

/* A word of a narrow result that each thread assembles from the elements that it computes (lower/words.c). */
typedef struct berth__kernel_word {
  bool is_open;
  bool is_whole;          /* all its elements are always stored */
  uint32_t operand;       /* the result */
  uint16_t depth;         /* block depth after the loop over the word's elements */
  berth__x word;          /* which one */
  berth__x lane;          /* the current element of the word */
  berth__x index;         /* the current element of the result */
  berth__x bits, written; /* variables: the word, and a mask of what was written */
} berth__kernel_word;

typedef struct berth__kernel {
  berth_context *ctx;
  char name[48]; /* for people: the op and its variant */
  berth__inst *insts;
  size_t n_insts, capacity;
  berth__kernel_buffer buffers[BERTH__KERNEL_BUFFERS];
  uint32_t n_buffers;
  berth__kernel_array shared[BERTH__KERNEL_ARRAYS], local[BERTH__KERNEL_ARRAYS];
  uint32_t n_shared, n_local;
  berth__kernel_sums sums[BERTH__KERNEL_SUMS];
  uint32_t n_sums;
  uint32_t group_size; /* threads per workgroup */
  uint64_t n_groups;   /* workgroups per run */
  uint32_t resident;   /* workgroups for which a core must have registers; 0: the compiler decides */
  double flops, bytes; /* work per run, for reports; if flops is not set, finish counts it */

  /* During construction. */
  berth_status status;        /* the first error; after it, nothing is added */
  uint16_t depth;             /* open blocks */
  struct berth__maker *maker; /* maker.h */
  berth__kernel_word word;
} berth__kernel;

berth_status berth__kernel_create(berth_context *ctx, const char *name, berth__kernel **out, berth_error *err);
void berth__kernel_destroy(berth__kernel *kernel); /* NULL is fine */
/* Completes the kernel: reports earlier memory failures and open blocks, and removes instructions without use. */
berth_status berth__kernel_finish(berth__kernel *kernel, berth_error *err);

/* Returns the number of a buffer. `operand` identifies it: the same operand and storage give the same number. */
uint32_t berth__kernel_buffer_of(berth__kernel *k, uint32_t operand, berth__storage storage);
uint32_t berth__kernel_shared(berth__kernel *k, berth__number type, uint32_t count); /* an array per workgroup */
uint32_t berth__kernel_local(berth__kernel *k, berth__number type, uint32_t count);  /* an array per thread */

/* tiles.c: a shared array over the array `first` and those that follow it, in whose memory it lies. */
uint32_t berth__kernel_shared_over(berth__kernel *k, berth__number type, uint32_t count, uint32_t first);
/* Where a shared array begins in a workgroup's memory, in bytes; and whether two of them have bytes in common. */
uint64_t berth__kernel_shared_at(const berth__kernel *kernel, uint32_t array);
bool berth__kernel_shared_meet(const berth__kernel *kernel, uint32_t a, uint32_t b);
/* tiles.c: a shared array of f32 whose stores round to a storage. */
uint32_t berth__kernel_shared_as(berth__kernel *k, berth__storage storage, uint32_t count);
/* A tile with its own array, laid out for products of this kind. Its contents are rounded when they are stored
 * (compute_storage of the kind) or, if held as f32, when they are multiplied. And the bytes per slot. */
typedef struct berth__tile_desc {
  berth__number type; /* f32 or i32 */
  berth_compute kind; /* f32 for i32 */
  berth__storage storage;
  uint32_t lines, depth, slots;
  bool is_deep;
  bool is_for_warpgroup; /* 16-bit numbers; contiguous elements fill whole rows of 128 bytes */
  bool is_for_fours;     /* f32: groups of four are aligned to 16 bytes */
} berth__tile_desc;
berth__kernel_tile berth__kernel_tile_of(berth__kernel *k, const berth__tile_desc *desc);
uint32_t berth__tile_slot_bytes(const berth__tile_desc *desc);
berth__storage berth__compute_storage(berth_compute kind);
/* Sums of two tiles of the same kind and depth; and the bytes of a workgroup's shared arrays. */
uint32_t berth__kernel_sums_of(berth__kernel *k, const berth__kernel_sums *sums); /* its number */
uint64_t berth__kernel_shared_bytes(const berth__kernel *kernel);

/* Rows and columns per thread if each computes its own sums, and threads along them; within a part. */
typedef struct berth__sums_spread {
  uint32_t parts, threads; /* threads: per part */
  uint32_t thread_rows, thread_columns, group_rows, group_columns;
} berth__sums_spread;
berth__sums_spread berth__sums_spread_of(const berth__kernel *k, const berth__kernel_sums *sums);
/* The share of a warp, or subgroup: rectangles of whole 16 x 16 pieces, as square as possible; n of them, `across`
 * along the columns. Sums with rows have whole rows in a warp. across 0: there are no such rectangles. */
typedef struct berth__warps {
  uint32_t n, across;
  uint32_t rows, columns; /* per warp */
} berth__warps;
berth__warps berth__warps_of(uint32_t n, uint32_t lines, uint32_t columns, bool has_rows);
/* The array whose memory a `join` may use. */
uint32_t berth__sums_room(const berth__kernel *k, const berth__kernel_sums *sums);
/* Rows per thread of sums that have rows, however they are spread. */
static inline uint32_t berth__sums_lines(const berth__kernel *k, const berth__kernel_sums *sums) {
  return sums->left.lines * BERTH__ROW_THREADS / k->group_size;
}

/* ---- Making instructions. Each returns the number of a result, which may be an earlier one, or a constant. ---- */

berth__x berth__x_f32(berth__kernel *k, float value);
berth__x berth__x_i32(berth__kernel *k, int64_t value); /* must fit */
berth__x berth__x_u32(berth__kernel *k, uint32_t value);
berth__x berth__x_bool(berth__kernel *k, bool value);
berth__x berth__x_group(berth__kernel *k);  /* 0 .. n_groups - 1: set n_groups first */
berth__x berth__x_thread(berth__kernel *k); /* 0 .. group_size - 1: set group_size first */

/* Any PURE instruction of one, two or three operands; the operands determine the type. */
berth__x berth__x1(berth__kernel *k, berth__inst_code code, berth__x a);
berth__x berth__x2(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b);
berth__x berth__x3(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b, berth__x c);
berth__x berth__x_convert(berth__kernel *k, berth__number type, berth__x a);
berth__x berth__x_bits(berth__kernel *k, berth__number type, berth__x a);
berth__x berth__x_byte(berth__kernel *k, berth__x a, uint32_t which); /* as f32 */
/* Short forms for lowerings. */
#define BERTH__X2_FORM(name)                                                         \
  static inline berth__x berth__x_##name(berth__kernel *k, berth__x a, berth__x b) { \
    return berth__x2(k, BERTH__INST_##name, a, b);                                   \
  }
BERTH__X2_FORM(add)
BERTH__X2_FORM(sub)
BERTH__X2_FORM(mul)
BERTH__X2_FORM(div)
BERTH__X2_FORM(quotient)
BERTH__X2_FORM(rem)
BERTH__X2_FORM(min)
BERTH__X2_FORM(max)
BERTH__X2_FORM(lt)
BERTH__X2_FORM(le)
BERTH__X2_FORM(eq)
BERTH__X2_FORM(ne)
BERTH__X2_FORM(and)
BERTH__X2_FORM(or)
#undef BERTH__X2_FORM
static inline berth__x berth__x_select(berth__kernel *k, berth__x condition, berth__x yes, berth__x no) {
  return berth__x3(k, BERTH__INST_select, condition, yes, no);
}
/* a * factor + offset, integers. */
berth__x berth__x_affine(berth__kernel *k, berth__x a, int64_t factor, int64_t offset);
berth__x berth__x_is_nan(berth__kernel *k, berth__x a); /* by its bits: no compiler may optimise it away */

berth__x berth__x_load(berth__kernel *k, uint32_t buffer, berth__x index);
/* Loads four words of a buffer of 32-bit elements at once, from word 4 * index on, which must be aligned to 16 bytes;
 * and one of them. */
berth__x berth__x_quad(berth__kernel *k, uint32_t buffer, berth__x index);
berth__x berth__x_part(berth__kernel *k, berth__x quad, uint32_t which);
void berth__x_store(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value);
/* Stores a local array of four u32 at once, from word 4 * index of a buffer of u32 on. */
void berth__x_quad_store(berth__kernel *k, uint32_t buffer, berth__x index, uint32_t local);
/* Stores the maximum of an element of u32 and a value. Any number of threads may do this to one element at once, and
 * the result does not depend on their order; the same kernel must not load or store the element otherwise. */
void berth__x_store_max(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value);
/* The bits of an element of this storage, in the low bits of a u32, from a value of the storage's number type. */
berth__x berth__x_pack(berth__kernel *k, berth__storage storage, berth__x value);
/* Two bf16 in one u32, the first in the low half. Only for kernels that have tiles. */
berth__x berth__x_pack_pair(berth__kernel *k, berth__x first, berth__x second);
berth__x berth__x_shared_load(berth__kernel *k, uint32_t array, berth__x index);
void berth__x_shared_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value);
berth__x berth__x_local_load(berth__kernel *k, uint32_t array, berth__x index);
void berth__x_local_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value);
berth__x berth__x_variable(berth__kernel *k, berth__x first); /* only for get and set */
berth__x berth__x_get(berth__kernel *k, berth__x variable);
void berth__x_set(berth__kernel *k, berth__x variable, berth__x value);

/* The value of the thread at this xor distance: lanes fold their values with it, always in the same order. All threads
 * of a workgroup do it, or none. */
berth__x berth__x_exchange(berth__kernel *k, berth__x value, uint32_t distance);
/* tiles.c */
berth__x berth__x_tile_at(berth__kernel *k, const berth__kernel_tile *tile, berth__x slot, berth__x line,
                          berth__x depth); /* index in the tile's array */
void berth__x_shared_copy(berth__kernel *k, uint32_t array, berth__x to, uint32_t buffer, berth__x index,
                          berth__x is_there);
void berth__x_commit(berth__kernel *k);
void berth__x_wait(berth__kernel *k, uint32_t n);
void berth__x_multiply(berth__kernel *k, uint32_t sums, berth__x slot);
void berth__x_ahead(berth__kernel *k, uint32_t sums, berth__x slot);
void berth__x_settle(berth__kernel *k, uint32_t sums);
berth__x berth__x_each(berth__kernel *k, uint32_t sums); /* a block */
berth__x berth__x_sum_row(berth__kernel *k, berth__x each);
berth__x berth__x_sum_column(berth__kernel *k, berth__x each);
berth__x berth__x_sum(berth__kernel *k, berth__x each, uint32_t which);
/* The same position in other sums, which must be spread like those of the `each`. */
berth__x berth__x_sum_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which);
void berth__x_sum_set_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which, berth__x value);
void berth__x_sum_set(berth__kernel *k, berth__x each, uint32_t which, berth__x value);
void berth__x_join(berth__kernel *k, uint32_t sums);
berth__x berth__x_sum_line(berth__kernel *k, berth__x each);
void berth__x_row_largest(berth__kernel *k, uint32_t sums, uint32_t local);
void berth__x_row_total(berth__kernel *k, uint32_t sums, uint32_t local);
/* expand.c: replaces a kernel by one without tiles and exchanges (both are finished). */
berth_status berth__kernel_expand(berth__kernel **kernel, berth_error *err);

/* beside.c: merges two finished kernels into one that has the workgroups of both, and whether that is possible. The
 * first kernel's workgroups and buffers come first. */
bool berth__kernel_fits_beside(const berth__kernel *a, const berth__kernel *b, uint32_t shared_bytes);
berth_status berth__kernel_beside(const berth__kernel *a, const berth__kernel *b, berth__kernel **out,
                                  berth_error *err);

/* Blocks: each is closed by berth__x_end. A loop with constant bounds that runs at most once is not made. */
berth__x berth__x_loop(berth__kernel *k, berth__x from, berth__x to, int64_t step);
berth__x berth__x_loop_unrolled(berth__kernel *k, berth__x from, berth__x to, int64_t step);
berth__x berth__x_loop_n(berth__kernel *k, int64_t n); /* 0 .. n - 1 */
void berth__x_if(berth__kernel *k, berth__x condition);
void berth__x_else(berth__kernel *k);
void berth__x_end(berth__kernel *k);
void berth__x_break(berth__kernel *k);
void berth__x_barrier(berth__kernel *k);
void berth__x_await(berth__kernel *k);
void berth__x_release(berth__kernel *k);

/* ---- Inspecting a kernel ---- */

const char *berth__inst_name(berth__inst_code code);
uint32_t berth__inst_operands(berth__inst_code code);
berth__inst_kind berth__inst_kind_of(berth__inst_code code);
static inline const berth__inst *berth__x_inst(const berth__kernel *k, berth__x x) { return &k->insts[x]; }
bool berth__x_is_constant(const berth__kernel *k, berth__x x, uint32_t *bits);
bool berth__kernel_uses(const berth__kernel *kernel, berth__inst_code code);
/* work.c: f32 operations, assuming that every thread enters every block. */
double berth__kernel_flops(const berth__kernel *kernel);
/* Whether rounds of an unrolled loop both load and store: compilers move the loads of later rounds ahead of the stores
 * of earlier ones only if they know that nothing is written there. */
bool berth__kernel_has_rounds(const berth__kernel *kernel);
/* Whether two kernels do the same, so that one pipeline serves both (regardless of operand numbers). */
bool berth__kernel_equal(const berth__kernel *a, const berth__kernel *b);
uint64_t berth__kernel_hash(const berth__kernel *kernel);
/* print.c: the readable form. */
berth_status berth__kernel_print(const berth__kernel *kernel, berth_write_fn write, void *user, berth_error *err);

/* ---- Running a kernel on the host: for tests, and for the device "interp" (interpret.c) ---- */

/* buffers[i]: the address of buffer i, and the elements from it up to the buffer's end, and where it begins. Accesses
 * outside are errors that name the instruction. */
typedef struct berth__kernel_memory {
  uint32_t *words;
  uint64_t count;
  uint32_t first;
} berth__kernel_memory;
/* Memory that one run of the kernel needs, in bytes, aligned to 8. */
uint64_t berth__kernel_room(const berth__kernel *kernel);
berth_status berth__kernel_interpret(const berth__kernel *kernel, const berth__kernel_memory *buffers, void *room,
                                     berth_error *err);

#endif
