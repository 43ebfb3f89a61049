/* Reports what runs each step of a plan: the kernel that the CPU will choose, or the kernels that a GPU launches. */
#include <stdio.h>

#include "base/desc.h"
#include "device/cpu/cpu.h"
#include "device/gpu/recipe.h"

typedef struct step_list {
  unsigned char *out; /* entries of `stride` bytes, the caller's version of the struct */
  size_t stride;
  uint32_t capacity;
} step_list;

static void step_put(const step_list *list, uint32_t step, const berth_step_info *info) {
  if (step >= list->capacity) return;
  unsigned char *to = list->out + step * list->stride;
  const uint32_t stride = (uint32_t)list->stride;
  memcpy(to, &stride, sizeof stride);
  berth__result_write(to, info, sizeof *info, "berth_step_info", NULL);
}

static berth_step_info step_begin(const berth_plan *plan, uint32_t step, const char *device) {
  berth_step_info info = BERTH_STEP_INFO_INIT;
  info.node = plan->order[step];
  info.is_prelude = step < plan->n_prelude;
  info.device = device;
  return info;
}

/* The CPU's choice for the step. Operands of host steps are contiguous. */
static void step_on_cpu(const berth_plan *plan, uint32_t step, bool without_gaps, berth_tensor *tensors,
                        berth_step_info *info) {
  const berth__cpu_kernels kernels = berth__cpu_kernels_of(plan->ctx);
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  berth_op_call call;
  berth__plan_call(plan, node, tensors, &call);
  for (uint32_t i = 0; i < node->n_in + node->n_out && without_gaps; i++)
    berth__contiguous_strides(tensors[i].rank, tensors[i].dim, tensors[i].stride);
  const berth__cpu_choice how = berth__cpu_choose(&kernels, node->op, &call, plan->flags);
  info->kind = how.name != NULL           ? BERTH_KERNEL_FAST
               : node->op->custom != NULL ? BERTH_KERNEL_CUSTOM
                                          : BERTH_KERNEL_REFERENCE;
  info->n_dispatches = 1;
  snprintf(info->kernel, sizeof info->kernel, "%s", how.name != NULL ? how.name : node->op->name);
}

static void steps_of_cpu(const berth_plan *plan, berth_tensor *tensors, const step_list *list) {
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    berth_step_info info = step_begin(plan, step, "cpu");
    const berth__node *node = &plan->graph->nodes[info.node];
    const bool is_view = plan->places[node->out[0]].is_view; /* may have a call, which only finds its extents */
    if (berth__cpu_needs_kernel(plan, node) && !is_view) step_on_cpu(plan, step, false, tensors, &info);
    step_put(list, step, &info);
  }
}

static void step_add_kernel(berth_step_info *info, const char *name) {
  const size_t used = strlen(info->kernel);
  info->kind = BERTH_KERNEL_FAST;
  info->n_dispatches++;
  snprintf(info->kernel + used, sizeof info->kernel - used, "%s%s", used != 0 ? "+" : "", name);
}

static void steps_of_recipe(const berth__recipe *recipe, berth_tensor *tensors, const step_list *list) {
  size_t at = 0;
  for (uint32_t step = 0; step < recipe->plan->n_steps; step++) {
    berth_step_info info = step_begin(recipe->plan, step, recipe->plan->device);
    for (; at < recipe->n_dispatches && recipe->dispatches[at].step == step; at++) {
      const uint32_t kernel = recipe->dispatches[at].kernel;
      if (kernel != BERTH__ON_HOST) {
        step_add_kernel(&info, recipe->kernels[kernel]->name);
      } else {
        info.device = "cpu";
        step_on_cpu(recipe->plan, step, true, tensors, &info);
      }
    }
    step_put(list, step, &info);
  }
}

/* Loops, and extents known only at run time: no GPU supports them, and a session with fallback runs entirely on the
 * CPU. */
static void steps_elsewhere(const berth_plan *plan, const step_list *list) {
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    berth_step_info info = step_begin(plan, step, "cpu");
    info.kind = BERTH_KERNEL_ELSEWHERE;
    step_put(list, step, &info);
  }
}

static berth_status steps_of_gpu(const berth_plan *plan, berth_tensor *tensors, const step_list *list,
                                 berth_error *err) {
  berth__recipe *recipe = NULL;
  const berth_status status = berth__recipe_create(plan, &recipe, err);
  if (status == BERTH_UNSUPPORTED && (plan->flags & BERTH_PLAN_FALLBACK_CPU)) {
    steps_elsewhere(plan, list);
    return BERTH_OK;
  }
  BERTH__TRY(status);
  steps_of_recipe(recipe, tensors, list);
  berth__recipe_destroy(recipe);
  return BERTH_OK;
}

berth_status berth_plan_steps(const berth_plan *plan, berth_step_info *out, uint32_t capacity, uint32_t *n,
                              berth_error *err) {
  step_list list = {.out = (unsigned char *)out, .capacity = out != NULL ? capacity : 0};
  if (n != NULL) *n = 0;
  if (plan == NULL || n == NULL)
    return berth__fail(err, BERTH_INVALID, "a plan and a pointer to store the count are needed");
  if (list.capacity != 0) {
    BERTH__TRY(berth__result_check(out, "berth_step_info", err));
    list.stride = out->struct_size;
    berth_tensor *tensors = berth__alloc_array(plan->ctx, berth__plan_most_tensors(plan), sizeof *tensors);
    if (tensors == NULL) return berth__fail_nomem(err, "the steps of a plan");
    berth_status status = BERTH_OK;
    if (strcmp(plan->device, "cpu") == 0)
      steps_of_cpu(plan, tensors, &list);
    else
      status = steps_of_gpu(plan, tensors, &list, err);
    berth__free(plan->ctx, tensors);
    BERTH__TRY(status);
  }
  *n = plan->n_steps;
  return BERTH_OK;
}
