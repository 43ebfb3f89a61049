/* Kernel calls of the CPU: which kernel runs a call, and how threads share it. */
#ifndef BERTH_DEVICE_CPU_TEAM_H
#define BERTH_DEVICE_CPU_TEAM_H

#include "base/thread.h"
#include "device/cpu/kernel.h"

/* choose.c: what runs a call. */
typedef struct berth__cpu_choice {
  const char *name; /* of the fast kernel; NULL: the reference kernel runs */
  berth_status (*run)(const berth_op_call *call, berth_error *err);
  void (*prepare)(const berth_op_call *call); /* fills a worker's scratch before its first run; NULL: nothing to do */
  bool has_parts;                             /* each thread gets a range of its own */
  int64_t items, grain;
  int64_t awake_grain;   /* items worth a piece for a thread that is awake, if there are fewer than two grains;
                            0: then all items are one piece */
  uint64_t scratch_each; /* per worker, rounded up so that every worker's share is aligned */
  uint64_t few_bytes;    /* this much scratch for all workers is little beside the operands */
} berth__cpu_choice;
berth__cpu_choice berth__cpu_choose(const berth__cpu_kernels *from, const berth__op *op, const berth_op_call *call,
                                    uint32_t plan_flags);
/* Whether the call is one piece of work, done by the caller's thread alone, with scratch for one worker. Sets
 * awake_grain to 0 in that case. */
bool berth__cpu_settle_pieces(berth__cpu_choice *choice, uint32_t n_threads);
/* Scratch for as many workers as may take part. UINT64_MAX: overflow. */
uint64_t berth__cpu_scratch(berth__cpu_choice *choice, uint32_t n_threads);

/* The error that one worker saw at its lowest item, and the job that its scratch was prepared for. */
typedef struct berth__cpu_worker {
  berth_status status;
  int64_t item;
  berth_error error;
  uint64_t prepared;
} berth__cpu_worker;

typedef struct berth__cpu_team {
  berth__pool *pool; /* NULL: the caller's thread only; not owned */
  uint32_t n_threads;
  berth__cpu_worker *workers; /* one per thread */
  uint64_t job;               /* numbers the jobs */
} berth__cpu_team;

berth_status berth__cpu_team_start(berth__cpu_team *team, berth_context *ctx, berth__pool *pool, uint32_t n_threads,
                                   berth_error *err);
void berth__cpu_team_end(berth__cpu_team *team, berth_context *ctx);
/* Runs items [first, first + n) of a call whose scratch is not set: every worker gets its share of `scratch`, which may
 * be NULL. If several items fail, the error of the lowest is reported, so that the message is always the same.
 * Allocates nothing. */
berth_status berth__cpu_team_run(berth__cpu_team *team, const berth__cpu_choice *how, const berth_op_call *call,
                                 unsigned char *scratch, int64_t first, int64_t n, berth_error *err);

#endif
