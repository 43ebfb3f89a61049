#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/desc.h"

/* A setting under its two names, and its accepted values; NULL: any text. */
typedef struct setting {
  const char *variable, *field, *takes;
} setting;

static bool base_options_is_one_of(const char *text, const char *const *choices) {
  for (; *choices != NULL; choices++)
    if (strcmp(text, *choices) == 0) return true;
  return false;
}

/* The environment variable, if it is set and not empty. */
static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

static berth_status base_options_refuse(const setting *s, const char *value, bool is_variable, berth_error *err) {
  if (is_variable)
    return berth__fail(err, BERTH_INVALID, "%s is '%s' in the environment; it takes %s", s->variable, value, s->takes);
  return berth__fail(err, BERTH_INVALID, "%s of berth_options is '%s'; it takes %s", s->field, value, s->takes);
}

/* choices NULL: any text; otherwise a list that ends with NULL. */
static berth_status read_text(berth_context *ctx, const setting *s, const char *field, const char *const *choices,
                              char **out, berth_error *err) {
  const char *over = variable(s->variable), *value = over != NULL ? over : field;
  if (value == NULL || value[0] == '\0') return BERTH_OK;
  if (choices != NULL && !base_options_is_one_of(value, choices))
    return base_options_refuse(s, value, over != NULL, err);
  *out = berth__strdup(ctx, value);
  return *out != NULL ? BERTH_OK : berth__fail_nomem(err, "the context");
}

static berth_status base_options_read_number(const setting *s, double field, double most, double *out,
                                             berth_error *err) {
  const char *over = variable(s->variable);
  char text[32], *end;
  *out = field;
  if (over != NULL) {
    *out = strtod(over, &end);
    if (*end != '\0' || !(*out > 0 && *out <= most)) return base_options_refuse(s, over, true, err);
  } else if (!(field >= 0 && field <= most)) {
    snprintf(text, sizeof text, "%g", field);
    return base_options_refuse(s, text, false, err);
  }
  return BERTH_OK;
}

static berth_status base_options_read_bytes(const setting *s, uint64_t field, uint64_t *out, berth_error *err) {
  double number = 0;
  BERTH__TRY(base_options_read_number(s, 0, 1e18, &number, err));
  *out = number > 0 ? (uint64_t)number : field;
  return BERTH_OK;
}

static berth_status base_options_join(berth_context *ctx, const char *folder, const char *name, char **out,
                                      berth_error *err) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  *out = berth__alloc(ctx, size);
  if (*out == NULL) return berth__fail_nomem(err, "the context");
  snprintf(*out, size, "%s/%s", folder, name);
  return BERTH_OK;
}

/* An empty name means no cache, in both places. */
static berth_status read_cache(berth_context *ctx, const char *field, char **out, berth_error *err) {
  const char *own = getenv("BERTH_CACHE_DIR"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (own == NULL) own = field;
  if (own != NULL) {
    if (own[0] == '\0') return BERTH_OK;
    *out = berth__strdup(ctx, own);
    return *out != NULL ? BERTH_OK : berth__fail_nomem(err, "the context");
  }
  if (shared != NULL && shared[0] == '/') return base_options_join(ctx, shared, "berth", out, err);
  if (home != NULL && home[0] == '/') return base_options_join(ctx, home, ".cache/berth", out, err);
  return BERTH_OK;
}

static berth_status read_texts(berth_context *ctx, const berth_options *given, berth__options *out, berth_error *err) {
  static const char *const ways[] = {"mapped", "staged", NULL}, *const offsets[] = {"dynamic", "static", NULL};
  const struct {
    setting s;
    const char *field;
    const char *const *choices;
    char **out;
  } texts[] = {
      {{"BERTH_CPU_ISA", "cpu_isa", NULL}, given->cpu_isa, NULL, &out->cpu_isa},
      {{"BERTH_CPU_BACKEND", "cpu_backend", NULL}, given->cpu_backend, NULL, &out->cpu_backend},
      {{"BERTH_SHADERC", "shaderc", NULL}, given->shaderc, NULL, &out->shaderc},
      {{"BERTH_VULKAN_MEMORY", "vulkan_memory", "mapped or staged"}, given->vulkan_memory, ways, &out->vulkan_memory},
      {{"BERTH_VULKAN_VALIDATION", "vulkan_validation", NULL}, given->vulkan_validation, NULL, &out->vulkan_validation},
      {{"BERTH_WEBGPU_LIBRARY", "webgpu_library", NULL}, given->webgpu_library, NULL, &out->webgpu_library},
      {{"BERTH_WEBGPU_OFFSETS", "webgpu_offsets", "'dynamic' or 'static'"},
       given->webgpu_offsets,
       offsets,
       &out->webgpu_offsets},
      {{"BERTH_CUDA_LIBRARY", "cuda_library", NULL}, given->cuda_library, NULL, &out->cuda_library},
      {{"BERTH_NVRTC", "nvrtc", NULL}, given->nvrtc, NULL, &out->nvrtc},
      {{"BERTH_KERNEL_PACK", "kernel_pack", NULL}, given->kernel_pack, NULL, &out->kernel_pack},
      {{"CUDA_PATH", "cuda_path", NULL}, variable("CUDA_HOME"), NULL, &out->cuda_path},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    BERTH__TRY(read_text(ctx, &texts[i].s, texts[i].field, texts[i].choices, texts[i].out, err));
  return read_cache(ctx, given->cache_dir, &out->cache_dir, err);
}

static berth_status base_options_read_numbers(const berth_options *given, berth__options *out, berth_error *err) {
  static const setting vulkan_timeout = {"BERTH_VULKAN_TIMEOUT", "vulkan_timeout", "seconds"},
                       vulkan_binding = {"BERTH_VULKAN_MAX_BINDING", "vulkan_max_binding", "bytes"},
                       webgpu_timeout = {"BERTH_WEBGPU_TIMEOUT", "webgpu_timeout", "seconds"},
                       cuda_timeout = {"BERTH_CUDA_TIMEOUT", "cuda_timeout", "seconds"},
                       webgpu_binding = {"BERTH_WEBGPU_MAX_BINDING", "webgpu_max_binding", "bytes"},
                       memory_limit = {"BERTH_MEMORY_LIMIT", "memory_limit", "bytes"},
                       hash_seed = {"BERTH_HASH_SEED", "hash_seed", "a number"};
  BERTH__TRY(base_options_read_number(&vulkan_timeout, given->vulkan_timeout, 1e6, &out->vulkan_timeout, err));
  BERTH__TRY(base_options_read_number(&webgpu_timeout, given->webgpu_timeout, 1e6, &out->webgpu_timeout, err));
  BERTH__TRY(base_options_read_number(&cuda_timeout, given->cuda_timeout, 1e6, &out->cuda_timeout, err));
  BERTH__TRY(base_options_read_bytes(&vulkan_binding, given->vulkan_max_binding, &out->vulkan_max_binding, err));
  BERTH__TRY(base_options_read_bytes(&webgpu_binding, given->webgpu_max_binding, &out->webgpu_max_binding, err));
  BERTH__TRY(base_options_read_bytes(&memory_limit, given->memory_limit, &out->memory_limit, err));
  return base_options_read_bytes(&hash_seed, given->hash_seed, &out->hash_seed, err);
}

berth_status berth__options_read(berth_context *ctx, const berth_options *given, berth__options *out,
                                 berth_error *err) {
  berth_options full = BERTH_OPTIONS_INIT;
  *out = (berth__options){0};
  BERTH__TRY(BERTH__DESC_COPY(&full, given, "berth_options", err));
  const uint32_t known = BERTH_OPTION_NO_REUSE | BERTH_OPTION_LOOPS_UNSHARED | BERTH_OPTION_CATCH_SIGBUS;
  if ((full.flags & ~known) != 0)
    return berth__fail(err, BERTH_INVALID, "flags of berth_options has the unknown bits 0x%x", full.flags & ~known);
  BERTH__TRY(read_texts(ctx, &full, out, err));
  BERTH__TRY(base_options_read_numbers(&full, out, err));
  const char *no_reuse = variable("BERTH_ARENA_NO_REUSE"), *shared = variable("BERTH_LOOPS_SHARED");
  const char *sigbus = variable("BERTH_CATCH_SIGBUS");
  out->no_reuse = no_reuse != NULL ? strcmp(no_reuse, "1") == 0 : (full.flags & BERTH_OPTION_NO_REUSE) != 0;
  out->loops_unshared = shared != NULL ? strcmp(shared, "0") == 0 : (full.flags & BERTH_OPTION_LOOPS_UNSHARED) != 0;
  out->catches_sigbus = sigbus != NULL ? strcmp(sigbus, "1") == 0 : (full.flags & BERTH_OPTION_CATCH_SIGBUS) != 0;
  return BERTH_OK;
}

void berth__options_free(berth_context *ctx, berth__options *options) {
  char *texts[] = {options->cpu_isa,        options->cpu_backend,    options->cache_dir,
                   options->shaderc,        options->vulkan_memory,  options->vulkan_validation,
                   options->webgpu_library, options->webgpu_offsets, options->cuda_library,
                   options->nvrtc,          options->cuda_path,      options->kernel_pack};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) berth__free(ctx, texts[i]);
  *options = (berth__options){0};
}
