/* Creating, destroying and cloning sessions. */
#include "session/session.h"

#include "base/cancel.h"
#include "base/desc.h"
#include "device/gpu/profile.h"
#include "plan/layout.h"

static berth_status allocate_tables(berth_session *session, berth_error *err) {
  size_t n = session->graph->n_values;
  session->outside = berth__alloc_array_zero(session->ctx, n, sizeof *session->outside);
  session->owned = berth__alloc_array_zero(session->ctx, n, sizeof *session->owned);
  session->is_set = berth__alloc_array_zero(session->ctx, n, sizeof *session->is_set);
  session->is_lost = berth__alloc_array_zero(session->ctx, session->graph->n_states, sizeof *session->is_lost);
  session->kept = berth__alloc_array(session->ctx, session->graph->n_states, BERTH__SMALL_STATE);
  if (session->outside == NULL || session->owned == NULL || session->is_set == NULL || session->is_lost == NULL ||
      session->kept == NULL)
    return berth__fail_nomem(err, "a session");
  return BERTH_OK;
}

static berth_status open_and_compile(berth_session *session, const char *which, const berth_plan_desc *plan,
                                     berth_error *err) {
  const bool has_own = session->threads.parallel_for == NULL;
  BERTH__TRY(session->device->open(session->ctx, which, has_own ? session->n_threads : 1, &session->engine, err));
  if (!has_own) {
    berth__pool *pool;
    BERTH__TRY(berth__pool_wrap(session->ctx, &session->threads, &pool, err));
    session->device->use_threads(session->engine, pool);
  }
  session->plan_desc.device = session->device->name;
  BERTH__TRY(berth__device_profile(session->device, session->engine, plan->gpu_profile, &session->profile, err));
  return berth__session_compile(session, plan->dims, plan->n_dims, err);
}

/* A graph with loops, or with extents that are found during a run, is not split between devices: all of it falls
 * back. */
static berth_status compile_first(berth_session *session, const char *which, const berth_plan_desc *plan,
                                  berth_error *err) {
  berth_error reason = {.message = ""};
  berth_status status = open_and_compile(session, which, plan, &reason);
  if (status == BERTH_UNSUPPORTED && (plan->flags & BERTH_PLAN_FALLBACK_CPU) && session->device != &berth__cpu_device) {
    berth__log(session->ctx, 1, "the whole graph runs on the cpu: %s", reason.message);
    session->device->close(session->engine);
    session->engine = NULL;
    session->device = &berth__cpu_device;
    berth_plan_desc on_cpu = *plan;
    on_cpu.gpu_profile = NULL;
    session->plan_desc.compute = BERTH_COMPUTE_F32; /* no kernel of the CPU computes in another type */
    return open_and_compile(session, NULL, &on_cpu, err);
  }
  if (status != BERTH_OK && err != NULL) *err = reason;
  return status;
}

#define DEFAULT_BINDINGS 8u

static berth_status read_threads(berth_session *session, const berth_session_desc *desc, const berth_plan_desc *plan,
                                 berth_error *err) {
  session->n_threads = desc->n_threads != 0   ? desc->n_threads
                       : plan->n_threads != 0 ? plan->n_threads
                                              : session->ctx->n_threads;
  if (desc->threads == NULL) return BERTH_OK;
  BERTH__TRY(BERTH__DESC_COPY(&session->threads, desc->threads, "berth_thread_pool", err));
  if (session->threads.parallel_for == NULL)
    return berth__fail(err, BERTH_INVALID, "a berth_thread_pool needs its parallel_for");
  session->n_threads = session->threads.n_threads;
  return BERTH_OK;
}

static berth_status read_desc(berth_session *session, const berth_graph *graph, const berth__device *on,
                              const berth_session_desc *desc, berth_plan_desc *plan, berth_error *err) {
  BERTH__TRY(BERTH__DESC_COPY(plan, desc->plan, "berth_plan_desc", err));
  const uint32_t unknown = desc->flags & ~(uint32_t)(BERTH_SESSION_CHECKED | BERTH_SESSION_REFERENCE);
  if (unknown != 0) return berth__fail(err, BERTH_INVALID, "the session flags 0x%x are not known", (unsigned)unknown);
  BERTH__TRY(read_threads(session, desc, plan, err));
  session->cancel = desc->cancel;
  if (plan->cancel == NULL) plan->cancel = desc->cancel;
  const char *device = desc->device != NULL ? desc->device : plan->device;
  if (on == NULL) {
    BERTH__TRY(berth__device_find(device, &on, err));
    on = berth__device_for(on, plan->flags);
  }
  session->device = on;
  BERTH__TRY(berth_graph_verify(graph, err));
  BERTH__TRY(berth__graph_clone(graph, &session->graph, err));
  BERTH__TRY(allocate_tables(session, err));
  session->max_bindings = desc->max_bindings != 0 ? desc->max_bindings : DEFAULT_BINDINGS;
  session->checked = (desc->flags & BERTH_SESSION_CHECKED) != 0;
  if (desc->flags & BERTH_SESSION_REFERENCE) plan->flags |= BERTH_PLAN_REFERENCE;
  session->memory = desc->memory;
  session->memory_size = desc->memory_size;
  session->device_name = berth__strdup(session->ctx, device != NULL ? device : session->device->name);
  if (session->device_name == NULL) return berth__fail_nomem(err, "a session");
  session->plan_desc = *plan;
  session->plan_desc.n_threads = session->n_threads;
  if (session->checked && plan->guard == 0) session->plan_desc.guard = BERTH_GUARD_AUTO;
  return BERTH_OK;
}

/* A clone places its weights where the other session has them, whichever bindings that one still has. */
static berth_status session_follow(berth_session *session, const berth_session *like, berth_error *err) {
  session->layout = berth__layout_retain(like->layout);
  session->n_prepared = like->n_prepared;
  return berth__slots_clone(like->home, &session->home, err);
}

static berth_status session_build(berth_session *session, const berth_graph *graph, const berth__device *on,
                                  const berth_session *like, const berth_session_desc *desc, berth_error *err) {
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  BERTH__TRY(read_desc(session, graph, on, desc, &plan, err));
  if (like != NULL) BERTH__TRY(session_follow(session, like, err));
  BERTH__TRY(compile_first(session, berth__device_which(session->device_name), &plan, err));
  session->plan_desc.dims = NULL;
  session->plan_desc.n_dims = 0;
  session->plan_desc.layout = NULL; /* from here on the session's own layout is used */
  session->plan_desc.gpu_profile = NULL;
  if (like != NULL) return BERTH_OK; /* its weights are copied instead */
  BERTH__TRY(berth__session_begin_states(session, err));
  BERTH__TRY(berth__session_place_weights(session, err));
  BERTH__TRY(berth__session_settle(session, err));
  return berth__session_has_weights(session) ? berth__session_prepare(session, err) : BERTH_OK;
}

/* on, like, files: may be NULL. */
static berth_status session_create(const berth_graph *graph, const berth__device *on, const berth_session *like,
                                   const berth__weight_files *files, const berth_session_desc *desc,
                                   berth_session **out, berth_error *err) {
  berth_session_desc full = BERTH_SESSION_DESC_INIT;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_session_create needs a pointer to store the session");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_session_desc", err));
  berth_session *session = berth__alloc_zero(graph->ctx, sizeof *session);
  if (session == NULL) return berth__fail_nomem(err, "a session");
  session->ctx = graph->ctx;
  if (files != NULL) session->files = *files;
  berth_status status = session_build(session, graph, on, like, &full, err);
  if (status != BERTH_OK) {
    berth_session_destroy(session);
    return status;
  }
  *out = session;
  return BERTH_OK;
}

berth_status berth__session_create_on(const berth_graph *graph, const berth__device *on, const berth_session_desc *desc,
                                      berth_session **out, berth_error *err) {
  return session_create(graph, on, NULL, NULL, desc, out, err);
}

berth_status berth__session_create_mapped(const berth_graph *graph, const berth_session_desc *desc,
                                          const berth__weight_files *files, berth_session **out, berth_error *err) {
  return session_create(graph, NULL, NULL, files, desc, out, err);
}

berth_status berth_session_create(const berth_graph *graph, const berth_session_desc *desc, berth_session **out,
                                  berth_error *err) {
  return session_create(graph, NULL, NULL, NULL, desc, out, err);
}

void berth_session_destroy(berth_session *session) {
  if (session == NULL) return;
  berth__session_finish(session);
  berth_context *ctx = session->ctx;
  for (size_t i = 0; i < session->n_bindings; i++) berth__session_free_binding(session, &session->bindings[i]);
  for (size_t i = 0; session->owned != NULL && i < session->graph->n_values; i++) berth__free(ctx, session->owned[i]);
  berth__session_forget_mapped(session);
  berth_arena_destroy(session->arena);
  if (session->engine != NULL) session->device->close(session->engine);
  berth_layout_destroy(session->layout);
  berth__slots_destroy(session->home);
  berth_graph_destroy(session->graph);
  berth__free(ctx, session->bindings);
  berth__free(ctx, session->outside);
  berth__free(ctx, session->owned);
  berth__free(ctx, session->is_set);
  berth__free(ctx, session->is_lost);
  berth__free(ctx, session->kept);
  berth__free(ctx, session->device_name);
  berth__free(ctx, session);
}

static berth_status session_copy_outside(berth_session *to, const berth_session *from, berth_error *err) {
  for (size_t v = 0; v < from->graph->n_values; v++) {
    uint64_t size = 0;
    to->is_set[v] = from->is_set[v];
    to->outside[v] = from->outside[v];
    if (from->owned[v] == NULL || from->outside[v] != from->owned[v]) continue;
    berth__value_size(&from->graph->values[v], &size);
    BERTH__TRY(berth__session_own(to, (berth_value)v, (size_t)size, err));
    memcpy(to->owned[v], from->owned[v], (size_t)size);
    to->outside[v] = to->owned[v];
  }
  return berth__session_rebind(to, err);
}

/* Copies what the last run found, for the current binding of both sessions. */
static void copy_shapes(const berth_session *to, const berth_session *from) {
  const berth__device *device = from->device;
  const berth__shape *found = device->shapes != NULL ? device->shapes(berth__session_current(from)->program) : NULL;
  if (found == NULL) return;
  memcpy(device->shapes(berth__session_current(to)->program), found, from->graph->n_values * sizeof *found);
}

static berth_status copy_state(berth_session *to, const berth_session *from, berth_dim *dims, berth_error *err) {
  for (size_t i = 1; i < from->n_bindings; i++) {
    berth__session_list_dims(from, &from->bindings[i], dims);
    BERTH__TRY(berth_session_bind(to, dims, from->graph->n_dims, err));
  }
  berth__session_list_dims(from, berth__session_current(from), dims);
  BERTH__TRY(berth_session_bind(to, dims, from->graph->n_dims, err));
  BERTH__TRY(session_copy_outside(to, from, err));
  copy_shapes(to, from);
  uint64_t a = berth_arena_size(to->arena), b = berth_arena_size(from->arena);
  BERTH__TRY(
      to->device->copy(berth__arena_block(to->arena), 0, berth__arena_block(from->arena), 0, a < b ? a : b, err));
  BERTH__TRY(berth__session_check_mapped(from, err));
  for (size_t i = 0; i < from->n_bindings; i++) {
    to->bindings[i].is_prepared = from->bindings[i].is_prepared;
    to->bindings[i].last_used = from->bindings[i].last_used;
  }
  for (size_t i = 0; i < from->graph->n_states; i++) to->is_lost[i] = from->is_lost[i];
  to->is_prepared = from->is_prepared;
  to->clock = from->clock;
  return BERTH_OK;
}

berth_status berth_session_clone(const berth_session *session, berth_session **out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_session_clone needs a pointer to store the session");
  *out = NULL;
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = session->plan_desc;
  berth_session *clone = NULL;
  berth_dim *dims = berth__alloc_array(session->ctx, session->graph->n_dims, sizeof *dims);
  if (dims == NULL) return berth__fail_nomem(err, "a session");
  berth__session_list_dims(session, &session->bindings[0], dims);
  plan.dims = dims;
  plan.n_dims = session->graph->n_dims;
  if (berth__profile_named(session->profile.name) != NULL) plan.gpu_profile = session->profile.name;
  desc.plan = &plan;
  desc.device = session->device_name;
  desc.n_threads = session->n_threads;
  desc.cancel = session->cancel;
  if (session->threads.parallel_for != NULL) desc.threads = &session->threads;
  desc.max_bindings = (uint32_t)session->max_bindings;
  desc.flags = session->checked ? BERTH_SESSION_CHECKED : 0;
  berth_status status = session_create(session->graph, session->device, session, NULL, &desc, &clone, err);
  if (status == BERTH_OK) status = copy_state(clone, session, dims, err);
  berth__free(session->ctx, dims);
  if (status != BERTH_OK) {
    berth_session_destroy(clone);
    return status;
  }
  *out = clone;
  return BERTH_OK;
}

const berth_plan *berth_session_plan(const berth_session *session) { return berth__session_current(session)->plan; }

berth_arena *berth_session_arena(berth_session *session) { return session->arena; }

uint32_t berth_session_n_threads(const berth_session *session) { return session->n_threads; }

void berth_session_observe(berth_session *session, berth_step_fn observe, void *user) {
  session->observer = (berth__observer){.call = observe, .user = user};
}

berth_status berth_session_observe_apart(berth_session *session, berth_step_fn observe, void *user, berth_error *err) {
  session->observer = (berth__observer){0};
  if (!session->device->runs_steps_apart)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "device '%s' records whole runs, so that single steps cannot be observed",
                       session->device->name);
  session->observer = (berth__observer){.call = observe, .user = user, .is_apart = true};
  return BERTH_OK;
}

berth_clock berth_session_clock(const berth_session *session) {
  return session->device->clock != NULL ? session->device->clock(session->engine) : BERTH_CLOCK_HOST;
}
