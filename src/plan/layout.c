/* Where params lie, by name. Constants follow them and belong to one plan: what folding makes differs from shape to
 * shape. */
#include "plan/layout.h"

#include "base/math.h"

typedef struct entry {
  uint64_t offset, size;
} entry;

struct berth_layout {
  berth_context *ctx;
  uint64_t size, align;
  berth__map names;
  entry *entries;
  size_t n_entries;
};

static const entry *find(const berth_layout *layout, const char *name) {
  uint32_t index;
  return berth__map_get(&layout->names, name, &index) ? &layout->entries[index] : NULL;
}

static berth_status apply_one(const berth_plan *plan, const berth_layout *layout, berth__buffer *buffer,
                              berth_error *err) {
  const char *name = plan->graph->values[buffer->owner].name;
  const entry *at = find(layout, name);
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

/* One after the other from *at on. */
static berth_status line_up(berth_plan *plan, berth__buffer_kind kind, uint64_t *at, berth_error *err) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    berth__buffer *buffer = &plan->buffers[i];
    if (buffer->kind != kind) continue;
    buffer->offset = *at;
    if (!berth__align_up(*at + buffer->size, plan->align, at))
      return berth__fail(err, BERTH_INVALID, "the weights do not fit in 64 bits");
  }
  return BERTH_OK;
}

berth_status berth__layout_apply(berth_plan *plan, const berth_layout *layout, uint64_t *params, uint64_t *end,
                                 berth_error *err) {
  *params = 0;
  if (layout == NULL) {
    BERTH__TRY(line_up(plan, BERTH__BUFFER_PARAM, params, err));
  } else {
    if (layout->align % plan->align != 0)
      return berth__fail(err, BERTH_INVALID, "the layout is aligned to %llu, the plan asks for %llu",
                         (unsigned long long)layout->align, (unsigned long long)plan->align);
    for (size_t i = 0; i < plan->n_buffers; i++)
      if (plan->buffers[i].kind == BERTH__BUFFER_PARAM) BERTH__TRY(apply_one(plan, layout, &plan->buffers[i], err));
    *params = layout->size;
  }
  *end = *params;
  return line_up(plan, BERTH__BUFFER_CONSTANT, end, err);
}

static berth_status add_entries(berth_layout *layout, const berth_plan *plan, berth_error *err) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (buffer->kind != BERTH__BUFFER_PARAM) continue;
    BERTH__TRY(berth__map_put(layout->ctx, &layout->names, plan->graph->values[buffer->owner].name,
                              (uint32_t)layout->n_entries, err));
    layout->entries[layout->n_entries++] = (entry){.offset = buffer->offset, .size = buffer->size};
  }
  return BERTH_OK;
}

berth_status berth_plan_layout(const berth_plan *plan, berth_layout **out, berth_error *err) {
  if (plan == NULL || out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_layout needs a plan and a place");
  *out = NULL;
  berth_layout *layout = berth__alloc_zero(plan->ctx, sizeof *layout);
  if (layout == NULL) return berth__fail_nomem(err, "a layout");
  layout->ctx = plan->ctx;
  layout->size = plan->params_size;
  layout->align = plan->align;
  layout->entries = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *layout->entries);
  berth_status status = layout->entries == NULL ? berth__fail_nomem(err, "a layout") : add_entries(layout, plan, err);
  if (status != BERTH_OK) {
    berth_layout_destroy(layout);
    return status;
  }
  *out = layout;
  return BERTH_OK;
}

void berth_layout_destroy(berth_layout *layout) {
  if (layout == NULL) return;
  berth__map_clear(layout->ctx, &layout->names);
  berth__free(layout->ctx, layout->entries);
  berth__free(layout->ctx, layout);
}

uint64_t berth_layout_size(const berth_layout *layout) { return layout->size; }

uint64_t berth_layout_offset(const berth_layout *layout, const char *param) {
  const entry *at = param != NULL ? find(layout, param) : NULL;
  return at != NULL ? at->offset : BERTH_OFFSET_NONE;
}
