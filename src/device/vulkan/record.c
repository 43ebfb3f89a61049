/* Recording, done when a program is bound to a block and never while it runs; and running what was recorded. */
#include "device/vulkan/code.h"
#include "kernel/render.h"

static const char doing[] = "recording a program", running[] = "running a program";

/* ---- Recording ---- */

static void vulkan_record_dispatch(const berth__gpu_binding *binding, VkCommandBuffer commands, size_t index) {
  const berth__engine *engine = binding->engine;
  const berth__gpu_code *code = binding->code;
  const berth__dispatch *d = &code->recipe->dispatches[index];
  const berth__kernel *kernel = code->recipe->kernels[d->kernel];
  const VkPipelineLayout layout = code->layouts[berth__vulkan_n_bindings(code, kernel)];
  const uint32_t base = berth__vulkan_window_of(engine, binding->block, (berth__span){0, 4}).word;
  uint32_t at[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    at[i] = code->windows ? berth__vulkan_window_of(engine, binding->block, d->spans[i]).word
                          : base + (uint32_t)(d->spans[i].at / 4);
  engine->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, code->pipelines[d->kernel]);
  if (code->windows)
    engine->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &binding->sets[index], 0,
                                     NULL);
  engine->vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->n_buffers * sizeof at[0], at);
  engine->vk.CmdDispatch(commands, berth__grid_columns(kernel->n_groups), berth__grid_rows(kernel->n_groups), 1);
}

static void stamp(const berth__gpu_binding *binding, VkCommandBuffer commands, uint32_t query) {
  binding->engine->vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, binding->queries, query);
}

/* Between kernels, only memory accesses of kernels matter. */
static void wait_for_kernels(const berth__engine *engine, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  engine->vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                                1, &barrier, 0, NULL, 0, NULL);
}

static uint32_t count_steps(const berth__recipe *recipe, const berth__gpu_part *part) {
  uint32_t n = 0;
  for (size_t i = part->first; i < part->end; i++)
    n += i == part->first || recipe->dispatches[i].step != recipe->dispatches[i - 1].step;
  return n;
}

/* If timed, every dispatch waits for the previous one, so that the times of steps do not overlap. */
static void record_dispatches(const berth__gpu_binding *binding, VkCommandBuffer commands, const berth__gpu_part *part,
                              bool is_timed) {
  const berth__engine *engine = binding->engine;
  const berth__dispatch *d = binding->code->recipe->dispatches;
  uint32_t n = 0;
  if (!binding->code->windows)
    engine->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, binding->code->layouts[1], 0, 1,
                                     &binding->sets[0], 0, NULL);
  for (size_t i = part->first; i < part->end; i++) {
    if (i != part->first && (is_timed || d[i].waits)) wait_for_kernels(engine, commands);
    vulkan_record_dispatch(binding, commands, i);
    if (is_timed && (i + 1 == part->end || d[i + 1].step != d[i].step)) stamp(binding, commands, ++n);
  }
}

static berth_status record_part(berth__gpu_binding *binding, const berth__gpu_part *part, VkCommandBuffer commands,
                                bool is_timed, berth_error *err) {
  berth__engine *engine = binding->engine;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.BeginCommandBuffer(commands, &info), doing, err));
  engine->counts.recordings++;
  berth__vulkan_barrier(engine, commands);
  if (is_timed) {
    engine->vk.CmdResetQueryPool(commands, binding->queries, 0, count_steps(binding->code->recipe, part) + 1);
    stamp(binding, commands, 0);
  }
  record_dispatches(binding, commands, part, is_timed);
  if (part->index + 1 == binding->n_parts) berth__vulkan_mail_record(binding, commands);
  berth__vulkan_barrier(engine, commands);
  return berth__vulkan_check(engine, engine->vk.EndCommandBuffer(commands), doing, err);
}

static berth_status record(berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  for (size_t i = 0; i < binding->n_parts; i++) {
    if (parts[i].is_on_host) continue;
    BERTH__TRY(record_part(binding, &parts[i], binding->commands[2 * i], false, err));
    if (binding->queries != VK_NULL_HANDLE)
      BERTH__TRY(record_part(binding, &parts[i], binding->commands[2 * i + 1], true, err));
  }
  return BERTH_OK;
}

/* ---- Binding ---- */

static berth_status make_commands(berth__gpu_binding *binding, berth_error *err) {
  berth__engine *engine = binding->engine;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = engine->queue_family};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, Fence, &fence, &binding->fence), doing, err));
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, CommandPool, &pool, &binding->pool), doing, err));
  binding->commands = berth__alloc_array_zero(engine->core.ctx, binding->n_parts, 2 * sizeof *binding->commands);
  if (binding->commands == NULL) return berth__fail_nomem(err, "a program");
  if (binding->n_parts == 0) return BERTH_OK;
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = binding->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 2 * (uint32_t)binding->n_parts};
  return berth__vulkan_check(engine, engine->vk.AllocateCommandBuffers(engine->device, &info, binding->commands), doing,
                             err);
}

/* As many as the longest part needs: they are read before the next part runs. */
static berth_status make_queries(berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  berth__engine *engine = binding->engine;
  uint32_t most = 0;
  for (size_t i = 0; i < binding->n_parts; i++) {
    const uint32_t n = parts[i].is_on_host ? 0 : count_steps(binding->code->recipe, &parts[i]);
    if (n > most) most = n;
  }
  if (most == 0 || engine->timestamp_bits == 0) return BERTH_OK;
  const VkQueryPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = most + 1};
  binding->ticks = berth__alloc_array(engine->core.ctx, (size_t)most + 1, sizeof *binding->ticks);
  if (binding->ticks == NULL) return berth__fail_nomem(err, "a program");
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, QueryPool, &info, &binding->queries), doing, err);
}

static berth_status vulkan_record_build(berth__gpu_binding *binding, const berth__gpu_part *parts, berth_error *err) {
  BERTH__TRY(berth__vulkan_make_sets(binding, err));
  BERTH__TRY(make_commands(binding, err));
  BERTH__TRY(make_queries(binding, parts, err));
  berth__vulkan_mail_plan(binding);
  return record(binding, parts, err);
}

berth_status berth__vulkan_bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts,
                                size_t n_parts, berth__gpu_binding **out, berth_error *err) {
  berth__engine *engine = code->engine;
  *out = NULL;
  berth__gpu_binding *binding = berth__alloc_zero(engine->core.ctx, sizeof *binding);
  if (binding == NULL) return berth__fail_nomem(err, "a program");
  *binding = (berth__gpu_binding){.code = code, .engine = engine, .block = block, .n_parts = n_parts};
  const berth_status status = vulkan_record_build(binding, parts, err);
  if (status != BERTH_OK) {
    berth__vulkan_unbind(binding);
    return status;
  }
  berth__vulkan_host_stock(&engine->host);
  *out = binding;
  return BERTH_OK;
}

void berth__vulkan_unbind(berth__gpu_binding *binding) {
  berth__engine *engine = binding->engine;
  if (engine->ring.mail_of == binding) engine->ring.mail_of = NULL;
  if (berth__vulkan_may_free(engine)) {
    BERTH__VK_DESTROY(engine, QueryPool, binding->queries);
    BERTH__VK_DESTROY(engine, CommandPool, binding->pool);
    BERTH__VK_DESTROY(engine, Fence, binding->fence);
    BERTH__VK_DESTROY(engine, DescriptorPool, binding->descriptors);
  }
  berth__free(engine->core.ctx, binding->sets);
  berth__free(engine->core.ctx, binding->commands);
  berth__free(engine->core.ctx, binding->ticks);
  berth__free(engine->core.ctx, binding);
}

/* ---- Running ---- */

static berth_status vulkan_record_submit(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed,
                                         berth_error *err) {
  const bool is_timed = timed && binding->queries != VK_NULL_HANDLE;
  binding->engine->ring.mail_of = NULL;
  binding->brings_mail = part->index + 1 == binding->n_parts && part->end == binding->code->recipe->n_dispatches;
  return berth__vulkan_ring_submit(binding->engine, binding->commands[2 * part->index + is_timed], binding->fence,
                                   running, err);
}

/* With the validation layer on, all new messages are reported. */
static berth_status vulkan_record_hear(berth__engine *engine, berth_error *err) {
  char text[BERTH__VULKAN_MESSAGE];
  const uint64_t now = berth__vulkan_messages(&engine->instance);
  if (now == engine->n_heard || engine->instance.messenger == VK_NULL_HANDLE) return BERTH_OK;
  const uint64_t n = now - engine->n_heard;
  engine->n_heard = now;
  berth__vulkan_last_message(&engine->instance, text);
  return berth__fail(err, BERTH_INTERNAL,
                     "the validation layer reported %llu problem%s, which are in the log; the last one: %s",
                     (unsigned long long)n, n == 1 ? "" : "s", text);
}

static berth_status vulkan_record_wait_for(berth__gpu_binding *binding, berth_error *err) {
  BERTH__TRY(berth__vulkan_wait(binding->engine, binding->fence, running, err));
  berth__vulkan_ring_ended(binding->engine, binding->fence);
  if (binding->brings_mail) binding->engine->ring.mail_of = binding;
  return vulkan_record_hear(binding->engine, err);
}

static double ms_between(const berth__engine *engine, uint64_t from, uint64_t to) {
  const uint64_t mask = engine->timestamp_bits < 64 ? ((uint64_t)1 << engine->timestamp_bits) - 1 : UINT64_MAX;
  return (double)((to - from) & mask) * (double)engine->properties.limits.timestampPeriod / 1e6;
}

/* Without timestamps every step takes no time, and there is no device clock. */
static berth_status vulkan_record_times(berth__gpu_binding *binding, const berth__gpu_part *part, double *ms,
                                        berth_error *err) {
  berth__engine *engine = binding->engine;
  const uint32_t n = count_steps(binding->code->recipe, part);
  uint64_t *ticks = binding->ticks;
  if (binding->queries != VK_NULL_HANDLE)
    BERTH__TRY(berth__vulkan_check(
        engine,
        engine->vk.GetQueryPoolResults(engine->device, binding->queries, 0, n + 1, (n + 1) * sizeof *ticks, ticks,
                                       sizeof *ticks, VK_QUERY_RESULT_64_BIT),
        "reading times", err));
  for (uint32_t i = 0; i < n; i++)
    ms[i] = binding->queries != VK_NULL_HANDLE ? ms_between(engine, ticks[i], ticks[i + 1]) : 0;
  return BERTH_OK;
}

static size_t vulkan_record_timed_steps(const berth__engine *engine) {
  (void)engine;
  return SIZE_MAX;
}

const berth__gpu_driver berth__vulkan_driver = {.device = &berth__vulkan_device,
                                                .alive = berth__vulkan_alive,
                                                .code_create = berth__vulkan_code_create,
                                                .make_pipeline = berth__vulkan_make_pipeline,
                                                .code_destroy = berth__vulkan_code_destroy,
                                                .bind = berth__vulkan_bind,
                                                .unbind = berth__vulkan_unbind,
                                                .submit = vulkan_record_submit,
                                                .wait = vulkan_record_wait_for,
                                                .timed_steps = vulkan_record_timed_steps,
                                                .times = vulkan_record_times};
