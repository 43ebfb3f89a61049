/* Where params and constants lie, by name. */
#include "plan/layout.h"

#include "base/math.h"

typedef struct entry {
  uint64_t offset, size;
  uint64_t hash; /* of a constant's bytes: two graphs that share a place must agree on what is there */
} entry;

struct berth_layout {
  berth_context *ctx;
  uint64_t size, align;
  berth__map names;
  entry *entries;
  size_t n_entries;
};

static bool is_weight(const berth__buffer *buffer) {
  return buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_CONSTANT;
}

static uint64_t hash_constant(const berth_plan *plan, const berth__buffer *buffer) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  const unsigned char *bytes = plan->graph->values[buffer->owner].data;
  uint64_t size;
  if (buffer->kind != BERTH__BUFFER_CONSTANT || !berth__value_size(&plan->graph->values[buffer->owner], &size))
    return 0;
  for (uint64_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

static const entry *find(const berth_layout *layout, const char *name) {
  uint32_t index;
  return berth__map_get(&layout->names, name, &index) ? &layout->entries[index] : NULL;
}

static berth_status apply_one(const berth_plan *plan, const berth_layout *layout, berth__buffer *buffer,
                              berth_error *err) {
  const char *name = plan->graph->values[buffer->owner].name;
  const char *what = buffer->kind == BERTH__BUFFER_PARAM ? "param" : "constant";
  const entry *at = find(layout, name);
  if (at == NULL)
    return berth__fail(err, BERTH_INVALID,
                       "%s '%s' is not in the layout; take the layout from the plan of the graph that has all of them",
                       what, name);
  if (at->size != buffer->size)
    return berth__fail(err, BERTH_INVALID, "%s '%s' needs %llu bytes but the layout has %llu for it", what, name,
                       (unsigned long long)buffer->size, (unsigned long long)at->size);
  if (at->hash != hash_constant(plan, buffer))
    return berth__fail(err, BERTH_INVALID, "constant '%s' has other data than the one in the layout; rename one", name);
  buffer->offset = at->offset;
  return BERTH_OK;
}

berth_status berth__layout_apply(berth_plan *plan, const berth_layout *layout, uint64_t *end, berth_error *err) {
  uint64_t at = 0;
  if (layout != NULL && layout->align % plan->align != 0)
    return berth__fail(err, BERTH_INVALID, "the layout is aligned to %llu, the plan asks for %llu",
                       (unsigned long long)layout->align, (unsigned long long)plan->align);
  for (size_t i = 0; i < plan->n_buffers; i++) {
    berth__buffer *buffer = &plan->buffers[i];
    if (!is_weight(buffer)) continue;
    if (layout != NULL) {
      BERTH__TRY(apply_one(plan, layout, buffer, err));
      continue;
    }
    buffer->offset = at;
    if (!berth__align_up(at + buffer->size, plan->align, &at))
      return berth__fail(err, BERTH_INVALID, "the weights do not fit in 64 bits");
  }
  *end = layout != NULL ? layout->size : at;
  return BERTH_OK;
}

static berth_status add_entries(berth_layout *layout, const berth_plan *plan, berth_error *err) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (!is_weight(buffer)) continue;
    BERTH__TRY(berth__map_put(layout->ctx, &layout->names, plan->graph->values[buffer->owner].name,
                              (uint32_t)layout->n_entries, err));
    layout->entries[layout->n_entries++] =
        (entry){.offset = buffer->offset, .size = buffer->size, .hash = hash_constant(plan, buffer)};
  }
  return BERTH_OK;
}

berth_status berth_plan_layout(const berth_plan *plan, berth_layout **out, berth_error *err) {
  if (plan == NULL || out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_layout needs a plan and a place");
  *out = NULL;
  berth_layout *layout = berth__alloc_zero(plan->ctx, sizeof *layout);
  if (layout == NULL) return berth__fail_nomem(err, "a layout");
  layout->ctx = plan->ctx;
  layout->size = plan->info.weights_size;
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
