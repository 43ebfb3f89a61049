/* Runs a case as the kernels that its op is lowered to, interpreted or otherwise: without a graph, plan or device, and
 * therefore with operands and results in layouts that a plan would not use. */
#ifndef BERTH_TESTS_OPS_LOWERED_H
#define BERTH_TESTS_OPS_LOWERED_H

#include "cases.h"
#include "kernel/lower.h"

typedef enum lowered {
  LOWERED_HOLDS,
  LOWERED_FAILS,  /* with a line on stderr */
  LOWERED_UNABLE, /* the op, or what the case requires of it, has no kernel */
  LOWERED_WIDE    /* the case has numbers that do not fit in 32 bits */
} lowered;

/* All variants in turn: plain; each strided operand in two other layouts; results as part of a wider tensor; in place
 * if the op allows it. */
lowered lowered_run(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits);

/* Runs kernels in another way than interpreting them. */
typedef struct lowered_player {
  berth_status (*play)(const berth__kernel *kernel, const berth__kernel_memory *memory, void *user, berth_error *err);
  void *user;
  bool only_looks; /* nothing runs, and so nothing is compared */
} lowered_player;
/* With plain layouts, in each width. */
lowered lowered_run_plain(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits,
                          const lowered_player *player);

/* Only lowers, with plain layouts. */
berth_status lowered_make(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits, berth_error *err);

#endif
