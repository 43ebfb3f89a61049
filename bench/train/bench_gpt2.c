/* Training steps of GPT-2 124M, with batches of 4 x 64 tokens and random weights: time, bytes, and compared with llm.c
 * (whose library scripts/bench-train.sh builds) the losses of all steps and every gradient.
 *   bench_gpt2 [--steps N] [--threads N] [--sgd] [--layers N] [--batch N] [--length N] [--device NAME]
 *              [--vocabulary N] [--channels N (heads of 64)] [--profile GPU] [--compute bf16] [--budget MEGABYTES]
 *              [--llmc FILE.so] [--print FILE] [--plan-only (needs no device: --profile says for which GPU)] */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "gpt2.h"
#include "llmc.h"

#define MUST(call)                                   \
  do {                                               \
    if ((call) != BERTH_OK) stop("%s", err.message); \
  } while (0)

typedef struct options {
  gpt2_shape shape;
  int steps, threads;
  int sgd, plan_only;
  double budget; /* megabytes; 0: none */
  const char *llmc, *print, *device, *compute, *profile;
} options;

typedef struct tensor {
  const char *name; /* as in the graph; for a layer without its number */
  int rows, columns;
  int is_layered, is_turned; /* transposed in llm.c */
} tensor;

typedef struct bench {
  options o;
  tensor tensors[LLMC_TENSORS];
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  const llmc_library *llmc;
  void *model;
  uint64_t seed;
} bench;

static void stop(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint32_t draw(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

/* Approximately normal: a sum of four uniform numbers. */
static float draw_normal(uint64_t *seed) {
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += (float)draw(seed) / 1073741824.0f - 1;
  return sum * 0.8660254f;
}

static void describe(bench *b) {
  const int c = b->o.shape.channels;
  const tensor all[LLMC_TENSORS] = {{"wte", b->o.shape.vocabulary, c, 0, 0},
                                    {"wpe", b->o.shape.positions, c, 0, 0},
                                    {"ln1w", 1, c, 1, 0},
                                    {"ln1b", 1, c, 1, 0},
                                    {"qkvw", c, 3 * c, 1, 1},
                                    {"qkvb", 1, 3 * c, 1, 0},
                                    {"projw", c, c, 1, 1},
                                    {"projb", 1, c, 1, 0},
                                    {"ln2w", 1, c, 1, 0},
                                    {"ln2b", 1, c, 1, 0},
                                    {"fcw", c, 4 * c, 1, 1},
                                    {"fcb", 1, 4 * c, 1, 0},
                                    {"fcprojw", 4 * c, c, 1, 1},
                                    {"fcprojb", 1, c, 1, 0},
                                    {"lnfw", 1, c, 0, 0},
                                    {"lnfb", 1, c, 0, 0}};
  memcpy(b->tensors, all, sizeof all);
}

static const char *name_of(const tensor *t, int layer, char *room, size_t size, const char *suffix) {
  if (t->is_layered)
    snprintf(room, size, "%s.%d%s", t->name, layer, suffix);
  else
    snprintf(room, size, "%s%s", t->name, suffix);
  return room;
}

/* Norms start at 1 and 0, other biases at 0, weights at random. */
static void fill(bench *b, const tensor *t, float *out) {
  const size_t n = (size_t)t->rows * (size_t)t->columns, length = strlen(t->name);
  const int is_bias = t->name[length - 1] == 'b', is_norm = t->name[0] == 'l';
  for (size_t i = 0; i < n; i++) out[i] = is_norm ? (float)!is_bias : is_bias ? 0 : 0.02f * draw_normal(&b->seed);
}

/* To llm.c's layout, or from it. */
static void turn(const tensor *t, const float *from, float *to) {
  for (int r = 0; r < t->rows; r++)
    for (int c = 0; c < t->columns; c++)
      to[(size_t)c * (size_t)t->rows + (size_t)r] = from[(size_t)r * (size_t)t->columns + (size_t)c];
}

static void set_weights(bench *b) {
  berth_error err;
  char name[64];
  for (int i = 0; i < LLMC_TENSORS; i++) {
    const tensor *t = &b->tensors[i];
    const size_t n = (size_t)t->rows * (size_t)t->columns;
    float *room = malloc(n * sizeof *room);
    size_t count = 0;
    float *other = b->llmc != NULL ? b->llmc->weights(b->model, i, &count) : NULL;
    if (room == NULL) stop("out of memory");
    for (int l = 0; l < (t->is_layered ? b->o.shape.layers : 1); l++) {
      fill(b, t, room);
      MUST(berth_session_state_write(b->session, name_of(t, l, name, sizeof name, ""), room, n * sizeof *room, &err));
      if (other == NULL) continue;
      if (t->is_turned)
        turn(t, room, other + (size_t)l * n);
      else
        memcpy(other + (size_t)l * n, room, n * sizeof *room);
    }
    free(room);
  }
}

/* The largest difference in a tensor's gradient, relative to its largest element. */
static double compare_one(bench *b, berth_session *session, int tensor_index, int layer) {
  berth_error err;
  const tensor *t = &b->tensors[tensor_index];
  const size_t n = (size_t)t->rows * (size_t)t->columns;
  char name[64];
  float *ours = malloc(2 * n * sizeof *ours), *turned = ours + n;
  const float *theirs = b->llmc->gradients(b->model, tensor_index) + (size_t)layer * n;
  double most = 0, largest = 0;
  if (ours == NULL) stop("out of memory");
  MUST(berth_session_read(session, name_of(t, layer, name, sizeof name, ".grad"), ours, n * sizeof *ours, &err));
  if (t->is_turned) turn(t, ours, turned);
  const float *mine = t->is_turned ? turned : ours;
  for (size_t i = 0; i < n; i++) {
    most = fmax(most, fabs((double)mine[i] - (double)theirs[i]));
    largest = fmax(largest, fabs((double)theirs[i]));
  }
  free(ours);
  return largest > 0 ? most / largest : most;
}

static void set_batch(bench *b, berth_session *session, const int *ids, const int *labels) {
  berth_error err;
  const size_t n = (size_t)b->o.shape.batch * (size_t)b->o.shape.length;
  int64_t *room = malloc(2 * n * sizeof *room);
  if (room == NULL) stop("out of memory");
  for (size_t i = 0; i < n; i++) room[i] = ids[i], room[n + i] = labels[i];
  MUST(berth_session_write(session, "ids", room, n * sizeof *room, &err));
  MUST(berth_session_write(session, "labels", room + n, n * sizeof *room, &err));
  free(room);
}

/* A graph whose outputs are all gradients, with the weights before the first step. */
static berth_session *open_gradients(bench *b) {
  berth_error err;
  berth_graph *graph;
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  char name[64];
  MUST(build_gpt2(b->ctx, &b->o.shape, &graph, &err));
  size_t n = 0;
  berth_value of[4 + 12 * 48], grads[4 + 12 * 48];
  for (int i = 0; i < LLMC_TENSORS; i++)
    for (int l = 0; l < (b->tensors[i].is_layered ? b->o.shape.layers : 1); l++)
      of[n++] = berth_graph_find(graph, name_of(&b->tensors[i], l, name, sizeof name, ""));
  MUST(berth_graph_grad(graph, berth_graph_find(graph, "loss"), of, n, grads, &err));
  n = 0;
  for (int i = 0; i < LLMC_TENSORS; i++)
    for (int l = 0; l < (b->tensors[i].is_layered ? b->o.shape.layers : 1); l++)
      MUST(berth_graph_output(graph, name_of(&b->tensors[i], l, name, sizeof name, ".grad"), grads[n++], &err));
  desc.n_threads = (uint32_t)b->o.threads;
  MUST(berth_session_create(graph, &desc, &session, &err));
  for (int i = 0; i < LLMC_TENSORS; i++) {
    const tensor *t = &b->tensors[i];
    const size_t count = (size_t)t->rows * (size_t)t->columns;
    float *room = malloc(count * sizeof *room);
    if (room == NULL) stop("out of memory");
    for (int l = 0; l < (t->is_layered ? b->o.shape.layers : 1); l++) {
      MUST(
          berth_session_state_read(b->session, name_of(t, l, name, sizeof name, ""), room, count * sizeof *room, &err));
      MUST(berth_session_set_param(session, name, room, count * sizeof *room, &err));
    }
    free(room);
  }
  berth_graph_destroy(graph);
  return session;
}

static void compare_gradients(bench *b, berth_session *session) {
  printf("gradients beside llm.c's, the largest difference over the largest element:\n");
  for (int i = 0; i < LLMC_TENSORS; i++) {
    double most = 0;
    for (int l = 0; l < (b->tensors[i].is_layered ? b->o.shape.layers : 1); l++)
      most = fmax(most, compare_one(b, session, i, l));
    printf("  %-8s %.1e\n", b->tensors[i].name, most);
    if (!(most < 1e-3)) stop("the gradient of %s is another one", b->tensors[i].name);
  }
}

static berth_status write_file(void *user, const char *text, size_t size) {
  return fwrite(text, 1, size, user) == size ? BERTH_OK : BERTH_IO;
}

/* Prints what a plan takes, with a session or without one. */
static void print_plan(const berth_plan *plan, double before) {
  berth_error err;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  MUST(berth_plan_get_info(plan, &info, &err));
  printf("berth: one block of %.0f MB (%.0f of weights and moments), planned in %.1f s, %d steps of the program",
         (double)info.arena_size * 1e-6, (double)(info.weights_size + info.state_size) * 1e-6, (now() - before) * 1e-3,
         (int)info.n_steps);
  if (info.n_recomputed != 0 || info.n_split != 0)
    printf("; %d nodes again, %d groups of nodes in %d slices", (int)info.n_recomputed, (int)info.n_split,
           (int)info.n_slices);
  printf("\n");
}

static void open_session(bench *b) {
  berth_error err;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_plan *only;
  if (b->o.sgd) {
    how.optimizer = BERTH_OPTIMIZER_SGD;
    how.momentum = 0;
  }
  how.weight_decay = 0;
  MUST(berth_context_create(NULL, &b->ctx, &err));
  MUST(build_gpt2(b->ctx, &b->o.shape, &b->graph, &err));
  MUST(berth_graph_train(b->graph, berth_graph_find(b->graph, "loss"), &how, &err));
  if (b->o.print != NULL) {
    FILE *file = fopen(b->o.print, "w");
    if (file == NULL) stop("cannot write %s", b->o.print);
    MUST(berth_graph_print(b->graph, write_file, file, &err));
    if (fclose(file) != 0) stop("cannot write %s", b->o.print);
  }
  const double before = now();
  desc.n_threads = plan.n_threads = (uint32_t)b->o.threads;
  desc.device = plan.device = b->o.device;
  desc.plan = &plan;
  plan.gpu_profile = b->o.profile;
  plan.budget = (uint64_t)(b->o.budget * 1e6);
  if (b->o.compute != NULL) MUST(berth_compute_from_name(b->o.compute, &plan.compute, &err));
  if (b->o.plan_only) {
    MUST(berth_plan_create(b->graph, &plan, &only, &err));
    print_plan(only, before);
    berth_plan_destroy(only);
    return;
  }
  MUST(berth_session_create(b->graph, &desc, &b->session, &err));
  print_plan(berth_session_plan(b->session), before);
}

static void open_llmc(bench *b) {
  if (b->o.llmc == NULL) return;
  void *library = dlopen(b->o.llmc, RTLD_NOW);
  if (library == NULL) stop("%s", dlerror());
  const llmc_library *(*open)(void) = (const llmc_library *(*)(void))dlsym(library, "llmc_open");
  if (open == NULL) stop("%s is not the library that scripts/bench-train.sh builds", b->o.llmc);
  const gpt2_shape *s = &b->o.shape;
  const llmc_shape shape = {s->batch, s->length, s->vocabulary, s->positions, s->layers, s->heads, s->channels};
  b->llmc = open();
  b->model = b->llmc->create(&shape);
  if (b->model == NULL) stop("out of memory");
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, int n) {
  qsort(times, (size_t)n, sizeof *times, compare_doubles);
  return times[n / 2];
}

static float step_berth(bench *b, float rate, double *ms) {
  berth_error err;
  float loss;
  const double before = now();
  MUST(berth_session_write(b->session, "learning_rate", &rate, sizeof rate, &err));
  MUST(berth_session_run(b->session, &err));
  MUST(berth_session_read(b->session, "loss", &loss, sizeof loss, &err));
  *ms = now() - before;
  return loss;
}

/* Alternating, so that both see the same machine load. */
static void run_steps(bench *b) {
  const int n = b->o.shape.batch * b->o.shape.length;
  int *ids = malloc(2 * (size_t)n * sizeof *ids), *labels = ids + n;
  double *ours = malloc(2 * (size_t)b->o.steps * sizeof *ours), *theirs = ours + b->o.steps;
  const float rate = 1e-4f;
  berth_session *gradients = b->llmc != NULL ? open_gradients(b) : NULL;
  if (ids == NULL || ours == NULL) stop("out of memory");
  for (int t = 0; t < b->o.steps; t++) {
    for (int i = 0; i < 2 * n; i++) ids[i] = (int)(draw(&b->seed) % (uint32_t)b->o.shape.vocabulary);
    set_batch(b, b->session, ids, labels);
    const float loss = step_berth(b, rate, &ours[t]);
    printf("step %2d: loss %.6f, %.1f ms", t + 1, (double)loss, ours[t]);
    if (b->llmc != NULL) {
      const double before = now();
      const float other = b->llmc->step(b->model, ids, labels, rate, t + 1);
      theirs[t] = now() - before;
      printf("; llm.c: loss %.6f, %.0f ms", (double)other, theirs[t]);
      if (!b->o.sgd && fabsf(loss - other) > 2e-4f * other) stop("\nthe losses differ");
    }
    printf("\n");
    fflush(stdout);
    if (t != 0 || b->llmc == NULL) continue;
    berth_error err;
    set_batch(b, gradients, ids, labels);
    MUST(berth_session_run(gradients, &err));
    compare_gradients(b, gradients);
    berth_session_destroy(gradients);
  }
  const double mine = median(ours, b->o.steps);
  printf("berth: %.1f ms a step (median)\n", mine);
  if (b->llmc != NULL) {
    const double other = median(theirs, b->o.steps);
    printf("llm.c: %.0f ms, %.0f MB by its own counts; berth takes %.3f of its time\n", other,
           (double)b->llmc->bytes(b->model) * 1e-6, mine / other);
  }
  free(ids);
  free(ours);
}

static void parse(int argc, char **argv, options *o) {
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--sgd") == 0 || strcmp(argv[i], "--plan-only") == 0) {
      *(argv[i][2] == 's' ? &o->sgd : &o->plan_only) = 1;
      continue;
    }
    if (value == NULL) stop("%s takes a value", argv[i]);
    if (strcmp(argv[i], "--steps") == 0)
      o->steps = atoi(value);
    else if (strcmp(argv[i], "--threads") == 0)
      o->threads = atoi(value);
    else if (strcmp(argv[i], "--layers") == 0)
      o->shape.layers = atoi(value);
    else if (strcmp(argv[i], "--batch") == 0)
      o->shape.batch = atoi(value);
    else if (strcmp(argv[i], "--length") == 0)
      o->shape.length = atoi(value);
    else if (strcmp(argv[i], "--vocabulary") == 0)
      o->shape.vocabulary = atoi(value);
    else if (strcmp(argv[i], "--channels") == 0)
      o->shape.channels = atoi(value), o->shape.heads = o->shape.channels / 64;
    else if (strcmp(argv[i], "--profile") == 0)
      o->profile = value;
    else if (strcmp(argv[i], "--device") == 0)
      o->device = value;
    else if (strcmp(argv[i], "--compute") == 0)
      o->compute = value;
    else if (strcmp(argv[i], "--budget") == 0)
      o->budget = atof(value);
    else if (strcmp(argv[i], "--llmc") == 0)
      o->llmc = value;
    else if (strcmp(argv[i], "--print") == 0)
      o->print = value;
    else
      stop("there is no option %s", argv[i]);
    i++;
  }
  if (o->steps < 1 || o->shape.layers < 1 || o->shape.layers > 48 || o->shape.length < 1 ||
      o->shape.length > o->shape.positions || o->shape.batch < 1 || o->shape.vocabulary < 2 || o->shape.heads < 1)
    stop("a number is out of range");
}

int main(int argc, char **argv) {
  bench b = {.o = {.shape = GPT2_124M, .steps = 10}, .seed = 1};
  struct rusage usage;
  parse(argc, argv, &b.o);
  describe(&b);
  open_llmc(&b);
  open_session(&b);
  if (!b.o.plan_only) set_weights(&b);
  if (!b.o.plan_only) run_steps(&b);
  if (b.llmc == NULL && getrusage(RUSAGE_SELF, &usage) == 0)
    printf("berth: peak RSS %.0f MB\n", (double)usage.ru_maxrss * 1024e-6);
  berth_session_destroy(b.session);
  berth_graph_destroy(b.graph);
  berth_context_destroy(b.ctx);
  return 0;
}
