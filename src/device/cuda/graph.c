/* Graphs: made when a program is bound to a block and never while it runs; and running them. */
#include "device/cuda/code.h"
#include "kernel/render.h"

static const char doing[] = "making a graph", running[] = "running a program";

#define MANY 32u /* to wait for so many dispatches, they are joined in one node first */

/* State while the graph of one part is made. */
typedef struct builder {
  const berth__gpu_binding *binding;
  berth__cu_graph graph;
  berth__cu_node *nodes; /* one per dispatch of the part, and as many for other nodes */
  size_t n;
  size_t before, level; /* nodes [before, level) precede those from `level` on */
  bool has_others;      /* the previous nodes are not all kernels */
} builder;

/* ---- Nodes ---- */

/* Whether a kernel can begin before those that it waits for have ended: only edges between kernels support that, and
 * not if they are joined in a node or timed. */
static bool begins_early(const builder *b, const berth__dispatch *d) {
  const berth__engine *engine = b->binding->engine;
  const berth__gpu_code *code = b->binding->code;
  return d->begins_early && !b->has_others && b->level > b->before && engine->cu->GraphAddEdges != NULL &&
         engine->core.profile.loops.begins_early && code->recipe->plan->profile.loops.begins_early &&
         code->kernels[d->kernel].awaits;
}

static berth_status add_early_edges(builder *b, berth__cu_node node, berth_error *err) {
  berth__engine *engine = b->binding->engine;
  const size_t n = b->level - b->before;
  berth__cu_node to[MANY];
  berth__cu_edge edges[MANY];
  for (size_t i = 0; i < n; i++) {
    to[i] = node;
    edges[i] = (berth__cu_edge){.from_port = BERTH__CU_PORT_PROGRAMMATIC, .type = BERTH__CU_EDGE_PROGRAMMATIC};
  }
  return berth__cuda_check(engine, engine->cu->GraphAddEdges(b->graph, b->nodes + b->before, to, edges, n), doing, err);
}

static berth_status add_kernel(builder *b, size_t dispatch, berth_error *err) {
  berth__engine *engine = b->binding->engine;
  const berth__gpu_code *code = b->binding->code;
  const berth__dispatch *d = &code->recipe->dispatches[dispatch];
  const berth__kernel *kernel = code->recipe->kernels[d->kernel];
  berth__cu_address at[BERTH__KERNEL_BUFFERS];
  void *params[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    at[i] = b->binding->block->base + d->spans[i].at;
    params[i] = &at[i];
  }
  const berth__cu_kernel_node node = {.function = code->kernels[d->kernel].function,
                                      .grid = {(unsigned)kernel->n_groups, 1, 1},
                                      .block = {kernel->group_size, 1, 1},
                                      .shared_bytes = berth__cuda_dynamic_shared(kernel),
                                      .params = params};
  const bool is_early = begins_early(b, d);
  berth__cu_node *added = &b->nodes[b->n++];
  BERTH__TRY(berth__cuda_check(
      engine,
      engine->cu->GraphAddKernelNode(added, b->graph, b->nodes + b->before, is_early ? 0 : b->level - b->before, &node),
      doing, err));
  return is_early ? add_early_edges(b, *added, err) : BERTH_OK;
}

static void next_level(builder *b) {
  b->before = b->level;
  b->level = b->n;
}

/* All nodes from here on come after all earlier ones. */
static berth_status add_wait(builder *b, berth_error *err) {
  berth__engine *engine = b->binding->engine;
  next_level(b);
  b->has_others = false;
  if (b->level - b->before <= MANY) return BERTH_OK;
  BERTH__TRY(berth__cuda_check(
      engine, engine->cu->GraphAddEmptyNode(&b->nodes[b->n++], b->graph, b->nodes + b->before, b->level - b->before),
      doing, err));
  next_level(b);
  b->has_others = true;
  return BERTH_OK;
}

static berth_status add_event(builder *b, size_t index, berth_error *err) {
  berth__engine *engine = b->binding->engine;
  next_level(b);
  return berth__cuda_check(engine,
                           engine->cu->GraphAddEventRecordNode(&b->nodes[b->n++], b->graph, b->nodes + b->before,
                                                               b->level - b->before, b->binding->events[index]),
                           doing, err);
}

/* ---- Graphs ---- */

static berth_status add_plain(builder *b, const berth__gpu_part *part, berth_error *err) {
  const berth__dispatch *d = b->binding->code->recipe->dispatches;
  for (size_t i = part->first; i < part->end; i++) {
    if (i != part->first && d[i].waits) BERTH__TRY(add_wait(b, err));
    BERTH__TRY(add_kernel(b, i, err));
  }
  return BERTH_OK;
}

/* Every dispatch waits for the previous one, so that the times of steps do not overlap. */
static berth_status add_timed(builder *b, const berth__gpu_part *part, berth_error *err) {
  const berth__dispatch *d = b->binding->code->recipe->dispatches;
  size_t n = 0;
  b->has_others = true;
  BERTH__TRY(add_event(b, n++, err));
  for (size_t i = part->first; i < part->end; i++) {
    next_level(b);
    BERTH__TRY(add_kernel(b, i, err));
    if (i + 1 == part->end || d[i + 1].step != d[i].step) BERTH__TRY(add_event(b, n++, err));
  }
  return BERTH_OK;
}

static berth_status instantiate(builder *b, berth__cu_exec *out, berth_error *err) {
  berth__engine *engine = b->binding->engine;
  BERTH__TRY(berth__cuda_check(engine, berth__cuda_counted(engine, engine->cu->GraphInstantiate(out, b->graph, 0)),
                               doing, err));
  return berth__cuda_check(engine, engine->cu->GraphUpload(*out, engine->stream), doing, err);
}

static berth_status make_graph(const berth__gpu_binding *binding, const berth__gpu_part *part, bool is_timed,
                               berth__cu_node *nodes, berth_error *err) {
  berth__engine *engine = binding->engine;
  builder b = {.binding = binding, .nodes = nodes};
  BERTH__TRY(berth__cuda_check(engine, berth__cuda_counted(engine, engine->cu->GraphCreate(&b.graph, 0)), doing, err));
  berth_status status = is_timed ? add_timed(&b, part, err) : add_plain(&b, part, err);
  if (status == BERTH_OK) status = instantiate(&b, &binding->graphs[2 * part->index + is_timed], err);
  BERTH__CUDA_FREE(engine, GraphDestroy, b.graph);
  return status;
}

/* ---- Binding ---- */

static size_t cuda_graph_count_steps(const berth__recipe *recipe, const berth__gpu_part *part) {
  size_t n = 0;
  for (size_t i = part->first; i < part->end; i++)
    n += i == part->first || recipe->dispatches[i].step != recipe->dispatches[i - 1].step;
  return n;
}

static berth_status make_events(berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  berth__engine *engine = binding->engine;
  size_t most = 0;
  for (size_t i = 0; i < binding->n_parts; i++) {
    const size_t n = parts[i].is_on_host ? 0 : cuda_graph_count_steps(binding->code->recipe, &parts[i]);
    if (n > most) most = n;
  }
  binding->events = berth__alloc_array_zero(engine->core.ctx, most + 1, sizeof(berth__cu_event));
  if (binding->events == NULL) return berth__fail_nomem(err, "a program");
  for (; binding->n_events < most + 1; binding->n_events++)
    BERTH__TRY(berth__cuda_check(
        engine, berth__cuda_counted(engine, engine->cu->EventCreate(&binding->events[binding->n_events], 0)), doing,
        err));
  return BERTH_OK;
}

static berth_status make_graphs(const berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  berth_context *ctx = binding->engine->core.ctx;
  size_t most = 0;
  for (size_t i = 0; i < binding->n_parts; i++)
    if (parts[i].end - parts[i].first > most) most = parts[i].end - parts[i].first;
  berth__cu_node *nodes = berth__alloc_array(ctx, 2 * most + 1, sizeof(berth__cu_node));
  berth_status status = nodes != NULL ? BERTH_OK : berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < binding->n_parts && status == BERTH_OK; i++) {
    if (parts[i].is_on_host) continue;
    status = make_graph(binding, &parts[i], false, nodes, err);
    if (status == BERTH_OK) status = make_graph(binding, &parts[i], true, nodes, err);
  }
  berth__free(ctx, nodes);
  return status;
}

static berth_status cuda_graph_build(berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  binding->graphs = berth__alloc_array_zero(binding->engine->core.ctx, binding->n_parts, 2 * sizeof(berth__cu_exec));
  if (binding->graphs == NULL) return berth__fail_nomem(err, "a program");
  BERTH__TRY(berth__cuda_enter(binding->engine, err));
  berth_status status = make_events(binding, parts, err);
  if (status == BERTH_OK) status = make_graphs(binding, parts, err);
  berth__cuda_leave(binding->engine);
  return status;
}

static void cuda_graph_unbind(berth__gpu_binding *binding) {
  berth__engine *engine = binding->engine;
  if (berth__cuda_enter_to_free(engine)) {
    for (size_t i = 0; binding->graphs != NULL && i < 2 * binding->n_parts; i++)
      BERTH__CUDA_FREE(engine, GraphExecDestroy, binding->graphs[i]);
    for (size_t i = 0; i < binding->n_events; i++) BERTH__CUDA_FREE(engine, EventDestroy, binding->events[i]);
    berth__cuda_leave(engine);
  }
  berth__free(engine->core.ctx, binding->graphs);
  berth__free(engine->core.ctx, binding->events);
  berth__free(engine->core.ctx, binding);
}

static berth_status cuda_graph_bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts,
                                    size_t n_parts, berth__gpu_binding **out, berth_error *err) {
  *out = NULL;
  berth__gpu_binding *binding = berth__alloc_zero(code->engine->core.ctx, sizeof *binding);
  if (binding == NULL) return berth__fail_nomem(err, "a program");
  *binding = (berth__gpu_binding){.code = code, .engine = code->engine, .block = block, .n_parts = n_parts};
  const berth_status status = cuda_graph_build(binding, parts, err);
  if (status != BERTH_OK) {
    cuda_graph_unbind(binding);
    return status;
  }
  *out = binding;
  return BERTH_OK;
}

/* ---- Running ---- */

static berth_status cuda_graph_submit(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed,
                                      berth_error *err) {
  berth__engine *engine = binding->engine;
  BERTH__TRY(berth__cuda_enter(engine, err));
  engine->counts.submissions++;
  const berth_status status = berth__cuda_check(
      engine, engine->cu->GraphLaunch(binding->graphs[2 * part->index + timed], engine->stream), running, err);
  berth__cuda_leave(engine);
  return status;
}

static berth_status cuda_graph_wait(berth__gpu_binding *binding, berth_error *err) {
  berth__engine *engine = binding->engine;
  BERTH__TRY(berth__cuda_enter(engine, err));
  const berth_status status = berth__cuda_wait(engine, NULL, running, err);
  berth__cuda_leave(engine);
  return status;
}

static size_t cuda_graph_timed_steps(const berth__engine *engine) {
  (void)engine;
  return SIZE_MAX;
}

static berth_status cuda_graph_times(berth__gpu_binding *binding, const berth__gpu_part *part, double *ms,
                                     berth_error *err) {
  berth__engine *engine = binding->engine;
  const size_t n = cuda_graph_count_steps(binding->code->recipe, part);
  berth_status status = berth__cuda_enter(engine, err);
  if (status != BERTH_OK) return status;
  for (size_t i = 0; i < n && status == BERTH_OK; i++) {
    float time = 0;
    status = berth__cuda_check(engine, engine->cu->EventElapsedTime(&time, binding->events[i], binding->events[i + 1]),
                               "reading times", err);
    ms[i] = (double)time;
  }
  berth__cuda_leave(engine);
  return status;
}

const berth__gpu_driver berth__cuda_driver = {.device = &berth__cuda_device,
                                              .alive = berth__cuda_alive,
                                              .code_create = berth__cuda_code_create,
                                              .make_pipeline = berth__cuda_make_pipeline,
                                              .code_destroy = berth__cuda_code_destroy,
                                              .bind = cuda_graph_bind,
                                              .unbind = cuda_graph_unbind,
                                              .submit = cuda_graph_submit,
                                              .wait = cuda_graph_wait,
                                              .timed_steps = cuda_graph_timed_steps,
                                              .times = cuda_graph_times};
