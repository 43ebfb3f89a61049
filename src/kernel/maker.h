/* The state of a kernel under construction, shared only by the files that build kernels. */
#ifndef BERTH_KERNEL_MAKER_H
#define BERTH_KERNEL_MAKER_H

#include "kernel/kernel.h"

#define BERTH__MAKER_BLOCKS 64u

/* One per instruction. */
typedef struct berth__maker_entry {
  uint32_t next;  /* next older entry with the same hash; ABSENT if the entry is not in the table */
  uint32_t block; /* id of the block in which its result is visible */
  uint32_t level; /* depth of that block */
} berth__maker_entry;

/* An open block; the first is the kernel itself. */
typedef struct berth__maker_block {
  uint32_t id;
  berth__x opener;
  bool is_loop, has_else;
  size_t first;     /* first instruction inside */
  size_t n_refined; /* when the block was opened */
} berth__maker_block;

/* A range that holds only inside a block, with the previous range. */
typedef struct berth__maker_refined {
  berth__x x;
  int64_t low, high;
} berth__maker_refined;

typedef struct berth__maker {
  berth__maker_entry *entries;
  size_t entries_capacity;
  uint32_t *heads; /* heads of the table's chains, youngest first: a block that closes removes its own from the front */
  size_t n_heads;  /* a power of two */
  size_t n_in_table;
  berth__maker_block blocks[BERTH__MAKER_BLOCKS];
  uint32_t n_ids;
  berth__maker_refined *refined;
  size_t n_refined, refined_capacity;
  const char *mistake; /* by the author of the kernel */
  berth__inst_code mistaken;
} berth__maker;

static inline berth__number berth__maker_type(const berth__kernel *k, berth__x x) {
  return (berth__number)k->insts[x].type;
}
static inline bool berth__maker_is_integer(berth__number type) {
  return type == BERTH__NUM_I32 || type == BERTH__NUM_U32;
}

/* `loop`, bits: the loop runs once and its index is not used; finish.c removes it unless a break leaves it. */
#define BERTH__LOOP_UNROLLED 1u
#define BERTH__LOOP_ONCE 2u

/* Records an invalid request by the author of the kernel. Returns BERTH__X_NONE. */
berth__x berth__maker_mistake(berth__kernel *k, berth__inst_code code, const char *what);
/* Whether construction goes on, and these results may be used here. Records a mistake if not. */
bool berth__maker_accepts(berth__kernel *k, berth__inst_code code, uint32_t n, const berth__x *in);
/* Adds the instruction, or returns an equal visible one if it is PURE. Everything but depth must be set. */
berth__x berth__maker_put(berth__kernel *k, const berth__inst *inst);
/* Instructions from `first` on become invisible. */
void berth__maker_forget(berth__kernel *k, size_t first);
void berth__maker_free(berth__kernel *k);

/* block.c */
void berth__maker_unrefine(berth__kernel *k, size_t n_refined);

/* simplify.c: the shortest form of a PURE instruction whose operands have been checked. */
berth__x berth__simplify(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t n, const berth__x *in);
berth__x berth__maker_constant(berth__kernel *k, berth__number type, uint32_t bits);
/* The value of a known number: a constant, or one whose range has one value. */
bool berth__maker_known(const berth__kernel *k, berth__x x, uint32_t *bits);

/* fold.c: the result for constant operands; false if it cannot be computed. */
bool berth__fold(berth__inst_code code, berth__number type, berth__number from, const uint32_t *in, uint32_t *out);

/* range.c: the range of a result. */
void berth__range_of_type(berth__number type, int64_t *low, int64_t *high);
void berth__range_of(const berth__kernel *k, berth__inst_code code, berth__number type, const berth__x *in,
                     int64_t *low, int64_t *high);

/* index.c: shorter forms of i32 sums, quotients and remainders; BERTH__X_NONE if there is none. */
berth__x berth__index_add(berth__kernel *k, berth__x a, berth__x b, int64_t factor_of_b);
berth__x berth__index_div(berth__kernel *k, berth__x a, int64_t by);
berth__x berth__index_rem(berth__kernel *k, berth__x a, int64_t by);

#endif
