/* The kernel language: what a kernel is before it becomes source for a device.
 *
 * A kernel is a straight list of instructions with blocks (loop, if) in it. Every thread of every workgroup runs the
 * list. Each instruction has a number; instructions name the results of earlier ones that are visible where they stand
 * (in the same block or in one around it). All numbers are 32 bits wide.
 *
 * Kernels are made by the functions below: they simplify while they build (constants, index arithmetic by the ranges of
 * its parts, equal results once), so a lowering may write the general form and gets the short one. Nothing here knows
 * of ops, plans or devices. */
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
  uint16_t depth; /* blocks around it */
  uint32_t bits;  /* see kernel.def */
  berth__x in[3];
  int64_t low, high; /* integers: what the result lies between */
} berth__inst;

/* How the elements of a buffer lie there: one of the storages of a plan, by its type. Memory is words; elements of one
 * or two bytes lie four or two to a word, the first in the low bits, and loads unpack them:
 *
 *   f32 i32 u32   a word each
 *   f16 bf16      two to a word, f32 in a kernel; rounded to nearest even where they are stored
 *   i16 u16       two to a word, i32 and u32 in a kernel, which keep the low bits
 *   i8 u8 bool    four to a word, i32 and u32
 *
 * A store changes the bits of its element alone, whoever writes the others of that word at the same time. */
typedef berth_type berth__storage;
#define BERTH__STORAGES 14u /* entries of a table by storage */
berth__number berth__storage_number(berth__storage storage);
static inline uint32_t berth__storage_per_word(berth__storage storage) {
  return 4u / berth_type_storage(storage).bytes;
}

#define BERTH__KERNEL_BUFFERS 24u /* offsets of so many fit the push constants of every device */

typedef struct berth__kernel_buffer {
  berth__storage storage;
  bool is_read, is_written; /* set by loads and stores */
  bool is_early;            /* loaded before an `await` */
  bool is_contended;        /* threads write to one word of it at once: set by store_max */
  uint32_t operand;         /* the maker's own: see lower.h */
  uint32_t skip;            /* while it is made: elements of the first word that are not the buffer's */
} berth__kernel_buffer;

typedef struct berth__kernel_array {
  berth__number type;
  uint32_t count;
  berth__storage storage; /* of a shared array of f32: f16 and bf16 are rounded to where they are stored */
} berth__kernel_array;

#define BERTH__KERNEL_ARRAYS 8u

/* A piece of a matrix in a shared array, in each of several slots: so many lines (rows of the left side, columns of the
 * right one) of so much depth. Where there is one slot, it is every slot. */
typedef struct berth__kernel_tile {
  uint32_t array;
  uint32_t lines, depth, slots;
  bool is_deep;   /* neighbours along the depth lie beside each other; otherwise lines do */
  uint32_t pitch; /* from one line, or step of the depth, to the next */
  /* Not 0, as warpgroups take it: so many neighbours, 128 bytes, are a row, and rows of further ones follow after all
   * of these. The eight pieces of 16 bytes of row r are exchanged: number p lies where p xor r % 8 would. */
  uint32_t row;
} berth__kernel_tile;
static inline uint32_t berth__tile_slot(const berth__kernel_tile *tile) {
  return (tile->is_deep ? tile->lines : tile->depth) * tile->pitch;
}
#define BERTH__ROW_BYTES 128u
#define BERTH__ROW_PIECES 8u

/* Sums of products, which are 0 at first: one for each line of the left tile and each of the right one. */
typedef struct berth__kernel_sums {
  berth__kernel_tile left, right;
  berth__number type;  /* f32, or i32, which wraps */
  berth_compute kind;  /* of f32: what is multiplied is rounded to it */
  uint32_t together;   /* columns beside each other that one thread has, 1, 2 or 4 */
  uint32_t group_rows; /* where each thread computes its own: threads along the rows */
  /* 0 or 1, or as many parts of the workgroup's threads, one after the other: each multiplies its share of the depth
   * and has sums of its own. After a `join`, and before an `each`, every part has its share of the sums. */
  uint32_t parts;
  /* A warpgroup multiplies: a slot that was multiplied is done with only when the next one has been, or an `each`
   * begins. */
  bool is_late;
  bool by_fours; /* of f32: each thread multiplies, and takes four neighbours of a tile at once */
  bool has_rows; /* a row belongs to BERTH__ROW_THREADS beside each other, which can fold it */
} berth__kernel_sums;

static inline uint32_t berth__sums_parts(const berth__kernel_sums *sums) { return sums->parts > 1 ? sums->parts : 1; }

#define BERTH__KERNEL_SUMS 4u
#define BERTH__THREAD_SUMS 128u /* that a thread has at most */
#define BERTH__ROW_THREADS 4u

/* A word of a narrow result that each thread puts together from the elements that it makes (lower/words.c). */
typedef struct berth__kernel_word {
  bool is_open;
  bool is_whole;          /* all its elements are stored, always */
  uint32_t operand;       /* the result */
  uint16_t depth;         /* of blocks, after the loop over the word's elements */
  berth__x word;          /* which one */
  berth__x lane;          /* the element of the word that the loop is at */
  berth__x index;         /* the element of the result */
  berth__x bits, written; /* variables: the word, and ones where it was written */
} berth__kernel_word;

typedef struct berth__kernel {
  berth_context *ctx;
  char name[48]; /* for people: the op, and what is special */
  berth__inst *insts;
  size_t n_insts, capacity;
  berth__kernel_buffer buffers[BERTH__KERNEL_BUFFERS];
  uint32_t n_buffers;
  berth__kernel_array shared[BERTH__KERNEL_ARRAYS], local[BERTH__KERNEL_ARRAYS];
  uint32_t n_shared, n_local;
  berth__kernel_sums sums[BERTH__KERNEL_SUMS];
  uint32_t n_sums;
  uint32_t group_size; /* threads of a workgroup */
  uint64_t n_groups;   /* workgroups of a run */
  double flops, bytes; /* what one run does, for reports; flops that nobody set are counted by finish */

  /* While it is made. */
  berth_status status;        /* of the first thing that went wrong; from there on nothing is added */
  uint16_t depth;             /* blocks that are open */
  struct berth__maker *maker; /* maker.h */
  berth__kernel_word word;
} berth__kernel;

berth_status berth__kernel_create(berth_context *ctx, const char *name, berth__kernel **out, berth_error *err);
void berth__kernel_destroy(berth__kernel *kernel); /* NULL is fine */
/* Ends the making: memory that ran out on the way, blocks that are open and instructions that no store needs show up
 * here. Instructions without use are taken out. */
berth_status berth__kernel_finish(berth__kernel *kernel, berth_error *err);

/* A buffer of the kernel; its number. `operand` says which: equal ones with one storage share a number. */
uint32_t berth__kernel_buffer_of(berth__kernel *k, uint32_t operand, berth__storage storage);
uint32_t berth__kernel_shared(berth__kernel *k, berth__number type, uint32_t count); /* an array of the workgroup */
uint32_t berth__kernel_local(berth__kernel *k, berth__number type, uint32_t count);  /* an array of each thread */

/* tiles.c: a shared array of f32 that are rounded where they are stored. */
uint32_t berth__kernel_shared_as(berth__kernel *k, berth__storage storage, uint32_t count);
/* A tile with an array of its own, laid out for products of this kind. What it holds is rounded where it is stored
 * (compute_storage of the kind) or, held as f32, where it is multiplied. And the bytes of a slot. */
typedef struct berth__tile_desc {
  berth__number type; /* f32 or i32 */
  berth_compute kind; /* f32 for i32 */
  berth__storage storage;
  uint32_t lines, depth, slots;
  bool is_deep;
  bool is_for_warpgroup; /* numbers of 16 bits; what lies beside each other is whole rows of 128 bytes */
  bool is_for_fours;     /* f32: four neighbours lie at multiples of 16 bytes */
} berth__tile_desc;
berth__kernel_tile berth__kernel_tile_of(berth__kernel *k, const berth__tile_desc *desc);
uint32_t berth__tile_slot_bytes(const berth__tile_desc *desc);
berth__storage berth__compute_storage(berth_compute kind);
/* Sums of two tiles of one kind and depth; and what a workgroup's shared arrays take. */
uint32_t berth__kernel_sums_of(berth__kernel *k, const berth__kernel_sums *sums); /* its number */
uint64_t berth__kernel_shared_bytes(const berth__kernel *kernel);

/* Rows and columns that a thread has where each computes its own, and threads along them; of a part. */
typedef struct berth__sums_spread {
  uint32_t parts, threads; /* threads: of a part */
  uint32_t thread_rows, thread_columns, group_rows, group_columns;
} berth__sums_spread;
berth__sums_spread berth__sums_spread_of(const berth__kernel *k, const berth__kernel_sums *sums);
/* The array whose room a `join` may use. */
uint32_t berth__sums_room(const berth__kernel *k, const berth__kernel_sums *sums);
/* Rows that a thread has of sums that have rows, however they are spread. */
static inline uint32_t berth__sums_lines(const berth__kernel *k, const berth__kernel_sums *sums) {
  return sums->left.lines * BERTH__ROW_THREADS / k->group_size;
}

/* ---- Making instructions. Each gives the number of a result, which may be an older one, or a constant. ---- */

berth__x berth__x_f32(berth__kernel *k, float value);
berth__x berth__x_i32(berth__kernel *k, int64_t value); /* must fit */
berth__x berth__x_u32(berth__kernel *k, uint32_t value);
berth__x berth__x_bool(berth__kernel *k, bool value);
berth__x berth__x_group(berth__kernel *k);  /* 0 .. n_groups - 1: set n_groups before */
berth__x berth__x_thread(berth__kernel *k); /* 0 .. group_size - 1: set group_size before */

/* Any PURE instruction of one, two or three operands, in the type that its operands say. */
berth__x berth__x1(berth__kernel *k, berth__inst_code code, berth__x a);
berth__x berth__x2(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b);
berth__x berth__x3(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b, berth__x c);
berth__x berth__x_convert(berth__kernel *k, berth__number type, berth__x a);
berth__x berth__x_bits(berth__kernel *k, berth__number type, berth__x a);
/* Short forms that lowerings are full of. */
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
berth__x berth__x_is_nan(berth__kernel *k, berth__x a); /* by its bits: no compiler may assume it away */

berth__x berth__x_load(berth__kernel *k, uint32_t buffer, berth__x index);
/* Four words of a buffer of such at once, from word 4 * index on, which must lie at a multiple of 16 bytes; and one of
 * them. */
berth__x berth__x_quad(berth__kernel *k, uint32_t buffer, berth__x index);
berth__x berth__x_part(berth__kernel *k, berth__x quad, uint32_t which);
void berth__x_store(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value);
/* The larger of an element of u32 and a value goes there. Any number of threads may do this to one element at once, and
 * the result is the same in whatever order they come; nobody loads or stores it otherwise in the same kernel. */
void berth__x_store_max(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value);
/* The bits that an element of this storage has, in the low bits of a u32, from a value of the storage's number type. */
berth__x berth__x_pack(berth__kernel *k, berth__storage storage, berth__x value);
berth__x berth__x_shared_load(berth__kernel *k, uint32_t array, berth__x index);
void berth__x_shared_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value);
berth__x berth__x_local_load(berth__kernel *k, uint32_t array, berth__x index);
void berth__x_local_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value);
berth__x berth__x_variable(berth__kernel *k, berth__x first); /* for get and set alone */
berth__x berth__x_get(berth__kernel *k, berth__x variable);
void berth__x_set(berth__kernel *k, berth__x variable, berth__x value);

/* What the thread so far away has, by xor: how lanes fold what each of them holds, in an order that is always the same.
 * All threads of a workgroup do it, or none. */
berth__x berth__x_exchange(berth__kernel *k, berth__x value, uint32_t distance);
/* tiles.c */
berth__x berth__x_tile_at(berth__kernel *k, const berth__kernel_tile *tile, berth__x slot, berth__x line,
                          berth__x depth); /* the element of the tile's array */
void berth__x_shared_copy(berth__kernel *k, uint32_t array, berth__x to, uint32_t buffer, berth__x index,
                          berth__x is_there);
void berth__x_commit(berth__kernel *k);
void berth__x_wait(berth__kernel *k, uint32_t n);
void berth__x_multiply(berth__kernel *k, uint32_t sums, berth__x slot);
void berth__x_ahead(berth__kernel *k, uint32_t sums, berth__x slot);
berth__x berth__x_each(berth__kernel *k, uint32_t sums); /* a block */
berth__x berth__x_sum_row(berth__kernel *k, berth__x each);
berth__x berth__x_sum_column(berth__kernel *k, berth__x each);
berth__x berth__x_sum(berth__kernel *k, berth__x each, uint32_t which);
/* The same place of other sums, which lie as those of the `each` do. */
berth__x berth__x_sum_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which);
void berth__x_sum_set_beside(berth__kernel *k, berth__x each, uint32_t sums, uint32_t which, berth__x value);
void berth__x_sum_set(berth__kernel *k, berth__x each, uint32_t which, berth__x value);
void berth__x_join(berth__kernel *k, uint32_t sums);
berth__x berth__x_sum_line(berth__kernel *k, berth__x each);
void berth__x_row_largest(berth__kernel *k, uint32_t sums, uint32_t local);
void berth__x_row_total(berth__kernel *k, uint32_t sums, uint32_t local);
/* expand.c: the kernel without tiles and exchanges, in the place of one with them (finished, both). */
berth_status berth__kernel_expand(berth__kernel **kernel, berth_error *err);

/* beside.c: two finished kernels as one that has the workgroups of both, and whether they can be. Those of the first
 * come first, and so do its buffers. */
bool berth__kernel_fits_beside(const berth__kernel *a, const berth__kernel *b, uint32_t shared_bytes);
berth_status berth__kernel_beside(const berth__kernel *a, const berth__kernel *b, berth__kernel **out,
                                  berth_error *err);

/* Blocks: each is closed by berth__x_end. A loop with constant ends that runs once or never makes no loop. */
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

/* ---- Looking at a kernel ---- */

const char *berth__inst_name(berth__inst_code code);
uint32_t berth__inst_operands(berth__inst_code code);
berth__inst_kind berth__inst_kind_of(berth__inst_code code);
static inline const berth__inst *berth__x_inst(const berth__kernel *k, berth__x x) { return &k->insts[x]; }
bool berth__x_is_constant(const berth__kernel *k, berth__x x, uint32_t *bits);
bool berth__kernel_uses(const berth__kernel *kernel, berth__inst_code code);
/* work.c: computations with f32, where every thread goes through every block. */
double berth__kernel_flops(const berth__kernel *kernel);
/* Whether two kernels do the same, so that one pipeline serves both (operands' numbers apart). */
bool berth__kernel_equal(const berth__kernel *a, const berth__kernel *b);
uint64_t berth__kernel_hash(const berth__kernel *kernel);
/* print.c: the form for people. */
berth_status berth__kernel_print(const berth__kernel *kernel, berth_write_fn write, void *user, berth_error *err);

/* ---- Running a kernel here: for tests, and for the device "interp" (interpret.c) ---- */

/* buffers[i]: where buffer i begins, and where its elements end, counted from there, and begin. Accesses outside are
 * errors that say which instruction. */
typedef struct berth__kernel_memory {
  uint32_t *words;
  uint64_t count;
  uint32_t first;
} berth__kernel_memory;
/* What one run of the kernel needs of memory, in bytes, aligned to 8. */
uint64_t berth__kernel_room(const berth__kernel *kernel);
berth_status berth__kernel_interpret(const berth__kernel *kernel, const berth__kernel_memory *buffers, void *room,
                                     berth_error *err);

#endif
