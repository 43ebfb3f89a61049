#include "case_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* An operand whose first extent only a run knows: the slices of a larger one that `keep` selects. */
static berth_status add_bounded(berth_graph *graph, const op_tensor *in, berth_value *out, berth_error *err) {
  const int64_t flat = -1;
  const berth_attr shape = berth_attr_ints("shape", &flat, 1);
  int64_t dim[BERTH_MAX_RANK];
  berth_value values[2], places;
  memcpy(dim, in->dim, sizeof dim);
  dim[0] += CASE_SPARE;
  berth_status status = berth_graph_input(graph, "wide", in->type, berth_shape_fixed(in->rank, dim), &values[0], err);
  if (status == BERTH_OK)
    status = berth_graph_input(graph, "keep", BERTH_BOOL, berth_shape_fixed(1, dim), &values[1], err);
  if (status == BERTH_OK) status = berth_graph_add(graph, "non_zero", &values[1], 1, NULL, 0, &places, 1, err);
  if (status == BERTH_OK) status = berth_graph_add(graph, "reshape", &places, 1, &shape, 1, &values[1], 1, err);
  return status == BERTH_OK ? berth_graph_add(graph, "gather", values, 2, NULL, 0, out, 1, err) : status;
}

berth_status case_build(berth_context *ctx, const op_case *c, uint32_t bounded, berth_graph **graph, berth_error *err) {
  berth_value in[OP_CASE_MAX], out[OP_CASE_MAX];
  char name[32];
  berth_status status = berth_graph_create(ctx, c->name, graph, err);
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    in[i] = BERTH_VALUE_NONE;
    if (c->in[i].type == BERTH_TYPE_NONE) continue;
    snprintf(name, sizeof name, "in%u", i);
    if (i == bounded) {
      status = add_bounded(*graph, &c->in[i], &in[i], err);
      continue;
    }
    status =
        berth_graph_input(*graph, name, c->in[i].type, berth_shape_fixed(c->in[i].rank, c->in[i].dim), &in[i], err);
  }
  uint32_t n_in = c->n_in;
  while (n_in > 0 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--; /* optional operands at the end are omitted */
  uint32_t n_out = c->error == NULL ? c->n_out : berth__op_find(ctx, c->op)->min_out; /* error cases have no outputs */
  /* not berth_graph_add: ops that only rewriting makes have cases, too */
  if (status == BERTH_OK)
    status =
        berth__graph_add_op(*graph, berth__op_find(ctx, c->op), in, n_in, c->attrs, c->n_attrs, NULL, out, n_out, err);
  for (uint32_t i = 0; i < n_out && status == BERTH_OK; i++) {
    snprintf(name, sizeof name, "out%u", i);
    status = berth_graph_output(*graph, name, out[i], err);
  }
  return status;
}

berth_status case_fix_operands(berth_graph *graph, const op_case *c, bool bounds_too, berth_error *err) {
  char name[32];
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    const op_tensor *in = &c->in[i];
    snprintf(name, sizeof name, "in%u", i);
    int depend = berth_graph_shapes_depend(graph, berth_graph_find(graph, name));
    if (depend == BERTH_SHAPES_FREE || (depend == BERTH_SHAPES_BOUNDED && !bounds_too)) continue;
    status = berth_graph_fix(graph, name, in->type, in->rank, in->dim, in->data, in->size, err);
  }
  return status;
}

berth_status case_run(berth_session *session, const op_case *c, berth_error *err) {
  char name[32];
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    snprintf(name, sizeof name, "in%u", i);
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
    if (c->in[i].type == BERTH_TYPE_NONE || berth_graph_find(graph, name) == BERTH_VALUE_NONE) continue;
    status = berth_graph_value(graph, berth_graph_find(graph, name), &info, err);
    if (status != BERTH_OK || info.kind != BERTH_VALUE_INPUT) continue; /* fixed */
    status = berth_session_write(session, name, c->in[i].data, c->in[i].size, err);
  }
  return status == BERTH_OK ? berth_session_run(session, err) : status;
}

bool case_matches(berth_session *session, const op_case *c, const char *device, berth_error *err) {
  bool good = true;
  for (uint32_t i = 0; i < c->n_out && good; i++) {
    void *got = malloc(c->out[i].size + 1);
    int64_t element = 0;
    good = berth_session_read_at(session, i, got, c->out[i].size, err) == BERTH_OK &&
           op_case_matches(c, &c->out[i], got, &element);
    if (!good)
      fprintf(stderr, "%s:%d: %s on %s: output %u differs at element %lld\n", c->file, c->line, c->name, device, i,
              (long long)element);
    free(got);
  }
  return good;
}

bool case_is_graph(const op_case *c) { return strcmp(c->op, "loop_end") != 0; }
