/* berth bench: measures the time of a model's runs, and checks that they allocate nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cmd.h"
#include "format.h"
#include "json.h"
#include "profile.h"
#include "progress.h"
#include "runner.h"

typedef struct bench_options {
  model_options model;
  runner_options runner;
  uint64_t warmup, runs, pause;
  const char *trace;
  bool profile, json;
} bench_options;

#define FIELD(name) offsetof(bench_options, name)
static const arg_option options[] = {
    RUNNER_OPTION_ROWS(bench_options),
    MODEL_OPTION_ROWS(bench_options),
    MODEL_THREADS_ROW(bench_options),
    {"warmup", 0, ARG_COUNT, "N", "warm-up runs between the first run and the timed ones (3)", FIELD(warmup), 0,
     1000000000},
    {"runs", 0, ARG_COUNT, "N", "timed runs (20)", FIELD(runs), 1, 10000000},
    {"pause", 0, ARG_COUNT, "MS", "pause before every run but the first in milliseconds, like a stream of audio (0)",
     FIELD(pause), 0, 60000},
    {"profile", 0, ARG_FLAG, NULL, "show where the time goes, and how close that is to the machine's peak",
     FIELD(profile), 0, 0},
    {"trace", 0, ARG_TEXT, "FILE", "write observed runs as a Chrome trace (JSON)", FIELD(trace), 0, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", FIELD(json), 0, 0},
};

const arg_verb cmd_bench_verb = {
    .name = "bench",
    .purpose = "measure how long a model takes to load, compile and run",
    .operand = "MODEL",
    .operand_offset = FIELD(model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Without MODEL it measures the built-in digit classifier. --profile and --trace observe up to ten more\n"
        "runs, after the timed ones. --profile also measures how fast this machine multiplies and copies at\n"
        "its best; 'of peak' is the least time which that allows, over the time taken.\n\n" RUNNER_DETAILS,
    .examples =
        "  berth bench --dim batch=10 --runs 100\n"
        "  berth bench model.berth --weights model.safetensors --profile --trace trace.json\n",
};

static int bench_check_options(const bench_options *wanted) {
  bool clash = wanted->json && wanted->trace && strcmp(wanted->trace, "-") == 0;
  return clash ? cli_usage("--json and --trace - both want standard output") : CLI_OK;
}

typedef struct bench_result {
  double first_ms, median_ms, min_ms, p90_ms;
  double allocations_per_run;
  uint64_t peak_rss;
  profile profile;
} bench_result;

static void bench_pause(uint64_t ms) {
  struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  while (ms != 0 && nanosleep(&left, &left) != 0) {
  }
}

/* Pauses and writing the inputs are the caller's part, and are not timed. */
static int timed_run(runner *r, uint64_t pause, double *ms) {
  bench_pause(pause);
  int code = runner_write_inputs(r, r->session);
  double start = cli_now_ms();
  if (code == CLI_OK) code = runner_run(r->session);
  *ms = cli_now_ms() - start;
  return code;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void bench_sum_up(double *times, size_t n, bench_result *result) {
  qsort(times, n, sizeof(*times), compare_doubles);
  result->min_ms = times[0];
  result->median_ms = (times[(n - 1) / 2] + times[n / 2]) / 2;
  result->p90_ms = times[(n * 9 + 9) / 10 - 1];
}

static int bench_measure(runner *r, const bench_options *wanted, double *times, bench_result *result) {
  atomic_uint_fast64_t *allocations = &r->model.allocations.count;
  uint64_t total = wanted->warmup + wanted->runs, done = 0;
  double unused;
  progress bar;
  progress_begin(&bar, "running");
  int code = timed_run(r, 0, &result->first_ms);
  for (uint64_t i = 0; i < wanted->warmup && code == CLI_OK; i++) {
    code = timed_run(r, wanted->pause, &unused);
    progress_update(&bar, ++done, total);
  }
  uint64_t before = atomic_load(allocations);
  for (uint64_t i = 0; i < wanted->runs && code == CLI_OK; i++) {
    code = timed_run(r, wanted->pause, &times[i]);
    progress_update(&bar, ++done, total);
  }
  result->allocations_per_run = (double)(atomic_load(allocations) - before) / (double)wanted->runs;
  progress_end(&bar);
  return code;
}

/* getrusage's peak includes that of the process before exec, so the kernel's own figure is preferred. */
static uint64_t peak_rss(void) {
  struct rusage usage;
  char line[256];
  unsigned long long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && kib == 0 && fgets(line, sizeof(line), status)) sscanf(line, "VmHWM: %llu kB", &kib);
  if (status) fclose(status);
  if (kib) return kib * 1024;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return (uint64_t)usage.ru_maxrss;
#else
  return (uint64_t)usage.ru_maxrss * 1024;
#endif
}

static int bench_print_json(const runner *r, const bench_options *wanted, const bench_result *result) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_double(&out, "median_ms", result->median_ms);
  json_double(&out, "min_ms", result->min_ms);
  json_double(&out, "p90_ms", result->p90_ms);
  json_uint(&out, "runs", wanted->runs);
  json_double(&out, "first_ms", result->first_ms);
  json_double(&out, "load_ms", r->model.load_ms);
  json_double(&out, "compile_ms", r->compile_ms);
  json_uint(&out, "arena_size", berth_plan_arena_size(berth_session_plan(r->session)));
  json_uint(&out, "peak_rss", result->peak_rss);
  json_double(&out, "allocations_per_run", result->allocations_per_run);
  json_string(&out, "device", model_device(&wanted->model));
  json_uint(&out, "threads", berth_session_n_threads(r->session));
  dims_write_json(&r->model.dims, &out);
  if (wanted->profile) profile_write_json(&result->profile, &out);
  json_close_object(&out);
  return json_print(&out);
}

static void bench_print_text(const runner *r, const bench_options *wanted, const bench_result *result) {
  format_colours colours = format_stdout_colours();
  uint32_t threads = berth_session_n_threads(r->session);
  char text[FORMAT_SIZE];
  printf("%s on %s, %u thread%s\n", berth_graph_name(r->model.graph), model_device(&wanted->model), threads,
         cli_plural(threads));
  printf("  median      %s%.4f ms%s over %llu run%s\n", colours.bold, result->median_ms, colours.end,
         (unsigned long long)wanted->runs, cli_plural(wanted->runs));
  printf("  min         %.4f ms\n", result->min_ms);
  printf("  p90         %.4f ms\n", result->p90_ms);
  printf("  first run   %.4f ms\n", result->first_ms);
  printf("  load        %.4f ms\n", r->model.load_ms);
  printf("  compile     %.4f ms\n", r->compile_ms);
  printf("  arena       %s\n", format_bytes(berth_plan_arena_size(berth_session_plan(r->session)), text));
  printf("  peak RSS    %s\n", format_bytes(result->peak_rss, text));
  printf("  allocations %g a run\n", result->allocations_per_run);
  if (wanted->profile) profile_print(&result->profile);
}

static int observe_runs(runner *r, const bench_options *wanted, bench_result *result) {
  uint32_t n_runs = wanted->runs < 10 ? (uint32_t)wanted->runs : 10;
  if (!wanted->profile && !wanted->trace) return CLI_OK;
  int code = profile_collect(r, n_runs, wanted->profile, &result->profile);
  if (code == CLI_OK && wanted->trace) code = profile_write_trace(r, &result->profile, wanted->trace);
  return code;
}

static int bench_model(runner *r, const bench_options *wanted, bench_result *result) {
  double *times = calloc((size_t)wanted->runs, sizeof(*times));
  if (!times) return cli_no_memory();
  int code = bench_measure(r, wanted, times, result);
  if (code == CLI_OK) bench_sum_up(times, (size_t)wanted->runs, result);
  free(times);
  result->peak_rss = peak_rss();
  if (code == CLI_OK) code = observe_runs(r, wanted, result);
  if (code != CLI_OK || wanted->json) return code == CLI_OK ? bench_print_json(r, wanted, result) : code;
  bench_print_text(r, wanted, result);
  return CLI_OK;
}

int cmd_bench(int argc, char **argv) {
  bench_options wanted = {.warmup = 3, .runs = 20};
  int code;
  if (args_parse(&cmd_bench_verb, argc, argv, &wanted, &code) && (code = bench_check_options(&wanted)) == CLI_OK) {
    runner r;
    bench_result result;
    memset(&result, 0, sizeof(result));
    code = runner_open(&wanted.model, &wanted.runner, &r);
    if (code == CLI_OK) code = bench_model(&r, &wanted, &result);
    profile_close(&result.profile);
    runner_close(&r);
  }
  args_free(&cmd_bench_verb, &wanted);
  return code;
}
