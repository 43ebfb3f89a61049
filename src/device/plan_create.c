/* berth_plan_create: the planner with the limits of a device. It stands here because the planner knows no devices. */
#include "base/desc.h"
#include "device/device.h"

berth_status berth_plan_create(const berth_graph *graph, const berth_plan_desc *desc, berth_plan **out,
                               berth_error *err) {
  const berth__device *device;
  berth_plan_desc full = BERTH_PLAN_DESC_INIT;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_create needs a place for the plan");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_plan_desc", err));
  BERTH__TRY(berth__device_find(full.device, &device, err));
  berth__limits limits = berth__device_for(device, full.flags)->limits();
  return berth__plan_build(graph, &full, &limits, out, err);
}
