/* The rows of the table: each op's forms as graphs, the fast one first. */
#ifndef BERTH_BENCH_OPS_ROWS_H
#define BERTH_BENCH_OPS_ROWS_H

#include <stdbool.h>

#include "berth/berth.h"

enum {
  OP_FORMS = 16
};

typedef struct op_row {
  const char *op;
  const char *made_of; /* for an op that only rewriting makes: the original op whose work counts; NULL: itself */
  bool by_flops;       /* the rate is in operations, not bytes */
  const char *reason;  /* why a form may be more than four times slower than the first; NULL: no form may */
  const char *forms[OP_FORMS];
} op_row;

/* Each table ends with a row without an op. */
extern const op_row rows_elementwise[], rows_products[], rows_windows[], rows_moves[], rows_sequences[];

#endif
