/* Every op in a fast form and in awkward ones: unusual types, strides and sizes. A form's rate is its throughput on one
 * thread, in bytes moved or, for ops that compute more than they move, in operations; the slowest form is shown next to
 * the fast one. Forms are graphs, so the measurement includes rewriting, as for a model. bench_ops [--all] [--list]
 * [OP]... Prints the table of docs/benchmarks.md; --all also prints every form, with the kernels that ran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rows.h"
#include "work.h"

#define FORM_MS 40.0 /* per form */
#define MOST_RATIO 4.0
enum {
  LEAST_SAMPLES = 3
};

static void check(berth_status status, const berth_error *err, const char *what) {
  if (status == BERTH_OK) return;
  fprintf(stderr, "bench_ops: %s: %s\n", what, err->message);
  exit(1);
}

static double now_ms(void) { /* CPU time of this thread, because others may use the machine meanwhile */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- Elements ---- */

/* Small numbers, because they are also indices, lengths and positions. Floats are between 0 and 1. */
static void fill(berth_type type, void *data, size_t size) {
  const size_t each = berth_type_size(type), n = each != 0 ? size / each : 0;
  if (n == 0) { /* blocks: any bytes are valid */
    memset(data, 1, size);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const uint32_t random = (uint32_t)(i * 2654435761u) >> 8;
    const double real = random * 0x1p-24;
    switch (type) {
      case BERTH_F32: ((float *)data)[i] = (float)real; break;
      case BERTH_F64: ((double *)data)[i] = real; break;
      case BERTH_F16: ((uint16_t *)data)[i] = (uint16_t)(0x3000 + random % 0x0c00); break;
      case BERTH_BF16: ((uint16_t *)data)[i] = (uint16_t)(0x3e00 + random % 0x0180); break;
      case BERTH_BOOL: ((uint8_t *)data)[i] = random & 1; break;
      case BERTH_I64:
      case BERTH_U64: ((int64_t *)data)[i] = random % 4; break;
      case BERTH_I32:
      case BERTH_U32: ((int32_t *)data)[i] = (int32_t)(random % 4); break;
      case BERTH_I16:
      case BERTH_U16: ((int16_t *)data)[i] = (int16_t)(random % 4); break;
      default: ((uint8_t *)data)[i] = (uint8_t)(random % 4); break;
    }
  }
}

static void fill_values(berth_session *session, const berth_graph *graph) {
  berth_error err;
  for (berth_value v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    check(berth_graph_value(graph, v, &info, &err), &err, "a value");
    if (info.kind != BERTH_VALUE_PARAM && info.kind != BERTH_VALUE_INPUT) continue;
    void *data = malloc(info.size + 1);
    if (data == NULL) exit(1);
    fill(info.type, data, info.size);
    check(info.kind == BERTH_VALUE_PARAM ? berth_session_set_param(session, info.name, data, info.size, &err)
                                         : berth_session_write(session, info.name, data, info.size, &err),
          &err, info.name);
    free(data);
  }
}

/* ---- One form ---- */

typedef struct outcome {
  double ms, work; /* per run; bytes or operations */
  bool by_flops;
  uint32_t n_reference;
  char kernels[160];
} outcome;

static void list_kernels(const berth_plan *plan, outcome *out) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_error err;
  check(berth_plan_get_info(plan, &info, &err), &err, "a plan");
  berth_step_info *steps = calloc(info.n_steps + 1, sizeof *steps);
  uint32_t n;
  if (steps == NULL) exit(1);
  steps[0] = (berth_step_info)BERTH_STEP_INFO_INIT;
  check(berth_plan_steps(plan, steps, info.n_steps, &n, &err), &err, "its steps");
  out->kernels[0] = '\0';
  for (uint32_t i = 0; i < n; i++) {
    const size_t used = strlen(out->kernels);
    if (steps[i].is_prelude || steps[i].kind == BERTH_KERNEL_NONE) continue;
    const bool is_reference = steps[i].kind == BERTH_KERNEL_REFERENCE;
    out->n_reference += is_reference;
    snprintf(out->kernels + used, sizeof out->kernels - used, "%s%s%s", used != 0 ? ", " : "", steps[i].kernel,
             is_reference ? " (reference)" : "");
  }
  free(steps);
}

/* The work of the row's node or, if only rewriting makes it, of the node that it was made from. */
static void find_work(const berth_graph *graph, const op_row *row, outcome *out) {
  const char *op = row->made_of != NULL ? row->made_of : row->op;
  for (uint32_t n = 0; n < berth_graph_n_nodes(graph); n++) {
    berth_node_info info = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, n, &info, NULL) != BERTH_OK || strcmp(info.op, op) != 0) continue;
    const work done = work_of_node(graph, NULL, &info);
    out->by_flops = row->by_flops;
    out->work += row->by_flops ? done.flops : (double)done.bytes;
  }
}

static void time_runs(berth_session *session, outcome *out) {
  berth_error err;
  double spent = 0;
  int runs = 1;
  check(berth_session_run(session, &err), &err, "a run");
  for (int samples = 0; samples < LEAST_SAMPLES || spent < FORM_MS; samples++) {
    const double begin = now_ms();
    for (int i = 0; i < runs; i++) check(berth_session_run(session, &err), &err, "a run");
    const double taken = now_ms() - begin;
    if (samples == 0 || taken / runs < out->ms) out->ms = taken / runs;
    spent += taken;
    if (taken < 0.2 && runs < 10000) runs *= 4;
  }
}

static outcome measure(berth_context *ctx, const op_row *row, const char *form) {
  char text[2048];
  berth_graph *graph;
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  outcome out = {0};
  snprintf(text, sizeof text, "graph \"%s\" {\n%s\noutput \"y\" = %%y\n}", row->op, form);
  check(berth_graph_parse(ctx, text, strlen(text), &graph, &err), &err, text);
  desc.n_threads = 1;
  check(berth_session_create(graph, &desc, &session, &err), &err, text);
  find_work(graph, row, &out);
  if (out.work <= 0) {
    fprintf(stderr, "bench_ops: %s: a form without work\n%s\n", row->op, text);
    exit(1);
  }
  fill_values(session, graph);
  list_kernels(berth_session_plan(session), &out);
  time_runs(session, &out);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return out;
}

/* ---- The table ---- */

static double rate_of(const outcome *o) { return o->work / o->ms * 1e-6; }

static const char *in_one_line(const char *form, char *out, size_t size) {
  size_t n = 0;
  for (; *form != '\0' && n + 2 < size; form++) {
    if (*form == '\n') out[n++] = ';';
    if (*form != '%' && *form != '\n') out[n++] = *form;
    if (*form == '\n') out[n++] = ' ';
  }
  out[n] = '\0';
  return out;
}

static int show(berth_context *ctx, const op_row *row, bool all) {
  char line[512], fast_line[512];
  outcome fast, slow = {0};
  const char *slowest = NULL;
  if (row->forms[0] == NULL) {
    printf("| `%s` | | | | | | %s |\n", row->op, row->reason);
    return 0;
  }
  fast = measure(ctx, row, row->forms[0]);
  if (all) printf("%9.3f ms %7.2f G/s  %s  [%s]\n", fast.ms, rate_of(&fast), row->forms[0], fast.kernels);
  for (int i = 1; i < OP_FORMS && row->forms[i] != NULL; i++) {
    const outcome o = measure(ctx, row, row->forms[i]);
    if (all) printf("%9.3f ms %7.2f G/s  %s  [%s]\n", o.ms, rate_of(&o), row->forms[i], o.kernels);
    if (slowest != NULL && rate_of(&o) >= rate_of(&slow)) continue;
    slow = o;
    slowest = row->forms[i];
  }
  const double ratio = slowest != NULL ? rate_of(&fast) / rate_of(&slow) : 1;
  const bool needs_reason = ratio > MOST_RATIO && row->reason == NULL;
  printf("| `%s` | %s | %.2f | %s | %.2f | %s%.1f | %s%s |\n", row->op,
         in_one_line(row->forms[0], fast_line, sizeof fast_line), rate_of(&fast),
         slowest != NULL ? in_one_line(slowest, line, sizeof line) : "", slowest != NULL ? rate_of(&slow) : 0,
         slow.n_reference != 0 ? "R " : "", ratio, row->reason != NULL ? row->reason : "",
         needs_reason ? "**no reason given**" : "");
  fflush(stdout);
  return needs_reason;
}

static bool is_wanted(const op_row *row, int n, char **names) {
  bool any = false;
  for (int i = 1; i < n; i++) {
    if (names[i][0] == '-') continue;
    any = true;
    if (strcmp(names[i], row->op) == 0) return true;
  }
  return !any;
}

static const op_row *const tables[] = {rows_elementwise, rows_products, rows_windows, rows_moves, rows_sequences};

int main(int argc, char **argv) {
  berth_context *ctx;
  berth_error err;
  bool all = false;
  int without_reason = 0;
  for (int i = 1; i < argc; i++) all = all || strcmp(argv[i], "--all") == 0;
  check(berth_context_create(NULL, &ctx, &err), &err, "a context");
  printf("| op | fast form | rate | slowest form | rate | times slower | why |\n|---|---|---:|---|---:|---:|---|\n");
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const op_row *row = tables[t]; row->op != NULL; row++)
      if (is_wanted(row, argc, argv)) without_reason += show(ctx, row, all);
  berth_context_destroy(ctx);
  if (without_reason != 0)
    fprintf(stderr, "bench_ops: %d ops are more than %.0f times slower in one form, without a reason in their row\n",
            without_reason, MOST_RATIO);
  return without_reason != 0;
}
