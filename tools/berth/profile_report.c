/* A profile as text, and as part of the JSON of `bench`. */
#include <stdio.h>

#include "format.h"
#include "profile.h"

enum {
  shown_nodes = 20,
  shown_name = 40 /* characters of a name; the last ones are the most informative */
};

static const char *short_name(const char *name, char out[FORMAT_SIZE]) {
  size_t length = strlen(name);
  if (length <= shown_name) return name;
  snprintf(out, FORMAT_SIZE, "...%s", name + length - (shown_name - 3));
  return out;
}

static void tool_profile_report_print_row(const profile *p, const profile_row *row, const char *label) {
  char bytes[FORMAT_SIZE];
  printf("%10.4f %6.1f %% %10s %9.1f %8.1f %7.0f %%", row->ms, 100 * profile_share(p, row),
         format_short_bytes(row->work.bytes, bytes), profile_gb_per_s(row), profile_gflops(row),
         100 * profile_of_peak(row));
  printf("  %s\n", label);
}

static void tool_profile_report_print_head(const char *label) {
  printf("%10s %8s %10s %9s %8s %9s  %s\n", "ms", "share", "moved", "GB/s", "GFLOP/s", "of peak", label);
}

static void print_peak(const peak *best) {
  char bytes[FORMAT_SIZE];
  printf("\nthe %s at its best: %.*f GFLOP/s in %s; moving", best->is_device ? "device" : "machine",
         best->gflops < 1 ? 3 : 1, best->gflops, best->is_device ? "a product" : "registers");
  for (int i = 0; i < PEAK_COPIES; i++)
    printf("%s %s at %.1f", i ? "," : "", format_short_bytes(best->copies[i].bytes, bytes), best->copies[i].gb_per_s);
  printf(" GB/s\n");
}

static const char *const clock_names[] = {"host", "device", "none"}; /* by berth_clock */
static const char *const clock_sentences[] = {"by the host's clock", "by the device's own clock",
                                              "and without times: the device has no clock that can be read"};

static void tool_profile_report_op_label(const profile_row *row, char *out, size_t size) {
  if (row->n_reference == 0)
    snprintf(out, size, "%s (%u)", row->op, row->n_nodes);
  else
    snprintf(out, size, "%s (%u, %u on the REFERENCE kernel)", row->op, row->n_nodes, row->n_reference);
}

/* The node, its op, its kernel if that has another name, and anything unusual. */
static void tool_profile_report_node_label(const profile *p, const profile_row *row, char *out, size_t size) {
  char name[FORMAT_SIZE], kernel[FORMAT_SIZE + 16] = "";
  const berth_step_info *step = row->step;
  bool on_host = step && step->kernel[0] && strcmp(step->device, "cpu") == 0 && p->on_gpu;
  bool is_reference = step && step->kind == BERTH_KERNEL_REFERENCE;
  if (is_reference)
    snprintf(kernel, sizeof(kernel), ": REFERENCE kernel");
  else if (step && step->kernel[0] && strcmp(step->kernel, row->op) != 0)
    snprintf(kernel, sizeof(kernel), ": %s", step->kernel);
  snprintf(out, size, "%s (%s%s%s)", short_name(row->name, name), row->op, kernel, on_host ? ", on the host" : "");
}

void profile_print(const profile *p) {
  char label[4 * FORMAT_SIZE];
  uint32_t shown = p->n_nodes < shown_nodes ? p->n_nodes : shown_nodes;
  if (p->peak.gflops > 0) print_peak(&p->peak);
  printf("\nby op, mean of %u observed run%s of %.4f ms, %s\n", p->n_runs, cli_plural(p->n_runs), p->run_ms,
         clock_sentences[p->clock]);
  tool_profile_report_print_head("op (nodes)");
  for (uint32_t i = 0; i < p->n_ops; i++) {
    tool_profile_report_op_label(&p->ops[i], label, sizeof(label));
    tool_profile_report_print_row(p, &p->ops[i], label);
  }
  tool_profile_report_print_row(p, &p->total, "all kernels");
  printf("\nslowest nodes, %u of %u\n", shown, p->n_nodes);
  tool_profile_report_print_head("node (op: kernel)");
  for (uint32_t i = 0; i < shown; i++) {
    tool_profile_report_node_label(p, &p->nodes[i], label, sizeof(label));
    tool_profile_report_print_row(p, &p->nodes[i], label);
  }
}

static void write_row(json *out, const profile *p, const profile_row *row) {
  json_open_object(out, NULL);
  if (row->name) json_string(out, "name", row->name);
  json_string(out, "op", row->op);
  if (!row->name) json_uint(out, "nodes", row->n_nodes);
  if (!row->name) json_uint(out, "reference_nodes", row->n_reference);
  if (row->name && row->step) steps_write_kernel(row->step, p->device, out);
  json_double(out, "ms", row->ms);
  json_double(out, "share", profile_share(p, row));
  json_uint(out, "bytes", row->work.bytes);
  json_double(out, "flops", row->work.flops);
  json_double(out, "gb_per_s", profile_gb_per_s(row));
  json_double(out, "gflops", profile_gflops(row));
  json_double(out, "of_peak", profile_of_peak(row));
  json_close_object(out);
}

static void write_rows(json *out, const char *key, const profile *p, const profile_row *rows, uint32_t n) {
  json_open_array(out, key);
  for (uint32_t i = 0; i < n; i++) write_row(out, p, &rows[i]);
  json_close_array(out);
}

static void write_peak(json *out, const peak *best) {
  json_open_object(out, "peak");
  json_double(out, "gflops", best->gflops);
  json_open_array(out, "copies");
  for (int i = 0; i < PEAK_COPIES; i++) {
    json_open_object(out, NULL);
    json_uint(out, "bytes", best->copies[i].bytes);
    json_double(out, "gb_per_s", best->copies[i].gb_per_s);
    json_close_object(out);
  }
  json_close_array(out);
  json_close_object(out);
}

void profile_write_json(const profile *p, json *out) {
  json_open_object(out, "profile");
  json_uint(out, "observed_runs", p->n_runs);
  json_string(out, "clock", clock_names[p->clock]);
  json_double(out, "run_ms", p->run_ms);
  json_double(out, "kernels_ms", p->total.ms);
  json_uint(out, "bytes", p->total.work.bytes);
  json_double(out, "flops", p->total.work.flops);
  json_uint(out, "reference_nodes", p->total.n_reference);
  if (p->peak.gflops > 0) write_peak(out, &p->peak);
  write_rows(out, "ops", p, p->ops, p->n_ops);
  write_rows(out, "nodes", p, p->nodes, p->n_nodes);
  json_close_object(out);
}
