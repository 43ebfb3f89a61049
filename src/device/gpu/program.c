/* Programs of all GPUs: made from a plan, bound to a block. */
#include "device/gpu/program.h"

/* ---- Parts ---- */

/* A submission begins after the prelude and around host steps; in checked mode, at every step. */
static bool starts_part(const berth__program *program, size_t i) {
  const berth__dispatch *d = program->recipe->dispatches;
  if (i == 0 || i == program->recipe->n_prelude) return true;
  if (d[i].kernel == BERTH__ON_HOST || d[i - 1].kernel == BERTH__ON_HOST) return true;
  return program->watch != NULL && d[i].step != d[i - 1].step;
}

static size_t count_parts(const berth__program *program, size_t *most) {
  size_t n = 0, length = 0;
  *most = 0;
  for (size_t i = 0; i < program->recipe->n_dispatches; i++) {
    const bool starts = starts_part(program, i);
    n += starts;
    length = starts ? 1 : length + 1;
    if (length > *most) *most = length;
  }
  return n;
}

static berth_status make_parts(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  size_t most;
  program->parts = berth__alloc_array_zero(program->ctx, count_parts(program, &most), sizeof *program->parts);
  program->ms = berth__alloc_array(program->ctx, most, sizeof *program->ms);
  if (program->parts == NULL || program->ms == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    if (starts_part(program, i)) {
      program->parts[program->n_parts] = (berth__gpu_part){
          .first = i, .index = program->n_parts, .is_on_host = recipe->dispatches[i].kernel == BERTH__ON_HOST};
      program->n_parts++;
    }
    program->parts[program->n_parts - 1].end = i + 1;
    if (i < recipe->n_prelude) program->n_prelude = program->n_parts;
  }
  return BERTH_OK;
}

/* ---- Making and freeing ---- */

static berth_status make_pipelines(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    const berth_status status = berth__gpu_check_kernel(program->engine, recipe->kernels[i], err);
    if (status != BERTH_OK) return berth__fail_within(err, status, "kernel '%s'", recipe->kernels[i]->name);
  }
  BERTH__TRY(program->driver->code_create(program->engine, recipe, &program->code, err));
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    const uint32_t kernel = recipe->dispatches[i].kernel;
    berth__progress(program->ctx, "compiling kernels", i, recipe->n_dispatches);
    if (kernel == BERTH__ON_HOST) continue;
    const berth_status status = program->driver->make_pipeline(program->code, i, err);
    if (status != BERTH_OK) return berth__fail_within(err, status, "kernel '%s'", recipe->kernels[kernel]->name);
  }
  berth__progress(program->ctx, "compiling kernels", recipe->n_dispatches, recipe->n_dispatches);
  return BERTH_OK;
}

static berth_status gpu_program_build(berth__program *program, bool checked, berth_error *err) {
  BERTH__TRY(berth__recipe_create(program->plan, &program->recipe, err));
  if (!checked) { /* the checked mode runs step by step */
    BERTH__TRY(berth__recipe_phases(program->recipe, err));
    BERTH__TRY(berth__recipe_merge(program->recipe, err));
    berth__recipe_forget_unused(program->recipe);
  }
  berth__recipe_mark_early(program->recipe);
  BERTH__TRY(berth__host_steps_create(program->recipe, berth__gpu_core(program->engine), &program->host, err));
  if (checked) BERTH__TRY(berth__watch_create(program->plan, &program->watch, err));
  BERTH__TRY(make_parts(program, err));
  return make_pipelines(program, err);
}

static void log_program(const berth__program *program) {
  const berth__recipe *recipe = program->recipe;
  size_t n_waits = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) n_waits += recipe->dispatches[i].waits;
  berth__log(program->ctx, 0, "%s: a program of %zu dispatches of %zu kernels, %zu barriers, %zu submissions",
             program->driver->device->name, recipe->n_dispatches, recipe->n_kernels, n_waits, program->n_parts);
}

berth_status berth__gpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                       berth__program **out, berth_error *err) {
  berth__gpu_engine *core = berth__gpu_core(engine);
  *out = NULL;
  BERTH__TRY(core->driver->alive(engine, err));
  berth__program *program = berth__alloc_zero(core->ctx, sizeof *program);
  if (program == NULL) return berth__fail_nomem(err, "a program");
  program->ctx = core->ctx;
  program->engine = engine;
  program->driver = core->driver;
  program->plan = plan;
  program->next = core->programs;
  core->programs = program;
  berth_status status = gpu_program_build(program, checked, err);
  if (status != BERTH_OK) {
    berth__gpu_program_destroy(program);
    return status;
  }
  log_program(program);
  *out = program;
  return BERTH_OK;
}

static void gpu_program_drop(berth__program *program, berth__gpu_bound *bound) {
  if (program->is_under_way) (void)program->driver->wait(program->now.binding, NULL); /* nobody waits for it any more */
  program->is_under_way = false;
  if (bound->binding != NULL) program->driver->unbind(bound->binding);
  *bound = (berth__gpu_bound){NULL, NULL};
}

void berth__gpu_program_destroy(berth__program *program) {
  if (program == NULL) return;
  berth__program **link = &berth__gpu_core(program->engine)->programs;
  while (*link != program) link = &(*link)->next;
  *link = program->next;
  gpu_program_drop(program, &program->now);
  gpu_program_drop(program, &program->before);
  if (program->code != NULL) program->driver->code_destroy(program->code);
  berth__watch_destroy(program->watch);
  berth__host_steps_destroy(program->host);
  berth__recipe_destroy(program->recipe);
  berth__free(program->ctx, program->parts);
  berth__free(program->ctx, program->ms);
  berth__free(program->ctx, program->shadow);
  berth__free(program->ctx, program);
}

/* ---- Binding ---- */

static berth_status make_shadow(berth__program *program, berth__block *block, berth_error *err) {
  const berth__device *device = program->driver->device;
  const bool is_seen = device->host != NULL && device->host(block) != NULL;
  if (program->watch == NULL || is_seen || program->shadow != NULL) return BERTH_OK;
  program->shadow = berth__alloc_u64(program->ctx, program->plan->info.arena_size);
  return program->shadow != NULL ? BERTH_OK : berth__fail_nomem(err, "checked mode");
}

static berth_status bind_anew(berth__program *program, berth__block *block, berth_error *err) {
  berth__gpu_bound next = {.block = block};
  BERTH__TRY(program->driver->alive(program->engine, err));
  BERTH__TRY(make_shadow(program, block, err));
  BERTH__TRY(program->driver->bind(program->code, block, program->parts, program->n_parts, &next.binding, err));
  gpu_program_drop(program, &program->before);
  program->before = program->now;
  program->now = next;
  return BERTH_OK;
}

berth_status berth__gpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                     berth_error *err) {
  if (program->now.block != block && program->before.block == block) {
    const berth__gpu_bound now = program->now;
    program->now = program->before;
    program->before = now;
  }
  if (program->now.block != block) BERTH__TRY(bind_anew(program, block, err));
  berth__host_steps_bind(program->host, outside); /* nothing else reads it: the recipe ensures that */
  return BERTH_OK;
}

void berth__gpu_forget_block(berth__engine *engine, const berth__block *block) {
  for (berth__program *program = berth__gpu_core(engine)->programs; program != NULL; program = program->next) {
    if (program->now.block == block) gpu_program_drop(program, &program->now);
    if (program->before.block == block) gpu_program_drop(program, &program->before);
  }
}
