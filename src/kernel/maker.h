/* The state of a kernel under construction, shared only by the files that build kernels. */
#ifndef BERTH_KERNEL_MAKER_H
#define BERTH_KERNEL_MAKER_H

#include "kernel/kernel.h"

#define BERTH__MAKER_BLOCKS 64u

/* Beside each instruction. */
typedef struct berth__maker_entry {
  uint32_t next;  /* with the same hash, made before it; an entry that is not in the table has ABSENT here */
  uint32_t block; /* id of the block that its result is visible in */
  uint32_t level; /* and how deep that block lies */
} berth__maker_entry;

/* A block that is open; the first is the kernel itself. */
typedef struct berth__maker_block {
  uint32_t id;
  berth__x opener;
  bool is_loop, has_else;
  size_t first;     /* instruction inside */
  size_t n_refined; /* when it was opened */
} berth__maker_block;

/* A range that holds inside a block alone, with what it was before. */
typedef struct berth__maker_refined {
  berth__x x;
  int64_t low, high;
} berth__maker_refined;

typedef struct berth__maker {
  berth__maker_entry *entries;
  size_t entries_capacity;
  uint32_t *heads; /* of the table's chains, the youngest first: a block that closes takes its own off the front */
  size_t n_heads;  /* a power of two */
  size_t n_in_table;
  berth__maker_block blocks[BERTH__MAKER_BLOCKS];
  uint32_t n_ids;
  berth__maker_refined *refined;
  size_t n_refined, refined_capacity;
  const char *mistake; /* of who made the kernel */
  berth__inst_code mistaken;
} berth__maker;

static inline berth__number berth__maker_type(const berth__kernel *k, berth__x x) {
  return (berth__number)k->insts[x].type;
}
static inline bool berth__maker_is_integer(berth__number type) {
  return type == BERTH__NUM_I32 || type == BERTH__NUM_U32;
}

/* `loop`, bits: the loop runs once and its index is used nowhere; finish.c takes it out where no break leaves it. */
#define BERTH__LOOP_UNROLLED 1u
#define BERTH__LOOP_ONCE 2u

/* Notes that whoever makes the kernel asked for something that makes no sense. Gives BERTH__X_NONE. */
berth__x berth__maker_mistake(berth__kernel *k, berth__inst_code code, const char *what);
/* Whether making goes on, and these are results that may be used here. Notes the mistake where they are not. */
bool berth__maker_accepts(berth__kernel *k, berth__inst_code code, uint32_t n, const berth__x *in);
/* Adds the instruction, or gives the equal one that is visible where it is PURE. Everything but depth is set. */
berth__x berth__maker_put(berth__kernel *k, const berth__inst *inst);
/* The youngest instructions from `first` on can no longer be named. */
void berth__maker_forget(berth__kernel *k, size_t first);
void berth__maker_free(berth__kernel *k);

/* block.c */
void berth__maker_unrefine(berth__kernel *k, size_t n_refined);

/* simplify.c: a PURE instruction, operands checked, in its shortest form. */
berth__x berth__simplify(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t n, const berth__x *in);
berth__x berth__maker_constant(berth__kernel *k, berth__number type, uint32_t bits);
/* The value of a number that is known: a constant, or a range of one. */
bool berth__maker_known(const berth__kernel *k, berth__x x, uint32_t *bits);

/* fold.c: the result for operands that are known; false where there is none to be had. */
bool berth__fold(berth__inst_code code, berth__number type, berth__number from, const uint32_t *in, uint32_t *out);

/* range.c: what the result lies between. */
void berth__range_of_type(berth__number type, int64_t *low, int64_t *high);
void berth__range_of(const berth__kernel *k, berth__inst_code code, berth__number type, const berth__x *in,
                     int64_t *low, int64_t *high);

/* index.c: shorter forms of i32 sums, quotients and remainders; BERTH__X_NONE where there is none. */
berth__x berth__index_add(berth__kernel *k, berth__x a, berth__x b, int64_t factor_of_b);
berth__x berth__index_div(berth__kernel *k, berth__x a, int64_t by);
berth__x berth__index_rem(berth__kernel *k, berth__x a, int64_t by);

#endif
