/* Kernels over rows: each row of a tensor is folded to a few numbers, and often rewritten with these. The number of
 * threads of a workgroup that share a row depends on its length; short rows have one thread each, and a workgroup has
 * several rows. Threads meet at barriers, so everything is outside of ifs, and rows past the last one have no
 * elements. */
#ifndef BERTH_KERNEL_LOWER_ROWS_H
#define BERTH_KERNEL_LOWER_ROWS_H

#include "kernel/lower.h"
#include "ops/elementwise.h"

#define BERTH__ROWS_HELD 16u

/* The elements of its row that a thread holds: at the indices `at`, `beside` adjacent ones each; is_in says which are
 * inside the row (BERTH__X_NONE: all). */
typedef struct berth__l_held {
  uint32_t n, beside;
  berth__x at[BERTH__ROWS_HELD], is_in[BERTH__ROWS_HELD], value[BERTH__ROWS_HELD];
} berth__l_held;

typedef struct berth__l_rows {
  int64_t count, length;
  uint32_t lanes;     /* threads per row, a power of two */
  uint32_t per_group; /* rows per workgroup */
  uint32_t step;      /* distance between the threads of neighbouring lanes */
  uint32_t reach;     /* adjacent threads that exchange values; 1: none */
  berth__x row;       /* this thread's row; with one lane it is below count, otherwise it may be past the end */
  berth__x lane;
  berth__x end;    /* of the row's elements: the length, or 0 if there is no such row */
  berth__x is_row; /* bool */
  uint32_t n_joins;
  uint32_t array[2]; /* shared, for joins */
  berth__l_held held;
} berth__l_rows;

/* Chooses the schedule and sets group_size and n_groups. Neighbouring threads have neighbouring elements of a row
 * (along_rows), or neighbouring rows. */
berth__l_rows berth__l_rows_of(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length,
                               bool along_rows);

/* The schedule where neighbouring threads have neighbouring rows, for rows whose elements come from memory: so many
 * threads share a row that the memory is busy. */
berth__l_rows berth__l_rows_across(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length);

/* The same for contiguous rows of an operand. If they are short enough, each thread loads its elements once and holds
 * them: folds and the writer iterate over them, and look up their values; BERTH__X_NONE if nothing is held. */
berth__l_rows berth__l_rows_hold(const berth__lowering *l, berth__kernel *k, uint32_t operand, int64_t count,
                                 int64_t length);
berth__x berth__l_rows_held(const berth__l_rows *rows, berth__x i);
/* The same elements of another operand of that shape, one for each held element. */
void berth__l_rows_hold_beside(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows, uint32_t operand,
                               berth__x *values);
/* Index of the element among the held ones; rows->held.n: not held. */
uint32_t berth__l_rows_which(const berth__l_rows *rows, berth__x i);

/* The number of pieces into which rows are cut if neighbouring rows have neighbouring threads: more than one if there
 * are few rows, and too much work for their threads. */
int64_t berth__l_pieces_across(int64_t count, int64_t length);

#define BERTH__FOLD_VALUES 2u
#define BERTH__ROWS_AHEAD 4u /* elements, or words of a result, whose loads do not wait for each other */
/* The numbers of an element (`element`), and how two sets of them are combined (`join`; a is the earlier one). */
typedef struct berth__l_fold {
  uint32_t n;
  berth__x start[BERTH__FOLD_VALUES];
  bool is_sum;   /* of f32: long sums are added up in pieces, which keeps their precision */
  bool is_ahead; /* `element` loads: BERTH__ROWS_AHEAD of them come before their joins, where rows are not held */
  void (*element)(berth__kernel *k, const void *state, berth__x i, berth__x *values);
  void (*join)(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out);
  /* Instead of `element`, for rows that are not held: joins the elements i[0..n), n at most BERTH__ROWS_AHEAD, to the
   * numbers of those before them. */
  void (*take)(berth__kernel *k, const void *state, const berth__x *i, uint32_t n, const berth__x *before,
               berth__x *out);
  const void *state;
} berth__l_fold;
/* The result, which every thread of the row gets. All folds of one kernel have values of the same types. */
void berth__l_rows_fold(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *out);

/* Writes each element of the row: `write` stores element i of the row to result 0, at `place`. Rows that are contiguous
 * in the result (is_dense) are written in whole words if its elements are narrow.
 *
 * `value` instead of `write` returns what is to be stored, for rows that are not held: it loads, and several of them
 * come before their stores. A compiler cannot move loads across stores that may overwrite them. */
typedef struct berth__l_rows_writer {
  bool is_dense;
  berth__x (*place)(berth__kernel *k, const void *state, berth__x i);
  void (*write)(berth__kernel *k, const void *state, berth__x i, berth__x place);
  berth__x (*value)(berth__kernel *k, const void *state, berth__x i);
  const void *state;
} berth__l_rows_writer;
void berth__l_rows_write(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows,
                         const berth__l_rows_writer *writer);
/* The code that follows, up to berth__x_end, is for one thread per row. */
void berth__l_rows_once(berth__kernel *k, const berth__l_rows *rows);

/* `join` for sums. */
void berth__l_join_sums(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out);

/* The position of a line's first element, in a contiguous tensor; the others are `inner` apart. */
berth__x berth__l_line_start(berth__kernel *k, const berth__lines *lines, berth__x line);

#endif
