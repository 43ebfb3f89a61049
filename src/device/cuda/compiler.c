#include "device/cuda/compiler.h"

#include <stdio.h>
#include <stdlib.h>

#define OPTIONS "--fmad=false" /* kernels say where a product and a sum are contracted */
/* Without it, NVRTC would change a limit of the whole process while it compiles, on several threads at once. Old
 * versions do not have the option. */
#define STACK_OPTION "--modify-stack-limit=false"
#define CUBIN_MAGIC 0x464c457fu /* ELF */
#define PTX_MAGIC 0x2f0a2f2fu   /* the first characters of its initial comment */

void berth__cuda_compiler_start(berth__cuda_compiler *compiler, berth_context *ctx, int capability) {
  compiler->ctx = ctx;
  compiler->capability = capability;
  compiler->found = berth__nvrtc_find(&ctx->options, &compiler->nvrtc, &compiler->why);
}

berth_status berth__cuda_compiler_use_kept(berth__cuda_compiler *compiler, berth_error *err) {
  berth_context *ctx = compiler->ctx;
  if (compiler->cache.ctx != NULL) return BERTH_OK;
  BERTH__TRY(berth__kernel_pack_open(&compiler->pack, ctx, ctx->options.kernel_pack, err));
  berth__kernel_cache_open(&compiler->cache, ctx);
  return BERTH_OK;
}

void berth__cuda_compiler_end(berth__cuda_compiler *compiler) {
  if (compiler->cache.ctx != NULL) berth__kernel_cache_close(&compiler->cache);
  berth__kernel_pack_close(&compiler->pack);
}

/* ---- Cached code ---- */

#define KEY_TEXT 160u
typedef struct key_text {
  char compiler[KEY_TEXT], target[16];
} key_text;

/* Code for compute capability 9.0 may use features that it alone has, such as warpgroups; PTX may not, because other
 * GPUs must accept it. */
static const char *cuda_compiler_suffix(int capability, bool is_ptx) { return capability == 90 && !is_ptx ? "a" : ""; }

static berth__kernel_key cuda_compiler_key(const berth__cuda_compiler *c, const berth__cuda_source *source, bool is_ptx,
                                           key_text *text) {
  snprintf(text->compiler, sizeof text->compiler, "%s " OPTIONS, c->nvrtc.version);
  /* PTX has a different target name */
  snprintf(text->target, sizeof text->target, "sm_%d%s", c->capability, cuda_compiler_suffix(c->capability, is_ptx));
  return (berth__kernel_key){.compiler = text->compiler,
                             .target = text->target,
                             .source = source->text,
                             .size = source->size,
                             .ending = is_ptx ? "ptx" : "cubin",
                             .magic = is_ptx ? PTX_MAGIC : CUBIN_MAGIC};
}

/* Looks up code for this GPU, or else PTX for it or an earlier one. */
static berth_status cuda_compiler_packed(const berth__cuda_compiler *c, const berth__cuda_source *source,
                                         berth__kernel_code *out, berth_error *err) {
  enum {
    OLDEST = 50
  };
  char target[24];
  if (c->pack.data == NULL) return BERTH_OK;
  snprintf(target, sizeof target, "sm_%d", c->capability);
  BERTH__TRY(berth__kernel_pack_find(&c->pack, target, source->text, source->size, out, err));
  for (int version = c->capability; version >= OLDEST && out->data == NULL; version--) {
    snprintf(target, sizeof target, "compute_%d", version);
    BERTH__TRY(berth__kernel_pack_find(&c->pack, target, source->text, source->size, out, err));
  }
  return BERTH_OK;
}

berth_status berth__cuda_compiler_cached(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                         berth__kernel_code *out, berth_error *err) {
  key_text text;
  *out = (berth__kernel_code){0};
  BERTH__TRY(cuda_compiler_packed(compiler, source, out, err));
  for (int is_ptx = 0; is_ptx < 2 && out->data == NULL && compiler->found == BERTH_OK; is_ptx++) {
    const berth__kernel_key key = cuda_compiler_key(compiler, source, is_ptx != 0, &text);
    (void)berth__kernel_cache_read(&compiler->cache, &key, out); /* if it is false, there is no data */
  }
  return BERTH_OK;
}

/* Code is for the GPU that it is loaded on. PTX may be for one before 9.0, for which nothing waits. */
bool berth__cuda_code_awaits(const berth__kernel_code *code) {
  enum {
    FIRST = 90
  };
  static const char target[] = "\n.target sm_";
  uint32_t magic = 0;
  if (code->size < sizeof magic) return false;
  memcpy(&magic, code->data, sizeof magic);
  if (magic != PTX_MAGIC) return true;
  const char *text = code->data;
  if (text[code->size - 1] != '\0') return false; /* PTX ends with a 0, but a pack comes from anywhere */
  const char *found = strstr(text, target);
  return found != NULL && strtol(found + sizeof target - 1, NULL, 10) >= FIRST;
}

/* ---- Compiling ---- */

berth_status berth__cuda_compiler_open(berth__cuda_compiler *compiler, berth_error *err) {
  if (compiler->found != BERTH_OK)
    return berth__fail(err, compiler->found, "%s%s",
                       compiler->pack.data != NULL ? "kernels are missing in the pack of BERTH_KERNEL_PACK; " : "",
                       compiler->why.message);
  if (compiler->architecture != 0) return BERTH_OK;
  BERTH__TRY(berth__nvrtc_open(&compiler->nvrtc, err));
  compiler->architecture = berth__nvrtc_architecture(&compiler->nvrtc, compiler->capability);
  compiler->is_ptx = compiler->architecture != compiler->capability; /* the driver compiles PTX further */
  if (compiler->architecture != 0) return BERTH_OK;
  return berth__fail(
      err, BERTH_UNSUPPORTED,
      "this NVRTC ('%s') cannot compile for this GPU (compute capability %d.%d): install another version",
      compiler->nvrtc.path, compiler->capability / 10, compiler->capability % 10);
}

/* Reports the first error line. */
static berth_status fail_compile(const berth__cuda_compiler *c, berth__nvrtc_program program, int result,
                                 const char *name, berth_error *err) {
  size_t size = 0;
  char *log = NULL;
  const char *line = NULL;
  if (c->nvrtc.call.GetProgramLogSize(program, &size) == 0 && size != 0) log = berth__alloc_zero(c->ctx, size + 1);
  if (log != NULL && c->nvrtc.call.GetProgramLog(program, log) == 0) line = strstr(log, "error");
  if (line == NULL) line = log != NULL && log[0] != '\0' ? log : c->nvrtc.call.GetErrorString(result);
  const berth_status status = berth__fail(err, BERTH_INTERNAL, "the source of kernel '%s' does not compile: %.*s", name,
                                          (int)strcspn(line, "\n"), line);
  berth__free(c->ctx, log);
  return status;
}

static berth_status cuda_compiler_take(const berth__cuda_compiler *c, berth__nvrtc_program program, bool is_ptx,
                                       berth__kernel_code *out, berth_error *err) {
  const berth__nvrtc_calls *call = &c->nvrtc.call;
  size_t size = 0;
  int result = is_ptx ? call->GetPTXSize(program, &size) : call->GetCUBINSize(program, &size);
  if (result == 0) {
    out->data = berth__alloc_zero(c->ctx, size + 1); /* PTX is text terminated by 0 */
    if (out->data == NULL) return berth__fail_nomem(err, "a compiled kernel");
    out->size = size;
    result = is_ptx ? call->GetPTX(program, out->data) : call->GetCUBIN(program, out->data);
  }
  if (result == 0) return BERTH_OK;
  berth__free(c->ctx, out->data);
  *out = (berth__kernel_code){0};
  return berth__fail(err, BERTH_INTERNAL, "NVRTC: %s while compiling a kernel", call->GetErrorString(result));
}

static berth_status cuda_compiler_run(const berth__cuda_compiler *c, const berth__cuda_source *source, bool is_ptx,
                                      berth__kernel_code *out, berth_error *err) {
  const berth__nvrtc_calls *call = &c->nvrtc.call;
  char target[40];
  const char *options[] = {target, OPTIONS, STACK_OPTION};
  berth__nvrtc_program program = NULL;
  const char *suffix = cuda_compiler_suffix(c->architecture, is_ptx);
  snprintf(target, sizeof target, "--gpu-architecture=%s_%d%s", is_ptx ? "compute" : "sm", c->architecture, suffix);
  int result = call->CreateProgram(&program, source->text, "kernel.cu", 0, NULL, NULL);
  if (result != 0)
    return berth__fail(err, BERTH_INTERNAL, "NVRTC: %s while compiling a kernel", call->GetErrorString(result));
  result = call->CompileProgram(program, 3, options);
  if (result == BERTH__NVRTC_INVALID_OPTION) result = call->CompileProgram(program, 2, options);
  const bool is_old = result == BERTH__NVRTC_INVALID_OPTION && suffix[0] != '\0';
  if (is_old && !source->is_late) { /* versions before 12.0 know sm_90 but not sm_90a */
    target[strlen(target) - strlen(suffix)] = '\0';
    result = call->CompileProgram(program, 2, options);
  }
  berth_status status;
  if (is_old && source->is_late)
    status =
        berth__fail(err, BERTH_UNSUPPORTED,
                    "the kernel '%s' multiplies by warpgroups, which NVRTC 12 is the first to compile, and '%s' is "
                    "older: install a newer one, or plan without them (--gpu-profile nvidia)",
                    source->name, c->nvrtc.path);
  else
    status = result == 0 ? cuda_compiler_take(c, program, is_ptx, out, err)
                         : fail_compile(c, program, result, source->name, err);
  (void)call->DestroyProgram(&program);
  return status;
}

berth_status berth__cuda_compile(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                 berth__kernel_code *out, berth_error *err) {
  const bool is_ptx = compiler->is_ptx;
  key_text text;
  *out = (berth__kernel_code){0};
  BERTH__TRY(cuda_compiler_run(compiler, source, is_ptx, out, err));
  const berth__kernel_key key = cuda_compiler_key(compiler, source, is_ptx, &text);
  berth__kernel_cache_write(&compiler->cache, &key, out);
  return BERTH_OK;
}
