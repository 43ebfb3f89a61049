#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "segments.h"

enum {
  steps_shown = 8
};

int steps_read(const berth_plan *plan, step_list *out) {
  berth_error err = {BERTH_OK, ""};
  *out = (step_list){NULL, 0, 0};
  uint32_t n = cli_plan_info(plan).n_steps;
  out->items = calloc((size_t)n + 1, sizeof(*out->items));
  if (!out->items) return cli_no_memory();
  out->items[0] = (berth_step_info)BERTH_STEP_INFO_INIT;
  if (berth_plan_steps(plan, out->items, n, &out->n, &err) != BERTH_OK) return cli_report(&err);
  for (uint32_t i = 0; i < out->n; i++) out->n_reference += out->items[i].kind == BERTH_KERNEL_REFERENCE;
  return CLI_OK;
}

void steps_close(step_list *list) {
  free(list->items);
  *list = (step_list){NULL, 0, 0};
}

void steps_print(const berth_plan *plan, const step_list *list) {
  uint32_t shown = 0;
  if (list->n_reference == 0) return;
  printf("reference kernels: %u of %u steps:", list->n_reference, list->n);
  for (uint32_t i = 0; i < list->n && shown < steps_shown; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    if (list->items[i].kind != BERTH_KERNEL_REFERENCE) continue;
    if (berth_graph_node(berth_plan_graph(plan), list->items[i].node, &info, NULL) != BERTH_OK) continue;
    printf("%s %s (%s)", shown++ ? "," : "", info.name, info.op);
  }
  printf("%s\n", list->n_reference > shown ? ", ..." : "");
}

static const char *const steps_kind_names[] = {"none", "fast", "reference", "custom", "elsewhere"};

void steps_write_kernel(const berth_step_info *step, const char *asked, json *out) {
  json_string(out, "kernel", step->kernel);
  json_string(out, "kind", steps_kind_names[step->kind]);
  json_bool(out, "reference", step->kind == BERTH_KERNEL_REFERENCE);
  json_string(out, "device", segments_device_name(step->device, asked));
}

void steps_write_json(const berth_plan *plan, const step_list *list, const char *asked, json *out) {
  json_uint(out, "reference_steps", list->n_reference);
  json_open_array(out, "steps");
  for (uint32_t i = 0; i < list->n; i++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(berth_plan_graph(plan), list->items[i].node, &info, NULL) != BERTH_OK) continue;
    json_open_object(out, NULL);
    json_string(out, "name", info.name);
    json_string(out, "op", info.op);
    steps_write_kernel(&list->items[i], asked, out);
    json_bool(out, "prelude", list->items[i].is_prelude != 0);
    json_close_object(out);
  }
  json_close_array(out);
}
