#include "device/gpu/host_step.h"

#include "base/math.h"
#include "device/cpu/team.h"
#include "device/uniform.h"
#include "ops/copy.h"

#define PIECE ((uint64_t)1 << 20) /* elements transferred at once, if they are contiguous */

struct berth__host_steps {
  berth_context *ctx;
  const berth_plan *plan;
  const void *const *outside;
  uint32_t *spans;         /* the bytes of one value in the device's form, or a piece of them */
  uint32_t *gathered;      /* the same without gaps, if there are gaps */
  berth_tensor *tensors;   /* of the current call */
  unsigned char *elements; /* of its operands and results, in their own types, except those used in place */
  unsigned char *scratch;  /* for all workers */
  berth__cpu_team team;
};

/* The memory that one step needs; the maximum of each kind is allocated. */
typedef struct needs {
  uint64_t span, count, elements, scratch;
  size_t tensors;
} needs;

static uint64_t gpu_host_step_larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t gpu_host_step_padded(uint64_t size) { return (size + 63) & ~(uint64_t)63; }

static uint64_t gpu_host_step_size_of(const berth_tensor *tensor) { return berth__tensor_bytes(tensor); }

static bool gpu_host_step_is_outside(const berth_plan *plan, berth_value value) {
  return plan->places[value].buffer == BERTH__NO_BUFFER;
}

/* A tensor in the arena or in the memory that it came from. */
static berth_tensor tensor_there(const berth_plan *plan, berth_value value) {
  return berth__plan_tensor(plan->graph, value, plan->places[value].stride);
}

static bool is_in_a_row(const berth_plan *plan, berth_value value) {
  const berth_tensor there = tensor_there(plan, value);
  return berth__is_contiguous(&there);
}

/* Outside the arena and contiguous: the op's kernel reads it in place. */
static bool is_used_there(const berth_plan *plan, berth_value value) {
  return gpu_host_step_is_outside(plan, value) && is_in_a_row(plan, value);
}

/* The form that CPU kernels need: contiguous, in their own types. */
static void make_contiguous(berth_op_call *call, berth_tensor *tensors) {
  for (uint32_t i = 0; i < call->n_in + call->n_out; i++)
    berth__contiguous_strides(tensors[i].rank, tensors[i].dim, tensors[i].stride);
  call->in = tensors;
  call->out = tensors + call->n_in;
}

static void measure_value(const berth_plan *plan, berth_value value, const berth_tensor *tensor, needs *most) {
  const uint64_t count = (uint64_t)berth__count(tensor);
  berth__span span = {0, 0};
  if (gpu_host_step_is_outside(plan, value)) return;
  (void)berth__recipe_span(plan, value, &span, NULL);
  if (is_in_a_row(plan, value)) {
    most->span =
        gpu_host_step_larger(most->span, berth__place_bytes(&plan->places[value], count < PIECE ? count : PIECE));
  } else {
    most->span = gpu_host_step_larger(most->span, span.size);
    most->count = gpu_host_step_larger(most->count, berth__place_bytes(&plan->places[value], count));
  }
}

static void gpu_host_step_measure(const berth_plan *plan, uint32_t step, uint32_t n_threads, berth_tensor *tensors,
                                  needs *most) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  berth_op_call call;
  uint64_t elements = 0;
  berth__plan_call(plan, node, tensors, &call);
  for (uint32_t i = 0; i < node->n_in + node->n_out; i++) {
    const berth_value value = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
    if (value == BERTH_VALUE_NONE) continue;
    measure_value(plan, value, &tensors[i], most);
    if (!is_used_there(plan, value)) elements += gpu_host_step_padded(gpu_host_step_size_of(&tensors[i]));
  }
  make_contiguous(&call, tensors);
  const berth__cpu_kernels kernels = berth__cpu_kernels_of(plan->ctx);
  berth__cpu_choice how = berth__cpu_choose(&kernels, node->op, &call, plan->flags);
  most->scratch = gpu_host_step_larger(most->scratch, berth__cpu_scratch(&how, n_threads));
  most->elements = gpu_host_step_larger(most->elements, elements);
}

static berth_status gpu_host_step_allocate(berth__host_steps *steps, const berth__recipe *recipe, berth_error *err) {
  needs most = {.tensors = berth__plan_most_tensors(recipe->plan)};
  steps->tensors = berth__alloc_array_zero(steps->ctx, most.tensors, sizeof *steps->tensors);
  if (steps->tensors == NULL) return berth__fail_nomem(err, "steps on the host");
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST)
      gpu_host_step_measure(recipe->plan, recipe->dispatches[i].step, steps->team.n_threads, steps->tensors, &most);
  steps->spans = berth__alloc_u64(steps->ctx, most.span + 1);
  steps->gathered = berth__alloc_u64(steps->ctx, most.count + 1);
  steps->elements = berth__alloc_u64(steps->ctx, most.elements + 64);
  steps->scratch = most.scratch < UINT64_MAX - 64 ? berth__alloc_u64(steps->ctx, most.scratch + 64) : NULL;
  if (!steps->spans || !steps->gathered || !steps->elements || !steps->scratch)
    return berth__fail_nomem(err, "steps on the host");
  return BERTH_OK;
}

static bool has_any(const berth__recipe *recipe) {
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST) return true;
  return false;
}

static berth_status start_team(berth__host_steps *steps, berth__gpu_engine *engine, berth_error *err) {
  if (engine->pool == NULL && engine->n_threads > 1)
    BERTH__TRY(berth__pool_create(engine->ctx, engine->n_threads, &engine->pool, err));
  return berth__cpu_team_start(&steps->team, steps->ctx, engine->pool, engine->n_threads, err);
}

berth_status berth__host_steps_create(const berth__recipe *recipe, berth__gpu_engine *engine, berth__host_steps **out,
                                      berth_error *err) {
  *out = NULL;
  if (!has_any(recipe)) return BERTH_OK;
  berth__host_steps *steps = berth__alloc_zero(recipe->ctx, sizeof *steps);
  if (steps == NULL) return berth__fail_nomem(err, "steps on the host");
  steps->ctx = recipe->ctx;
  steps->plan = recipe->plan;
  berth_status status = start_team(steps, engine, err);
  if (status == BERTH_OK) status = gpu_host_step_allocate(steps, recipe, err);
  if (status != BERTH_OK) {
    berth__host_steps_destroy(steps);
    return status;
  }
  *out = steps;
  return BERTH_OK;
}

void berth__host_steps_destroy(berth__host_steps *steps) {
  if (steps == NULL) return;
  berth__cpu_team_end(&steps->team, steps->ctx);
  berth__free(steps->ctx, steps->spans);
  berth__free(steps->ctx, steps->gathered);
  berth__free(steps->ctx, steps->tensors);
  berth__free(steps->ctx, steps->elements);
  berth__free(steps->ctx, steps->scratch);
  berth__free(steps->ctx, steps);
}

void berth__host_steps_bind(berth__host_steps *steps, const void *const *outside) {
  if (steps != NULL) steps->outside = outside;
}

/* ---- Running ---- */

typedef struct place {
  const berth__device *device;
  berth__block *block;
} place;

/* Copies between the bytes of a value with its strides (spans) and its elements in order (gathered). */
static void move_elements(berth__host_steps *steps, berth_value value, bool gather) {
  const berth_tensor there = tensor_there(steps->plan, value);
  berth__copy copy = {.rank = there.rank, .element = steps->plan->places[value].storage.bytes};
  int64_t *strided = gather ? copy.from_stride : copy.to_stride, *plain = gather ? copy.to_stride : copy.from_stride;
  memcpy(copy.dim, there.dim, sizeof copy.dim);
  memcpy(strided, there.stride, sizeof there.stride);
  berth__contiguous_strides(there.rank, there.dim, plain);
  copy.from = gather ? steps->spans : steps->gathered;
  copy.to = gather ? steps->gathered : steps->spans;
  berth__copy_range(&copy, 0, berth__count(&there));
}

/* Read only by the prelude: it stays in the memory that it came from, in its own type. */
static berth_status gpu_host_step_find_outside(const berth__host_steps *steps, berth_value value,
                                               const unsigned char **out, berth_error *err) {
  const berth__place *at = &steps->plan->places[value];
  const berth_type type = steps->plan->graph->values[value].type;
  const unsigned char *root = steps->outside != NULL ? steps->outside[at->root] : NULL;
  if (root == NULL)
    return berth__fail(err, BERTH_INVALID, "'%s' is read, but has no location",
                       steps->plan->graph->values[at->root].name);
  *out = root + berth__storage_size(berth_type_storage(type), berth__storage_count(at->storage, at->root_offset));
  return BERTH_OK;
}

static berth_status gpu_host_step_copy_outside(const berth__host_steps *steps, berth_value value, void *to,
                                               berth_error *err) {
  const berth_tensor there = tensor_there(steps->plan, value);
  berth__copy copy = {.rank = there.rank, .element = berth_type_size(there.type), .to = to};
  const unsigned char *from = NULL;
  BERTH__TRY(gpu_host_step_find_outside(steps, value, &from, err));
  copy.from = from;
  memcpy(copy.dim, there.dim, sizeof copy.dim);
  memcpy(copy.from_stride, there.stride, sizeof there.stride);
  berth__contiguous_strides(there.rank, there.dim, copy.to_stride);
  berth__copy_range(&copy, 0, berth__count(&there));
  return BERTH_OK;
}

/* Contiguous elements, piece by piece. */
static berth_status fetch_row(berth__host_steps *steps, const place *p, berth_value value, berth__span span, void *to,
                              berth_error *err) {
  const berth_type type = steps->plan->graph->values[value].type;
  const berth_storage own = berth_type_storage(type), stored = steps->plan->places[value].storage;
  const berth_tensor there = tensor_there(steps->plan, value);
  const uint64_t count = (uint64_t)berth__count(&there);
  for (uint64_t done = 0; done < count; done += PIECE) {
    const uint64_t n = count - done < PIECE ? count - done : PIECE;
    BERTH__TRY(p->device->read(p->block, span.at + berth__storage_size(stored, done), steps->spans,
                               berth__storage_size(stored, n), err));
    berth__uniform_unpack(type, stored.type, (unsigned char *)to + berth__storage_size(own, done), steps->spans, n);
  }
  return BERTH_OK;
}

static berth_status send_row(berth__host_steps *steps, const place *p, berth_value value, berth__span span,
                             const void *from, berth_error *err) {
  const berth_type type = steps->plan->graph->values[value].type;
  const berth_storage own = berth_type_storage(type), stored = steps->plan->places[value].storage;
  const berth_tensor there = tensor_there(steps->plan, value);
  const uint64_t count = (uint64_t)berth__count(&there);
  for (uint64_t done = 0; done < count; done += PIECE) {
    const uint64_t n = count - done < PIECE ? count - done : PIECE;
    BERTH__TRY(berth__uniform_pack(type, stored.type, steps->spans,
                                   (const unsigned char *)from + berth__storage_size(own, done), n, err));
    BERTH__TRY(p->device->write(p->block, span.at + berth__storage_size(stored, done), steps->spans,
                                berth__storage_size(stored, n), err));
  }
  return BERTH_OK;
}

static berth_status fetch(berth__host_steps *steps, const place *p, berth_value value, void *to, berth_error *err) {
  const berth__value *v = &steps->plan->graph->values[value];
  berth__span span = {0, 0};
  int64_t count = 0;
  if (gpu_host_step_is_outside(steps->plan, value)) return gpu_host_step_copy_outside(steps, value, to, err);
  BERTH__TRY(berth__recipe_span(steps->plan, value, &span, err));
  if (is_in_a_row(steps->plan, value)) return fetch_row(steps, p, value, span, to, err);
  berth__shape_count(&v->shape, &count);
  BERTH__TRY(p->device->read(p->block, span.at, steps->spans, span.size, err));
  move_elements(steps, value, true);
  berth__uniform_unpack(v->type, steps->plan->places[value].storage.type, to, steps->gathered, (uint64_t)count);
  return BERTH_OK;
}

static berth_status send(berth__host_steps *steps, const place *p, berth_value value, const void *from,
                         berth_error *err) {
  const berth__value *v = &steps->plan->graph->values[value];
  berth__span span = {0, 0};
  int64_t count = 0;
  BERTH__TRY(berth__recipe_span(steps->plan, value, &span, err));
  if (is_in_a_row(steps->plan, value)) return send_row(steps, p, value, span, from, err);
  berth__shape_count(&v->shape, &count);
  BERTH__TRY(berth__uniform_pack(v->type, steps->plan->places[value].storage.type, steps->gathered, from,
                                 (uint64_t)count, err));
  BERTH__TRY(p->device->read(p->block, span.at, steps->spans, span.size, err)); /* the contents of the gaps are kept */
  move_elements(steps, value, false);
  return p->device->write(p->block, span.at, steps->spans, span.size, err);
}

/* Whether the conditions of a step are true. */
static berth_status gpu_host_step_is_needed(const berth__host_steps *steps, const place *p, uint32_t step, bool *out,
                                            berth_error *err) {
  const berth__conditions *conditions = &steps->plan->conditions;
  *out = true;
  for (uint32_t g = conditions->of_step[step]; g != BERTH__NO_CONDITION && *out; g = conditions->items[g].parent) {
    berth__span span = {0, 0};
    uint32_t truth = 0;
    BERTH__TRY(berth__recipe_span(steps->plan, conditions->items[g].condition, &span, err));
    BERTH__TRY(p->device->read(p->block, span.at, &truth, span.size, err)); /* at most four bytes */
    *out = (truth != 0) == conditions->items[g].sense;
  }
  return BERTH_OK;
}

static berth_status gpu_host_step_run_kernel(berth__host_steps *steps, const berth__node *node,
                                             const berth_op_call *call, berth_error *err) {
  unsigned char *scratch = (unsigned char *)(((uintptr_t)steps->scratch + 63) & ~(uintptr_t)63);
  const berth__cpu_kernels kernels = berth__cpu_kernels_of(steps->ctx);
  berth__cpu_choice how = berth__cpu_choose(&kernels, node->op, call, steps->plan->flags);
  (void)berth__cpu_settle_pieces(&how, steps->team.n_threads);
  return berth__cpu_team_run(&steps->team, &how, call, scratch, 0, how.items, err);
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
    if (is_used_there(steps->plan, value)) {
      const unsigned char *data = NULL;
      BERTH__TRY(gpu_host_step_find_outside(steps, value, &data, err));
      steps->tensors[i].data = (void *)(uintptr_t)data;
      continue;
    }
    steps->tensors[i].data = next;
    next += gpu_host_step_padded(gpu_host_step_size_of(&steps->tensors[i]));
    if (i < node->n_in) BERTH__TRY(fetch(steps, p, value, steps->tensors[i].data, err));
  }
  BERTH__TRY(gpu_host_step_run_kernel(steps, node, &call, err));
  for (uint32_t i = 0; i < node->n_out; i++) BERTH__TRY(send(steps, p, node->out[i], call.out[i].data, err));
  return BERTH_OK;
}

berth_status berth__host_steps_run(berth__host_steps *steps, uint32_t step, const berth__device *device,
                                   berth__block *block, berth_error *err) {
  const place p = {device, block};
  bool runs = true;
  BERTH__TRY(gpu_host_step_is_needed(steps, &p, step, &runs, err));
  if (!runs) return BERTH_OK;
  berth_status status = run_step(steps, &p, step, err);
  if (status == BERTH_OK) return status;
  const berth_graph *graph = steps->plan->graph;
  const berth__node *node = &graph->nodes[steps->plan->order[step]];
  return berth__fail_within(err, status, "node '%s' (%s), on the cpu", graph->values[node->out[0]].name,
                            node->op->name);
}
