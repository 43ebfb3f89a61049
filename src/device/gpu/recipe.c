/* Makes a recipe: lowers every step of a plan, merges equal kernels, and puts barriers only where bytes of the plan
 * conflict. */
#include "device/gpu/recipe.h"

#include "base/math.h"

/* ---- Kernels, without duplicates ---- */

static berth_status keep_kernel(berth__recipe *recipe, berth__lowering *lowering, size_t index, uint32_t *out,
                                berth_error *err) {
  berth__kernel *kernel = lowering->kernels[index];
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    if (!berth__kernel_equal(recipe->kernels[i], kernel)) continue;
    *out = (uint32_t)i;
    return BERTH_OK;
  }
  BERTH__TRY(BERTH__RESERVE(recipe->ctx, recipe->kernels, recipe->kernels_capacity, recipe->n_kernels + 1, err));
  *out = (uint32_t)recipe->n_kernels;
  recipe->kernels[recipe->n_kernels++] = kernel;
  lowering->kernels[index] = NULL; /* now owned by the recipe */
  return BERTH_OK;
}

/* ---- Spans ---- */

berth_status berth__recipe_span(const berth_plan *plan, berth_value value, berth__span *out, berth_error *err) {
  const berth__place *place = &plan->places[value];
  if (place->buffer == BERTH__NO_BUFFER)
    return berth__fail(err, BERTH_UNSUPPORTED, "'%s' lies outside the arena, where kernels of a GPU cannot reach it",
                       plan->graph->values[value].name);
  const berth_tensor tensor = berth__plan_tensor(plan->graph, value, place->stride);
  int64_t last = 0;
  for (uint32_t axis = 0; axis < tensor.rank; axis++) last += (tensor.dim[axis] - 1) * tensor.stride[axis];
  const berth__buffer *buffer = &plan->buffers[place->buffer];
  const uint64_t at = buffer->offset + place->root_offset, block = place->storage.elements;
  const uint64_t end = ((uint64_t)last + block) / block * block; /* in elements, rounded up to whole blocks */
  *out = (berth__span){at, berth__count(&tensor) == 0 ? 0 : berth__place_bytes(place, end)};
  return BERTH_OK;
}

static berth_value condition_value(const berth_plan *plan, uint32_t step, uint32_t index) {
  uint32_t condition = plan->conditions.of_step[step];
  for (uint32_t i = 0; i < index; i++) condition = plan->conditions.items[condition].parent;
  return plan->conditions.items[condition].condition;
}

static berth_status span_of_operand(const berth_plan *plan, uint32_t step, uint32_t operand, berth__span *out,
                                    berth_error *err) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  if (operand >= BERTH__OPERAND_CONDITION)
    return berth__recipe_span(plan, condition_value(plan, step, operand - BERTH__OPERAND_CONDITION), out, err);
  if (operand != BERTH__OPERAND_SCRATCH)
    return berth__recipe_span(plan, operand < node->n_in ? node->in[operand] : node->out[operand - node->n_in], out,
                              err);
  const uint32_t buffer = plan->scratch[step];
  if (buffer == BERTH__NO_BUFFER) return berth__fail(err, BERTH_INTERNAL, "a kernel uses scratch that was not planned");
  const uint64_t size = plan->buffers[buffer].size & ~(uint64_t)3;
  *out = (berth__span){plan->buffers[buffer].offset, size};
  return BERTH_OK;
}

/* ---- Barriers ---- */

static bool gpu_recipe_overlap(const berth__span *a, const berth__span *b) {
  return a->at < b->at + b->size && b->at < a->at + a->size;
}

bool berth__recipe_conflict(const berth__recipe *recipe, const berth__dispatch *first, const berth__dispatch *second) {
  if (first->kernel == BERTH__ON_HOST || second->kernel == BERTH__ON_HOST) return true;
  const berth__kernel *a = recipe->kernels[first->kernel], *b = recipe->kernels[second->kernel];
  for (uint32_t i = 0; i < a->n_buffers; i++)
    for (uint32_t k = 0; k < b->n_buffers; k++)
      if ((a->buffers[i].is_written || b->buffers[k].is_written) &&
          gpu_recipe_overlap(&first->spans[i], &second->spans[k]))
        return true;
  return false;
}

/* A dispatch waits for all earlier ones if it conflicts with one since the last that waited. */
static void place_barriers(berth__recipe *recipe) {
  size_t since = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    berth__dispatch *d = &recipe->dispatches[i];
    if (i == recipe->n_prelude) since = i; /* a new submission */
    for (size_t k = since; k < i && !d->waits; k++)
      d->waits = berth__recipe_conflict(recipe, &recipe->dispatches[k], d);
    if (d->waits) since = i;
  }
}

/* ---- Steps ---- */

/* The number of a dispatch's spans. */
static uint32_t count_spans(const berth__recipe *recipe, uint32_t kernel) {
  return kernel != BERTH__ON_HOST ? recipe->kernels[kernel]->n_buffers : 0;
}

static berth__span words_around(berth__span bytes) {
  const uint64_t at = bytes.at & ~(uint64_t)3, end = (bytes.at + bytes.size + 3) & ~(uint64_t)3;
  return (berth__span){at, bytes.size != 0 ? end - at : 0};
}

static berth_status add_dispatch(berth__recipe *recipe, uint32_t step, uint32_t kernel,
                                 const berth__kernel_buffer *buffers, berth_error *err) {
  const uint32_t n = count_spans(recipe, kernel);
  BERTH__TRY(BERTH__RESERVE(recipe->ctx, recipe->spans, recipe->spans_capacity, recipe->n_spans + n, err));
  BERTH__TRY(
      BERTH__RESERVE(recipe->ctx, recipe->dispatches, recipe->dispatches_capacity, recipe->n_dispatches + 1, err));
  BERTH__TRY(BERTH__RESERVE(recipe->ctx, recipe->exact, recipe->exact_capacity, recipe->n_spans + n, err));
  for (uint32_t i = 0; i < n; i++) {
    berth__span *exact = &recipe->exact[recipe->n_spans + i];
    BERTH__TRY(span_of_operand(recipe->plan, step, buffers[i].operand, exact, err));
    recipe->spans[recipe->n_spans + i] = words_around(*exact);
  }
  recipe->dispatches[recipe->n_dispatches++] = (berth__dispatch){.kernel = kernel, .step = step};
  recipe->n_spans += n;
  return BERTH_OK;
}

/* Spans move while the list grows, so pointers into it are set at the end. */
static void point_at_spans(berth__recipe *recipe) {
  size_t next = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    recipe->dispatches[i].spans = recipe->spans + next;
    recipe->dispatches[i].exact = recipe->exact + next;
    next += count_spans(recipe, recipe->dispatches[i].kernel);
  }
}

static berth_status add_kernels(berth__recipe *recipe, uint32_t step, berth__lowering *lowering, berth_error *err) {
  for (size_t i = 0; i < lowering->n_kernels; i++) {
    const berth__kernel *made = lowering->kernels[i];
    berth__kernel_buffer buffers[BERTH__KERNEL_BUFFERS];
    uint32_t kernel = 0;
    memcpy(buffers, made->buffers, sizeof buffers);
    if (made->n_groups == 0) continue;
    BERTH__TRY(keep_kernel(recipe, lowering, i, &kernel, err));
    BERTH__TRY(add_dispatch(recipe, step, kernel, buffers, err));
  }
  return BERTH_OK;
}

#define MAX_CONDITIONS 8u

/* The offset of a value in the arena. */
static uint64_t gpu_recipe_place_of(const berth_plan *plan, berth_value value, uint64_t outside) {
  const berth__place *place = &plan->places[value];
  if (place->buffer == BERTH__NO_BUFFER) return outside;
  return plan->buffers[place->buffer].offset + place->root_offset;
}

static berth_status read_conditions(const berth_plan *plan, uint32_t step, berth__step_condition *conditions,
                                    uint32_t *n, berth_error *err) {
  *n = 0;
  for (uint32_t g = plan->conditions.of_step[step]; g != BERTH__NO_CONDITION; g = plan->conditions.items[g].parent) {
    if (*n == MAX_CONDITIONS)
      return berth__fail(err, BERTH_UNSUPPORTED, "it is nested in more than %u conditions", MAX_CONDITIONS);
    const berth_value condition = plan->conditions.items[g].condition;
    conditions[(*n)++] = (berth__step_condition){.sense = plan->conditions.items[g].sense,
                                                 .storage = plan->places[condition].storage.type,
                                                 .at = gpu_recipe_place_of(plan, condition, 0)};
  }
  return BERTH_OK;
}

static void find_storage(const berth_plan *plan, const berth__node *node, berth__storage *storage) {
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    if (value != BERTH_VALUE_NONE) storage[i] = plan->places[value].storage.type;
  }
}

static bool gpu_recipe_is_empty(const berth_op_call *call) {
  for (uint32_t i = 0; i < call->n_out; i++)
    if (berth__count(&call->out[i]) != 0) return false;
  return true;
}

/* Offsets of operands and then results; values outside the arena get an offset far from all others. */
static void find_places(const berth_plan *plan, const berth__node *node, uint64_t *at) {
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    const uint64_t nowhere = (UINT64_MAX - 8 * (uint64_t)i) & ~(uint64_t)3;
    at[i] = value != BERTH_VALUE_NONE ? gpu_recipe_place_of(plan, value, nowhere) : nowhere;
  }
}

/* Weights that only the prelude reads stay in the memory they came from, so their readers run on the host. */
static bool reads_outside(const berth_plan *plan, const berth__node *node) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE && plan->places[node->in[i]].buffer == BERTH__NO_BUFFER) return true;
  return false;
}

/* Arrays for one call. */
typedef struct call_room {
  berth_tensor *tensors;
  berth__storage *storage;
  uint64_t *at;
} call_room;

static berth_status gpu_recipe_add_step(berth__recipe *recipe, uint32_t step, const call_room *room, berth_error *err) {
  const berth_plan *plan = recipe->plan;
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  berth__step_condition conditions[MAX_CONDITIONS];
  berth_op_call call;
  if (!berth__plan_needs_kernel(plan, node)) return BERTH_OK;
  berth__plan_call(plan, node, room->tensors, &call);
  if (gpu_recipe_is_empty(&call)) return BERTH_OK;
  if (step < plan->n_prelude && reads_outside(plan, node)) return add_dispatch(recipe, step, BERTH__ON_HOST, NULL, err);
  find_storage(plan, node, room->storage);
  find_places(plan, node, room->at);
  berth__lowering lowering = {.ctx = recipe->ctx,
                              .limits = &plan->profile.loops,
                              .op = node->op,
                              .call = &call,
                              .storage = room->storage,
                              .at = room->at,
                              .conditions = conditions};
  berth_status status = read_conditions(plan, step, conditions, &lowering.n_conditions, err);
  if (status == BERTH_OK) status = berth__lower_call(&lowering, err);
  if (status == BERTH_OK) status = add_kernels(recipe, step, &lowering, err);
  berth__lowering_free(&lowering);
  if (status == BERTH_UNSUPPORTED && (plan->flags & BERTH_PLAN_FALLBACK_CPU))
    return add_dispatch(recipe, step, BERTH__ON_HOST, NULL, err);
  return status == BERTH_OK ? status
                            : berth__fail_within(err, status, "node '%s' (%s)", plan->graph->values[node->out[0]].name,
                                                 node->op->name);
}

static berth_status gpu_recipe_build(berth__recipe *recipe, berth_error *err) {
  const berth_plan *plan = recipe->plan;
  const size_t most = berth__plan_most_tensors(plan);
  const call_room room = {berth__alloc_array(recipe->ctx, most, sizeof *room.tensors),
                          berth__alloc_array(recipe->ctx, most, sizeof *room.storage),
                          berth__alloc_array(recipe->ctx, most, sizeof *room.at)};
  berth_status status = BERTH_OK;
  if (room.tensors == NULL || room.storage == NULL || room.at == NULL) status = berth__fail_nomem(err, "a program");
  for (uint32_t step = 0; step < plan->n_steps && status == BERTH_OK; step++) {
    status = gpu_recipe_add_step(recipe, step, &room, err);
    if (step < plan->n_prelude) recipe->n_prelude = recipe->n_dispatches;
  }
  berth__free(recipe->ctx, room.tensors);
  berth__free(recipe->ctx, room.storage);
  berth__free(recipe->ctx, room.at);
  point_at_spans(recipe);
  if (status == BERTH_OK) place_barriers(recipe);
  return status;
}

static berth_status check_plan(const berth_plan *plan, berth_error *err) {
  if (plan->storages == NULL)
    return berth__fail(err, BERTH_INVALID,
                       "kernels of a GPU take elements of at most four bytes: plan for that device");
  for (size_t v = 0; v < plan->graph->n_values; v++)
    if (plan->graph->values[v].bounded != 0)
      return berth__fail(
          err, BERTH_UNSUPPORTED,
          "the extents of '%s' depend on elements that only a run computes, which a GPU does not support",
          plan->graph->values[v].name);
  return BERTH_OK;
}

berth_status berth__recipe_create(const berth_plan *plan, berth__recipe **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(check_plan(plan, err));
  berth__recipe *recipe = berth__alloc_zero(plan->ctx, sizeof *recipe);
  if (recipe == NULL) return berth__fail_nomem(err, "a program");
  recipe->ctx = plan->ctx;
  recipe->plan = plan;
  berth_status status = gpu_recipe_build(recipe, err);
  if (status != BERTH_OK) {
    berth__recipe_destroy(recipe);
    return status;
  }
  *out = recipe;
  return BERTH_OK;
}

void berth__recipe_destroy(berth__recipe *recipe) {
  if (recipe == NULL) return;
  for (size_t i = 0; i < recipe->n_kernels; i++) berth__kernel_destroy(recipe->kernels[i]);
  berth__free(recipe->ctx, recipe->kernels);
  berth__free(recipe->ctx, recipe->dispatches);
  berth__free(recipe->ctx, recipe->spans);
  berth__free(recipe->ctx, recipe->exact);
  berth__free(recipe->ctx, recipe->merged);
  berth__free(recipe->ctx, recipe);
}
