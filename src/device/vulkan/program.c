/* The program: made once, recorded for a block, submitted at every run. */
#include "device/vulkan/program.h"

#include "base/thread.h"

static const char doing[] = "making a program", running[] = "running a program";

/* ---- Parts ---- */

/* A new submission is needed behind the prelude and around steps on the host; checked, around every step. */
static bool starts_part(const berth__program *program, size_t i) {
  const berth__dispatch *d = program->recipe->dispatches;
  if (i == 0 || i == program->recipe->n_prelude) return true;
  if (d[i].kernel == BERTH__ON_HOST || d[i - 1].kernel == BERTH__ON_HOST) return true;
  return program->watch != NULL && d[i].step != d[i - 1].step;
}

static berth_status make_parts(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  size_t n = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) n += starts_part(program, i);
  program->parts = berth__alloc_array_zero(program->ctx, n, sizeof *program->parts);
  if (program->parts == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    if (starts_part(program, i)) program->parts[program->n_parts++].first = i;
    program->parts[program->n_parts - 1].end = i + 1;
    program->parts[program->n_parts - 1].is_on_host = recipe->dispatches[i].kernel == BERTH__ON_HOST;
    if (i < recipe->n_prelude) program->n_prelude = program->n_parts;
  }
  return BERTH_OK;
}

static berth_status make_commands(berth__program *program, berth_error *err) {
  berth__engine *engine = program->engine;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = engine->queue_family};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, CommandPool, &pool, &program->pool), doing, err));
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, Fence, &fence, &program->fence), doing, err));
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = program->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 2};
  for (size_t i = 0; i < program->n_parts; i++) {
    VkCommandBuffer both[2];
    BERTH__TRY(berth__vulkan_check(engine, engine->vk.AllocateCommandBuffers(engine->device, &info, both), doing, err));
    program->parts[i].commands = both[0];
    program->parts[i].timed = both[1];
  }
  return BERTH_OK;
}

/* As many as the longest part needs: they are read before the next one runs. */
static berth_status make_queries(berth__program *program, berth_error *err) {
  berth__engine *engine = program->engine;
  size_t most = 0;
  for (size_t i = 0; i < program->n_parts; i++)
    if (program->parts[i].end - program->parts[i].first > most) most = program->parts[i].end - program->parts[i].first;
  if (most == 0 || engine->timestamp_bits == 0) return BERTH_OK;
  const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                      .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                      .queryCount = (uint32_t)most + 1};
  program->ticks = berth__alloc_array(program->ctx, most + 1, sizeof *program->ticks);
  if (program->ticks == NULL) return berth__fail_nomem(err, "a program");
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, QueryPool, &info, &program->queries), doing, err);
}

/* ---- Making and freeing ---- */

static berth_status build(berth__program *program, bool checked, berth_error *err) {
  BERTH__TRY(berth__recipe_create(program->plan, &program->recipe, err));
  BERTH__TRY(berth__host_steps_create(program->recipe, &program->host, err));
  if (checked) BERTH__TRY(berth__watch_create(program->plan, &program->watch, err));
  BERTH__TRY(berth__vulkan_make_bindings(program, err));
  BERTH__TRY(berth__vulkan_make_pipelines(program, err));
  BERTH__TRY(make_parts(program, err));
  BERTH__TRY(make_commands(program, err));
  return make_queries(program, err);
}

static void log_program(const berth__program *program) {
  const berth__recipe *recipe = program->recipe;
  size_t n_waits = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) n_waits += recipe->dispatches[i].waits;
  berth__log(program->ctx, 0, "vulkan: a program of %zu dispatches of %zu kernels, %zu barriers, %zu submissions%s",
             recipe->n_dispatches, recipe->n_kernels, n_waits, program->n_parts,
             program->windows ? ", in windows" : "");
}

berth_status berth__vulkan_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                          berth__program **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(berth__vulkan_alive(engine, err));
  berth__program *program = berth__alloc_zero(engine->ctx, sizeof *program);
  if (program == NULL) return berth__fail_nomem(err, "a program");
  program->ctx = engine->ctx;
  program->engine = engine;
  program->plan = plan;
  program->next = engine->programs;
  engine->programs = program;
  berth_status status = build(program, checked, err);
  if (status != BERTH_OK) {
    berth__vulkan_program_destroy(program);
    return status;
  }
  log_program(program);
  *out = program;
  return BERTH_OK;
}

void berth__vulkan_unbind(berth__engine *engine, const berth__block *block) {
  for (berth__program *program = engine->programs; program != NULL; program = program->next)
    if (program->bound == block->number) program->bound = 0;
}

void berth__vulkan_program_destroy(berth__program *program) {
  if (program == NULL) return;
  berth__engine *engine = program->engine;
  berth__program **link = &engine->programs;
  while (*link != program) link = &(*link)->next;
  *link = program->next;
  if (berth__vulkan_may_free(engine)) {
    BERTH__VK_DESTROY(engine, QueryPool, program->queries);
    BERTH__VK_DESTROY(engine, CommandPool, program->pool);
    BERTH__VK_DESTROY(engine, Fence, program->fence);
    berth__vulkan_free_pipelines(program);
    berth__vulkan_free_bindings(program);
  }
  berth__watch_destroy(program->watch);
  berth__host_steps_destroy(program->host);
  berth__recipe_destroy(program->recipe);
  berth__free(program->ctx, program->pipelines);
  berth__free(program->ctx, program->sets);
  berth__free(program->ctx, program->parts);
  berth__free(program->ctx, program->ticks);
  berth__free(program->ctx, program->shadow);
  berth__free(program->ctx, program);
}

static berth_status make_shadow(berth__program *program, berth_error *err) {
  if (program->watch == NULL || program->block->data != NULL || program->shadow != NULL) return BERTH_OK;
  program->shadow = berth__alloc_u64(program->ctx, program->plan->info.arena_size);
  return program->shadow != NULL ? BERTH_OK : berth__fail_nomem(err, "checked mode");
}

berth_status berth__vulkan_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                        berth_error *err) {
  berth__host_steps_bind(program->host, outside); /* nothing else reads it: the recipe has seen to that */
  if (program->bound == block->number) return BERTH_OK;
  BERTH__TRY(berth__vulkan_alive(program->engine, err));
  program->bound = 0;
  program->block = block;
  BERTH__TRY(make_shadow(program, err));
  berth__vulkan_write_bindings(program);
  BERTH__TRY(berth__vulkan_record(program, err));
  program->bound = block->number;
  berth__vulkan_host_stock(&program->engine->host);
  return BERTH_OK;
}

/* ---- Running ---- */

static berth_status submit_and_wait(berth__program *program, VkCommandBuffer commands, berth_error *err) {
  BERTH__TRY(berth__vulkan_ring_flush(program->engine, err));
  BERTH__TRY(berth__vulkan_submit(program->engine, commands, program->fence, running, err));
  return berth__vulkan_wait(program->engine, program->fence, running, err);
}

static double ms_between(const berth__engine *engine, uint64_t from, uint64_t to) {
  const uint64_t mask = engine->timestamp_bits < 64 ? ((uint64_t)1 << engine->timestamp_bits) - 1 : UINT64_MAX;
  return (double)((to - from) & mask) * (double)engine->properties.limits.timestampPeriod / 1e6;
}

static void tell(const berth__program *program, const berth__observer *observer, uint32_t step, double ms) {
  observer->call(observer->user, step, program->plan->order[step], NULL, 0, ms);
}

/* The kernels of one step together. */
static void tell_times(const berth__program *program, const berth__vulkan_part *part, const berth__observer *observer) {
  const berth__dispatch *d = program->recipe->dispatches;
  double ms = 0;
  for (size_t i = part->first; i < part->end; i++) {
    if (program->queries != VK_NULL_HANDLE)
      ms += ms_between(program->engine, program->ticks[i - part->first], program->ticks[i - part->first + 1]);
    if (i + 1 < part->end && d[i + 1].step == d[i].step) continue;
    tell(program, observer, d[i].step, ms);
    ms = 0;
  }
}

static berth_status run_timed(berth__program *program, const berth__vulkan_part *part, const berth__observer *observer,
                              berth_error *err) {
  berth__engine *engine = program->engine;
  const size_t n = part->end - part->first + 1;
  const bool has_times = program->queries != VK_NULL_HANDLE;
  BERTH__TRY(submit_and_wait(program, has_times ? part->timed : part->commands, err));
  if (has_times)
    BERTH__TRY(berth__vulkan_check(
        engine,
        engine->vk.GetQueryPoolResults(engine->device, program->queries, 0, (uint32_t)n, n * sizeof *program->ticks,
                                       program->ticks, sizeof *program->ticks, VK_QUERY_RESULT_64_BIT),
        "reading times", err));
  tell_times(program, part, observer);
  return BERTH_OK;
}

static berth_status run_on_host(berth__program *program, const berth__vulkan_part *part,
                                const berth__observer *observer, berth_error *err) {
  const uint32_t step = program->recipe->dispatches[part->first].step;
  const double start = berth__now_ms();
  BERTH__TRY(berth__host_steps_run(program->host, step, &berth__vulkan_device, program->block, err));
  if (observer->call != NULL) tell(program, observer, step, berth__now_ms() - start);
  return BERTH_OK;
}

static berth_status run_part(berth__program *program, const berth__vulkan_part *part, const berth__observer *observer,
                             berth_error *err) {
  if (part->is_on_host) return run_on_host(program, part, observer, err);
  if (observer->call != NULL) return run_timed(program, part, observer, err);
  return submit_and_wait(program, part->commands, err);
}

/* ---- Checked: what is around a step is looked at, by way of the shadow where the host does not see the block ---- */

static berth_status exchange(const berth__program *program, bool up, berth_error *err) {
  const uint64_t size = program->plan->info.arena_size;
  if (program->block->data != NULL) return BERTH_OK;
  return up ? berth__vulkan_write(program->block, 0, program->shadow, size, err)
            : berth__vulkan_read(program->block, 0, program->shadow, size, err);
}

static berth_status run_watched(berth__program *program, const berth__vulkan_part *part,
                                const berth__observer *observer, berth_error *err) {
  const uint32_t step = program->recipe->dispatches[part->first].step;
  BERTH__TRY(exchange(program, false, err));
  berth__watch_before(program->watch, step);
  berth__watch_stop(program->watch); /* the host copies whole arenas here: nothing may be poisoned */
  BERTH__TRY(exchange(program, true, err));
  BERTH__TRY(run_part(program, part, observer, err));
  BERTH__TRY(exchange(program, false, err));
  return berth__watch_after(program->watch, step, err);
}

/* With the validation layer on, nothing that it has said since the last run is passed over. */
static berth_status hear(berth__engine *engine, berth_error *err) {
  char text[BERTH__VULKAN_MESSAGE];
  const uint64_t now = berth__vulkan_messages();
  if (now == engine->n_heard || engine->instance.messenger == VK_NULL_HANDLE) return BERTH_OK;
  const uint64_t n = now - engine->n_heard;
  engine->n_heard = now;
  berth__vulkan_last_message(text);
  return berth__fail(err, BERTH_INTERNAL,
                     "the validation layer has said %llu thing%s; the log has them, the last is: %s",
                     (unsigned long long)n, n == 1 ? "" : "s", text);
}

static berth_status run_parts(berth__program *program, size_t begin, size_t end, const berth__observer *observer,
                              berth_error *err) {
  BERTH__TRY(berth__vulkan_alive(program->engine, err));
  if (program->bound == 0)
    return berth__fail(err, BERTH_INTERNAL,
                       "the arena that this program was made for is gone, and it could not be made for another");
  if (program->watch != NULL)
    berth__watch_start(program->watch, program->block->data != NULL ? program->block->data : program->shadow);
  for (size_t i = begin; i < end; i++)
    BERTH__TRY(program->watch != NULL ? run_watched(program, &program->parts[i], observer, err)
                                      : run_part(program, &program->parts[i], observer, err));
  return hear(program->engine, err);
}

berth_status berth__vulkan_prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  return run_parts(program, 0, program->n_prelude, observer, err);
}

berth_status berth__vulkan_start(berth__program *program, const berth__observer *observer, berth_error *err) {
  program->observer = *observer;
  return berth__vulkan_alive(program->engine, err);
}

berth_status berth__vulkan_end(berth__program *program, berth_error *err) {
  return run_parts(program, program->n_prelude, program->n_parts, &program->observer, err);
}
