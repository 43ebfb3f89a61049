/* The positions of weights, by name: params, and what the prelude makes from them; then states. Constants follow and
 * belong to one plan, because the results of constant folding depend on shapes; so do weights that another plan of the
 * same layout did not need. */
#include "plan/layout.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/math.h"
#include "plan/file_runs.h"

typedef struct entry {
  uint64_t offset, size;
  uint64_t made_from; /* by the prelude: its fingerprint; otherwise 0 */
  berth__shape shape; /* of a state */
} entry;

struct berth_layout {
  berth_context *ctx;
  atomic_uint holders; /* clones of sessions, on their own threads */
  uint64_t size, align;
  berth__map names;
  entry *entries;
  size_t n_entries;
};

/* ---- Results of the prelude: the same name may stand for different elements if these depend on shapes ---- */

static uint64_t layout_mix(uint64_t hash, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t layout_mix_number(uint64_t hash, uint64_t number) { return layout_mix(hash, &number, sizeof number); }

static uint64_t layout_mix_text(uint64_t hash, const char *text) {
  return layout_mix(hash, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static uint64_t layout_mix_attr(uint64_t hash, const berth_attr *attr) {
  hash = layout_mix_number(hash, (uint64_t)attr->kind);
  hash = layout_mix_number(hash, (uint64_t)attr->i);
  hash = layout_mix(hash, &attr->f, sizeof attr->f);
  hash = layout_mix_text(hash, attr->s);
  for (uint32_t i = 0; i < attr->count; i++) {
    if (attr->ints != NULL) hash = layout_mix_number(hash, (uint64_t)attr->ints[i]);
    if (attr->floats != NULL) hash = layout_mix(hash, &attr->floats[i], sizeof attr->floats[i]);
    if (attr->dims != NULL) hash = layout_mix_number(hash, (uint64_t)attr->dims[i].extent);
  }
  return layout_mix_number(hash, attr->count);
}

static uint64_t layout_mix_operand(uint64_t hash, const berth_graph *graph, const uint64_t *prints, berth_value value) {
  if (value == BERTH_VALUE_NONE) return layout_mix_number(hash, 0);
  const berth__value *v = &graph->values[value];
  uint64_t size = 0;
  hash = layout_mix_number(hash, (uint64_t)v->type);
  for (uint32_t axis = 0; axis < v->shape.rank; axis++) hash = layout_mix_number(hash, (uint64_t)v->shape.dim[axis]);
  if (v->kind == BERTH_VALUE_NODE) return layout_mix_number(hash, prints[value]);
  if (v->kind != BERTH_VALUE_CONSTANT || v->data == NULL || !berth__value_size(v, &size))
    return layout_mix_text(hash, v->name);
  return layout_mix(hash, v->data, (size_t)size);
}

/* A value that is overwritten in place has the final contents of its slot. */
static void layout_mix_written_over(const berth_plan *plan, uint64_t *prints) {
  for (uint32_t step = 0; step < plan->n_prelude; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    for (uint32_t i = 0; i < node->n_out; i++) {
      const berth_value out = node->out[i];
      if (out == BERTH_VALUE_NONE || !plan->places[out].in_place || plan->places[out].root == out) continue;
      prints[plan->places[out].root] = layout_mix_number(prints[plan->places[out].root], prints[out]);
    }
  }
}

/* One per value: a fingerprint of what the prelude makes, from the names of params, the elements of constants, ops and
 * attributes. */
static berth_status layout_prints(const berth_plan *plan, uint64_t **out, berth_error *err) {
  const berth_graph *graph = plan->graph;
  uint64_t *prints = berth__alloc_array_zero(plan->ctx, graph->n_values, sizeof *prints);
  *out = prints;
  if (prints == NULL) return berth__fail_nomem(err, "a layout");
  for (uint32_t step = 0; step < plan->n_prelude; step++) {
    const berth__node *node = &graph->nodes[plan->order[step]];
    uint64_t hash = layout_mix_text(UINT64_C(0xcbf29ce484222325), node->op->name);
    for (uint32_t i = 0; i < node->op->family->n_attrs; i++) hash = layout_mix_attr(hash, &node->attrs[i]);
    for (uint32_t i = 0; i < node->n_in; i++) hash = layout_mix_operand(hash, graph, prints, node->in[i]);
    for (uint32_t i = 0; i < node->n_out; i++)
      if (node->out[i] != BERTH_VALUE_NONE) prints[node->out[i]] = layout_mix_number(hash, i);
  }
  layout_mix_written_over(plan, prints);
  return BERTH_OK;
}

static const entry *plan_layout_find(const berth_layout *layout, const char *name) {
  uint32_t index;
  return berth__map_get(&layout->names, name, &index) ? &layout->entries[index] : NULL;
}

static bool is_shared(const berth__buffer *buffer) {
  return buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_PRELUDE ||
         buffer->kind == BERTH__BUFFER_STATE;
}

/* A state has one position for all plans, so that each finds what a run of another has left. */
static berth_status apply_state(const berth_plan *plan, const berth_layout *layout, berth__buffer *buffer,
                                berth_error *err) {
  const char *name = plan->graph->values[buffer->owner].name;
  const entry *at = plan_layout_find(layout, name);
  if (at == NULL)
    return berth__fail(err, BERTH_INVALID,
                       "state '%s' is not in the layout; take the layout from a plan of the graph that has all states",
                       name);
  if (at->size != buffer->size)
    return berth__fail(err, BERTH_INVALID,
                       "state '%s' needs %llu bytes but has %llu in the layout; a state is in one place for all "
                       "bindings, so that its dimensions must have the same extents in all of them",
                       name, (unsigned long long)buffer->size, (unsigned long long)at->size);
  if (!berth__shape_equal(&at->shape, &plan->graph->values[buffer->owner].shape))
    return berth__fail(err, BERTH_INVALID,
                       "state '%s' has other extents in the layout; its dimensions must have the same ones in all "
                       "bindings",
                       name);
  buffer->offset = at->offset;
  return BERTH_OK;
}

/* *own: the layout has no bytes for it. */
static berth_status apply_one(const berth_plan *plan, const berth_layout *layout, const uint64_t *prints,
                              berth__buffer *buffer, bool *own, berth_error *err) {
  if (buffer->kind == BERTH__BUFFER_STATE) return apply_state(plan, layout, buffer, err);
  const char *name = plan->graph->values[buffer->owner].name;
  const entry *at = plan_layout_find(layout, name);
  *own = at == NULL ? buffer->kind == BERTH__BUFFER_PRELUDE : at->offset == BERTH_OFFSET_NONE;
  if (buffer->kind == BERTH__BUFFER_PRELUDE && at != NULL &&
      (at->size != buffer->size || at->made_from != prints[buffer->owner]))
    *own = true;
  if (*own) return BERTH_OK;
  if (at == NULL)
    return berth__fail(
        err, BERTH_INVALID,
        "param '%s' is not in the layout; take the layout from the plan of the graph that has all params", name);
  if (at->size != buffer->size)
    return berth__fail(err, BERTH_INVALID, "param '%s' needs %llu bytes but the layout has %llu for it", name,
                       (unsigned long long)buffer->size, (unsigned long long)at->size);
  buffer->offset = at->offset;
  return BERTH_OK;
}

static berth_status plan_layout_put(const berth_plan *plan, berth__buffer *buffer, uint64_t *at, berth_error *err) {
  buffer->offset = *at;
  return berth__align_up(*at + buffer->size, plan->align, at)
             ? BERTH_OK
             : berth__fail(err, BERTH_INVALID, "the weights do not fit in 64 bits");
}

/* Places them one after the other, from *at on. */
static berth_status plan_layout_line_up(berth_plan *plan, berth__buffer_kind kind, uint64_t *at, berth_error *err) {
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (plan->buffers[i].kind == kind) BERTH__TRY(plan_layout_put(plan, &plan->buffers[i], at, err));
  return BERTH_OK;
}

static int layout_by_birth(const void *a, const void *b) {
  const berth__buffer *x = *(berth__buffer *const *)a, *y = *(berth__buffer *const *)b;
  return x->birth != y->birth ? (x->birth < y->birth ? -1 : 1) : (x < y ? -1 : x > y);
}

/* Results of the prelude in the order in which they are made: the part not made yet is contiguous, for temporaries. */
static berth_status plan_layout_line_up_made(berth_plan *plan, uint64_t *at, berth_error *err) {
  berth__buffer **made = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *made);
  berth_status status = BERTH_OK;
  size_t n = 0;
  if (made == NULL) return berth__fail_nomem(err, "a layout");
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (plan->buffers[i].kind == BERTH__BUFFER_PRELUDE) made[n++] = &plan->buffers[i];
  qsort(made, n, sizeof *made, layout_by_birth);
  for (size_t i = 0; i < n && status == BERTH_OK; i++) status = plan_layout_put(plan, made[i], at, err);
  berth__free(plan->ctx, made);
  return status;
}

static berth_status plan_layout_follow(berth_plan *plan, const berth_layout *layout, uint64_t *end, berth_error *err) {
  if (layout->align % plan->align != 0)
    return berth__fail(err, BERTH_INVALID, "the layout is aligned to %llu, the plan asks for %llu",
                       (unsigned long long)layout->align, (unsigned long long)plan->align);
  *end = layout->size;
  uint64_t *prints;
  berth_status status = layout_prints(plan, &prints, err);
  for (size_t i = 0; i < plan->n_buffers && status == BERTH_OK; i++) {
    bool own = false;
    if (!is_shared(&plan->buffers[i])) continue;
    status = apply_one(plan, layout, prints, &plan->buffers[i], &own, err);
    if (status == BERTH_OK && own) status = plan_layout_put(plan, &plan->buffers[i], end, err);
  }
  berth__free(plan->ctx, prints);
  return status;
}

berth_status berth__layout_apply(berth_plan *plan, const berth_layout *layout, uint64_t *shared, uint64_t *end,
                                 berth_error *err) {
  *end = 0;
  if (layout == NULL) {
    BERTH__TRY(berth__file_runs_place(plan, end, err));
    BERTH__TRY(plan_layout_line_up_made(plan, end, err));
    BERTH__TRY(plan_layout_line_up(plan, BERTH__BUFFER_STATE, end, err));
    *shared = *end;
  } else {
    BERTH__TRY(plan_layout_follow(plan, layout, end, err));
    *shared = layout->size;
  }
  return plan_layout_line_up(plan, BERTH__BUFFER_CONSTANT, end, err);
}

/* Whether other plans find it at this plan's position. Buffers without bytes may be at the end. */
static bool lies_shared(const berth_plan *plan, const berth__buffer *buffer) {
  return buffer->offset < plan->params_size || (buffer->offset == plan->params_size && buffer->size == 0);
}

/* The layout records params without bytes if only the prelude reads them, or only this plan has them in the arena. */
static berth_status add_outside(berth_layout *layout, const berth_plan *plan, berth_error *err) {
  for (size_t i = 0; i < plan->graph->n_params; i++) {
    const berth_value param = plan->graph->params[i];
    entry added = {.offset = BERTH_OFFSET_NONE};
    const uint32_t buffer = plan->places[param].buffer;
    if (plan->flags & BERTH_PLAN_PARAMS_OUTSIDE) continue;
    if (buffer != BERTH__NO_BUFFER && lies_shared(plan, &plan->buffers[buffer])) continue;
    berth__value_size(&plan->graph->values[param], &added.size);
    BERTH__TRY(
        berth__map_put(layout->ctx, &layout->names, plan->graph->values[param].name, (uint32_t)layout->n_entries, err));
    layout->entries[layout->n_entries++] = added;
  }
  return BERTH_OK;
}

static berth_status add_entries(berth_layout *layout, const berth_plan *plan, const uint64_t *prints,
                                berth_error *err) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (!is_shared(buffer) || !lies_shared(plan, buffer)) continue;
    BERTH__TRY(berth__map_put(layout->ctx, &layout->names, plan->graph->values[buffer->owner].name,
                              (uint32_t)layout->n_entries, err));
    layout->entries[layout->n_entries++] = (entry){.offset = buffer->offset,
                                                   .size = buffer->size,
                                                   .made_from = prints[buffer->owner],
                                                   .shape = plan->graph->values[buffer->owner].shape};
  }
  return add_outside(layout, plan, err);
}

berth_status berth_plan_layout(const berth_plan *plan, berth_layout **out, berth_error *err) {
  if (plan == NULL || out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_layout needs a plan and a place");
  *out = NULL;
  berth_layout *layout = berth__alloc_zero(plan->ctx, sizeof *layout);
  if (layout == NULL) return berth__fail_nomem(err, "a layout");
  layout->ctx = plan->ctx;
  atomic_init(&layout->holders, 1);
  layout->size = plan->params_size;
  layout->align = plan->align;
  layout->entries = berth__alloc_array(plan->ctx, plan->n_buffers + plan->graph->n_params, sizeof *layout->entries);
  uint64_t *prints = NULL;
  berth_status status =
      layout->entries == NULL ? berth__fail_nomem(err, "a layout") : layout_prints(plan, &prints, err);
  if (status == BERTH_OK) status = add_entries(layout, plan, prints, err);
  berth__free(plan->ctx, prints);
  if (status != BERTH_OK) {
    berth_layout_destroy(layout);
    return status;
  }
  *out = layout;
  return BERTH_OK;
}

berth_layout *berth__layout_retain(berth_layout *layout) {
  (void)atomic_fetch_add(&layout->holders, 1);
  return layout;
}

void berth_layout_destroy(berth_layout *layout) {
  if (layout == NULL || atomic_fetch_sub(&layout->holders, 1) != 1) return;
  berth__map_clear(layout->ctx, &layout->names);
  berth__free(layout->ctx, layout->entries);
  berth__free(layout->ctx, layout);
}

uint64_t berth_layout_size(const berth_layout *layout) { return layout->size; }

uint64_t berth_layout_offset(const berth_layout *layout, const char *param) {
  const entry *at = param != NULL ? plan_layout_find(layout, param) : NULL;
  return at != NULL ? at->offset : BERTH_OFFSET_NONE;
}
