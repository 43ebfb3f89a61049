/* One measurement of one engine and one model in its own process; prints a JSON object, which bench.js collects.
 *
 *   llama_run speed --engine berth|llama [--lib LIBLLAMA] [--threads N] [--ctx N] [--chunk N] [--count N] [--no-map]
 *             --text FILE MODEL
 *   llama_run score the same, with [--windows N] [--own-cache] [--keep FILE | --against FILE]
 *   llama_run quantise --lib LIBLLAMA --type N FROM TO
 *
 * speed reads --chunk tokens of the text and generates --count more, always the most likely one. score is the
 * perplexity of the text in windows of --ctx tokens, with f32 caches, or with --own-cache the engine's default; --keep
 * writes the logits, and --against compares with kept logits: the mean KL divergence from them, how often the most
 * likely token is the same, and the largest difference of two logits. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "engine.h"

typedef struct options {
  const char *verb, *engine, *text, *keep, *against, *files[2];
  engine_options engine_options;
  int n_files, type;
  bool has_own_cache;
  size_t count, windows;
} options;

void engine_stop(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("llama_run: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static char *read_text(const char *path, size_t *size) {
  FILE *file = path != NULL ? fopen(path, "rb") : NULL;
  if (file == NULL) engine_stop("the text cannot be read: %s", path != NULL ? path : "--text names none");
  fseek(file, 0, SEEK_END);
  const long end = ftell(file);
  rewind(file);
  char *text = malloc((size_t)end + 1);
  if (text == NULL || fread(text, 1, (size_t)end, file) != (size_t)end) engine_stop("%s cannot be read", path);
  fclose(file);
  *size = (size_t)end;
  return text;
}

/* ---- speed ---- */

static int32_t best_of(const float *logits, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (logits[i] > logits[best]) best = i;
  return (int32_t)best;
}

static int32_t *text_tokens(const engine *e, void *state, const char *path, size_t *n) {
  size_t size;
  char *text = read_text(path, &size);
  int32_t *tokens = malloc((size + 8) * sizeof *tokens); /* a token has at least one byte */
  if (tokens == NULL) engine_stop("out of memory");
  *n = e->encode(state, text, size, tokens, size + 8);
  free(text);
  return tokens;
}

static void speed(const engine *e, const options *o) {
  uint32_t vocabulary;
  size_t n;
  int32_t *got = calloc(o->count + 1, sizeof *got);
  const double start = now_ms();
  void *state = e->open(&o->engine_options);
  const double loaded = now_ms();
  int32_t *tokens = text_tokens(e, state, o->text, &n);
  if (got == NULL || n < o->engine_options.chunk) engine_stop("the text is too short");
  const double begun = now_ms();
  e->read(state, tokens, o->engine_options.chunk);
  got[0] = best_of(e->logits(state, &vocabulary), vocabulary);
  const double first = now_ms();
  /* Set-up during the first reading does not count: a second reading measures the speed. */
  e->reset(state);
  const double again = now_ms();
  e->read(state, tokens, o->engine_options.chunk);
  got[0] = best_of(e->logits(state, &vocabulary), vocabulary);
  const double read = now_ms();
  for (size_t i = 0; i < o->count; i++) {
    e->read(state, &got[i], 1);
    got[i + 1] = best_of(e->logits(state, &vocabulary), vocabulary);
  }
  const double end = now_ms();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf(
      "{\"load_ms\": %.3f, \"first_ms\": %.3f, \"prefill\": %.3f, \"decode\": %.3f, \"peak_rss\": %ld, \"tokens\": [",
      loaded - start, loaded - start + first - begun, 1e3 * o->engine_options.chunk / (read - again),
      1e3 * (double)o->count / (end - read), usage.ru_maxrss * 1024);
  for (size_t i = 0; i <= o->count; i++) printf("%s%d", i ? ", " : "", got[i]);
  printf("]}\n");
  e->close(state);
  free(tokens);
  free(got);
}

/* ---- score ---- */

typedef struct scoring {
  const int32_t *window;
  uint32_t n;
  double nats, divergence, apart;
  size_t scored, same;
  FILE *keep, *against;
  float *other;
} scoring;

/* The logarithm of the sum of the exponentials. */
static double log_sum(const float *logits, uint32_t count) {
  double most = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < count; i++) most = fmax(most, (double)logits[i]);
  for (uint32_t i = 0; i < count; i++) sum += exp((double)logits[i] - most);
  return most + log(sum);
}

static void compare(scoring *s, const float *logits, uint32_t count) {
  if (s->other == NULL) s->other = malloc(count * sizeof *s->other);
  if (s->other == NULL || fread(s->other, sizeof *s->other, count, s->against) != count)
    engine_stop("the logits to compare with are too few");
  const double own = log_sum(logits, count), true_sum = log_sum(s->other, count);
  for (uint32_t i = 0; i < count; i++) {
    const double log_p = (double)s->other[i] - true_sum;
    s->divergence += exp(log_p) * (log_p - ((double)logits[i] - own));
    s->apart = fmax(s->apart, fabs((double)logits[i] - (double)s->other[i]));
  }
  s->same += best_of(logits, count) == best_of(s->other, count);
}

static void on_scores(void *user, uint32_t position, const float *logits, uint32_t count) {
  scoring *s = user;
  if (position < s->n / 2 || position + 1 >= s->n) return; /* like `berth generate --perplexity` */
  s->nats += log_sum(logits, count) - (double)logits[s->window[position + 1]];
  s->scored++;
  if (s->keep != NULL && fwrite(logits, sizeof *logits, count, s->keep) != count) engine_stop("logits are not written");
  if (s->against != NULL) compare(s, logits, count);
}

static void score(const engine *e, const options *o) {
  scoring s = {.n = o->engine_options.ctx};
  engine_options settings = o->engine_options;
  size_t n;
  int32_t begin;
  if (o->keep != NULL && (s.keep = fopen(o->keep, "wb")) == NULL) engine_stop("%s cannot be written", o->keep);
  if (o->against != NULL && (s.against = fopen(o->against, "rb")) == NULL) engine_stop("%s is not there", o->against);
  settings.scores = on_scores;
  settings.user = &s;
  settings.f32_cache = !o->has_own_cache;
  void *state = e->open(&settings);
  int32_t *tokens = text_tokens(e, state, o->text, &n);
  const size_t n_begin = e->encode(state, "", 0, &begin, 1), windows = n / s.n < o->windows ? n / s.n : o->windows;
  const double start = now_ms();
  for (size_t w = 0; w < windows; w++) {
    int32_t *window = tokens + w * s.n;
    if (n_begin != 0) window[0] = begin;
    s.window = window;
    e->reset(state);
    e->read(state, window, s.n);
  }
  const double ms = now_ms() - start;
  printf("{\"perplexity\": %.6f, \"scored\": %zu, \"windows\": %zu, \"ms\": %.1f", exp(s.nats / (double)s.scored),
         s.scored, windows, ms);
  if (s.against != NULL)
    printf(", \"divergence\": %.6e, \"same\": %.6f, \"apart\": %.6f", s.divergence / (double)s.scored,
           (double)s.same / (double)s.scored, s.apart);
  printf("}\n");
  if (s.keep != NULL && fclose(s.keep) != 0) engine_stop("%s is not whole", o->keep);
  if (s.against != NULL) fclose(s.against);
  e->close(state);
  free(tokens);
  free(s.other);
}

/* ---- Options ---- */

static const char **text_option(options *o, const char *name) {
  if (strcmp(name, "--engine") == 0) return &o->engine;
  if (strcmp(name, "--lib") == 0) return &o->engine_options.library;
  if (strcmp(name, "--text") == 0) return &o->text;
  if (strcmp(name, "--keep") == 0) return &o->keep;
  return strcmp(name, "--against") == 0 ? &o->against : NULL;
}

static bool number_option(options *o, const char *name, long value) {
  if (strcmp(name, "--threads") == 0) return o->engine_options.threads = (int)value, true;
  if (strcmp(name, "--ctx") == 0) return o->engine_options.ctx = (uint32_t)value, true;
  if (strcmp(name, "--chunk") == 0) return o->engine_options.chunk = (uint32_t)value, true;
  if (strcmp(name, "--count") == 0) return o->count = (size_t)value, true;
  if (strcmp(name, "--windows") == 0) return o->windows = (size_t)value, true;
  if (strcmp(name, "--type") == 0) return o->type = (int)value, true;
  return false;
}

static bool parse(options *o, int argc, char **argv) {
  o->verb = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; i++) {
    const char **text = text_option(o, argv[i]);
    if (strcmp(argv[i], "--no-map") == 0)
      o->engine_options.maps = false;
    else if (strcmp(argv[i], "--own-cache") == 0)
      o->has_own_cache = true;
    else if (text != NULL && i + 1 < argc)
      *text = argv[++i];
    else if (strncmp(argv[i], "--", 2) == 0 && i + 1 < argc && number_option(o, argv[i], strtol(argv[i + 1], NULL, 10)))
      i++;
    else if (argv[i][0] != '-' && o->n_files < 2)
      o->files[o->n_files++] = argv[i];
    else
      return false;
  }
  o->engine_options.model = o->files[0];
  return o->n_files > 0 && (strcmp(o->verb, "quantise") != 0 || o->n_files == 2);
}

int main(int argc, char **argv) {
  options o = {.engine_options = {.threads = 2, .chunk = 64, .maps = true}, .count = 32, .windows = 4, .type = -1};
  const bool is_right = parse(&o, argc, argv);
  const engine *e = o.engine != NULL && strcmp(o.engine, "llama") == 0 ? &llama_engine : &berth_engine;
  if (is_right && strcmp(o.verb, "speed") == 0)
    speed(e, &o);
  else if (is_right && strcmp(o.verb, "score") == 0)
    score(e, &o);
  else if (is_right && strcmp(o.verb, "quantise") == 0)
    llama_quantise(o.engine_options.library, o.files[0], o.files[1], o.type, o.engine_options.threads);
  else
    return fprintf(stderr, "llama_run speed|score|quantise ...: bench/llama/models/llama_run.c says how\n"), 2;
  return 0;
}
