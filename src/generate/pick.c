/* The best token, found on the device: one number is copied from there instead of all logits. */
#include <math.h>

#include "device/device.h"
#include "generate/generator.h"

enum {
  PICK_LOGITS,
  PICK_LOGIT,
  PICK_TOKEN
}; /* outputs of the graph */

static berth_status pick_add(berth_graph *graph, const char *name, bool *has_pick, berth_error *err) {
  const berth_attr k = berth_attr_int("k", 1);
  const berth__device *device = NULL;
  berth_value best[2];
  *has_pick = false;
  if (name == NULL) return BERTH_OK;
  BERTH__TRY(berth__device_find(name, &device, err));
  if (device->limits().choose_storages == NULL) return BERTH_OK; /* the host reads the device's memory directly */
  const berth_value logits = graph->outputs[PICK_LOGITS].value;
  BERTH__TRY(berth_graph_add(graph, "top_k", &logits, 1, &k, 1, best, 2, err));
  BERTH__TRY(berth_graph_output(graph, "best_logit", best[0], err));
  BERTH__TRY(berth_graph_output(graph, "best", best[1], err));
  *has_pick = true;
  return BERTH_OK;
}

berth_status berth__generator_add_pick(berth_generator *g, berth_error *err) {
  return pick_add(g->graph, g->desc.device, &g->has_pick, err);
}

berth_status berth_generator_graph(const berth_graph *graph, const char *device, berth_graph **out, berth_error *err) {
  bool has_pick;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_generator_graph needs a pointer to store the graph");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  if (graph->n_outputs != 1)
    return berth__fail(err, BERTH_INVALID, "a model that generates text has one output, and this graph has %zu",
                       (size_t)graph->n_outputs);
  BERTH__TRY(berth__graph_clone(graph, out, err));
  const berth_status status = pick_add(*out, device, &has_pick, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

/* NaN counts as the largest logit: if the best logit is not NaN, none is. */
berth_status berth__generator_pick(berth_generator *g, int32_t *token, bool *is_picked, berth_error *err) {
  const berth_sampling_desc *how = &g->sampler.desc;
  float logit = 0;
  int64_t best = 0;
  *is_picked = false;
  if (!g->has_pick || how->temperature > 0 || how->repeat_penalty < 1 || how->repeat_penalty > 1) return BERTH_OK;
  BERTH__TRY(berth_session_read_at(g->session, PICK_LOGIT, &logit, sizeof logit, err));
  if (isnan(logit)) return BERTH_OK;
  BERTH__TRY(berth_session_read_at(g->session, PICK_TOKEN, &best, sizeof best, err));
  *token = (int32_t)best;
  *is_picked = true;
  return BERTH_OK;
}
