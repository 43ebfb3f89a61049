/* How kernels access the arena: as one binding if the device allows that size, otherwise through windows. */
#include "device/webgpu/code.h"

static const char doing[] = "making a program";

/* ---- Windows ---- */

static uint64_t webgpu_bindings_end_of(berth__span span) { return span.at + span.size; }

static berth__span webgpu_bindings_join(berth__span a, berth__span b) {
  const uint64_t at = a.at < b.at ? a.at : b.at, end = webgpu_bindings_end_of(a) > webgpu_bindings_end_of(b)
                                                           ? webgpu_bindings_end_of(a)
                                                           : webgpu_bindings_end_of(b);
  return (berth__span){at, end - at};
}

/* Aligns the offset of a binding, which then includes extra bytes. */
static berth__span aligned(const berth__engine *engine, berth__span span) {
  const uint64_t align = engine->limits.storage_align > 4 ? engine->limits.storage_align : 4,
                 at = span.at & ~(align - 1);
  return (berth__span){at, webgpu_bindings_end_of(span) - at};
}

/* Joins the first two windows that must be joined, or that may be because the device can bind both together. */
static bool join_two(berth__webgpu_windows *w, uint64_t may_hold, uint32_t n_buffers) {
  for (uint32_t a = 0; a < w->count; a++) {
    for (uint32_t b = a + 1; b < w->count; b++) {
      const berth__span both = webgpu_bindings_join(w->spans[a], w->spans[b]);
      const bool meet =
          w->spans[a].at < webgpu_bindings_end_of(w->spans[b]) && w->spans[b].at < webgpu_bindings_end_of(w->spans[a]);
      if (!meet && both.size > may_hold) continue;
      w->spans[a] = both;
      w->spans[b] = w->spans[--w->count];
      for (uint32_t i = 0; i < n_buffers; i++) {
        if (w->of[i] == b) w->of[i] = (uint8_t)a;
        if (w->of[i] == w->count) w->of[i] = (uint8_t)b;
      }
      return true;
    }
  }
  return false;
}

/* Numbered in the order of the buffers, so that equal kernels more often have equal windows, too. */
static void webgpu_bindings_number(berth__webgpu_windows *w, uint32_t n_buffers) {
  const berth__webgpu_windows old = *w;
  uint32_t n = 0;
  uint8_t new_of[BERTH__KERNEL_BUFFERS];
  memset(new_of, 0xff, sizeof new_of);
  for (uint32_t i = 0; i < n_buffers; i++) {
    uint8_t *at = &new_of[old.of[i]];
    if (*at == 0xff) {
      w->spans[n] = old.spans[old.of[i]];
      *at = (uint8_t)n++;
    }
    w->of[i] = *at;
  }
}

static berth_status webgpu_bindings_check_windows(const berth__gpu_code *code, const berth__kernel *kernel,
                                                  const berth__webgpu_windows *w, berth_error *err) {
  const berth__engine *engine = code->engine;
  for (uint32_t i = 0; i < w->count; i++)
    if (w->spans[i].size > engine->max_binding)
      return berth__fail(
          err, BERTH_UNSUPPORTED, "the kernel '%s' uses %llu bytes in one piece, and %s binds at most %llu at once",
          kernel->name, (unsigned long long)w->spans[i].size, engine->name, (unsigned long long)engine->max_binding);
  if (w->count > engine->limits.storage_buffers)
    return berth__fail(err, BERTH_UNSUPPORTED, "the kernel '%s' needs %u buffers, and %s binds %u at once",
                       kernel->name, w->count, engine->name, engine->limits.storage_buffers);
  return BERTH_OK;
}

static berth__span webgpu_bindings_whole_arena(const berth__gpu_code *code) {
  return (berth__span){.at = 0, .size = (code->recipe->plan->info.arena_size + 3) & ~(uint64_t)3};
}

berth_status berth__webgpu_windows_of(const berth__gpu_code *code, const berth__dispatch *d, berth__webgpu_windows *out,
                                      berth_error *err) {
  const berth__kernel *kernel = code->recipe->kernels[d->kernel];
  *out = (berth__webgpu_windows){.count = 1, .spans = {webgpu_bindings_whole_arena(code)}};
  if (!code->windows) return BERTH_OK;
  out->count = kernel->n_buffers;
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    /* Nothing is read from an empty buffer, but something must be bound. */
    const berth__span span = d->spans[i].size != 0 ? d->spans[i] : (berth__span){d->spans[0].at, 4};
    out->spans[i] = aligned(code->engine, span);
    out->of[i] = (uint8_t)i;
  }
  while (join_two(out, 0, kernel->n_buffers)) continue; /* first those that must be joined */
  while (join_two(out, code->engine->max_binding, kernel->n_buffers)) continue;
  webgpu_bindings_number(out, kernel->n_buffers);
  return webgpu_bindings_check_windows(code, kernel, out, err);
}

/* ---- Layouts ---- */

static berth_status webgpu_bindings_make_layout(berth__gpu_code *code, uint32_t n, berth_error *err) {
  berth__engine *engine = code->engine;
  berth__wgpu_layout_entry entries[BERTH__KERNEL_BUFFERS + 1];
  memset(entries, 0, sizeof entries);
  for (uint32_t i = 0; i <= n; i++) {
    entries[i].binding = i;
    entries[i].stages = BERTH__WGPU_COMPUTE;
    entries[i].buffer.kind = i < n ? BERTH__WGPU_BIND_STORAGE : BERTH__WGPU_BIND_UNIFORM;
    entries[i].buffer.is_dynamic = i == n && !engine->binds_each;
  }
  const berth__wgpu_group_layout_desc group = {.n_entries = n + 1u, .entries = entries};
  berth__webgpu_watch(engine);
  code->group_layouts[n] = BERTH__WEBGPU_CREATE(engine, BindGroupLayout, &group);
  const berth__wgpu_layout_desc layout = {.n_groups = 1, .groups = &code->group_layouts[n]};
  code->layouts[n] = BERTH__WEBGPU_CREATE(engine, PipelineLayout, &layout);
  return berth__webgpu_check_made(engine, code->layouts[n], doing, err);
}

/* ---- Beginnings of buffers ---- */

static void write_begins(const berth__dispatch *d, const berth__webgpu_windows *w, uint32_t n_buffers,
                         unsigned char *out) {
  for (uint32_t i = 0; i < n_buffers; i++) {
    const uint32_t word = d->spans[i].size != 0 ? (uint32_t)((d->spans[i].at - w->spans[w->of[i]].at) / 4) : 0;
    memcpy(out + i * sizeof word, &word, sizeof word);
  }
}

static berth_status fill_begins(berth__gpu_code *code, unsigned char *bytes, berth_error *err) {
  const berth__recipe *recipe = code->recipe;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    const berth__dispatch *d = &recipe->dispatches[i];
    berth__webgpu_windows windows;
    if (d->kernel == BERTH__ON_HOST) continue;
    BERTH__TRY(berth__webgpu_windows_of(code, d, &windows, err));
    if (code->layouts[windows.count] == NULL) BERTH__TRY(webgpu_bindings_make_layout(code, windows.count, err));
    write_begins(d, &windows, recipe->kernels[d->kernel]->n_buffers, bytes + i * code->stride);
  }
  return BERTH_OK;
}

berth_status berth__webgpu_make_layouts(berth__gpu_code *code, berth_error *err) {
  berth__engine *engine = code->engine;
  const berth__recipe *recipe = code->recipe;
  const uint32_t align = engine->limits.uniform_align > 16 ? engine->limits.uniform_align : 16;
  if (recipe->n_kernels == 0) return BERTH_OK;
  code->windows = webgpu_bindings_whole_arena(code).size > engine->max_binding;
  code->stride = (BERTH__WEBGPU_BEGINS + align - 1) / align * align;
  code->n_groups = code->windows || engine->binds_each ? recipe->n_dispatches : 1;
  unsigned char *bytes = berth__alloc_array_zero(code->engine->core.ctx, recipe->n_dispatches, code->stride);
  berth_status status = bytes != NULL ? fill_begins(code, bytes, err) : berth__fail_nomem(err, "a program");
  const uint64_t size = (uint64_t)recipe->n_dispatches * code->stride;
  if (status == BERTH_OK)
    status = berth__webgpu_make_buffer(engine, BERTH__WGPU_UNIFORM | BERTH__WGPU_COPY_DST, size, &code->begins, err);
  if (status == BERTH_OK) engine->gpu->QueueWriteBuffer(engine->queue, code->begins, 0, bytes, (size_t)size);
  berth__free(code->engine->core.ctx, bytes);
  return status;
}

void berth__webgpu_free_layouts(berth__gpu_code *code) {
  berth__webgpu_free_buffer(code->engine, &code->begins);
  for (uint32_t n = 0; n <= BERTH__KERNEL_BUFFERS; n++) {
    BERTH__WEBGPU_RELEASE(code->engine, PipelineLayout, code->layouts[n]);
    BERTH__WEBGPU_RELEASE(code->engine, BindGroupLayout, code->group_layouts[n]);
  }
}

/* ---- Bind groups ---- */

static berth__wgpu make_group(const berth__gpu_binding *binding, const berth__webgpu_windows *w, uint64_t begins) {
  const berth__gpu_code *code = binding->code;
  berth__wgpu_entry entries[BERTH__KERNEL_BUFFERS + 1];
  memset(entries, 0, sizeof entries);
  for (uint32_t i = 0; i < w->count; i++) {
    entries[i].binding = i;
    entries[i].buffer = binding->block->buffer;
    entries[i].offset = w->spans[i].at;
    entries[i].size = w->spans[i].size;
  }
  entries[w->count].binding = w->count;
  entries[w->count].buffer = code->begins;
  entries[w->count].offset = begins;
  entries[w->count].size = BERTH__WEBGPU_BEGINS;
  const berth__wgpu_group_desc desc = {
      .layout = code->group_layouts[w->count], .n_entries = w->count + 1u, .entries = entries};
  return BERTH__WEBGPU_CREATE(binding->engine, BindGroup, &desc);
}

static berth_status make_groups(berth__gpu_binding *binding, berth_error *err) {
  const berth__gpu_code *code = binding->code;
  const berth__recipe *recipe = code->recipe;
  berth_status status = BERTH_OK;
  binding->groups = berth__alloc_array_zero(binding->engine->core.ctx, code->n_groups, sizeof *binding->groups);
  if (binding->groups == NULL) return berth__fail_nomem(err, "a program");
  if (recipe->n_kernels == 0) return BERTH_OK;
  berth__webgpu_watch(binding->engine);
  for (size_t i = 0; i < recipe->n_dispatches && status == BERTH_OK; i++) {
    berth__webgpu_windows windows;
    berth__wgpu *group = &binding->groups[code->n_groups > 1 ? i : 0];
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST || *group != NULL) continue;
    status = berth__webgpu_windows_of(code, &recipe->dispatches[i], &windows, err);
    if (status == BERTH_OK) *group = make_group(binding, &windows, binding->engine->binds_each ? i * code->stride : 0);
  }
  const berth_status said = berth__webgpu_check(binding->engine, "binding an arena", status == BERTH_OK ? err : NULL);
  return status == BERTH_OK ? said : status;
}

berth_status berth__webgpu_bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts,
                                size_t n_parts, berth__gpu_binding **out, berth_error *err) {
  berth__engine *engine = code->engine;
  *out = NULL;
  (void)parts, (void)n_parts;
  berth__gpu_binding *binding = berth__alloc_zero(engine->core.ctx, sizeof *binding);
  if (binding == NULL) return berth__fail_nomem(err, "a program");
  binding->code = code;
  binding->engine = engine;
  binding->block = block;
  const berth_status status = make_groups(binding, err);
  if (status != BERTH_OK) {
    berth__webgpu_unbind(binding);
    return status;
  }
  *out = binding;
  return BERTH_OK;
}

void berth__webgpu_unbind(berth__gpu_binding *binding) {
  berth__engine *engine = binding->engine;
  for (size_t i = 0; binding->groups != NULL && i < binding->code->n_groups; i++)
    BERTH__WEBGPU_RELEASE(engine, BindGroup, binding->groups[i]);
  berth__free(engine->core.ctx, binding->groups);
  berth__free(engine->core.ctx, binding);
}
