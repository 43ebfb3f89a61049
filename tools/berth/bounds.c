#include "bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format.h"

/* Output i if it has bounds; otherwise false. */
static bool look_at(const berth_graph *bound, uint32_t i, berth_value_info *info, uint32_t *axes) {
  berth_value value = berth_graph_output_at(bound, i);
  *axes = berth_graph_bounds(bound, value);
  return *axes != 0 && berth_graph_value(bound, value, info, NULL) == BERTH_OK;
}

static const char *format_bounded(const berth_shape *shape, uint32_t axes, char out[FORMAT_SIZE]) {
  char text[BERTH_MAX_RANK][32];
  berth_shape shown = *shape;
  for (uint32_t i = 0; i < shape->rank && i < BERTH_MAX_RANK; i++) {
    if (!(axes >> i & 1u)) continue;
    snprintf(text[i], sizeof(text[i]), "<=%" PRId64, shape->dim[i].extent);
    shown.dim[i].name = text[i];
  }
  return format_shape(&shown, out);
}

void bounds_print(const berth_graph *bound, const char *label) {
  for (uint32_t i = 0; i < berth_graph_n_outputs(bound); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    uint32_t axes;
    char shape[FORMAT_SIZE];
    if (!look_at(bound, i, &info, &axes)) continue;
    printf("%s%s %s%s\n", label, berth_graph_output_name(bound, i), berth_type_name(info.type),
           format_bounded(&info.shape, axes, shape));
  }
}

void bounds_write_json(const berth_graph *bound, json *out) {
  json_open_array(out, "bounds");
  for (uint32_t i = 0; i < berth_graph_n_outputs(bound); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    uint32_t axes;
    if (!look_at(bound, i, &info, &axes)) continue;
    json_open_object(out, NULL);
    json_string(out, "name", berth_graph_output_name(bound, i));
    json_open_array(out, "shape");
    for (uint32_t d = 0; d < info.shape.rank; d++) json_int(out, NULL, info.shape.dim[d].extent);
    json_close_array(out);
    json_open_array(out, "axes");
    for (uint32_t d = 0; d < info.shape.rank; d++) {
      if (axes >> d & 1u) json_int(out, NULL, d);
    }
    json_close_array(out);
    json_close_object(out);
  }
  json_close_array(out);
}

berth_graph *bounds_try(const berth_graph *graph, const dims *set) {
  uint32_t n = berth_graph_n_dims(graph);
  berth_dim *all = calloc((size_t)n + 1, sizeof(*all));
  berth_graph *bound = NULL;
  if (!all) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    bool is_known = set && set->items[i].extent >= 0;
    all[i] = (berth_dim){berth_graph_dim_name(graph, i), is_known ? set->items[i].extent : 1};
  }
  berth_graph_bind(graph, all, n, &bound, NULL);
  free(all);
  return bound;
}
