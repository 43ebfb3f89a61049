#include "exports.h"

#include <stdlib.h>

#include "embedded.h"

#define ALIGNED 64 /* bytes: as the arena's values lie */

berth_context *web_context;
berth_error web_error;
static uint64_t n_allocations;

/* ---- The context ---------------------------------------------------------------------------------------------- */

static void *count_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  n_allocations++;
  return realloc(ptr, new_size);
}

int berth_web_start(uint32_t n_threads) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = n_threads;
  desc.alloc = count_alloc;
  return berth_context_create(&desc, &web_context, &web_error) == BERTH_OK;
}

void *berth_web_alloc(size_t size) {
  void *block = NULL;
  return posix_memalign(&block, ALIGNED, size != 0 ? size : 1) == 0 ? block : NULL;
}

void berth_web_free(void *block) { free(block); }

const char *berth_web_status(void) { return berth_status_name(web_error.status); }
const char *berth_web_error(void) { return web_error.message; }
const char *berth_web_version(void) { return berth_version(); }
double berth_web_allocations(void) { return (double)n_allocations; }

/* ---- Graphs and plans ----------------------------------------------------------------------------------------- */

static void release(void *user, const void *data, size_t size) {
  (void)data;
  (void)size;
  free(user);
}

berth_graph *berth_web_graph(void *data, size_t size) {
  berth_graph *graph = NULL;
  berth_graph_from_memory(web_context, data, size, release, data, &graph, &web_error);
  return graph;
}

int berth_web_attach(berth_graph *graph, const void *data, size_t size) {
  berth_weights *weights = NULL;
  berth_status status = berth_weights_from_memory(web_context, data, size, &weights, &web_error);
  if (status == BERTH_OK) status = berth_graph_attach(graph, weights, &web_error);
  berth_weights_destroy(weights); /* the graph keeps what it uses */
  return status == BERTH_OK;
}

berth_graph *berth_web_digits(void) {
  berth_graph *graph = NULL;
  if (berth_graph_parse(web_context, (const char *)berth_digits_graph, berth_digits_graph_size, &graph, &web_error) !=
      BERTH_OK)
    return NULL;
  if (berth_web_attach(graph, berth_digits_weights, berth_digits_weights_size)) return graph;
  berth_graph_destroy(graph);
  return NULL;
}

void berth_web_graph_close(berth_graph *graph) { berth_graph_destroy(graph); }

static berth_plan_desc describe(const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                                const berth_dim *dims, size_t n_dims) {
  berth_plan_desc desc = berth_plan_preset(BERTH_PRESET_INFERENCE);
  desc.flags |= flags;
  desc.budget = budget;
  desc.effort = effort;
  desc.device = device;
  desc.dims = dims;
  desc.n_dims = n_dims;
  return desc;
}

berth_plan *berth_web_plan(const berth_graph *graph, const char *device, uint32_t flags, uint64_t budget,
                           uint64_t effort, const berth_dim *dims, size_t n_dims) {
  const berth_plan_desc desc = describe(device, flags, budget, effort, dims, n_dims);
  berth_plan *plan = NULL;
  berth_plan_create(graph, &desc, &plan, &web_error);
  return plan;
}

void berth_web_plan_close(berth_plan *plan) { berth_plan_destroy(plan); }

/* ---- Sessions ------------------------------------------------------------------------------------------------- */

/* An input or output as the host sees it: in the arena, or where that cannot be seen in a block of its own. */
typedef struct place {
  void *data;
  size_t size;
  void *staged; /* to be freed; NULL: it is in the arena */
} place;

struct web_session {
  berth_session *session;
  place *inputs, *outputs;
  uint32_t n_inputs, n_outputs;
};

static int stage(place *at, uint64_t size) {
  at->staged = size <= SIZE_MAX ? berth_web_alloc((size_t)size) : NULL;
  at->data = at->staged;
  at->size = (size_t)size;
  if (at->staged != NULL) return 1;
  web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for what goes in and comes out"};
  return 0;
}

static uint64_t size_of(const berth_graph *graph, berth_value value) {
  berth_value_info info;
  berth_error err;
  return berth_graph_value(graph, value, &info, &err) == BERTH_OK ? info.size : 0;
}

static int place_all(web_session *s) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(s->session));
  berth_error err; /* not to be seen is no failure */
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    place *at = &s->inputs[i];
    if (berth_session_input_data(s->session, i, &at->data, &at->size, &err) == BERTH_OK) continue;
    if (!stage(at, size_of(graph, berth_graph_input_at(graph, i)))) return 0;
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    place *at = &s->outputs[i];
    const void *data = NULL;
    if (berth_session_output_data(s->session, i, &data, &at->size, &err) == BERTH_OK)
      at->data = (void *)(uintptr_t)data;
    else if (!stage(at, size_of(graph, berth_graph_output_at(graph, i))))
      return 0;
  }
  return 1;
}

static web_session *take_session(berth_session *session, const berth_graph *graph) {
  web_session *s = calloc(1, sizeof *s);
  if (s == NULL) {
    berth_session_destroy(session);
    return NULL;
  }
  s->session = session;
  s->n_inputs = berth_graph_n_inputs(graph);
  s->n_outputs = berth_graph_n_outputs(graph);
  s->inputs = calloc(s->n_inputs + 1, sizeof *s->inputs);
  s->outputs = calloc(s->n_outputs + 1, sizeof *s->outputs);
  if (s->inputs != NULL && s->outputs != NULL && place_all(s)) return s;
  berth_web_session_close(s);
  return NULL;
}

web_session *berth_web_session(const berth_graph *graph, const char *device, uint32_t flags, uint64_t budget,
                               uint64_t effort, const berth_dim *dims, size_t n_dims) {
  const berth_plan_desc plan = describe(device, flags, budget, effort, dims, n_dims);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session = NULL;
  desc.device = device;
  desc.plan = &plan;
  if (berth_session_create(graph, &desc, &session, &web_error) != BERTH_OK) return NULL;
  web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for a session"};
  return take_session(session, graph);
}

void berth_web_session_close(web_session *s) {
  for (uint32_t i = 0; s->inputs != NULL && i < s->n_inputs; i++) free(s->inputs[i].staged);
  for (uint32_t i = 0; s->outputs != NULL && i < s->n_outputs; i++) free(s->outputs[i].staged);
  free(s->inputs);
  free(s->outputs);
  berth_session_destroy(s->session);
  free(s);
}

const berth_plan *berth_web_session_plan(const web_session *s) { return berth_session_plan(s->session); }
void *berth_web_input(const web_session *s, uint32_t input) { return s->inputs[input].data; }
const void *berth_web_output(const web_session *s, uint32_t output) { return s->outputs[output].data; }

int berth_web_write(web_session *s) {
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const place *at = &s->inputs[i];
    if (at->staged == NULL) continue;
    if (berth_session_write_at(s->session, i, at->data, at->size, &web_error) != BERTH_OK) return 0;
  }
  return 1;
}

int berth_web_run(web_session *s) { return berth_session_run(s->session, &web_error) == BERTH_OK; }

int berth_web_read(web_session *s) {
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    const place *at = &s->outputs[i];
    if (at->staged == NULL) continue;
    if (berth_session_read_at(s->session, i, at->staged, at->size, &web_error) != BERTH_OK) return 0;
  }
  return 1;
}

const int64_t *berth_web_output_shape(const web_session *s, uint32_t output) {
  static int64_t shape[1 + BERTH_MAX_RANK];
  uint32_t rank = 0;
  if (berth_session_output_shape(s->session, output, &rank, shape + 1, &web_error) != BERTH_OK) return NULL;
  shape[0] = rank;
  return shape;
}
