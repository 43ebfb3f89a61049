/* One model in ONNX Runtime, in its own process: time, peak of the arena, peak of resident memory.
 *   ort_run --lib LIBONNXRUNTIME MODEL.onnx [--threads N] [--warmup N] [--runs N] [--pause MS] [--no-pattern]
 *           [--input NAME=FILE.npy]... [--dim NAME=N]...
 * Prints one JSON object. The arena's peak minus its contents after the runs (weights, packed weights, the outputs of
 * the last run) is what a run adds; inputs and outputs come on top. Inputs that are not given are filled as by `berth
 * run`; dimensions without an extent are 1 unless --dim says otherwise. */
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "elements.h"

enum {
  max_options = 256,
  max_values = 256
};

typedef struct options {
  const char *library, *model;
  int threads, warmup, runs, pause;
  bool no_pattern;
  const char *inputs[max_options], *dims[max_options];
  int n_inputs, n_dims;
} options;

typedef struct state {
  const OrtApi *api;
  const char *version;
  OrtEnv *env;
  OrtSession *session;
  OrtMemoryInfo *memory;
  OrtAllocator *names; /* for the strings that ONNX Runtime returns */
  const char *in_names[max_values], *out_names[max_values];
  OrtValue *in[max_values], *out[max_values];
  size_t n_in, n_out;
  double load_ms, first_ms;
} state;

_Noreturn static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("ort_run: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

static void check(const state *s, OrtStatus *status) {
  if (status != NULL) die("%s", s->api->GetErrorMessage(status));
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- Options ---- */

static const char *value_of(int argc, char **argv, int *at) {
  if (*at + 1 >= argc) die("%s needs a value", argv[*at]);
  return argv[++*at];
}

static int count_of(int argc, char **argv, int *at) { return (int)strtol(value_of(argc, argv, at), NULL, 10); }

static options parse(int argc, char **argv) {
  options o = {.threads = 1, .warmup = 3, .runs = 20};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--lib") == 0) {
      o.library = value_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--threads") == 0) {
      o.threads = count_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--warmup") == 0) {
      o.warmup = count_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--runs") == 0) {
      o.runs = count_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--pause") == 0) {
      o.pause = count_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--no-pattern") == 0) {
      o.no_pattern = true;
    } else if (strcmp(argv[i], "--input") == 0 && o.n_inputs < max_options) {
      o.inputs[o.n_inputs++] = value_of(argc, argv, &i);
    } else if (strcmp(argv[i], "--dim") == 0 && o.n_dims < max_options) {
      o.dims[o.n_dims++] = value_of(argc, argv, &i);
    } else if (argv[i][0] != '-' && o.model == NULL) {
      o.model = argv[i];
    } else {
      die("what is %s?", argv[i]);
    }
  }
  if (o.library == NULL || o.model == NULL || o.runs < 1) die("--lib, a model and at least one run are needed");
  return o;
}

/* The value of NAME=VALUE in a list; a name may contain an '='. */
static const char *find_setting(const char *const *list, int n, const char *name) {
  size_t length = strlen(name);
  for (int i = 0; i < n; i++)
    if (strncmp(list[i], name, length) == 0 && list[i][length] == '=') return list[i] + length + 1;
  return NULL;
}

/* ---- Loading ---- */

static void open_library(state *s, const char *path) {
  const OrtApiBase *(*get_base)(void);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) die("%s", dlerror());
  void *symbol = dlsym(library, "OrtGetApiBase");
  if (symbol == NULL) die("%s", dlerror());
  memcpy(&get_base, &symbol, sizeof(get_base)); /* a data pointer cannot be cast to a function pointer */
  const OrtApiBase *base = get_base();
  s->version = base->GetVersionString();
  s->api = base->GetApi(ORT_API_VERSION);
  if (s->api == NULL) die("%s is version %s, older than the header %d", path, s->version, ORT_API_VERSION);
}

static void open_session(state *s, const options *o) {
  const OrtApi *api = s->api;
  OrtSessionOptions *wanted;
  check(s, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &s->env));
  check(s, api->CreateSessionOptions(&wanted));
  check(s, api->SetIntraOpNumThreads(wanted, o->threads));
  check(s, api->SetInterOpNumThreads(wanted, 1));
  if (o->no_pattern) check(s, api->DisableMemPattern(wanted));
  check(s, api->CreateSession(s->env, o->model, wanted, &s->session));
  api->ReleaseSessionOptions(wanted);
  check(s, api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &s->memory));
  check(s, api->GetAllocatorWithDefaultOptions(&s->names));
}

static berth_type type_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return BERTH_F32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return BERTH_F64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return BERTH_F16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return BERTH_BF16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return BERTH_I8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return BERTH_U8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16: return BERTH_I16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return BERTH_I32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return BERTH_I64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32: return BERTH_U32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: return BERTH_BOOL;
    default: return BERTH_TYPE_NONE;
  }
}

/* ---- Inputs ---- */

static void shape_of(const state *s, const options *o, const OrtTensorTypeAndShapeInfo *info, berth_array *out) {
  size_t rank;
  const char *symbols[BERTH_MAX_RANK] = {NULL};
  check(s, s->api->GetDimensionsCount(info, &rank));
  if (rank > BERTH_MAX_RANK) die("an input of rank %zu", rank);
  out->rank = (uint32_t)rank;
  check(s, s->api->GetDimensions(info, out->dim, rank));
  check(s, s->api->GetSymbolicDimensions(info, symbols, rank));
  out->size = berth_type_size(out->type);
  for (size_t i = 0; i < rank; i++) {
    const char *extent = symbols[i] ? find_setting(o->dims, o->n_dims, symbols[i]) : NULL;
    if (out->dim[i] < 0) out->dim[i] = extent ? (int64_t)strtoll(extent, NULL, 10) : 1;
    out->size *= (uint64_t)out->dim[i];
  }
}

static void fill_array(const state *s, const options *o, size_t index, berth_array *out) {
  OrtTypeInfo *type;
  const OrtTensorTypeAndShapeInfo *info;
  ONNXTensorElementDataType element;
  check(s, s->api->SessionGetInputTypeInfo(s->session, index, &type));
  check(s, s->api->CastTypeInfoToTensorInfo(type, &info));
  if (info == NULL) die("input %s is no tensor", s->in_names[index]);
  check(s, s->api->GetTensorElementType(info, &element));
  out->type = type_of(element);
  if (out->type == BERTH_TYPE_NONE) die("input %s has a type that cannot be filled", s->in_names[index]);
  shape_of(s, o, info, out);
  out->data = malloc((size_t)out->size + 1);
  if (out->data == NULL) die("no memory");
  element_fill(out->type, out->data, (size_t)out->size / berth_type_size(out->type), s->in_names[index], 1,
               ELEMENT_MOST);
  s->api->ReleaseTypeInfo(type);
}

static ONNXTensorElementDataType element_of(berth_type type) {
  for (int i = 1; i <= (int)ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16; i++)
    if (type_of((ONNXTensorElementDataType)i) == type) return (ONNXTensorElementDataType)i;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

static void make_input(state *s, const options *o, berth_context *ctx, size_t index) {
  berth_array array;
  berth_error err;
  char *name;
  check(s, s->api->SessionGetInputName(s->session, index, s->names, &name));
  s->in_names[index] = name;
  const char *file = find_setting(o->inputs, o->n_inputs, name);
  memset(&array, 0, sizeof(array));
  if (file == NULL)
    fill_array(s, o, index, &array);
  else if (berth_npy_load(ctx, file, &array, &err) != BERTH_OK)
    die("%s", err.message);
  /* The data is never freed: ONNX Runtime reads it in place. */
  check(s, s->api->CreateTensorWithDataAsOrtValue(s->memory, array.data, (size_t)array.size, array.dim, array.rank,
                                                  element_of(array.type), &s->in[index]));
}

static void make_values(state *s, const options *o) {
  berth_context *ctx;
  berth_error err;
  if (berth_context_create(NULL, &ctx, &err) != BERTH_OK) die("%s", err.message);
  check(s, s->api->SessionGetInputCount(s->session, &s->n_in));
  check(s, s->api->SessionGetOutputCount(s->session, &s->n_out));
  if (s->n_in > max_values || s->n_out > max_values) die("more than %d inputs or outputs", max_values);
  for (size_t i = 0; i < s->n_in; i++) make_input(s, o, ctx, i);
  for (size_t i = 0; i < s->n_out; i++) {
    char *name;
    check(s, s->api->SessionGetOutputName(s->session, i, s->names, &name));
    s->out_names[i] = name;
  }
}

/* ---- Running ---- */

/* Before a timed run, like for incoming audio. */
static void pause_for(int ms) {
  struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  while (ms != 0 && nanosleep(&left, &left) != 0) {
  }
}

static void drop_outputs(state *s) {
  for (size_t i = 0; i < s->n_out; i++) {
    s->api->ReleaseValue(s->out[i]);
    s->out[i] = NULL;
  }
}

/* Frees the outputs of the previous run first, so that those of the last run stay. */
static double run_once(state *s, int pause) {
  drop_outputs(s);
  pause_for(pause);
  double start = now_ms();
  check(s, s->api->Run(s->session, NULL, s->in_names, (const OrtValue *const *)s->in, s->n_in, s->out_names, s->n_out,
                       s->out));
  return now_ms() - start;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double *timed_runs(state *s, const options *o) {
  double *times = calloc((size_t)o->runs, sizeof(*times));
  if (times == NULL) die("no memory");
  s->first_ms = run_once(s, 0);
  for (int i = 0; i < o->warmup; i++) run_once(s, o->pause);
  for (int i = 0; i < o->runs; i++) times[i] = run_once(s, o->pause);
  qsort(times, (size_t)o->runs, sizeof(*times), by_value);
  return times;
}

/* ---- Results ---- */

static unsigned long long peak_rss(void) {
  char line[256];
  unsigned long long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && kib == 0 && fgets(line, sizeof(line), status)) sscanf(line, "VmHWM: %llu kB", &kib);
  if (status) fclose(status);
  return kib * 1024;
}

/* The caller's memory: inputs and outputs. */
static unsigned long long tensor_bytes(const state *s, OrtValue *const *values, size_t n) {
  unsigned long long total = 0;
  for (size_t i = 0; i < n; i++) {
    OrtTensorTypeAndShapeInfo *info;
    ONNXTensorElementDataType element;
    size_t count;
    check(s, s->api->GetTensorTypeAndShape(values[i], &info));
    check(s, s->api->GetTensorShapeElementCount(info, &count));
    check(s, s->api->GetTensorElementType(info, &element));
    total += (unsigned long long)count * berth_type_size(type_of(element));
    s->api->ReleaseTensorTypeAndShapeInfo(info);
  }
  return total;
}

/* A figure of the arena of the session's CPU kernels; -1 if it is not available. */
static long long arena_figure(const state *s, const char *key) {
  OrtAllocator *arena;
  OrtKeyValuePairs *figures;
  check(s, s->api->CreateAllocator(s->session, s->memory, &arena));
  check(s, s->api->AllocatorGetStats(arena, &figures));
  const char *value = s->api->GetKeyValue(figures, key);
  long long number = value ? strtoll(value, NULL, 10) : -1;
  s->api->ReleaseKeyValuePairs(figures);
  s->api->ReleaseAllocator(arena);
  return number;
}

int main(int argc, char **argv) {
  options o = parse(argc, argv);
  state s;
  memset(&s, 0, sizeof(s));
  open_library(&s, o.library);
  double start = now_ms();
  open_session(&s, &o);
  s.load_ms = now_ms() - start;
  make_values(&s, &o);
  double *times = timed_runs(&s, &o);
  size_t n = (size_t)o.runs;
  printf("{\"version\": \"%s\", \"threads\": %d, \"runs\": %d, \"median_ms\": %.6f, \"min_ms\": %.6f, ", s.version,
         o.threads, o.runs, (times[(n - 1) / 2] + times[n / 2]) / 2, times[0]);
  printf("\"first_ms\": %.6f, \"load_ms\": %.6f, \"peak_rss\": %llu, ", s.first_ms, s.load_ms, peak_rss());
  printf("\"inputs_size\": %llu, \"outputs_size\": %llu, ", tensor_bytes(&s, s.in, s.n_in),
         tensor_bytes(&s, s.out, s.n_out));
  printf("\"arena_peak\": %lld, \"arena_after\": %lld, ", arena_figure(&s, "MaxInUse"), arena_figure(&s, "InUse"));
  drop_outputs(&s);
  printf("\"arena_idle\": %lld}\n", arena_figure(&s, "InUse"));
  free(times);
  return 0;
}
