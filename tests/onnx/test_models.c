/* Real models with the outputs that ONNX Runtime gave for them, where they are: in $BERTH_MODELS, or in
 * shared/data/models beside the repository. Each must agree within its tolerance, run with other extents of its named
 * dimensions, agree again after that, and allocate nothing in a run.
 *   test_models [-v] [NAME-PART]...   runs those whose name contains a part; -v shows how close each comes */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "ops/op.h"
#include "run_model.h"
#include "support.h"

#define MAX_TENSORS 64
#define MAX_CASES 256
#define PATH_SIZE 4096

/* What differs from the default: every element within 1e-3 + 1e-3 |expected|, and a cosine of at least 0.999. */
typedef struct expectation {
  const char *name;
  double cosine;        /* not 0: only this cosine, and the largest element at the same place */
  bool is_slow;         /* left out under the sanitizers */
  bool is_slow_on_gpus; /* which a CPU plays where tests run: with BERTH_TEST_SLOW alone */
  run_dims other;       /* extents to run with as well */
} expectation;

static const expectation expectations[] = {
    {.name = "basic_pitch_nmp", .is_slow = true, .is_slow_on_gpus = true, .other = {{{"unk__749", 2}}, 1}},
    {.name = "ch_PP-OCRv4_det_infer",
     .is_slow = true,
     .is_slow_on_gpus = true,
     .other = {{{"p2o.DynamicDimension.0", 1}, {"p2o.DynamicDimension.1", 96}, {"p2o.DynamicDimension.2", 160}}, 3}},
    {.name = "ch_PP-OCRv4_rec_infer",
     .is_slow = true,
     .is_slow_on_gpus = true,
     .other = {{{"p2o.DynamicDimension.0", 2}, {"p2o.DynamicDimension.1", 160}}, 2}},
    {.name = "ch_ppocr_mobile_v2.0_cls_infer",
     .is_slow_on_gpus = true,
     .other = {{{"p2o.DynamicDimension.0", 2}, {"p2o.DynamicDimension.1", 64}, {"p2o.DynamicDimension.2", 96}}, 3}},
    {.name = "light_densenet121", .is_slow = true, .is_slow_on_gpus = true},
    {.name = "light_inception_v1", .is_slow = true, .is_slow_on_gpus = true},
    {.name = "light_resnet50", .is_slow = true, .is_slow_on_gpus = true},
    {.name = "magika_standard_v3_3", .is_slow = true, .is_slow_on_gpus = true, .other = {{{"unk__214", 2}}, 1}},
    {.name = "mobilenet_v2_qdq_int8",
     .cosine = 0.999,
     .is_slow = true,
     .is_slow_on_gpus = true,
     .other = {{{"batch", 2}}, 1}},
    {.name = "moonshine_tiny_q_encoder",
     .cosine = 0.998,
     .is_slow = true,
     .is_slow_on_gpus = true,
     .other = {{{"batch_size", 1}, {"num_samples", 24000}}, 2}},
    {.name = "silero_vad_16k_op15", .other = {{{"batch", 2}, {"sequence", 512}}, 2}},
    {.name = "silero_vad_v5", .other = {{{"input.0", 2}, {"input.1", 512}, {"state.1", 2}}, 3}},
    {.name = "stories260K/kv.decode_p127", .other = {{{"n", 2}, {"t", 7}, {"p", 5}}, 3}},
    {.name = "stories260K/kv.prefill64", .other = {{{"n", 3}, {"t", 12}, {"p", 9}}, 3}},
    {.name = "super_resolution_10", .is_slow = true, .is_slow_on_gpus = true, .other = {{{"batch_size", 2}}, 1}},
    {.name = "tract_byte_sb_bidi_lstm", .other = {{{"batch", 2}, {"length", 37}}, 2}},
    {.name = "yunet_n_640", .is_slow_on_gpus = true},
};

static const expectation *expectation_of(const char *name) {
  static const expectation plain = {.name = ""};
  for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++)
    if (strcmp(expectations[i].name, name) == 0) return &expectations[i];
  return &plain;
}

/* ---- One case ---- */

typedef struct named_arrays {
  run_input item[MAX_TENSORS];
  char name[MAX_TENSORS][256];
  size_t n;
} named_arrays;

typedef struct model_case {
  const expectation *expected;
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  named_arrays in, out;
  run_dims dims;
  berth_error err;
  double worst, cosine; /* over all outputs */
} model_case;

/* One line an array: file, tab, name. */
static berth_status read_list(model_case *t, const char *folder, const char *list, named_arrays *out) {
  char path[PATH_SIZE], line[1024], file[256];
  snprintf(path, sizeof path, "%s/%s", folder, list);
  FILE *lines = fopen(path, "r");
  berth_status status = lines != NULL ? BERTH_OK : BERTH_IO;
  if (lines == NULL) snprintf(t->err.message, sizeof t->err.message, "%.400s cannot be read", path);
  while (status == BERTH_OK && out->n < MAX_TENSORS && fgets(line, sizeof line, lines) != NULL) {
    if (sscanf(line, "%255[^\t]\t%255[^\n]", file, out->name[out->n]) != 2) continue;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    out->item[out->n].name = out->name[out->n];
    status = berth_npy_load(t->ctx, path, &out->item[out->n].array, &t->err);
    out->n += status == BERTH_OK;
  }
  if (lines != NULL) fclose(lines);
  return status;
}

static berth_status wrong(model_case *t, const char *name, const char *what) {
  t->err.status = BERTH_INTERNAL;
  snprintf(t->err.message, sizeof t->err.message, "output '%s' %s", name, what);
  return BERTH_INTERNAL;
}

static double element(berth_type type, const void *data, int64_t index) {
  berth_tensor tensor = {.data = (void *)(uintptr_t)data, .type = type};
  return berth__type_is_float(type) ? berth__load_f64(&tensor, index) : (double)berth__load_i64(&tensor, index);
}

static berth_status compare_elements(model_case *t, const run_input *expected, const void *data) {
  const berth_array *e = &expected->array;
  const int64_t count = (int64_t)(e->size / berth_type_size(e->type));
  double dot = 0, norm_a = 0, norm_b = 0, most_a = -INFINITY, most_b = -INFINITY;
  int64_t top_a = 0, top_b = 0, first_wrong = -1;
  for (int64_t i = 0; i < count; i++) {
    double a = element(e->type, data, i), b = element(e->type, e->data, i);
    if (!(fabs(a - b) <= 1e-3 + 1e-3 * fabs(b)) && first_wrong < 0) first_wrong = i;
    if (!(fabs(a - b) <= t->worst)) t->worst = fabs(a - b);
    if (a > most_a) most_a = a, top_a = i;
    if (b > most_b) most_b = b, top_b = i;
    dot += a * b;
    norm_a += a * a;
    norm_b += b * b;
  }
  double cosine = norm_a == 0 && norm_b == 0 ? 1 : dot / sqrt(norm_a * norm_b);
  double least = t->expected->cosine != 0 ? t->expected->cosine : 0.999;
  char what[200];
  if (count != 0 && !(cosine >= t->cosine)) t->cosine = cosine;
  if (count == 0) return BERTH_OK;
  if (t->expected->cosine == 0 && first_wrong >= 0) {
    snprintf(what, sizeof what, "has %.9g at %lld, expected %.9g (largest difference %.3g, cosine %.6f)",
             element(e->type, data, first_wrong), (long long)first_wrong, element(e->type, e->data, first_wrong),
             t->worst, cosine);
    return wrong(t, expected->name, what);
  }
  snprintf(what, sizeof what, "has a cosine of %.6f with what was expected (largest difference %.3g)", cosine,
           t->worst);
  if (!(cosine >= least)) return wrong(t, expected->name, what);
  if (t->expected->cosine != 0 && top_a != top_b) return wrong(t, expected->name, "has its largest element elsewhere");
  return BERTH_OK;
}

static berth_status compare_output(model_case *t, uint32_t index) {
  const run_input *expected = &t->out.item[index];
  const berth_array *e = &expected->array;
  const berth_graph *bound = berth_plan_graph(berth_session_plan(t->session));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  const char *name = berth_graph_output_name(bound, index);
  if (name == NULL || strcmp(name, expected->name) != 0) return wrong(t, expected->name, "is not there");
  berth_status status = berth_graph_value(bound, berth_graph_output_at(bound, index), &info, &t->err);
  if (status != BERTH_OK) return status;
  bool same = info.type == e->type && info.shape.rank == e->rank && info.size == e->size;
  for (uint32_t d = 0; same && d < e->rank; d++) same = info.shape.dim[d].extent == e->dim[d];
  if (!same) return wrong(t, expected->name, "has another type or shape");
  void *data = malloc((size_t)info.size + 1);
  status = berth_session_read_at(t->session, index, data, (size_t)info.size, &t->err);
  if (status == BERTH_OK) status = compare_elements(t, expected, data);
  free(data);
  return status;
}

static berth_status compare_outputs(model_case *t) {
  for (uint32_t i = 0; i < t->out.n; i++) {
    berth_status status = compare_output(t, i);
    if (status != BERTH_OK) return status;
  }
  return BERTH_OK;
}

static berth_status run_counted(model_case *t) {
  uint64_t before = atomic_load(&t->alloc.calls);
  berth_status status = run_again(t->session, t->in.item, t->in.n, &t->err);
  if (status == BERTH_OK && atomic_load(&t->alloc.calls) != before) return wrong(t, "", "was allocated during a run");
  return status == BERTH_OK ? compare_outputs(t) : status;
}

/* What was given for an input, where that still fits, and zeros otherwise. */
static void fill_again(const model_case *t, const char *name, void *data, size_t size) {
  memset(data, 0, size);
  for (size_t i = 0; i < t->in.n; i++)
    if (strcmp(t->in.item[i].name, name) == 0 && t->in.item[i].array.size == size)
      memcpy(data, t->in.item[i].array.data, size);
}

/* Small pseudo-random floats, and the same or zeros for the rest. */
static berth_status write_input(model_case *t, const berth_graph *bound, uint32_t index, uint64_t *seed) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_status status = berth_graph_value(bound, berth_graph_input_at(bound, index), &info, &t->err);
  if (status != BERTH_OK) return status;
  float *data = malloc((size_t)info.size + 1);
  fill_again(t, info.name, data, (size_t)info.size);
  for (size_t k = 0; info.type == BERTH_F32 && k < info.size / sizeof(float); k++) data[k] = test_random_f32(seed);
  status = berth_session_write_at(t->session, index, data, (size_t)info.size, &t->err);
  free(data);
  return status;
}

/* The other extents; then the first ones again. */
static berth_status run_bound_otherwise(model_case *t) {
  const run_dims *other = &t->expected->other;
  uint64_t seed = 1;
  if (other->n == 0) return BERTH_OK;
  berth_status status = berth_session_bind(t->session, other->item, other->n, &t->err);
  const berth_graph *bound = status == BERTH_OK ? berth_plan_graph(berth_session_plan(t->session)) : NULL;
  for (uint32_t i = 0; status == BERTH_OK && i < berth_graph_n_inputs(bound); i++)
    status = write_input(t, bound, i, &seed);
  if (status == BERTH_OK) status = berth_session_run(t->session, &t->err);
  if (status == BERTH_OK) status = berth_session_bind(t->session, t->dims.item, t->dims.n, &t->err);
  return status == BERTH_OK ? run_counted(t) : status;
}

static void free_arrays(model_case *t, named_arrays *arrays) {
  for (size_t i = 0; i < arrays->n; i++) berth_array_free(t->ctx, &arrays->item[i].array);
}

static berth_status run_case(model_case *t, const char *folder, const char *model) {
  t->ctx = test_context_counting(&t->alloc);
  berth_status status = berth_graph_load(t->ctx, model, &t->graph, &t->err);
  if (status == BERTH_OK) status = read_list(t, folder, "inputs.tsv", &t->in);
  if (status == BERTH_OK) status = read_list(t, folder, "outputs.tsv", &t->out);
  if (status == BERTH_OK) status = run_model(t->graph, t->in.item, t->in.n, &t->dims, &t->session, &t->err);
  if (status == BERTH_OK) status = run_counted(t);
  if (status == BERTH_OK) status = run_bound_otherwise(t);
  free_arrays(t, &t->in);
  free_arrays(t, &t->out);
  berth_session_destroy(t->session);
  berth_graph_destroy(t->graph);
  berth_context_destroy(t->ctx);
  return status;
}

/* ---- All of them ---- */

static bool find_model(const char *folder, char *path) {
  DIR *entries = opendir(folder);
  bool found = false;
  for (struct dirent *e; entries != NULL && !found && (e = readdir(entries)) != NULL;) {
    size_t length = strlen(e->d_name);
    found = length > 5 && strcmp(e->d_name + length - 5, ".onnx") == 0;
    if (found) snprintf(path, PATH_SIZE, "%s/%s", folder, e->d_name);
  }
  if (entries != NULL) closedir(entries);
  return found;
}

static bool exists(const char *folder, const char *file) {
  char path[PATH_SIZE];
  struct stat ignored;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  return stat(path, &ignored) == 0;
}

static int number, failed;

static void report(bool is_right, const char *name, const char *note) {
  printf("%sok %d - %s%s\n", is_right ? "" : "not ", ++number, name, note);
  failed += !is_right;
  fflush(stdout);
}

static bool is_left_to_check_slow(const expectation *expected) {
  const char *device = getenv("BERTH_TEST_DEVICE");
  return expected->is_slow_on_gpus && device != NULL && getenv("BERTH_TEST_SLOW") == NULL;
}

static void test_case(const char *root, const char *name, bool is_verbose) {
  char folder[PATH_SIZE], above[PATH_SIZE + 4], model[PATH_SIZE];
  struct timespec start, end;
  snprintf(folder, sizeof folder, "%.3000s/%s", root, name);
  snprintf(above, sizeof above, "%s/..", folder);
  model_case *t = calloc(1, sizeof *t);
  t->expected = expectation_of(name);
  t->cosine = 1;
  if (!find_model(folder, model) && (strchr(name, '/') == NULL || !find_model(above, model))) {
    report(true, name, " # SKIP its model file is not there");
  } else if (TEST_IS_SANITIZED && t->expected->is_slow) {
    report(true, name, " # SKIP too slow under the sanitizers");
  } else if (is_left_to_check_slow(t->expected)) {
    report(true, name, " # SKIP too slow on this device: `make check-slow` runs it");
  } else {
    clock_gettime(CLOCK_MONOTONIC, &start);
    berth_status status = run_case(t, folder, model);
    clock_gettime(CLOCK_MONOTONIC, &end);
    report(status == BERTH_OK, name, "");
    if (status != BERTH_OK) printf("# %s\n", t->err.message);
    if (is_verbose)
      printf("# %-32s largest difference %.3g, cosine %.7f, %.1f s\n", name, t->worst, t->cosine,
             (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
  }
  free(t);
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

/* Cases in the folder and one below. */
static size_t find_cases(const char *root, const char *part, char (*names)[256], size_t n) {
  char folder[PATH_SIZE];
  snprintf(folder, sizeof folder, "%s/%s", root, part);
  DIR *entries = opendir(folder);
  for (struct dirent *e; entries != NULL && n < MAX_CASES && (e = readdir(entries)) != NULL;) {
    char name[256], list[300];
    if (e->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%.120s%s%.120s", part, part[0] != '\0' ? "/" : "", e->d_name);
    snprintf(list, sizeof list, "%s/inputs.tsv", name);
    if (exists(root, list))
      memcpy(names[n++], name, sizeof name);
    else if (part[0] == '\0')
      n = find_cases(root, name, names, n);
  }
  if (entries != NULL) closedir(entries);
  return n;
}

static bool is_wanted(const char *name, int argc, char **argv) {
  bool has_parts = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-v") == 0) continue;
    has_parts = true;
    if (strstr(name, argv[i]) != NULL) return true;
  }
  return !has_parts;
}

int main(int argc, char **argv) {
  static char names[MAX_CASES][256];
  char beside[PATH_SIZE];
  const char *source = getenv("BERTH_SRC"), *root = getenv("BERTH_MODELS");
  bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  snprintf(beside, sizeof beside, "%s/../shared/data/models", source != NULL ? source : ".");
  if (root == NULL) root = beside;
  size_t n = find_cases(root, "", names, 0);
  qsort(names, n, sizeof names[0], compare_names);
  for (size_t i = 0; i < n; i++)
    if (is_wanted(names[i], argc, argv)) test_case(root, names[i], is_verbose);
  if (number == 0) report(true, "models", " # SKIP no models are there; BERTH_MODELS names a folder of them");
  printf("1..%d\n", number);
  return failed != 0;
}
