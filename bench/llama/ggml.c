#include "ggml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ggml_settings { /* parameters of ggml_init */
  size_t size;
  void *buffer;
  bool has_no_data;
} ggml_settings;

/* The functions used, and where those of the backends are found. */
struct ggml_library {
  void *handle;
  void *device, *backend;
  void *repacked; /* a buffer type; NULL: none */
  void *(*init)(ggml_settings);
  void (*free)(void *);
  void *(*tensor)(void *, int, int64_t, int64_t);
  void *(*multiply)(void *, void *, void *);
  void *(*graph)(void *);
  void (*expand)(void *, void *);
  void *(*allocate)(void *, void *);
  void (*release)(void *);
  void *(*plain)(void *);
  void (*set)(void *, const void *, size_t, size_t);
  void (*get)(const void *, void *, size_t, size_t);
  size_t (*bytes)(const void *);
  int (*compute)(void *, void *);
  bool (*supports)(void *, const void *);
};

struct ggml_product {
  ggml_library *g;
  void *of_weight, *of_rest; /* contexts */
  void *weight_buffer, *rest_buffer;
  void *out, *graph;
  bool is_repacked;
};

static bool find(void *handle, const char *name, void *to) {
  void *symbol = dlsym(handle, name);
  if (symbol == NULL) fprintf(stderr, "bench_llama: there is no %s in the library\n", name);
  memcpy(to, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool find_all(ggml_library *g) {
  void *h = g->handle;
  return find(h, "ggml_init", &g->init) && find(h, "ggml_free", &g->free) &&
         find(h, "ggml_new_tensor_2d", &g->tensor) && find(h, "ggml_mul_mat", &g->multiply) &&
         find(h, "ggml_new_graph", &g->graph) && find(h, "ggml_build_forward_expand", &g->expand) &&
         find(h, "ggml_backend_alloc_ctx_tensors_from_buft", &g->allocate) &&
         find(h, "ggml_backend_buffer_free", &g->release) && find(h, "ggml_backend_dev_buffer_type", &g->plain) &&
         find(h, "ggml_backend_tensor_set", &g->set) && find(h, "ggml_backend_tensor_get", &g->get) &&
         find(h, "ggml_nbytes", &g->bytes) && find(h, "ggml_backend_graph_compute", &g->compute) &&
         find(h, "ggml_backend_dev_supports_op", &g->supports);
}

static bool start(ggml_library *g, const char *library, int threads) {
  void (*load)(const char *), *(*by_type)(int), *(*init)(void *, const char *), *(*registry)(void *),
      *(*address)(void *, const char *);
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", library);
  char *slash = strrchr(folder, '/');
  if (slash == NULL || !find(g->handle, "ggml_backend_load_all_from_path", &load) ||
      !find(g->handle, "ggml_backend_dev_by_type", &by_type) || !find(g->handle, "ggml_backend_dev_init", &init) ||
      !find(g->handle, "ggml_backend_dev_backend_reg", &registry) ||
      !find(g->handle, "ggml_backend_reg_get_proc_address", &address))
    return false;
  *slash = '\0';
  load(folder);
  g->device = by_type(0); /* the CPU */
  if (g->device == NULL) return false;
  g->backend = init(g->device, NULL);
  void *own = address(registry(g->device), "ggml_backend_set_n_threads");
  void *more = address(registry(g->device), "ggml_backend_dev_get_extra_bufts");
  void (*set_threads)(void *, int);
  void **(*extra)(void *);
  memcpy(&set_threads, &own, sizeof own);
  memcpy(&extra, &more, sizeof more);
  if (g->backend == NULL || set_threads == NULL) return false;
  set_threads(g->backend, threads);
  void **kinds = extra != NULL ? extra(g->device) : NULL;
  for (; kinds != NULL && *kinds != NULL; kinds++) g->repacked = *kinds; /* the last one repacks weights */
  return true;
}

ggml_library *ggml_open(const char *library, int threads) {
  ggml_library *g = calloc(1, sizeof *g);
  if (g == NULL) return NULL;
  g->handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (g->handle == NULL) fprintf(stderr, "bench_llama: %s\n", dlerror());
  if (g->handle != NULL && find_all(g) && start(g, library, threads)) return g;
  free(g);
  return NULL;
}

static int type_number(const char *name) {
  static const struct {
    const char *name;
    int number;
  } rows[] = {{"q4_0", 2},    {"q4_1", 3},   {"q5_0", 6},    {"q5_1", 7},     {"q8_0", 8},     {"q2_k", 10},
              {"q3_k", 11},   {"q4_k", 12},  {"q5_k", 13},   {"q6_k", 14},    {"iq2_xxs", 16}, {"iq4_nl", 20},
              {"iq4_xs", 23}, {"mxfp4", 39}, {"iq2_xs", 17}, {"iq3_xxs", 18}, {"iq3_s", 21},   {"iq2_s", 22}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].name, name) == 0) return rows[i].number;
  return -1;
}

static ggml_product *try_product(ggml_library *g, int type, const int64_t shape[3], bool repacks, void **w, void **in) {
  const ggml_settings settings = {.size = 1 << 20, .has_no_data = true};
  ggml_product *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->g = g;
  p->is_repacked = repacks;
  p->of_weight = g->init(settings);
  p->of_rest = g->init(settings);
  *w = g->tensor(p->of_weight, type, shape[2], shape[1]);
  *in = g->tensor(p->of_rest, 0, shape[2], shape[0]);
  p->out = g->multiply(p->of_rest, *w, *in);
  p->graph = g->graph(p->of_rest);
  g->expand(p->graph, p->out);
  p->weight_buffer = g->allocate(p->of_weight, repacks ? g->repacked : g->plain(g->device));
  if (p->weight_buffer != NULL && g->supports(g->device, p->out))
    p->rest_buffer = g->allocate(p->of_rest, g->plain(g->device));
  if (p->rest_buffer != NULL) return p;
  ggml_product_free(p);
  return NULL;
}

ggml_product *ggml_product_make(ggml_library *g, const char *type, int64_t rows, int64_t columns, int64_t depth,
                                const void *weight, const float *x) {
  const int64_t shape[] = {rows, columns, depth};
  void *w, *in;
  ggml_product *p = NULL;
  if (type_number(type) < 0) return NULL;
  if (g->repacked != NULL) p = try_product(g, type_number(type), shape, true, &w, &in);
  if (p == NULL) p = try_product(g, type_number(type), shape, false, &w, &in);
  if (p == NULL) return NULL;
  g->set(w, weight, 0, g->bytes(w));
  g->set(in, x, 0, g->bytes(in));
  return p;
}

bool ggml_product_run(ggml_product *p) { return p->g->compute(p->g->backend, p->graph) == 0; }
void ggml_product_read(const ggml_product *p, float *out) { p->g->get(p->out, out, 0, p->g->bytes(p->out)); }
bool ggml_product_is_repacked(const ggml_product *p) { return p->is_repacked; }

void ggml_product_free(ggml_product *p) {
  if (p->weight_buffer != NULL) p->g->release(p->weight_buffer);
  if (p->rest_buffer != NULL) p->g->release(p->rest_buffer);
  p->g->free(p->of_weight);
  p->g->free(p->of_rest);
  free(p);
}
