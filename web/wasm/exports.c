#include "exports.h"

#include <stdlib.h>

#include "embedded.h"

#define ALIGNED 64 /* bytes: alignment of the arena's values */

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

static void tell(void *user, const char *stage, uint64_t done, uint64_t total) {
  (void)user;
  berth_web_host_progress(stage, (double)done, (double)total);
}

int berth_web_start(uint32_t n_threads) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  desc.n_threads = n_threads;
  desc.alloc = count_alloc;
  desc.progress = tell;
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

/* A graph with the bytes that it uses. Sessions keep it too: the graph inside them uses the same bytes. */
struct web_graph {
  berth_graph *graph;
  void *weights;   /* to be freed; NULL: none besides the model's */
  web_graph *base; /* the graph whose bytes it uses; NULL: its own */
  uint32_t n_holders;
};

static void release(void *user, const void *data, size_t size) {
  (void)data;
  (void)size;
  free(user);
}

web_graph *web_graph_hold(berth_graph *graph, void *weights) {
  web_graph *held = malloc(sizeof *held);
  if (held != NULL) {
    *held = (web_graph){graph, weights, NULL, 1};
    return held;
  }
  berth_graph_destroy(graph);
  free(weights);
  web_error = (berth_error){BERTH_NOMEM, "there is no room for a model"};
  return NULL;
}

static berth_status attach(berth_graph *graph, const void *data, size_t size) {
  berth_weights *weights = NULL;
  berth_status status = berth_weights_from_memory(web_context, data, size, &weights, &web_error);
  if (status == BERTH_OK) status = berth_graph_attach(graph, weights, &web_error);
  berth_weights_destroy(weights); /* the graph keeps what it uses */
  return status;
}

web_graph *berth_web_graph(void *data, size_t size, void *weights, size_t weights_size) {
  berth_graph *graph = NULL;
  berth_status status = berth_graph_from_memory(web_context, data, size, release, data, &graph, &web_error);
  if (status == BERTH_OK && weights != NULL) status = attach(graph, weights, weights_size);
  if (status == BERTH_OK) return web_graph_hold(graph, weights);
  berth_graph_destroy(graph);
  free(weights);
  return NULL;
}

web_graph *berth_web_digits(void) {
  berth_graph *graph = NULL;
  const char *text = (const char *)berth_digits_graph;
  berth_status status = berth_graph_parse(web_context, text, berth_digits_graph_size, &graph, &web_error);
  if (status == BERTH_OK) status = attach(graph, berth_digits_weights, berth_digits_weights_size);
  if (status == BERTH_OK) return web_graph_hold(graph, NULL);
  berth_graph_destroy(graph);
  return NULL;
}

int berth_web_fix(web_graph *graph, const char *input, const char *type, uint32_t rank, const int64_t *extents,
                  const void *data, size_t size) {
  return berth_graph_fix(graph->graph, input, berth_type_from_name(type), rank, extents, data, size, &web_error) ==
         BERTH_OK;
}

void berth_web_graph_close(web_graph *graph) {
  if (--graph->n_holders != 0) return;
  berth_graph_destroy(graph->graph);
  if (graph->base != NULL) berth_web_graph_close(graph->base);
  free(graph->weights);
  free(graph);
}

const berth_graph *web_graph_of(const web_graph *graph) { return graph->graph; }

web_graph *web_graph_derive(web_graph *base, berth_graph *graph) {
  web_graph *held = web_graph_hold(graph, NULL);
  if (held != NULL) held->base = web_graph_retain(base);
  return held;
}

web_graph *web_graph_retain(web_graph *graph) {
  graph->n_holders++;
  return graph;
}

static berth_plan_desc describe(const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                                const berth_dim *dims, size_t n_dims) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags |= flags;
  desc.budget = budget;
  desc.effort = effort;
  desc.device = device;
  desc.dims = dims;
  desc.n_dims = n_dims;
  return desc;
}

berth_plan *berth_web_plan(const web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                           const berth_dim *dims, size_t n_dims) {
  const berth_plan_desc desc = describe(device, flags, budget, effort, dims, n_dims);
  berth_plan *plan = NULL;
  berth_plan_create(graph->graph, &desc, &plan, &web_error);
  return plan;
}

void berth_web_plan_close(berth_plan *plan) { berth_plan_destroy(plan); }

/* ---- Sessions ------------------------------------------------------------------------------------------------- */

/* An input or output for the host: in the arena, or if that is not accessible in a separate block. */
typedef struct place {
  void *data;
  size_t size;
  void *staged; /* to be freed; NULL: it is in the arena */
} place;

struct web_session {
  web_graph *graph;
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
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  return berth_graph_value(graph, value, &info, &err) == BERTH_OK ? info.size : 0;
}

static int place_all(web_session *s) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(s->session));
  berth_error err; /* an inaccessible arena is not an error */
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

web_session *berth_web_session(web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                               const berth_dim *dims, size_t n_dims) {
  const berth_plan_desc plan = describe(device, flags, budget, effort, dims, n_dims);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  const uint32_t n_inputs = berth_graph_n_inputs(graph->graph), n_outputs = berth_graph_n_outputs(graph->graph);
  web_session *s = calloc(1, sizeof *s + (n_inputs + n_outputs) * sizeof(place));
  web_error = (berth_error){BERTH_NOMEM, "there is no room for a session"};
  if (s == NULL) return NULL;
  graph->n_holders++;
  *s = (web_session){.graph = graph, .n_inputs = n_inputs, .n_outputs = n_outputs};
  s->inputs = (place *)(s + 1);
  s->outputs = s->inputs + n_inputs;
  desc.device = device;
  desc.plan = &plan;
  if (berth_session_create(graph->graph, &desc, &s->session, &web_error) == BERTH_OK && place_all(s)) return s;
  berth_web_session_close(s);
  return NULL;
}

void berth_web_session_close(web_session *s) {
  for (uint32_t i = 0; i < s->n_inputs; i++) free(s->inputs[i].staged);
  for (uint32_t i = 0; i < s->n_outputs; i++) free(s->outputs[i].staged);
  berth_session_destroy(s->session);
  berth_web_graph_close(s->graph);
  free(s);
}

berth_session *web_session_of(const web_session *s) { return s->session; }
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
