/* The best token, found on the device: where logits would have to come from there, one number does. */
#include <math.h>

#include "device/device.h"
#include "generate/generator.h"

enum {
  PICK_LOGITS,
  PICK_LOGIT,
  PICK_TOKEN
}; /* outputs of the graph */

berth_status berth__generator_add_pick(berth_generator *g, berth_error *err) {
  const berth_attr k = berth_attr_int("k", 1);
  const berth_value logits = g->graph->outputs[PICK_LOGITS].value;
  const berth__device *device = NULL;
  berth_value best[2];
  if (g->desc.device == NULL) return BERTH_OK;
  BERTH__TRY(berth__device_find(g->desc.device, &device, err));
  if (device->limits().choose_storages == NULL) return BERTH_OK; /* the host reads its memory as it is */
  BERTH__TRY(berth_graph_add(g->graph, "top_k", &logits, 1, &k, 1, best, 2, err));
  BERTH__TRY(berth_graph_output(g->graph, "best_logit", best[0], err));
  BERTH__TRY(berth_graph_output(g->graph, "best", best[1], err));
  g->has_pick = true;
  return BERTH_OK;
}

/* A NaN counts as the largest: where the best logit is none, no logit is one. */
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
