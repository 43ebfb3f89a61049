/* The program: the flat list of kernel calls. A run walks this list; every pointer, item count and scratch size was
 * decided before. Calls whose condition does not hold are skipped, and the end of a loop may jump back. */
#include "base/cancel.h"
#include "base/math.h"
#include "device/cpu/cpu.h"
#include "graph/rewrite.h"

/* One kernel call. Steps that need none (berth__cpu_needs_kernel) have no call; those whose extents alone must be found
 * call no kernel. */
typedef struct call {
  const berth__op *op;
  uint32_t step, node;
  berth_op_call args; /* its scratch and range are set per run */
  berth__cpu_choice how;
  unsigned char *scratch;
  bool has_bounds;   /* extents, items and grain are found during the run */
  bool is_view;      /* nothing but these */
  bool is_one_piece; /* planned as one piece: there is scratch for one worker only */
  size_t jump;       /* loop_begin: its loop_end; loop_end: the call after its loop_begin */
} call;

struct berth__program {
  berth_context *ctx;
  berth__engine *engine;
  const berth_plan *plan;
  call *calls;
  size_t n_calls, n_prelude; /* the prelude's calls come first */
  berth_tensor *tensors;     /* of all calls, in order: operands, then results */
  berth__cpu_team team;
  const uint8_t **conditions; /* one per condition: where its byte lies */
  berth__watch *watch;        /* checked mode */
  berth__extents *extents;    /* NULL: all extents are as planned */
  unsigned char *base;
  berth__cpu_kernels kernels; /* which kernels to choose from */
  berth__observer observer;   /* of the submitted run */
  berth__burst burst;         /* estimated time of a run */
};

bool berth__cpu_needs_kernel(const berth_plan *plan, const berth__node *node) {
  if (berth__node_is_bounded(plan->graph, node)) return true; /* its shape must be found, even if nothing runs */
  return berth__plan_needs_kernel(plan, node);
}

static void add_call(berth__program *program, uint32_t step, berth_tensor *tensors) {
  const berth_plan *plan = program->plan;
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  call *c = &program->calls[program->n_calls++];
  c->op = node->op;
  c->step = step;
  c->node = plan->order[step];
  berth__plan_call(plan, node, tensors, &c->args);
  c->has_bounds = berth__node_is_bounded(plan->graph, node);
  c->is_view = plan->places[node->out[0]].is_view;
  c->how = berth__cpu_choose(&program->kernels, node->op, &c->args,
                             plan->flags | (c->has_bounds ? BERTH__CALL_HAS_BOUNDS : 0));
  c->is_one_piece = berth__cpu_settle_pieces(&c->how, plan->n_threads);
}

/* A loop_end finds its loop_begin through the round counter that it reads: the last call before it that writes the
 * counter. */
static void link_loops(berth__program *program) {
  for (size_t end = 0; end < program->n_calls; end++) {
    if (program->calls[end].op->code != BERTH__OP_loop_end) continue;
    const berth_graph *graph = program->plan->graph;
    uint32_t node = graph->values[graph->nodes[program->calls[end].node].in[BERTH__LOOP_ROUND]].node;
    size_t begin = end;
    while (program->calls[begin].node != node) begin--;
    program->calls[begin].jump = end;
    program->calls[end].jump = begin + 1;
  }
}

/* Estimated from the grain, since a grain of items takes about PIECE_MS. Items that are each worth more than that count
 * as if they were not, until a run has been measured. */
#define PIECE_MS 0.012

static double guess_ms(const berth__program *program) {
  double total = 0;
  for (size_t i = program->n_prelude; i < program->n_calls; i++) {
    const berth__cpu_choice *how = &program->calls[i].how;
    total += (double)how->items / (double)(how->grain > 0 ? how->grain : 1) * PIECE_MS;
  }
  return total;
}

static berth_status cpu_program_build(berth__program *program, bool checked, berth_error *err) {
  const berth_plan *plan = program->plan;
  size_t n_tensors = 0, n_calls = 0;
  for (uint32_t step = 0; step < plan->n_steps; step++) { /* views have no call */
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    if (!berth__cpu_needs_kernel(plan, node)) continue;
    n_tensors += (size_t)node->n_in + node->n_out;
    n_calls++;
  }
  program->calls = berth__alloc_array_zero(program->ctx, n_calls, sizeof *program->calls);
  program->tensors = berth__alloc_array_zero(program->ctx, n_tensors, sizeof *program->tensors);
  program->conditions = berth__alloc_array_zero(program->ctx, plan->conditions.count, sizeof *program->conditions);
  if (program->calls == NULL || program->tensors == NULL || program->conditions == NULL)
    return berth__fail_nomem(err, "a program");
  BERTH__TRY(
      berth__cpu_team_start(&program->team, program->ctx, program->engine->pool, program->engine->n_threads, err));
  berth_tensor *tensors = program->tensors;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    if (!berth__cpu_needs_kernel(plan, node)) continue;
    add_call(program, step, tensors);
    tensors += node->n_in + node->n_out;
    if (step < plan->n_prelude) program->n_prelude = program->n_calls;
  }
  link_loops(program);
  program->burst.alone_ms = guess_ms(program);
  BERTH__TRY(berth__extents_create(plan, &program->extents, err));
  return checked ? berth__watch_create(plan, &program->watch, err) : BERTH_OK;
}

berth_status berth__cpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                       berth__program **out, berth_error *err) {
  *out = NULL;
  berth__program *program = berth__alloc_zero(engine->ctx, sizeof *program);
  if (program == NULL) return berth__fail_nomem(err, "a program");
  program->ctx = engine->ctx;
  program->engine = engine;
  program->plan = plan;
  program->kernels = berth__cpu_kernels_of(engine->ctx);
  berth_status status = cpu_program_build(program, checked, err);
  if (status != BERTH_OK) {
    berth__cpu_program_destroy(program);
    return status;
  }
  *out = program;
  return BERTH_OK;
}

void berth__cpu_program_destroy(berth__program *program) {
  if (program == NULL) return;
  berth__watch_destroy(program->watch);
  berth__extents_destroy(program->extents);
  berth__free(program->ctx, program->calls);
  berth__free(program->ctx, program->tensors);
  berth__cpu_team_end(&program->team, program->ctx);
  berth__free(program->ctx, program->conditions);
  berth__free(program->ctx, program);
}

/* Where a value's first element lies; NULL: outside the arena, and its address is not known yet. */
static void *address(const berth__program *program, berth_value value, const void *const *outside) {
  const berth__place *place = &program->plan->places[value];
  if (place->buffer != BERTH__NO_BUFFER)
    return program->base + program->plan->buffers[place->buffer].offset + place->root_offset;
  const unsigned char *root = outside[place->root];
  return root != NULL ? (void *)(uintptr_t)(root + place->root_offset) : NULL;
}

berth_status berth__cpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                     berth_error *err) {
  const berth_plan *plan = program->plan;
  program->base = berth__cpu_host(block);
  (void)err;
  for (size_t k = 0; k < program->n_calls; k++) {
    call *c = &program->calls[k];
    const berth__node *node = &plan->graph->nodes[c->node];
    berth_tensor *tensors = (berth_tensor *)(uintptr_t)c->args.in;
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE) tensors[i].data = address(program, node->in[i], outside);
    for (uint32_t i = 0; i < node->n_out; i++) tensors[node->n_in + i].data = address(program, node->out[i], outside);
    uint32_t buffer = plan->scratch[c->step];
    c->scratch = buffer != BERTH__NO_BUFFER ? program->base + plan->buffers[buffer].offset : NULL;
  }
  for (uint32_t g = BERTH__NO_CONDITION + 1; g < plan->conditions.count; g++)
    program->conditions[g] = address(program, plan->conditions.items[g].condition, outside);
  return BERTH_OK;
}

/* Replaces what was planned for the bounds by the true extents. */
static berth_status cpu_program_settle(berth__program *program, call *c, berth_error *err) {
  const berth__node *node = &program->plan->graph->nodes[c->node];
  berth_tensor *tensors = (berth_tensor *)(uintptr_t)c->args.in;
  berth_op_call args = c->args;
  args.scratch = c->scratch;
  BERTH__TRY(berth__extents_find(program->extents, node, tensors, &args, err));
  const uint64_t planned = c->how.scratch_each;
  c->how = berth__cpu_choose(&program->kernels, c->op, &c->args, program->plan->flags);
  if (c->how.scratch_each > planned)
    c->how = berth__cpu_choose(&program->kernels, c->op, &c->args, BERTH_PLAN_REFERENCE);
  const bool fits = c->how.scratch_each <= planned;
  c->how.scratch_each = planned; /* the workers' shares keep their offsets */
  if (c->is_one_piece) {         /* there is one share only */
    c->how.grain = c->how.items;
    c->how.awake_grain = 0;
  }
  if (fits) return BERTH_OK;
  return berth__fail(err, BERTH_INFEASIBLE, "node '%s' (%s) needs more scratch than was planned",
                     program->plan->graph->values[node->out[0]].name, c->op->name);
}

/* Items [first, first + n) of a call. */
static berth_status share_out(berth__program *program, const call *c, int64_t first, int64_t n, berth_error *err) {
  const berth_status status = berth__cpu_team_run(&program->team, &c->how, &c->args, c->scratch, first, n, err);
  if (status == BERTH_OK) return status;
  return berth__fail_within(err, status, "node '%s' (%s)",
                            program->plan->graph->values[program->plan->graph->nodes[c->node].out[0]].name,
                            c->op->name);
}

berth__shape *berth__cpu_shapes(berth__program *program) {
  return program->extents != NULL ? berth__extents_shapes(program->extents) : NULL;
}

static berth_status run_call(berth__program *program, call *c, const berth__observer *observer, berth_error *err) {
  double start = observer->call != NULL ? berth__now_ms() : 0;
  if (c->has_bounds) BERTH__TRY(cpu_program_settle(program, c, err));
  if (program->watch != NULL) berth__watch_before(program->watch, c->step);
  if (!c->is_view) BERTH__TRY(share_out(program, c, 0, c->how.items, err));
  if (program->watch != NULL) BERTH__TRY(berth__watch_after(program->watch, c->step, err));
  if (observer->call != NULL)
    observer->call(observer->user, c->step, c->node, c->args.out, c->args.n_out, berth__now_ms() - start);
  return BERTH_OK;
}

/* Weights are read from their file in pieces, and the observer releases what has been read, so a large weight is never
 * in memory twice, in the file and in the arena. How many pieces there are must be known. */
#define PREPARE_PIECES 16

static berth_status prepare_call(berth__program *program, call *c, const berth__observer *observer, berth_error *err) {
  const int64_t each = c->how.items / PREPARE_PIECES + 1;
  if (program->watch != NULL || c->has_bounds || c->how.items <= 1) return run_call(program, c, observer, err);
  for (int64_t first = 0; first < c->how.items; first += each) {
    const int64_t n = c->how.items - first < each ? c->how.items - first : each;
    BERTH__TRY(share_out(program, c, first, n, err));
    observer->call(observer->user, c->step, c->node, c->args.out, c->args.n_out, 0);
  }
  return BERTH_OK;
}

berth_status berth__cpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  berth_status status = BERTH_OK;
  if (program->watch != NULL) berth__watch_start(program->watch, program->base);
  for (size_t i = 0; i < program->n_prelude && status == BERTH_OK; i++)
    status = prepare_call(program, &program->calls[i], observer, err);
  if (program->watch != NULL) berth__watch_stop(program->watch);
  return status;
}

/* The innermost condition is enough: the value of a skipped condition is not read elsewhere. */
static bool cpu_program_is_needed(const berth__program *program, uint32_t step) {
  const berth__conditions *conditions = &program->plan->conditions;
  for (uint32_t g = conditions->of_step[step]; g != BERTH__NO_CONDITION; g = conditions->items[g].parent)
    if ((*program->conditions[g] != 0) != conditions->items[g].sense) return false;
  return true;
}

static size_t next_call(const berth__program *program, size_t index) {
  const call *c = &program->calls[index];
  bool is_begin = c->op->code == BERTH__OP_loop_begin, is_end = c->op->code == BERTH__OP_loop_end;
  if (is_begin && c->jump != 0 && *(const uint8_t *)c->args.out[BERTH__LOOP_STARTS].data == 0) return c->jump;
  if (is_end && *(const uint8_t *)c->args.out[BERTH__LOOP_AGAIN].data != 0) return c->jump;
  return index + 1;
}

/* The caller's thread is one of the workers, so the work is done in `wait`. */
berth_status berth__cpu_submit(berth__program *program, const berth__observer *observer, berth_error *err) {
  (void)err;
  program->observer = *observer;
  return BERTH_OK;
}

static void cpu_program_begin(const berth__program *program, uint32_t step) {
  uint32_t *begun = program->observer.begun;
  if (begun != NULL && *begun < step + 1) *begun = step + 1;
}

/* write_rows checks its positions before it writes: when it fails, its cache is unchanged. */
static void cpu_program_take_back(const berth__program *program, const call *c) {
  uint32_t *begun = program->observer.begun;
  if (begun != NULL && *begun == c->step + 1 && c->op->code == BERTH__OP_write_rows) *begun = c->step;
}

berth_status berth__cpu_wait(berth__program *program, berth_error *err) {
  berth_status status = BERTH_OK;
  if (program->watch != NULL) berth__watch_start(program->watch, program->base);
  berth__pool_begin(program->engine->pool, &program->burst);
  for (size_t i = program->n_prelude; i < program->n_calls && status == BERTH_OK;) {
    bool runs = cpu_program_is_needed(program, program->calls[i].step);
    status =
        berth__check_cancel(program->observer.cancel, "the run", err); /* read once: the request may be withdrawn */
    if (status != BERTH_OK) break;
    if (runs) cpu_program_begin(program, program->calls[i].step);
    if (runs) status = run_call(program, &program->calls[i], &program->observer, err);
    if (status != BERTH_OK) cpu_program_take_back(program, &program->calls[i]);
    i = runs ? next_call(program, i) : i + 1;
  }
  berth__burst burst = program->burst;
  berth__pool_end(program->engine->pool, &burst);
  if (status == BERTH_OK) program->burst = burst; /* an aborted run says nothing about the next one */
  if (program->watch != NULL) berth__watch_stop(program->watch);
  return status;
}
