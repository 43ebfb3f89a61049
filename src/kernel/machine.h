/* The state of the interpreter: shared by interpret.c and the machine_*.c files. */
#ifndef BERTH_KERNEL_MACHINE_H
#define BERTH_KERNEL_MACHINE_H

#include "kernel/lanes.h"

#define BERTH__POISON 0x7fc0deadu /* initial contents of arrays: a NaN, and a big integer */

/* Which lane used an element of a shared array, and since which barrier. */
typedef struct berth__machine_use {
  uint32_t write_time, writer;
  uint32_t read_time, reader;
  uint32_t group; /* the group of copies that wrote it; 0: it was stored */
} berth__machine_use;

/* One per instruction that bounds a block. */
typedef struct berth__machine_bound {
  berth__x opener; /* of else and end: the loop or if; of break: the loop */
  berth__x next;   /* of loop, if and else: the next bound */
} berth__machine_bound;

/* Lane j is thread j % threads of workgroup group + j / threads. */
typedef struct berth__machine {
  const berth__kernel *k;
  const berth__kernel_memory *buffers;
  uint32_t threads;                          /* per workgroup */
  uint32_t n;                                /* lanes: threads of all workgroups that run together */
  uint64_t group;                            /* the first of those workgroups */
  uint32_t time;                             /* barriers so far, counted from 1 */
  berth__lane *values;                       /* n per instruction */
  uint32_t *masks;                           /* n per depth: 1 for active lanes */
  uint32_t *n_in;                            /* per depth */
  berth__machine_bound *bounds;              /* one per instruction */
  berth__lane *shared, *local;               /* shared: per workgroup; local: n per element */
  uint64_t n_shared;                         /* elements of all shared arrays */
  berth__machine_use *uses;                  /* one per shared element */
  bool notes_loads[BERTH__KERNEL_ARRAYS];    /* per shared array: others may be written before the next barrier */
  uint32_t write_time[BERTH__KERNEL_ARRAYS]; /* per shared array: the last one */
  bool meets[BERTH__KERNEL_ARRAYS];          /* per shared array: it has memory in common with others */
  bool holds[BERTH__KERNEL_ARRAYS];          /* of those, the one whose contents the memory has */
  uint32_t use_time[BERTH__KERNEL_ARRAYS];   /* of those: the last load, store or product */
  bool is_going[BERTH__KERNEL_SUMS];         /* late sums that may still read their tiles */
  berth__lane *sums;                         /* n per sum of a thread */
  /* Groups of copies: the open one, counted from 1; the last one waited for; and the last one waited for before a
   * barrier, after which every thread may use it. */
  uint32_t group_open, group_here, group_settled;
  berth_error *err;
} berth__machine;

static inline berth__lane *berth__machine_values(const berth__machine *m, berth__x x) {
  return m->values + (size_t)x * m->n;
}
static inline uint32_t *berth__machine_mask(const berth__machine *m, uint32_t depth) {
  return m->masks + (size_t)depth * m->n;
}
/* Elements of the first n arrays. */
static inline uint64_t berth__machine_elements(const berth__kernel_array *arrays, uint32_t n) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < n; ++i) total += arrays[i].count;
  return total;
}

/* Elements of the first n sums of a thread. */
static inline uint32_t berth__machine_sums(const berth__kernel *k, uint32_t n) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < n; ++i)
    total += k->sums[i].left.lines * k->sums[i].right.lines / k->group_size * berth__sums_parts(&k->sums[i]);
  return total;
}

/* Records that a lane loads or stores an element of a shared array. False: another lane has used it since the last
 * barrier in a way that needs one in between. */
bool berth__machine_note(berth__machine_use *use, uint32_t time, uint32_t lane, bool is_store, uint32_t *other);
/* Records a use of a shared array that may have memory in common with others: what these held is lost. An error if they
 * have been used since the last barrier, or may still be read. */
berth_status berth__machine_take(berth__machine *m, berth__x x, uint32_t array);
berth_status berth__machine_fail_race(const berth__machine *m, berth__x x, uint32_t lane, uint32_t other);

/* machine_tiles.c: copies, products of tiles, and their sums. */
berth_status berth__machine_copy(berth__machine *m, berth__x x);
berth_status berth__machine_multiply(berth__machine *m, berth__x x);
void berth__machine_sum(berth__machine *m, berth__x x);
void berth__machine_sum_set(berth__machine *m, berth__x x);
void berth__machine_sum_place(berth__machine *m, berth__x x);
berth_status berth__machine_join(berth__machine *m, berth__x x);
berth_status berth__machine_fold(berth__machine *m, berth__x x);
float berth__machine_near(berth__storage storage, float x);
float berth__machine_element(const berth__machine *m, uint32_t buffer, uint64_t index);

/* machine_memory.c: loads and stores, for the active lanes. */
berth_status berth__machine_buffer(berth__machine *m, berth__x x);
berth_status berth__machine_quad(berth__machine *m, berth__x x);
berth_status berth__machine_quad_store(berth__machine *m, berth__x x);
berth_status berth__machine_shared(berth__machine *m, berth__x x);
berth_status berth__machine_local(berth__machine *m, berth__x x);

#endif
