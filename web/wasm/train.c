/* Training: from a model, a loss and an optimiser to a graph whose runs are steps; and weights, of models and
 * sessions. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "loss.h"

/* ---- A graph that learns -------------------------------------------------------------------------------------- */

static berth_value train_output(const berth_graph *graph, const char *name) {
  if (name[0] == '\0') {
    const berth_value output = loss_output(graph);
    if (output == BERTH_VALUE_NONE)
      web_error = (berth_error){BERTH_INVALID, "the model has no output of a float type to take a loss of"};
    return output;
  }
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++)
    if (strcmp(berth_graph_output_name(graph, i), name) == 0) return berth_graph_output_at(graph, i);
  web_error.status = BERTH_INVALID;
  (void)snprintf(web_error.message, sizeof web_error.message, "the model has no output '%s'", name);
  return BERTH_VALUE_NONE;
}

/* Adds an input for the target (labels, or values) and the loss. */
static bool train_add_loss(berth_graph *graph, bool is_classes, const char *name, berth_value *loss) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_value output = train_output(graph, name), given;
  if (output == BERTH_VALUE_NONE) return false;
  if (is_classes) output = loss_logits(graph, output);
  if (berth_graph_value(graph, output, &info, &web_error) != BERTH_OK) return false;
  if (is_classes && info.shape.rank < 2) {
    web_error = (berth_error){BERTH_INVALID, "cross_entropy needs an output [batch, ..., classes]"};
    return false;
  }
  if (is_classes) info.shape.dim[info.shape.rank - 1].extent = 1;
  const berth_type type = is_classes ? BERTH_I64 : info.type;
  if (berth_graph_input(graph, "train.labels", type, info.shape, &given, &web_error) != BERTH_OK) return false;
  const berth_status status = is_classes ? loss_cross_entropy(graph, output, given, info.shape.rank, loss, &web_error)
                                         : loss_squares(graph, output, given, loss, &web_error);
  return status == BERTH_OK && berth_graph_output(graph, "train.loss", *loss, &web_error) == BERTH_OK;
}

static bool train_find(const berth_graph *graph, const char *name, berth_value *out) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  *out = berth_graph_find(graph, name);
  if (*out != BERTH_VALUE_NONE && berth_graph_value(graph, *out, &info, NULL) == BERTH_OK &&
      info.kind == BERTH_VALUE_PARAM)
    return true;
  web_error.status = BERTH_INVALID;
  (void)snprintf(web_error.message, sizeof web_error.message, "the model has no weight '%s'", name);
  return false;
}

static bool train_add(berth_graph *graph, const web_training *how) {
  const bool is_classes = strcmp(how->loss, "cross_entropy") == 0;
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  berth_value loss = BERTH_VALUE_NONE, *params = calloc((size_t)how->n_params + 1, sizeof *params);
  web_error = (berth_error){BERTH_NOMEM, "there is no room for a list of weights"};
  bool ok = params != NULL;
  for (uint32_t i = 0; ok && i < how->n_params; i++) ok = train_find(graph, how->params[i], &params[i]);
  desc.optimizer = strcmp(how->optimizer, "sgd") == 0 ? BERTH_OPTIMIZER_SGD : BERTH_OPTIMIZER_ADAMW;
  desc.momentum = how->momentum;
  desc.beta1 = how->beta1;
  desc.beta2 = how->beta2;
  desc.epsilon = how->epsilon;
  desc.weight_decay = how->weight_decay;
  desc.clip = how->clip;
  desc.accumulate = how->accumulate;
  desc.params = how->n_params != 0 ? params : NULL;
  desc.n_params = how->n_params;
  ok = ok && train_add_loss(graph, is_classes, how->output, &loss) &&
       berth_graph_train(graph, loss, &desc, &web_error) == BERTH_OK;
  free(params);
  return ok;
}

web_graph *berth_web_train(web_graph *model, const web_training *how, const berth_dim *dims, size_t n_dims) {
  berth_graph *graph = NULL;
  if (berth_graph_bind(web_graph_of(model), dims, n_dims, &graph, &web_error) != BERTH_OK) return NULL;
  if (train_add(graph, how)) return web_graph_derive(model, graph);
  berth_graph_destroy(graph);
  return NULL;
}

/* ---- Weights -------------------------------------------------------------------------------------------------- */

static bool put_weight(json *text, const berth_graph *graph, berth_value value) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(graph, value, &info, &web_error) != BERTH_OK) return false;
  json_open_object(text, NULL);
  json_string(text, "name", info.name);
  json_string(text, "type", berth_type_name(info.type));
  json_open_array(text, "shape");
  for (uint32_t i = 0; i < info.shape.rank; i++) json_int(text, NULL, info.shape.dim[i].extent);
  json_close_array(text);
  json_uint(text, "size", info.size);
  json_uint(text, "at", (uint64_t)(uintptr_t)info.data);
  json_close_object(text);
  return true;
}

const char *berth_web_describe_weights(const web_graph *model) {
  const berth_graph *graph = web_graph_of(model);
  json *text = web_text_begin();
  json_open_array(text, NULL);
  for (uint32_t i = 0; i < berth_graph_n_params(graph); i++)
    if (!put_weight(text, graph, berth_graph_param_at(graph, i))) return NULL;
  json_close_array(text);
  return web_text_finish();
}

const char *berth_web_describe_states(const web_session *session) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(web_session_of(session)));
  json *text = web_text_begin();
  json_open_array(text, NULL);
  for (uint32_t i = 0; i < berth_graph_n_states(graph); i++)
    if (!put_weight(text, graph, berth_graph_state_at(graph, i))) return NULL;
  json_close_array(text);
  return web_text_finish();
}

int berth_web_state_read(web_session *session, const char *state, void *dst, size_t size) {
  return berth_session_state_read(web_session_of(session), state, dst, size, &web_error) == BERTH_OK;
}

int berth_web_state_write(web_session *session, const char *state, const void *src, size_t size) {
  return berth_session_state_write(web_session_of(session), state, src, size, &web_error) == BERTH_OK;
}

double berth_web_state_size(const web_session *session) {
  return (double)berth_session_state_size(web_session_of(session));
}

int berth_web_state_save(web_session *session, void *dst, size_t size) {
  return berth_session_state_save(web_session_of(session), dst, size, &web_error) == BERTH_OK;
}

int berth_web_state_restore(web_session *session, const void *src, size_t size) {
  return berth_session_state_restore(web_session_of(session), src, size, &web_error) == BERTH_OK;
}
