#include "peak.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum {
  max_threads = 256,
  turns = 20000, /* iterations of the loop below: some hundred microseconds */
  rounds = 12,
  least_copied = 4 << 20 /* minimum bytes of a timed copy, repeated if it is small */
};

const uint64_t peak_copy_bytes[PEAK_COPIES] = {256u << 10, 2u << 20, 16u << 20, 128u << 20};
#define LARGEST peak_copy_bytes[PEAK_COPIES - 1]

/* Twelve chains of multiply-adds, enough to hide the latency on any machine. BODY is compiled once per vector width;
 * multiplications and additions are contracted if the target supports it (see Tool.cmake). */
#define LANES(bytes) ((bytes) / 4)
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) vector a##i = factor * (float)(i);
#define STEP(i) a##i = a##i * factor + term;
#define ADD(i) sum += a##i;
#define BODY(bytes)                                         \
  typedef float vector __attribute__((vector_size(bytes))); \
  float one = *start;                                       \
  vector factor, term, sum;                                 \
  for (int i = 0; i < LANES(bytes); i++) {                  \
    factor[i] = one;                                        \
    term[i] = one * 1e-6f;                                  \
    sum[i] = 0;                                             \
  }                                                         \
  CHAINS(DECLARE)                                           \
  for (int turn = 0; turn < turns; turn++) {                \
    CHAINS(STEP)                                            \
  }                                                         \
  CHAINS(ADD)                                               \
  *start = one + sum[0] * 0;                                \
  const int lanes = LANES(bytes);                           \
  return 2.0 * 12 * lanes * turns;

static double multiply_plain(volatile float *start) { BODY(16) }
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static double multiply_avx2(volatile float *start) { BODY(32) }
__attribute__((target("avx512f"))) static double multiply_avx512(volatile float *start) { BODY(64) }
#endif

typedef double (*multiplier)(volatile float *start);

static multiplier tool_peak_widest(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_avx2;
#endif
  return multiply_plain;
}

typedef struct worker {
  pthread_t thread;
  bool started;
  multiplier multiply;
  char *from, *to;
  uint32_t n_threads;
  double gflops, gb_per_s[PEAK_COPIES];
} worker;

static double best_multiply(const worker *w) {
  volatile float start = 1;
  double best = 0;
  for (int i = 0; i < rounds; i++) {
    double begin = cli_now_ms(), done = w->multiply(&start), ms = cli_now_ms() - begin;
    if (ms > 0 && done / ms * 1e-6 > best) best = done / ms * 1e-6;
  }
  return best;
}

static double best_copy(const worker *w, uint64_t bytes) {
  size_t half = (size_t)bytes / w->n_threads / 2, times = half < least_copied ? least_copied / half : 1;
  double best = 0;
  memcpy(w->to, w->from, half);
  for (int i = 0; i < rounds / 4; i++) {
    double begin = cli_now_ms();
    for (size_t k = 0; k < times; k++) memcpy(w->to, w->from, half);
    double ms = cli_now_ms() - begin, rate = ms > 0 ? 2 * (double)(half * times) / ms * 1e-6 : 0;
    if (rate > best) best = rate;
  }
  return best;
}

static void *tool_peak_measure(void *user) {
  worker *w = user;
  w->gflops = best_multiply(w);
  for (int i = 0; i < PEAK_COPIES && w->from; i++) w->gb_per_s[i] = best_copy(w, peak_copy_bytes[i]);
  return NULL;
}

static void measure_all(worker *workers, uint32_t n, peak *total) {
  for (uint32_t i = 1; i < n; i++)
    workers[i].started = pthread_create(&workers[i].thread, NULL, tool_peak_measure, &workers[i]) == 0;
  tool_peak_measure(&workers[0]);
  for (uint32_t i = 0; i < n; i++) {
    if (workers[i].started) pthread_join(workers[i].thread, NULL);
    total->gflops += workers[i].gflops;
    for (int k = 0; k < PEAK_COPIES; k++) total->copies[k].gb_per_s += workers[i].gb_per_s[k];
  }
}

peak peak_measure(uint32_t n_threads) {
  worker workers[max_threads];
  peak total = {.gflops = 0};
  uint32_t n = n_threads == 0 ? 1 : n_threads < max_threads ? n_threads : max_threads;
  size_t half = (size_t)LARGEST / 2, share = half / n;
  char *memory = malloc(2 * half);
  memset(workers, 0, sizeof(workers));
  if (memory) memset(memory, 1, half); /* untouched pages would all map to one page of zeros */
  for (uint32_t i = 0; i < n; i++) {
    workers[i] = (worker){.multiply = tool_peak_widest(), .n_threads = n};
    if (!memory) continue;
    workers[i].from = memory + i * share;
    workers[i].to = memory + half + i * share;
  }
  for (int i = 0; i < PEAK_COPIES; i++) total.copies[i].bytes = peak_copy_bytes[i];
  measure_all(workers, n, &total);
  free(memory);
  return total;
}

double peak_least_ms(const peak *p, double flops, uint64_t bytes) {
  int at = 0;
  while (at < PEAK_COPIES - 1 && p->copies[at].bytes < bytes) at++;
  double rate = p->copies[at].gb_per_s;
  double arithmetic = p->gflops > 0 ? flops / p->gflops * 1e-6 : 0;
  double copying = rate > 0 ? (double)bytes / rate * 1e-6 : 0;
  return arithmetic > copying ? arithmetic : copying;
}
