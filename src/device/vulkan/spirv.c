#include "device/vulkan/spirv.h"

#include <pthread.h>

#include "device/gpu/cache.h"
#include "device/vulkan/shaderc.h"

#define MAGIC 0x07230203u /* the first word of a SPIR-V module */
#define LEAST_WORDS 5u    /* size of its header */

struct berth__spirv_compiler {
  berth_context *ctx;
  berth__shaderc_library library;
  pthread_mutex_t lock; /* protects the next two during initialisation */
  shaderc_compiler_t compiler;
  shaderc_compile_options_t options;
  berth__kernel_cache cache;
};

/* The language tables are freed with the last compiler, and take thirty times as long to build as a kernel. Once they
 * have been needed, a compiler is kept, like the library itself. */
static void keep_tables(const berth__shaderc *call) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static shaderc_compiler_t keeper;
  pthread_mutex_lock(&lock);
  if (keeper == NULL) keeper = call->compiler_initialize();
  pthread_mutex_unlock(&lock);
}

static bool vulkan_spirv_make(berth__spirv_compiler *c) {
  const berth__shaderc *call = &c->library.call;
  if (c->options != NULL) return true;
  if (c->compiler == NULL) c->compiler = call->compiler_initialize();
  shaderc_compile_options_t options = c->compiler != NULL ? call->compile_options_initialize() : NULL;
  if (options == NULL) return false;
  keep_tables(call);
  call->compile_options_set_optimization_level(options, shaderc_optimization_level_performance);
  call->compile_options_set_target_env(options, shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_1);
  c->options = options;
  return true;
}

/* Called by whichever thread has the first kernel that is not in the cache. */
static berth_status vulkan_spirv_start(berth__spirv_compiler *c, berth_error *err) {
  pthread_mutex_lock(&c->lock);
  const bool is_there = vulkan_spirv_make(c);
  pthread_mutex_unlock(&c->lock);
  return is_there ? BERTH_OK : berth__fail_nomem(err, "shaderc");
}

berth_status berth__spirv_compiler_create(berth_context *ctx, berth__spirv_compiler **out, berth_error *err) {
  *out = NULL;
  berth__spirv_compiler *c = berth__alloc_zero(ctx, sizeof *c);
  if (c == NULL) return berth__fail_nomem(err, "the compiler of kernels");
  c->ctx = ctx;
  const berth_status status = berth__shaderc_open(ctx->options.shaderc, &c->library, err);
  if (status != BERTH_OK) {
    berth__free(ctx, c);
    return status;
  }
  berth__kernel_cache_open(&c->cache, ctx);
  pthread_mutex_init(&c->lock, NULL);
  *out = c;
  return BERTH_OK;
}

void berth__spirv_compiler_destroy(berth__spirv_compiler *compiler) {
  if (compiler == NULL) return;
  if (compiler->options != NULL) compiler->library.call.compile_options_release(compiler->options);
  if (compiler->compiler != NULL) compiler->library.call.compiler_release(compiler->compiler);
  berth__shaderc_close(&compiler->library);
  berth__kernel_cache_close(&compiler->cache);
  pthread_mutex_destroy(&compiler->lock);
  berth__free(compiler->ctx, compiler);
}

/* ---- Compiling ---- */

static berth_status fail_compile(const berth__shaderc *call, shaderc_compilation_result_t result, const char *name,
                                 berth_error *err) {
  const char *message = call->result_get_error_message(result);
  const int line = message != NULL ? (int)strcspn(message, "\n") : 0;
  return berth__fail(err, BERTH_INTERNAL, "the source of kernel '%s' does not compile: %.*s", name, line,
                     line != 0 ? message : "");
}

static berth_status vulkan_spirv_take(const berth__shaderc *call, berth_context *ctx,
                                      shaderc_compilation_result_t result, berth__spirv *out, berth_error *err) {
  const size_t n_words = call->result_get_length(result) / sizeof *out->words;
  out->words = berth__alloc_array(ctx, n_words, sizeof *out->words);
  if (out->words == NULL) return berth__fail_nomem(err, "a compiled kernel");
  out->n_words = n_words;
  memcpy(out->words, call->result_get_bytes(result), n_words * sizeof *out->words);
  return BERTH_OK;
}

static berth_status vulkan_spirv_compile(const berth__spirv_compiler *c, const char *name, const berth__kernel_key *key,
                                         berth__spirv *out, berth_error *err) {
  const berth__shaderc *call = &c->library.call;
  shaderc_compilation_result_t result =
      call->compile_into_spv(c->compiler, key->source, key->size, shaderc_compute_shader, "kernel", "main", c->options);
  if (result == NULL) return berth__fail_nomem(err, "compiling a kernel");
  const bool is_good = call->result_get_compilation_status(result) == shaderc_compilation_status_success;
  const berth_status status =
      is_good ? vulkan_spirv_take(call, c->ctx, result, out, err) : fail_compile(call, result, name, err);
  call->result_release(result);
  return status;
}

/* Converts what the cache read to words. */
static bool vulkan_spirv_cached(const berth__spirv_compiler *c, const berth__kernel_key *key, berth__spirv *out) {
  berth__kernel_code code;
  if (!berth__kernel_cache_read(&c->cache, key, &code)) return false;
  if (code.size < LEAST_WORDS * sizeof *out->words || code.size % sizeof *out->words != 0) {
    berth__free(c->ctx, code.data);
    return false;
  }
  *out = (berth__spirv){.words = code.data, .n_words = code.size / sizeof *out->words};
  return true;
}

berth_status berth__spirv_compile(berth__spirv_compiler *compiler, const char *name, const char *source, size_t size,
                                  berth__spirv *out, berth_error *err) {
  const berth__kernel_key key = {.compiler = compiler->library.version,
                                 .target = "Vulkan 1.1",
                                 .source = source,
                                 .size = size,
                                 .ending = "spv",
                                 .magic = MAGIC};
  *out = (berth__spirv){0};
  if (vulkan_spirv_cached(compiler, &key, out)) return BERTH_OK;
  BERTH__TRY(vulkan_spirv_start(compiler, err));
  BERTH__TRY(vulkan_spirv_compile(compiler, name, &key, out, err));
  const berth__kernel_code code = {.data = out->words, .size = out->n_words * sizeof *out->words};
  berth__kernel_cache_write(&compiler->cache, &key, &code);
  return BERTH_OK;
}
