/* Kernel calls of the CPU: which kernel runs a call, and how threads share it. */
#ifndef BERTH_DEVICE_CPU_TEAM_H
#define BERTH_DEVICE_CPU_TEAM_H

#include "base/thread.h"
#include "device/cpu/kernel.h"

/* choose.c: what runs a call. */
typedef struct berth__cpu_choice {
  const char *name; /* of the fast kernel; NULL: it is the op's reference kernel */
  berth_status (*run)(const berth_op_call *call, berth_error *err);
  void (*prepare)(const berth_op_call *call); /* a worker's scratch, before its first run; NULL: nothing */
  bool has_parts;                             /* threads get parts of their own */
  int64_t items, grain;
  int64_t awake_grain;   /* items that are worth a piece for a thread that is awake, where all are less than two grains;
                            0: all are one piece then */
  uint64_t scratch_each; /* for one worker, rounded so that every worker's share is aligned */
  uint64_t few_bytes;    /* so much scratch for all workers is little beside the operands */
} berth__cpu_choice;
berth__cpu_choice berth__cpu_choose(const berth__cpu_kernels *from, const berth__op *op, const berth_op_call *call,
                                    uint32_t plan_flags);
/* Whether the call is one piece of work, which the caller's thread does alone, and for whose scratch alone there is
 * room. It sets awake_grain to 0 then. */
bool berth__cpu_settle_pieces(berth__cpu_choice *choice, uint32_t n_threads);
/* Scratch for as many workers as may take part in it. UINT64_MAX: more than can be counted. */
uint64_t berth__cpu_scratch(berth__cpu_choice *choice, uint32_t n_threads);

/* What one worker saw go wrong, at the lowest item, and the job that its scratch was prepared for. */
typedef struct berth__cpu_worker {
  berth_status status;
  int64_t item;
  berth_error error;
  uint64_t prepared;
} berth__cpu_worker;

typedef struct berth__cpu_team {
  berth__pool *pool; /* NULL: the caller's thread alone; it stays the caller's */
  uint32_t n_threads;
  berth__cpu_worker *workers; /* one per thread */
  uint64_t job;               /* counts what is shared out */
} berth__cpu_team;

berth_status berth__cpu_team_start(berth__cpu_team *team, berth_context *ctx, berth__pool *pool, uint32_t n_threads,
                                   berth_error *err);
void berth__cpu_team_end(berth__cpu_team *team, berth_context *ctx);
/* Items [first, first + n) of a call, which has no scratch yet: every worker gets its share of `scratch`, which may be
 * NULL. Where several fail, the lowest item speaks, so that the message is always the same. Allocates nothing. */
berth_status berth__cpu_team_run(berth__cpu_team *team, const berth__cpu_choice *how, const berth_op_call *call,
                                 unsigned char *scratch, int64_t first, int64_t n, berth_error *err);

#endif
