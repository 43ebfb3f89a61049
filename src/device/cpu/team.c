#include "device/cpu/team.h"

#include "base/math.h"

uint64_t berth__cpu_scratch(berth__cpu_choice *choice, uint32_t n_threads) {
  uint64_t total;
  const uint32_t n_workers = berth__cpu_settle_pieces(choice, n_threads) ? 1 : n_threads;
  return berth__mul_u64(choice->scratch_each, n_workers, &total) ? total : UINT64_MAX;
}

berth_status berth__cpu_team_start(berth__cpu_team *team, berth_context *ctx, berth__pool *pool, uint32_t n_threads,
                                   berth_error *err) {
  *team = (berth__cpu_team){.pool = pool, .n_threads = n_threads};
  team->workers = berth__alloc_array_zero(ctx, n_threads, sizeof *team->workers);
  return team->workers != NULL ? BERTH_OK : berth__fail_nomem(err, "a program");
}

void berth__cpu_team_end(berth__cpu_team *team, berth_context *ctx) { berth__free(ctx, team->workers); }

typedef struct running {
  berth__cpu_team *team;
  const berth__cpu_choice *how;
  const berth_op_call *call;
  unsigned char *scratch;
  int64_t first; /* first item of the range that the threads share */
} running;

static void cpu_team_run_range(void *user, uint32_t number, int64_t begin, int64_t end) {
  const running *r = user;
  berth__cpu_worker *self = &r->team->workers[number];
  berth_op_call args = *r->call;
  begin += r->first;
  end += r->first;
  args.begin = begin;
  args.end = end;
  args.scratch = r->scratch != NULL ? r->scratch + number * r->how->scratch_each : NULL;
  if (r->how->prepare != NULL && self->prepared != r->team->job) {
    r->how->prepare(&args);
    self->prepared = r->team->job;
  }
  berth_error error = {.status = BERTH_OK};
  berth_status status = r->how->run(&args, &error);
  if (status == BERTH_OK || (self->status != BERTH_OK && self->item < begin)) return;
  self->status = status;
  self->item = begin;
  self->error = error;
}

static berth_status collect_failure(berth__cpu_team *team, berth_error *err) {
  const berth__cpu_worker *first = NULL;
  for (uint32_t i = 0; i < team->n_threads; i++) {
    const berth__cpu_worker *w = &team->workers[i];
    if (w->status != BERTH_OK && (first == NULL || w->item < first->item)) first = w;
  }
  if (first == NULL) return BERTH_OK;
  const berth_status status = first->status;
  if (err != NULL) *err = first->error;
  for (uint32_t i = 0; i < team->n_threads; i++) team->workers[i].status = BERTH_OK;
  return status;
}

berth_status berth__cpu_team_run(berth__cpu_team *team, const berth__cpu_choice *how, const berth_op_call *call,
                                 unsigned char *scratch, int64_t first, int64_t n, berth_error *err) {
  running r = {.team = team, .how = how, .call = call, .scratch = scratch, .first = first};
  if (n <= 0) return BERTH_OK;
  team->job++;
  const berth__work work = {.n = n,
                            .grain = how->grain,
                            .awake_grain = how->awake_grain,
                            .split = how->has_parts ? BERTH__SPLIT_PARTS : BERTH__SPLIT_QUEUE};
  berth__pool_run_work(team->pool, &work, cpu_team_run_range, &r);
  return collect_failure(team, err);
}
