#include <dlfcn.h>
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"

enum {
  SRC,
  WEIGHTS,
  BIAS,
  DST,
  N_MEMORIES
};

static const int arg_ids[N_MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
static const dnnl_query_t queries[N_MEMORIES] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                                 dnnl_query_dst_md};

struct bar {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_memory_t memories[N_MEMORIES];
  dnnl_exec_arg_t args[N_MEMORIES];
  int n_args;
};

static void must(dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return;
  fprintf(stderr, "bench_kernels: oneDNN: %s gives status %d\n", what, (int)status);
  exit(1);
}
#define MUST(call) must(call, #call)

const char *bar_name(void) {
  static char name[64];
  const dnnl_version_t *version = dnnl_version();
  snprintf(name, sizeof name, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
  return name;
}

void bar_limit(const char *isa) {
  /* oneDNN brings an OpenMP runtime, which has already read its environment; Debian chooses which one. */
  void (*set_threads)(int);
  void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (symbol != NULL) {
    memcpy(&set_threads, &symbol, sizeof set_threads); /* a data pointer cannot be cast to a function pointer */
    set_threads(1);
  }
  if (strcmp(isa, "avx2") == 0) MUST(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2));
  if (strcmp(isa, "portable") == 0) MUST(dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41));
}

/* If the layout is not given, oneDNN chooses it, as for weights that are packed once. */
static dnnl_memory_desc_t desc(int rank, const dnnl_dim_t *dim, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t d;
  dnnl_dims_t dims = {0};
  memcpy(dims, dim, (size_t)rank * sizeof *dim);
  MUST(dnnl_memory_desc_init_by_tag(&d, rank, dims, type, tag));
  return d;
}

static void describe_matmul(const bar_work *w, dnnl_matmul_desc_t *out) {
  const dnnl_data_type_t x = w->is_bytes ? dnnl_u8 : dnnl_f32, y = w->is_bytes ? dnnl_s8 : dnnl_f32;
  const int is_batched = w->batch > 0, rank = 2 + is_batched, at = 1 - is_batched;
  const dnnl_format_tag_t plain = is_batched ? dnnl_abc : dnnl_ab;
  const dnnl_dim_t src[] = {w->batch, w->m, w->k}, weights[] = {w->batch, w->k, w->n}, dst[] = {w->batch, w->m, w->n},
                   bias[] = {1, 1, w->n};
  const dnnl_memory_desc_t s = desc(rank, src + at, x, plain),
                           v = desc(rank, weights + at, y, is_batched ? plain : dnnl_format_tag_any),
                           b = desc(rank, bias + at, dnnl_f32, plain), d = desc(rank, dst + at, dnnl_f32, plain);
  MUST(dnnl_matmul_desc_init(out, &s, &v, w->has_bias ? &b : NULL, &d));
}

static void describe_conv(const bar_work *w, dnnl_convolution_desc_t *out) {
  const dnnl_data_type_t x = w->is_bytes ? dnnl_u8 : dnnl_f32, y = w->is_bytes ? dnnl_s8 : dnnl_f32;
  const int is_grouped = w->group > 1;
  const dnnl_dim_t height = (w->height + 2 * w->pad - w->kernel) / w->stride + 1,
                   width = (w->width + 2 * w->pad - w->kernel) / w->stride + 1;
  const dnnl_dim_t src[] = {1, w->channels, w->height, w->width}, dst[] = {1, w->outputs, height, width},
                   weights[] = {w->group, w->outputs / w->group, w->channels / w->group, w->kernel, w->kernel},
                   bias[] = {w->outputs};
  const dnnl_dims_t strides = {w->stride, w->stride}, pads = {w->pad, w->pad};
  const dnnl_memory_desc_t s = desc(4, src, x, dnnl_format_tag_any), b = desc(1, bias, dnnl_f32, dnnl_a),
                           v = desc(4 + is_grouped, weights + 1 - is_grouped, y, dnnl_format_tag_any),
                           d = desc(4, dst, dnnl_f32, dnnl_format_tag_any);
  MUST(dnnl_convolution_forward_desc_init(out, dnnl_forward_inference, dnnl_convolution_direct, &s, &v,
                                          w->has_bias ? &b : NULL, &d, strides, pads, pads));
}

/* Small numbers of any type, so that nothing is slowed down by denormals or NaN. */
static void fill(dnnl_memory_t memory, const dnnl_memory_desc_t *d) {
  void *data;
  MUST(dnnl_memory_get_data_handle(memory, &data));
  const size_t size = dnnl_memory_desc_get_size(d);
  if (d->data_type != dnnl_f32) {
    memset(data, 1, size);
    return;
  }
  for (size_t i = 0; i < size / sizeof(float); i++) ((float *)data)[i] = (float)(i % 17) * 0.125f - 1;
}

static void add_memory(bar *b, const_dnnl_primitive_desc_t description, int which) {
  const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(description, queries[which], which == BIAS);
  MUST(dnnl_memory_create(&b->memories[which], d, b->engine, DNNL_MEMORY_ALLOCATE));
  fill(b->memories[which], d);
  b->args[b->n_args++] = (dnnl_exec_arg_t){arg_ids[which], b->memories[which]};
}

bar *bar_create(const bar_work *work) {
  dnnl_matmul_desc_t matmul;
  dnnl_convolution_desc_t conv;
  dnnl_primitive_desc_t description;
  if (work->kind == BAR_NONE) return NULL;
  bar *b = calloc(1, sizeof *b);
  if (b == NULL) must(dnnl_out_of_memory, "calloc");
  MUST(dnnl_engine_create(&b->engine, dnnl_cpu, 0));
  MUST(dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags));
  if (work->kind == BAR_MATMUL)
    describe_matmul(work, &matmul);
  else
    describe_conv(work, &conv);
  const_dnnl_op_desc_t op = work->kind == BAR_MATMUL ? (const_dnnl_op_desc_t)&matmul : (const_dnnl_op_desc_t)&conv;
  MUST(dnnl_primitive_desc_create(&description, op, NULL, b->engine, NULL));
  for (int i = 0; i < N_MEMORIES; i++)
    if (i != BIAS || work->has_bias) add_memory(b, description, i);
  MUST(dnnl_primitive_create(&b->primitive, description));
  MUST(dnnl_primitive_desc_destroy(description));
  return b;
}

void bar_run(const bar *b) {
  MUST(dnnl_primitive_execute(b->primitive, b->stream, b->n_args, b->args));
  MUST(dnnl_stream_wait(b->stream));
}

void bar_destroy(bar *b) {
  if (b == NULL) return;
  for (int i = 0; i < N_MEMORIES; i++)
    if (b->memories[i] != NULL) dnnl_memory_destroy(b->memories[i]);
  dnnl_primitive_destroy(b->primitive);
  dnnl_stream_destroy(b->stream);
  dnnl_engine_destroy(b->engine);
  free(b);
}
