/* Runs a case as the kernels of the kernel language that its op is lowered to, interpreted or otherwise: without a
 * graph, plan or device, and so with operands and results that lie in other ways than a plan would place them. */
#ifndef BERTH_TESTS_OPS_LOWERED_H
#define BERTH_TESTS_OPS_LOWERED_H

#include "cases.h"
#include "kernel/lower.h"

typedef enum lowered {
  LOWERED_HOLDS,
  LOWERED_FAILS,  /* with a line on stderr */
  LOWERED_UNABLE, /* the op, or what the case asks of it, has no kernel */
  LOWERED_WIDE    /* the case has numbers that 32 bits do not hold */
} lowered;

/* Every way in turn: plain; each operand that may be strided, in two other layouts; results that are a part of
 * something wider; in place where the op allows it. */
lowered lowered_run(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits);

/* Runs kernels in another way than by interpreting them. */
typedef struct lowered_player {
  berth_status (*play)(const berth__kernel *kernel, const berth__kernel_memory *memory, void *user, berth_error *err);
  void *user;
  bool only_looks; /* nothing runs, and so nothing is compared */
} lowered_player;
/* With everything lying plainly, in each width. */
lowered lowered_run_plain(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits,
                          const lowered_player *player);

/* Lowers alone, with everything lying plainly. */
berth_status lowered_make(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits, berth_error *err);

#endif
