#include "device/gpu/host_step.h"

#include "base/math.h"
#include "device/uniform.h"
#include "ops/copy.h"

struct berth__host_steps {
  berth_context *ctx;
  const berth_plan *plan;
  uint32_t *spans;         /* the bytes of one value as the device holds them */
  uint32_t *gathered;      /* the same without gaps */
  berth_tensor *tensors;   /* of one call */
  unsigned char *elements; /* of all its operands and results, in their own types */
  void *scratch;
};

/* What one step needs; the largest of each kind is taken. */
typedef struct needs {
  uint64_t span, count, elements, scratch;
  size_t tensors;
} needs;

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t padded(uint64_t size) { return (size + 63) & ~(uint64_t)63; }

static uint64_t size_of(const berth_tensor *tensor) {
  return (uint64_t)berth__count(tensor) * berth_type_size(tensor->type);
}

/* As kernels of the CPU want them: contiguous, in their own types. */
static void make_contiguous(berth_op_call *call, berth_tensor *tensors) {
  for (uint32_t i = 0; i < call->n_in + call->n_out; i++)
    berth__contiguous_strides(tensors[i].rank, tensors[i].dim, tensors[i].stride);
  call->in = tensors;
  call->out = tensors + call->n_in;
}

static void measure(const berth_plan *plan, uint32_t step, berth_tensor *tensors, needs *most) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  berth_op_call call;
  uint64_t elements = 0;
  berth__plan_call(plan, node, tensors, &call);
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    berth__span span = {0, 0};
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    if (value == BERTH_VALUE_NONE) continue;
    (void)berth__recipe_span(plan, value, &span, NULL);
    most->span = larger(most->span, span.size);
    most->count = larger(most->count, (uint64_t)berth__count(&tensors[i]) * 4);
    elements += padded(size_of(&tensors[i]));
  }
  make_contiguous(&call, tensors);
  if (node->op->family->scratch != NULL) most->scratch = larger(most->scratch, node->op->family->scratch(&call));
  most->elements = larger(most->elements, elements);
}

static berth_status allocate(berth__host_steps *steps, const berth__recipe *recipe, berth_error *err) {
  needs most = {.tensors = berth__plan_most_tensors(recipe->plan)};
  steps->tensors = berth__alloc_array_zero(steps->ctx, most.tensors, sizeof *steps->tensors);
  if (steps->tensors == NULL) return berth__fail_nomem(err, "steps on the host");
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST)
      measure(recipe->plan, recipe->dispatches[i].step, steps->tensors, &most);
  steps->spans = berth__alloc_u64(steps->ctx, most.span + 1);
  steps->gathered = berth__alloc_u64(steps->ctx, most.count + 1);
  steps->elements = berth__alloc_u64(steps->ctx, most.elements + 64);
  steps->scratch = berth__alloc_u64(steps->ctx, most.scratch + 64);
  if (!steps->spans || !steps->gathered || !steps->elements || !steps->scratch)
    return berth__fail_nomem(err, "steps on the host");
  return BERTH_OK;
}

static bool has_any(const berth__recipe *recipe) {
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST) return true;
  return false;
}

berth_status berth__host_steps_create(const berth__recipe *recipe, berth__host_steps **out, berth_error *err) {
  *out = NULL;
  if (!has_any(recipe)) return BERTH_OK;
  berth__host_steps *steps = berth__alloc_zero(recipe->ctx, sizeof *steps);
  if (steps == NULL) return berth__fail_nomem(err, "steps on the host");
  steps->ctx = recipe->ctx;
  steps->plan = recipe->plan;
  berth_status status = allocate(steps, recipe, err);
  if (status != BERTH_OK) {
    berth__host_steps_destroy(steps);
    return status;
  }
  *out = steps;
  return BERTH_OK;
}

void berth__host_steps_destroy(berth__host_steps *steps) {
  if (steps == NULL) return;
  berth__free(steps->ctx, steps->spans);
  berth__free(steps->ctx, steps->gathered);
  berth__free(steps->ctx, steps->tensors);
  berth__free(steps->ctx, steps->elements);
  berth__free(steps->ctx, steps->scratch);
  berth__free(steps->ctx, steps);
}

/* ---- Running ---- */

typedef struct place {
  const berth__device *device;
  berth__block *block;
} place;

/* Between the bytes of a value with its strides (spans) and its elements in order (gathered). */
static void move_elements(berth__host_steps *steps, berth_value value, bool gather) {
  const berth_tensor there = berth__plan_tensor(steps->plan->graph, value, steps->plan->places[value].stride);
  berth__copy copy = {.rank = there.rank, .element = 4};
  int64_t *strided = gather ? copy.from_stride : copy.to_stride, *plain = gather ? copy.to_stride : copy.from_stride;
  memcpy(copy.dim, there.dim, sizeof copy.dim);
  memcpy(strided, there.stride, sizeof there.stride);
  berth__contiguous_strides(there.rank, there.dim, plain);
  copy.from = gather ? steps->spans : steps->gathered;
  copy.to = gather ? steps->gathered : steps->spans;
  berth__copy_range(&copy, 0, berth__count(&there));
}

static berth_status fetch(berth__host_steps *steps, const place *p, berth_value value, void *to, berth_error *err) {
  const berth__value *v = &steps->plan->graph->values[value];
  berth__span span = {0, 0};
  int64_t count = 0;
  BERTH__TRY(berth__recipe_span(steps->plan, value, &span, err));
  berth__shape_count(&v->shape, &count);
  BERTH__TRY(p->device->read(p->block, span.at, steps->spans, span.size, err));
  move_elements(steps, value, true);
  berth__uniform_unpack(v->type, berth__uniform_type(v->type), to, steps->gathered, (uint64_t)count);
  return BERTH_OK;
}

static berth_status send(berth__host_steps *steps, const place *p, berth_value value, const void *from,
                         berth_error *err) {
  const berth__value *v = &steps->plan->graph->values[value];
  berth__span span = {0, 0};
  int64_t count = 0;
  BERTH__TRY(berth__recipe_span(steps->plan, value, &span, err));
  berth__shape_count(&v->shape, &count);
  BERTH__TRY(berth__uniform_pack(v->type, berth__uniform_type(v->type), steps->gathered, from, (uint64_t)count, err));
  if (span.size != (uint64_t)count * 4) /* what lies in the gaps is not this value's */
    BERTH__TRY(p->device->read(p->block, span.at, steps->spans, span.size, err));
  move_elements(steps, value, false);
  return p->device->write(p->block, span.at, steps->spans, span.size, err);
}

/* Whether the guards of a step hold. */
static berth_status is_needed(const berth__host_steps *steps, const place *p, uint32_t step, bool *out,
                              berth_error *err) {
  const berth__guards *guards = &steps->plan->guards;
  *out = true;
  for (uint32_t g = guards->of_step[step]; g != BERTH__NO_GUARD && *out; g = guards->items[g].parent) {
    berth__span span = {0, 0};
    uint32_t truth = 0;
    BERTH__TRY(berth__recipe_span(steps->plan, guards->items[g].condition, &span, err));
    BERTH__TRY(p->device->read(p->block, span.at, &truth, 4, err));
    *out = (truth != 0) == guards->items[g].sense;
  }
  return BERTH_OK;
}

static berth_status run_kernel(const berth__host_steps *steps, const berth__node *node, berth_op_call *call,
                               berth_error *err) {
  call->begin = 0;
  call->end = berth__op_items(node->op, call);
  call->scratch = (void *)(((uintptr_t)steps->scratch + 63) & ~(uintptr_t)63);
  return call->end > 0 ? node->op->family->kernel(call, err) : BERTH_OK;
}

static berth_status run_step(berth__host_steps *steps, const place *p, uint32_t step, berth_error *err) {
  const berth__node *node = &steps->plan->graph->nodes[steps->plan->order[step]];
  unsigned char *next = (unsigned char *)(((uintptr_t)steps->elements + 63) & ~(uintptr_t)63);
  berth_op_call call;
  berth__plan_call(steps->plan, node, steps->tensors, &call);
  make_contiguous(&call, steps->tensors);
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    if (value == BERTH_VALUE_NONE) continue;
    steps->tensors[i].data = next;
    next += padded(size_of(&steps->tensors[i]));
    if (i < node->n_in) BERTH__TRY(fetch(steps, p, value, steps->tensors[i].data, err));
  }
  BERTH__TRY(run_kernel(steps, node, &call, err));
  for (uint32_t i = 0; i < node->n_out; i++) BERTH__TRY(send(steps, p, node->out[i], call.out[i].data, err));
  return BERTH_OK;
}

berth_status berth__host_steps_run(berth__host_steps *steps, uint32_t step, const berth__device *device,
                                   berth__block *block, berth_error *err) {
  const place p = {device, block};
  bool runs = true;
  BERTH__TRY(is_needed(steps, &p, step, &runs, err));
  if (!runs) return BERTH_OK;
  berth_status status = run_step(steps, &p, step, err);
  if (status == BERTH_OK) return status;
  const berth_graph *graph = steps->plan->graph;
  const berth__node *node = &graph->nodes[steps->plan->order[step]];
  return berth__fail_within(err, status, "node '%s' (%s), on the cpu", graph->values[node->out[0]].name,
                            node->op->name);
}
