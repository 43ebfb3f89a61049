/* Kernels over rows: each row of a tensor is folded into a few numbers, and often written again with these. A row is
 * shared by as many threads of a workgroup as its length is worth; a short one has one thread, and a workgroup has
 * several. Threads meet at barriers, so everything stands outside of ifs, and rows past the last one have no elements.
 */
#ifndef BERTH_KERNEL_LOWER_ROWS_H
#define BERTH_KERNEL_LOWER_ROWS_H

#include "kernel/lower.h"
#include "ops/elementwise.h"

#define BERTH__ROWS_HELD 16u

/* What a thread holds of its row, where it does: elements `at`, so many beside each other; past the row's end where
 * is_in says so (BERTH__X_NONE: none is). */
typedef struct berth__l_held {
  uint32_t n, beside;
  berth__x at[BERTH__ROWS_HELD], is_in[BERTH__ROWS_HELD], value[BERTH__ROWS_HELD];
} berth__l_held;

typedef struct berth__l_rows {
  int64_t count, length;
  uint32_t lanes;     /* threads of a row, a power of two */
  uint32_t per_group; /* rows of a workgroup */
  uint32_t step;      /* from the thread of a lane to that of the next */
  uint32_t reach;     /* threads beside each other that exchange; 1: none do */
  berth__x row;       /* this thread's; with one lane it is below count, otherwise it may lie after it */
  berth__x lane;
  berth__x end;    /* of the row's elements: the length, or 0 where there is no such row */
  berth__x is_row; /* bool */
  uint32_t n_joins;
  uint32_t array[2]; /* shared, for joins */
  berth__l_held held;
} berth__l_rows;

/* Chooses the schedule and sets group_size and n_groups. Neighbouring threads go to neighbouring elements of a row
 * (along_rows), or to neighbouring rows. */
berth__l_rows berth__l_rows_of(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length,
                               bool along_rows);

/* The same for rows of an operand that lie one after the other. Where they are short enough, each thread loads its
 * elements once and holds them: folds and the writer go through these, and find their values by what they are asked
 * for, BERTH__X_NONE where nothing is held. */
berth__l_rows berth__l_rows_hold(const berth__lowering *l, berth__kernel *k, uint32_t operand, int64_t count,
                                 int64_t length);
berth__x berth__l_rows_held(const berth__l_rows *rows, berth__x i);
/* The same elements of another operand of that shape, one for each that is held. */
void berth__l_rows_hold_beside(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows, uint32_t operand,
                               berth__x *values);
/* Which of what is held the element is; rows->held.n: none. */
uint32_t berth__l_rows_which(const berth__l_rows *rows, berth__x i);

/* Into how many pieces rows are cut whose neighbours have neighbouring threads: these are few where rows are, and there
 * is more to do than they can. */
int64_t berth__l_pieces_across(int64_t count, int64_t length);

#define BERTH__FOLD_VALUES 2u
/* Numbers that every element gives (`element`), and how two sets of them become one (`join`; a is what came before). */
typedef struct berth__l_fold {
  uint32_t n;
  berth__x start[BERTH__FOLD_VALUES];
  bool is_sum; /* of f32: long ones are added up in pieces, so that they keep their digits */
  void (*element)(berth__kernel *k, const void *state, berth__x i, berth__x *values);
  void (*join)(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out);
  const void *state;
} berth__l_fold;
/* The result, which every thread of the row has. Folds of one kernel have values of the same types. */
void berth__l_rows_fold(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *out);

/* Writes each element of the row: `write` stores element i of the row into result 0, at `place`. Rows that lie in the
 * result one after the other, without gaps (is_dense), are written in whole words where it has narrow elements. */
typedef struct berth__l_rows_writer {
  bool is_dense;
  berth__x (*place)(berth__kernel *k, const void *state, berth__x i);
  void (*write)(berth__kernel *k, const void *state, berth__x i, berth__x place);
  const void *state;
} berth__l_rows_writer;
void berth__l_rows_write(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows,
                         const berth__l_rows_writer *writer);
/* What follows, up to berth__x_end, is for one thread of each row. */
void berth__l_rows_once(berth__kernel *k, const berth__l_rows *rows);

/* `join` of sums. */
void berth__l_join_sums(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out);

/* Where the first element of a line lies, in a contiguous tensor; the others are `inner` apart. */
berth__x berth__l_line_start(berth__kernel *k, const berth__lines *lines, berth__x line);

#endif
