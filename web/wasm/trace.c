/* A profiled run: the time of every step, and its results. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"

typedef struct trace_kept {
  uint32_t step, out;
  berth_tensor tensor; /* data: its own dense elements */
  uint64_t count;      /* number of its elements; index of its first tensor */
} trace_kept;

typedef struct trace {
  double *ms; /* one per step; rounds of a loop are summed, and their last results are kept */
  bool *ran;
  trace_kept *kept;
  uint32_t n_steps, n_kept, capacity, most;
  berth_session *session;
  bool no_memory;
} trace;

static trace traced;

void berth_web_trace_end(void) {
  for (uint32_t i = 0; i < traced.n_kept; i++) free(traced.kept[i].tensor.data);
  free(traced.kept);
  free(traced.ms);
  free(traced.ran);
  traced = (trace){0};
}

static uint64_t trace_count(const berth_tensor *tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) count *= (uint64_t)tensor->dim[i];
  return count;
}

/* The first elements in row-major order. */
static void trace_copy(const berth_tensor *tensor, size_t width, uint64_t count, unsigned char *dst) {
  int64_t index[BERTH_MAX_RANK] = {0};
  for (uint64_t i = 0; i < count; i++) {
    int64_t at = 0;
    for (uint32_t k = 0; k < tensor->rank; k++) at += index[k] * tensor->stride[k];
    memcpy(dst + i * width, (const unsigned char *)tensor->data + at * (int64_t)width, width);
    for (uint32_t k = tensor->rank; k-- > 0;) {
      if (++index[k] < tensor->dim[k]) break;
      index[k] = 0;
    }
  }
}

static trace_kept *trace_slot(uint32_t step, uint32_t out) {
  for (uint32_t i = traced.n_kept; i-- > 0;)
    if (traced.kept[i].step == step && traced.kept[i].out == out) return &traced.kept[i];
  if (traced.n_kept == traced.capacity) {
    const uint32_t capacity = traced.capacity != 0 ? 2 * traced.capacity : 64;
    trace_kept *grown = realloc(traced.kept, capacity * sizeof *grown);
    if (grown == NULL) return NULL;
    traced.kept = grown;
    traced.capacity = capacity;
  }
  traced.kept[traced.n_kept] = (trace_kept){.step = step, .out = out};
  return &traced.kept[traced.n_kept++];
}

/* The first elements of a value in the arena. A device without 64-bit integers stores them in 32 bits. */
static bool trace_read(berth_value value, berth_type type, uint64_t all, uint64_t count, void *dst) {
  const berth_arena *arena = berth_session_arena(traced.session);
  const bool is_wide = type == BERTH_I64 || type == BERTH_U64;
  if (!is_wide || berth_arena_capacity(arena, value) >= 8 * all)
    return berth_arena_read(arena, value, 0, dst, count * berth_type_size(type), NULL) == BERTH_OK;
  if (berth_arena_read(arena, value, 0, dst, 4 * count, NULL) != BERTH_OK) return false;
  for (uint64_t i = count; i-- > 0;) { /* from the last one on, so that none is overwritten */
    uint32_t word;
    memcpy(&word, (const char *)dst + 4 * i, sizeof word);
    const int64_t wide = type == BERTH_I64 ? (int64_t)(int32_t)word : (int64_t)word;
    memcpy((char *)dst + 8 * i, &wide, sizeof wide);
  }
  return true;
}

/* value: read from the arena if the host cannot address it. */
static void trace_keep(uint32_t step, uint32_t out, const berth_tensor *tensor, berth_value value) {
  const size_t width = berth_type_size(tensor->type); /* 0: in blocks, which are not supported here */
  const uint64_t all = trace_count(tensor), count = all < traced.most ? all : traced.most;
  if (width == 0 || count == 0) return;
  trace_kept *kept = trace_slot(step, out);
  unsigned char *data = kept != NULL ? malloc((size_t)count * width) : NULL;
  if (data == NULL) {
    traced.no_memory = true;
    return;
  }
  free(kept->tensor.data);
  kept->tensor = *tensor;
  kept->tensor.data = data;
  kept->count = count;
  if (tensor->data != NULL) {
    trace_copy(tensor, width, count, data);
  } else if (!trace_read(value, tensor->type, all, count, data)) {
    free(data); /* it has no bytes: another step computes it internally */
    kept->tensor.data = NULL;
  }
}

/* The results of a step on a GPU: the observer gets no tensors, but they are in the arena. */
static void trace_keep_arena(uint32_t step, uint32_t node) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(traced.session));
  berth_node_info info = BERTH_NODE_INFO_INIT;
  if (berth_graph_node(graph, node, &info, NULL) != BERTH_OK) return;
  for (uint32_t i = 0; i < info.n_out; i++) {
    berth_value_info value = BERTH_VALUE_INFO_INIT;
    if (info.out[i] == BERTH_VALUE_NONE || !berth_arena_has(berth_session_arena(traced.session), info.out[i])) continue;
    if (berth_graph_value(graph, info.out[i], &value, NULL) != BERTH_OK) continue;
    berth_tensor tensor = {.type = value.type, .rank = value.shape.rank};
    for (uint32_t k = 0; k < tensor.rank; k++) tensor.dim[k] = value.shape.dim[k].extent;
    trace_keep(step, i, &tensor, info.out[i]);
  }
}

static void trace_observe(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out,
                          double ms) {
  (void)user;
  if (step >= traced.n_steps) return;
  traced.ms[step] += ms;
  traced.ran[step] = true;
  if (traced.most == 0) return;
  if (n_out == 0) trace_keep_arena(step, node);
  for (uint32_t i = 0; i < n_out; i++)
    if (out[i].data != NULL) trace_keep(step, i, &out[i], BERTH_VALUE_NONE);
}

static const char *trace_describe(void) {
  json *text = web_text_begin();
  json_open_object(text, NULL);
  json_open_array(text, "steps");
  for (uint32_t i = 0; i < traced.n_steps; i++) {
    if (traced.ran[i])
      json_double(text, NULL, traced.ms[i]);
    else
      json_null(text, NULL);
  }
  json_close_array(text);
  json_open_array(text, "tensors");
  for (uint32_t i = 0; i < traced.n_kept; i++) {
    const trace_kept *kept = &traced.kept[i];
    if (kept->tensor.data == NULL) continue;
    json_open_object(text, NULL);
    json_uint(text, "step", kept->step);
    json_uint(text, "out", kept->out);
    json_string(text, "type", berth_type_name(kept->tensor.type));
    json_ints(text, "shape", kept->tensor.rank, kept->tensor.dim);
    json_uint(text, "at", (uint64_t)(uintptr_t)kept->tensor.data);
    json_uint(text, "count", kept->count);
    json_close_object(text);
  }
  json_close_array(text);
  json_close_object(text);
  return web_text_finish();
}

const char *berth_web_trace(web_session *session, uint32_t most) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_session *run = web_session_of(session);
  berth_web_trace_end();
  berth_plan_get_info(berth_session_plan(run), &info, NULL);
  traced.ms = calloc((size_t)info.n_steps + 1, sizeof *traced.ms);
  traced.ran = calloc((size_t)info.n_steps + 1, sizeof *traced.ran);
  web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for what the steps make"};
  if (traced.ms == NULL || traced.ran == NULL) return NULL;
  traced.n_steps = info.n_steps;
  traced.most = most;
  traced.session = run;
  berth_status status = BERTH_OK;
  if (most != 0)
    status = berth_session_observe_apart(run, trace_observe, NULL, &web_error);
  else
    berth_session_observe(run, trace_observe, NULL);
  if (status == BERTH_OK) status = berth_session_run(run, &web_error);
  berth_session_observe(run, NULL, NULL);
  if (status != BERTH_OK) return NULL;
  if (!traced.no_memory) return trace_describe();
  web_error = (berth_error){.status = BERTH_NOMEM, .message = "there is no room for what the steps make"};
  return NULL;
}
