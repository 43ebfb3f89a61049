/* The speed of products with weights in blocks, with TinyLlama's shapes, compared with ggml's if its library is given,
 * alternating and with the same weights.
 *
 *   bench_llama [--ggml LIBGGML] [--threads N] [--rows N] [--seconds S] [TYPE...]
 *
 * GB/s refer to the weight, GOP/s count a multiplication and an addition as two. `apart` is the root mean square
 * difference from the product of the decoded weight with x in f64, relative to that of the results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "berth/berth.h"
#include "ggml.h"

typedef struct options {
  const char *ggml;
  int threads;
  long rows;
  double seconds;
  const char *type[16];
  int n_types;
} options;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *what, const berth_error *err) {
  fprintf(stderr, "bench_llama: %s: %s\n", what, err != NULL ? err->message : "out of memory");
  exit(1);
}

static uint64_t next_random(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

static float random_number(uint64_t *seed) { return (float)next_random(seed) * 0x1p-30f - 1.0f; }

/* Blocks of random bytes, with scales that make elements of about 1. */
static void fill(berth_type type, uint8_t *block, uint64_t size, uint64_t *seed) {
  static const struct {
    berth_type type;
    int at, least_at;
    uint16_t scale, least; /* f16 */
  } rows[] = {
      {BERTH_Q8_0, 0, -1, 0x2000, 0},   {BERTH_Q4_0, 0, -1, 0x3000, 0},     {BERTH_Q4_1, 0, 2, 0x3000, 0xbc00},
      {BERTH_Q5_0, 0, -1, 0x2c00, 0},   {BERTH_Q5_1, 0, 2, 0x2c00, 0xbc00}, {BERTH_Q2_K, 80, 82, 0x2800, 0x2c00},
      {BERTH_Q3_K, 108, -1, 0x2000, 0}, {BERTH_Q4_K, 0, 2, 0x1800, 0x2400}, {BERTH_Q5_K, 0, 2, 0x1400, 0x2400},
      {BERTH_Q6_K, 208, -1, 0x0c00, 0}, {BERTH_IQ2_XXS, 0, -1, 0x2000, 0},  {BERTH_IQ4_NL, 0, -1, 0x2000, 0},
      {BERTH_IQ4_XS, 0, -1, 0x0c00, 0}, {BERTH_MXFP4, -1, -1, 0, 0},        {BERTH_IQ2_XS, 0, -1, 0x2000, 0},
      {BERTH_IQ2_S, 0, -1, 0x2000, 0},  {BERTH_IQ3_XXS, 0, -1, 0x1c00, 0},  {BERTH_IQ3_S, 0, -1, 0x1c00, 0}};
  const uint32_t bytes = berth_type_storage(type).bytes;
  for (uint64_t i = 0; i < size; i++) block[i] = (uint8_t)next_random(seed);
  for (; size >= bytes; size -= bytes, block += bytes)
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      if (rows[r].type != type) continue;
      if (rows[r].at < 0) block[0] = 124;
      if (rows[r].at >= 0) memcpy(block + rows[r].at, &rows[r].scale, 2);
      if (rows[r].least_at >= 0) memcpy(block + rows[r].least_at, &rows[r].least, 2);
    }
}

typedef struct product {
  berth_type type;
  int64_t rows, columns, depth;
  uint64_t bytes;
  uint8_t *weight;
  float *x;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  ggml_product *other;
} product;

static void make_session(product *p, const options *o) {
  char text[512];
  berth_error err;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  snprintf(text, sizeof text,
           "graph \"p\" { input %%x : f32[%lld, %lld] param %%w : %s[%lld, %lld] %%u = unpack(%%w)\n"
           "%%t = transpose(%%u) {perm = [1, 0]} %%y = matmul(%%x, %%t) output \"y\" = %%y }",
           (long long)p->rows, (long long)p->depth, berth_type_name(p->type), (long long)p->columns,
           (long long)p->depth);
  desc.n_threads = (uint32_t)o->threads;
  if (berth_context_create(NULL, &p->ctx, &err) != BERTH_OK ||
      berth_graph_parse(p->ctx, text, strlen(text), &p->graph, &err) != BERTH_OK ||
      berth_session_create(p->graph, &desc, &p->session, &err) != BERTH_OK ||
      berth_session_set_param(p->session, "w", p->weight, (size_t)p->bytes, &err) != BERTH_OK ||
      berth_session_write(p->session, "x", p->x, (size_t)(p->rows * p->depth) * sizeof(float), &err) != BERTH_OK ||
      berth_session_run(p->session, &err) != BERTH_OK)
    stop("a product", &err);
}

/* Times both in alternating runs; takes the minimum of each. */
static void measure(product *p, double seconds, double *own, double *other) {
  berth_error err;
  *own = *other = 1e9;
  for (double end = now() + seconds; now() < end;) {
    double start = now();
    if (berth_session_run(p->session, &err) != BERTH_OK) stop("a run", &err);
    double took = now() - start;
    if (took < *own) *own = took;
    if (p->other == NULL) continue;
    start = now();
    if (!ggml_product_run(p->other)) stop("ggml's run", NULL);
    took = now() - start;
    if (took < *other) *other = took;
  }
}

static double apart(const product *p, const float *got, int64_t columns) {
  float *w = malloc((size_t)p->depth * sizeof *w);
  double wrong = 0, all = 0;
  if (w == NULL) stop("a row", NULL);
  for (int64_t c = 0; c < columns; c++) {
    const uint64_t row = berth_storage_bytes(berth_type_storage(p->type), (uint64_t)p->depth);
    berth_to_f32(p->type, p->weight + (uint64_t)c * row, (uint64_t)p->depth, w, NULL);
    for (int64_t r = 0; r < p->rows; r++) {
      double sum = 0;
      for (int64_t k = 0; k < p->depth; k++) sum += (double)w[k] * (double)p->x[r * p->depth + k];
      const double off = (double)got[r * p->columns + c] - sum;
      wrong += off * off;
      all += sum * sum;
    }
  }
  free(w);
  return sqrt(wrong / all);
}

static void bench(const options *o, ggml_library *g, const char *type, int64_t columns, int64_t depth) {
  product p = {.type = berth_type_from_name(type), .rows = o->rows, .columns = columns, .depth = depth};
  uint64_t seed = 7;
  double own, other;
  p.bytes = berth_storage_bytes(berth_type_storage(p.type), (uint64_t)(columns * depth));
  p.weight = malloc((size_t)p.bytes);
  p.x = malloc((size_t)(p.rows * depth) * sizeof *p.x);
  float *out = malloc((size_t)(p.rows * columns) * sizeof *out);
  if (p.weight == NULL || p.x == NULL || out == NULL) stop("weights", NULL);
  fill(p.type, p.weight, p.bytes, &seed);
  for (int64_t i = 0; i < p.rows * depth; i++) p.x[i] = random_number(&seed);
  make_session(&p, o);
  if (g != NULL) p.other = ggml_product_make(g, type, p.rows, columns, depth, p.weight, p.x);
  measure(&p, o->seconds, &own, &other);
  const double gb = (double)p.bytes * 1e-9, gop = 2e-9 * (double)p.rows * (double)columns * (double)depth;
  berth_error err;
  if (berth_session_read(p.session, "y", out, (size_t)(p.rows * columns) * sizeof *out, &err) != BERTH_OK)
    stop("the result", &err);
  printf("%-8s %2ld x %5lld x %5lld  %7.2f GB/s %7.1f GOP/s  apart %.1e", type, o->rows, (long long)columns,
         (long long)depth, gb / own, gop / own, apart(&p, out, columns < 64 ? columns : 64));
  if (p.other != NULL) {
    ggml_product_read(p.other, out);
    printf("   ggml%s %7.2f GB/s %7.1f GOP/s  apart %.1e   %.2f times", ggml_product_is_repacked(p.other) ? "*" : " ",
           gb / other, gop / other, apart(&p, out, columns < 64 ? columns : 64), other / own);
    ggml_product_free(p.other);
  }
  printf("\n");
  fflush(stdout);
  berth_session_destroy(p.session);
  berth_graph_destroy(p.graph);
  berth_context_destroy(p.ctx);
  free(p.weight);
  free(p.x);
  free(out);
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"q8_0", "q4_0", "q4_k", "q6_k", "iq2_xxs"};
  static const int64_t shapes[][2] = {{2048, 2048}, {5632, 2048}, {2048, 5632}, {32000, 2048}};
  options o = {.threads = 2, .rows = 1, .seconds = 0.5};
  ggml_library *g = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ggml") == 0 && i + 1 < argc)
      o.ggml = argv[++i];
    else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      o.threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc)
      o.rows = atol(argv[++i]);
    else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      o.seconds = atof(argv[++i]);
    else if (o.n_types < 16 && berth_type_storage(berth_type_from_name(argv[i])).elements > 1)
      o.type[o.n_types++] = argv[i];
    else
      return fprintf(stderr, "bench_llama [--ggml LIBGGML] [--threads N] [--rows N] [--seconds S] [TYPE...]\n"), 2;
  }
  if (o.n_types == 0)
    for (; o.n_types < 5; o.n_types++) o.type[o.n_types] = usual[o.n_types];
  if (o.ggml != NULL && (g = ggml_open(o.ggml, o.threads)) == NULL) return 1;
  for (int t = 0; t < o.n_types; t++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) bench(&o, g, o.type[t], shapes[s][0], shapes[s][1]);
  return 0;
}
