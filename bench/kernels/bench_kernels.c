/* The speed of the CPU kernels at the shapes of real models, on one thread, compared with the machine's peak, and with
 * oneDNN if the build includes it. Prints the table of docs/benchmarks.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peak.h"
#include "row.h"

#define SAMPLE_MS 0.2 /* a sample has as many runs as take this long */
#define ROW_MS 150.0  /* per side of a row */
enum {
  LEAST_SAMPLES = 6,
  SAMPLES_A_TURN = 3,
  PEAK_ROUNDS = 12,
  BYTES_A_FLOAT = 4 /* int8 products per instruction, relative to floats */
};

typedef struct options {
  const berth__cpu_isa *isa;
  char **filters;
  int n_filters;
} options;

/* ---- Time ---- */

/* CPU time of this thread, because others may use the machine meanwhile. */
static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct side {
  const call *call; /* one of these two */
  const bar *bar;
  int runs; /* per sample */
  int samples;
  double best, spent; /* ms */
} side;

static void run(const side *s, int times) {
  for (int i = 0; i < times; i++)
    if (s->bar != NULL)
      bar_run(s->bar);
    else
      call_run(s->call);
}

static void start(side *s) {
  run(s, 1);
  const double begin = now_ms();
  run(s, 1);
  const double once = now_ms() - begin;
  s->runs = once < SAMPLE_MS ? (int)(SAMPLE_MS / (once > 1e-4 ? once : 1e-4)) : 1;
}

static bool is_done(const side *s) { return s->spent >= ROW_MS && s->samples >= LEAST_SAMPLES; }

static void sample(side *s) {
  const double begin = now_ms();
  run(s, s->runs);
  const double taken = now_ms() - begin;
  s->spent += taken;
  if (s->samples++ == 0 || taken / s->runs < s->best) s->best = taken / s->runs;
}

/* The other side may have changed the contents of the caches. */
static void take_turn(side *s) {
  for (int i = 0; i < SAMPLES_A_TURN; i++) sample(s);
}

/* Both sides take turns, so that other load on the machine affects both. */
static void measure(side *ours, side *theirs) {
  start(ours);
  if (theirs->bar != NULL) start(theirs);
  while (!is_done(ours) || (theirs->bar != NULL && !is_done(theirs))) {
    take_turn(ours);
    if (theirs->bar != NULL) take_turn(theirs);
  }
}

/* The best of several rounds, for each figure. */
static peak measure_peak(void) {
  peak best = peak_measure(1);
  for (int i = 1; i < PEAK_ROUNDS; i++) {
    const peak p = peak_measure(1);
    if (p.gflops > best.gflops) best.gflops = p.gflops;
    for (int k = 0; k < PEAK_COPIES; k++)
      if (p.copies[k].gb_per_s > best.copies[k].gb_per_s) best.copies[k] = p.copies[k];
  }
  return best;
}

/* ---- The table ---- */

static void print_peak(const peak *p, const berth__cpu_isa *isa) {
  printf("Kernels for %s, one thread. The machine at its best: %.1f GFLOP/s in registers; copies of", isa->name,
         p->gflops);
  for (int k = 0; k < PEAK_COPIES; k++)
    printf("%s %.4g MiB at %.1f", k == 0 ? "" : ",", (double)p->copies[k].bytes / (1 << 20), p->copies[k].gb_per_s);
  printf(" GB/s.");
  if (bar_name() != NULL) printf(" Beside it: %s.", bar_name());
  printf("\n\n");
}

static void print_head(void) {
  const bool has_bar = bar_name() != NULL;
  printf("| kernel | shape | as in | ms | rate | of peak |%s\n", has_bar ? " oneDNN ms | berth / oneDNN |" : "");
  printf("|---|---|---|---:|---:|---:|%s\n", has_bar ? "---:|---:|" : "");
}

static void print_row(const row *r, const subject *s, const peak *p, const side *ours, const side *theirs) {
  const bool has_dots = s->is_bytes && s->call.isa->has_dot8;
  const uint64_t bytes = call_bytes(&s->call);
  const double least = peak_least_ms(p, s->operations / (has_dots ? BYTES_A_FLOAT : 1), bytes);
  const double work = s->operations > 0 ? s->operations : (double)bytes;
  printf("| %s | %s | %s ", r->kernel, s->shape, r->model);
  if (ours->samples == 0)
    printf("| no kernel | | |");
  else
    printf("| %.4f | %.1f %s | %.0f %% |", ours->best, work / ours->best * 1e-6,
           s->operations == 0 ? "GB/s"
           : s->is_bytes      ? "GOP/s"
                              : "GFLOP/s",
           100 * least / ours->best);
  if (bar_name() != NULL && theirs->samples == 0) printf(" | |");
  if (theirs->samples > 0) printf(" %.4f | %.2f |", theirs->best, ours->best / theirs->best);
  printf("\n");
  fflush(stdout);
}

static void show(const row *r, const berth__cpu_isa *isa, const peak *p) {
  subject s = {.shape = ""};
  r->make(&s, isa, r->size);
  bar *b = s.call.kernel != NULL ? bar_create(&s.work) : NULL;
  side ours = {.call = &s.call}, theirs = {.bar = b};
  if (s.call.kernel != NULL) measure(&ours, &theirs);
  print_row(r, &s, p, &ours, &theirs);
  bar_destroy(b);
  call_free(&s.call);
}

static bool is_named(const row *r, const char *filter) {
  return strstr(r->kernel, filter) != NULL || strstr(r->model, filter) != NULL;
}

static bool is_wanted(const row *r, const options *o) {
  for (int i = 0; i < o->n_filters; i++)
    if (is_named(r, o->filters[i])) return true;
  return o->n_filters == 0;
}

static bool has_rows(const char *filter) {
  for (const row *const *table = row_tables; *table != NULL; table++)
    for (const row *r = *table; r->kernel != NULL; r++)
      if (is_named(r, filter)) return true;
  return false;
}

/* ---- The command line ---- */

static int usage(FILE *to, int code) {
  fprintf(to,
          "usage: bench_kernels [--isa NAME] [FILTER...]\n"
          "A FILTER is a part of a kernel's or a model's name; rows that have any of them are measured.\n"
          "Instruction sets of this machine:");
  for (uint32_t i = 0; berth__cpu_isa_at(i) != NULL; i++) fprintf(to, " %s", berth__cpu_isa_at(i)->name);
  fprintf(to, "\n");
  return code;
}

static const berth__cpu_isa *find_isa(const char *name) {
  for (uint32_t i = 0; berth__cpu_isa_at(i) != NULL; i++)
    if (strcmp(berth__cpu_isa_at(i)->name, name) == 0) return berth__cpu_isa_at(i);
  return NULL;
}

/* 0, or the exit code of the program. */
static int parse(int argc, char **argv, options *o) {
  int at = 1;
  if (at + 1 < argc && strcmp(argv[at], "--isa") == 0) {
    o->isa = find_isa(argv[at + 1]);
    at += 2;
  }
  if (o->isa == NULL || (at < argc && argv[at][0] == '-')) return usage(stderr, 2);
  o->filters = argv + at;
  o->n_filters = argc - at;
  for (int i = 0; i < o->n_filters; i++)
    if (!has_rows(o->filters[i])) {
      fprintf(stderr, "bench_kernels: no kernel or model has '%s' in its name\n", o->filters[i]);
      return 2;
    }
  return 0;
}

int main(int argc, char **argv) {
  options o = {.isa = berth__cpu_kernels_of(NULL).isa};
  if (argc > 1 && strcmp(argv[1], "--help") == 0) return usage(stdout, 0);
  const int wrong = parse(argc, argv, &o);
  if (wrong != 0) return wrong;
  bar_limit(o.isa->name);
  const peak best = measure_peak();
  print_peak(&best, o.isa);
  print_head();
  for (const row *const *table = row_tables; *table != NULL; table++)
    for (const row *r = *table; r->kernel != NULL; r++)
      if (is_wanted(r, &o)) show(r, o.isa, &best);
  return 0;
}
