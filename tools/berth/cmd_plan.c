/* berth plan: where and when every value of a model lives, without running it. */
#include <stdio.h>

#include "bounds.h"
#include "budget.h"
#include "cmd.h"
#include "fit.h"
#include "format.h"
#include "inputs.h"
#include "json.h"
#include "loadchart.h"
#include "model.h"
#include "out.h"
#include "segments.h"
#include "steps.h"

typedef struct plan_options {
  model_options model;
  arg_list inputs;
  uint64_t align, effort, budget, ctx, chunk, fit;
  const char *order, *report, *picture, *csv, *kernels;
  bool no_reuse, no_inplace, f32_uniform, keep_inputs, json;
} plan_options;

#define FIELD(name) offsetof(plan_options, name)
static const arg_option options[] = {
    INPUT_OPTION_ROW(FIELD(inputs)),
    MODEL_OPTION_ROWS(plan_options),
    MODEL_THREADS_ROW(plan_options),
    {"align", 0, ARG_BYTES, "N",
     "alignment of every slot in bytes, a power of two (64; less for small activations on the CPU)", FIELD(align), 1,
     0},
    {"order", 0, ARG_TEXT, "source|memory",
     "node order: as in the file, or another where one is found that needs less memory (memory)", FIELD(order), 0, 0},
    {"effort", 0, ARG_COUNT, "N", "search steps of the packer; 0: its default (0)", FIELD(effort), 0, 0},
    {"budget", 0, ARG_BYTES, "BYTES", "largest arena to use, for example 64K or 2M; recomputes and splits where needed",
     FIELD(budget), 1, 0},
    {"ctx", 0, ARG_COUNT, "N", "context length of a GGUF model in tokens; 0: that of the model, at most 4096 (0)",
     FIELD(ctx), 0, INT32_MAX},
    {"chunk", 0, ARG_COUNT, "N", "tokens of the prompt that a GGUF model reads at a time; 0: 64 (0)", FIELD(chunk), 0,
     INT32_MAX},
    {"kv", 0, ARG_TEXT, "f32|f16|bf16|q8_0", "type of the KV cache of a GGUF model (f16)", FIELD(model.kv), 0, 0},
    {"fit", 0, ARG_BYTES, "BYTES", "find the largest --ctx, --kv and --chunk of a GGUF model that fit in BYTES",
     FIELD(fit), 1, 0},
    {"no-reuse", 0, ARG_FLAG, NULL, "share no memory: give every value its own bytes", FIELD(no_reuse), 0, 0},
    {"no-inplace", 0, ARG_FLAG, NULL, "compute nothing in place", FIELD(no_inplace), 0, 0},
    {"keep-inputs", 0, ARG_FLAG, NULL, "keep inputs for the whole run, so that the next run need not write them again",
     FIELD(keep_inputs), 0, 0},
    {"f32-uniform", 0, ARG_FLAG, NULL, "store every element in four bytes, whatever its type", FIELD(f32_uniform), 0,
     0},
    {"report", 0, ARG_TEXT, "FILE", "write the slots as text: offset, size and node", FIELD(report), 0, 0},
    {"picture", 0, ARG_TEXT, "FILE", "draw the plan into a .svg or .html file", FIELD(picture), 0, 0},
    {"csv", 0, ARG_TEXT, "FILE", "write the buffers as CSV for `berth pack` and MiniMalloc", FIELD(csv), 0, 0},
    {"kernels", 0, ARG_TEXT, "FILE", "write the GPU kernels of the plan, in the kernel language", FIELD(kernels), 0, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", FIELD(json), 0, 0},
};

const arg_verb cmd_plan_verb = {
    .name = "plan",
    .purpose = "plan the one block of memory that a model needs",
    .operand = "MODEL",
    .operand_offset = FIELD(model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Without MODEL it plans the built-in digit classifier. Nothing runs and no weights are needed. Of the inputs\n"
        "given, only the shapes are used, and the values of those that shapes depend on.\n",
    .examples =
        "  berth plan --dim batch=10 --picture plan.html\n"
        "  berth plan model.berth --order memory --budget 2M --json\n"
        "  berth plan model.gguf --ctx 2048\n"
        "  berth plan model.gguf --fit 4G\n",
};

static bool is_stdout(const char *path) { return path && strcmp(path, "-") == 0; }

static int plan_check_options(const plan_options *wanted) {
  berth_report_kind kind;
  if (wanted->align & (wanted->align - 1)) {
    return cli_usage("--align takes a power of two, not %llu", (unsigned long long)wanted->align);
  }
  if (wanted->order && strcmp(wanted->order, "source") != 0 && strcmp(wanted->order, "memory") != 0) {
    return cli_usage("--order takes source or memory, not '%s'", wanted->order);
  }
  if (wanted->picture && !out_picture_kind(wanted->picture, &kind)) return CLI_USAGE;
  bool stdout_taken = is_stdout(wanted->report) || is_stdout(wanted->csv) || is_stdout(wanted->kernels);
  if (wanted->json && stdout_taken) return cli_usage("--json and a file on standard output cannot be combined");
  return CLI_OK;
}

static berth_plan_desc plan_describe(const plan_options *wanted, const model *m) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  if (wanted->no_reuse) desc.flags |= BERTH_PLAN_NO_REUSE;
  if (wanted->no_inplace) desc.flags |= BERTH_PLAN_NO_INPLACE;
  /* A generator keeps its inputs, which are small. */
  if (!wanted->keep_inputs && !generation_is(m->graph)) desc.flags |= BERTH_PLAN_INPUTS_DIE;
  desc.flags |= model_plan_flags(&wanted->model);
  if (wanted->f32_uniform) desc.flags |= BERTH_PLAN_F32_UNIFORM;
  if (wanted->order && strcmp(wanted->order, "source") == 0) desc.order = BERTH_ORDER_SOURCE;
  if (wanted->align) desc.align = wanted->align;
  desc.effort = wanted->effort;
  desc.budget = wanted->budget;
  desc.device = wanted->model.device;
  desc.gpu_profile = wanted->model.gpu_profile;
  desc.compute = model_compute(&wanted->model);
  desc.dims = m->dims.items;
  desc.n_dims = m->dims.n;
  return desc;
}

/* The cost of the budget, relative to the same plan without one. */
static int price_budget(const plan_options *wanted, const model *m, const berth_plan *plan, double *extra_flops) {
  berth_plan_desc desc = plan_describe(wanted, m);
  berth_error err = {BERTH_OK, ""};
  berth_plan *without = NULL;
  berth_plan_info info = cli_plan_info(plan);
  *extra_flops = 0;
  if (info.n_recomputed == 0 && info.n_split == 0) return CLI_OK;
  desc.budget = 0;
  if (berth_plan_create(m->graph, &desc, &without, &err) != BERTH_OK) return cli_report(&err);
  *extra_flops = budget_extra_flops(plan, without);
  berth_plan_destroy(without);
  return CLI_OK;
}

typedef struct report {
  const berth_plan *plan;
  berth_report_kind kind;
} report;

static berth_status make_report(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  const report *wanted = subject;
  return berth_plan_report(wanted->plan, wanted->kind, write, user, err);
}

static int write_report(const char *path, const berth_plan *plan, berth_report_kind kind) {
  return path ? out_make(path, make_report, &(report){plan, kind}) : CLI_OK;
}

static berth_status make_kernels(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  return berth_plan_kernels(subject, write, user, err);
}

static int plan_write_files(const plan_options *wanted, const berth_plan *plan) {
  berth_report_kind picture = BERTH_REPORT_SVG;
  if (wanted->picture) out_picture_kind(wanted->picture, &picture);
  int code = write_report(wanted->report, plan, BERTH_REPORT_TEXT);
  if (code == CLI_OK) code = write_report(wanted->csv, plan, BERTH_REPORT_CSV);
  if (code == CLI_OK) code = write_report(wanted->picture, plan, picture);
  if (code == CLI_OK && wanted->kernels) code = out_make(wanted->kernels, make_kernels, plan);
  return code;
}

/* The results to report. */
typedef struct result {
  const berth_plan *plan;
  double ms, extra_flops;
  step_list steps;
  generation plans; /* for a model that generates text: `plan` is one of them */
  bool generates;
  fit_request request; /* with --fit */
  fit_answer answer;
} result;

/* Bytes of the arena by stored type, over values that own bytes. */
static void storages_write_json(const berth_plan *plan, json *out) {
  static const berth_type types[] = {
#define TYPE(name, value, text, bytes) BERTH_##name,
      BERTH_TYPE_MAP(TYPE)
#undef TYPE
#define TYPE(name, value, text, elements, bytes) BERTH_##name,
          BERTH_BLOCK_TYPE_MAP(TYPE)
#undef TYPE
  };
  berth_plan_info info = cli_plan_info(plan);
  json_open_object(out, "storages");
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
    uint64_t total = 0;
    for (berth_value v = 0; v < info.n_values; v++) {
      berth_slot slot = BERTH_SLOT_INIT;
      bool owns = berth_plan_slot(plan, v, &slot, NULL) == BERTH_OK && slot.root == v;
      if (owns && slot.offset != BERTH_OFFSET_NONE && slot.storage.type == types[t]) total += slot.size;
    }
    if (total) json_uint(out, berth_type_name(types[t]), total);
  }
  json_close_object(out);
}

static int plan_print_json(const plan_options *wanted, const result *made, const dims *bound) {
  const berth_plan *plan = made->plan;
  berth_plan_info plan_info = cli_plan_info(plan), *info = &plan_info;
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_uint(&out, "arena_size", info->arena_size);
  json_uint(&out, "weights_size", info->weights_size);
  json_uint(&out, "state_size", info->state_size);
  json_uint(&out, "activations_size", info->activations_size);
  json_uint(&out, "activations_lower_bound", info->activations_lower_bound);
  json_uint(&out, "scratch_size", info->scratch_size);
  json_uint(&out, "preparation_size", info->preparation_size);
  json_uint(&out, "preparation_peak", info->preparation_peak);
  json_uint(&out, "total_unshared", info->total_unshared);
  json_uint(&out, "saved", info->saved);
  json_bool(&out, "optimal", info->optimal != 0);
  json_bool(&out, "order_optimal", info->order_optimal != 0);
  json_uint(&out, "n_values", info->n_values);
  json_uint(&out, "n_buffers", info->n_buffers);
  json_uint(&out, "n_steps", info->n_steps);
  json_uint(&out, "pack_nodes", info->pack_nodes);
  json_double(&out, "plan_ms", made->ms);
  if (wanted->budget != 0) budget_write_json(plan, wanted->budget, made->extra_flops, &out);
  if (made->generates) generation_write_json(&made->plans, made->answer.kv, &out);
  if (wanted->fit != 0) fit_write_json(&made->request, &made->answer, &out);
  json_string(&out, "device", model_device(&wanted->model));
  if (berth_plan_gpu_profile(plan)) json_string(&out, "gpu_profile", berth_plan_gpu_profile(plan));
  if (berth_plan_gpu_profile(plan)) json_string(&out, "compute", berth_compute_name(model_compute(&wanted->model)));
  storages_write_json(plan, &out);
  dims_write_json(bound, &out);
  bounds_write_json(berth_plan_graph(plan), &out);
  int code = segments_write_json(plan, model_device(&wanted->model), &out);
  steps_write_json(plan, &made->steps, model_device(&wanted->model), &out);
  json_close_object(&out);
  if (code == CLI_OK) return json_print(&out);
  json_free(&out);
  return code;
}

static int plan_print_text(const plan_options *wanted, const model *m, const result *made) {
  const berth_plan *plan = made->plan;
  berth_plan_info info = cli_plan_info(plan);
  printf("plan of %s: %u step%s, %u value%s in %u buffer%s, planned in %.3f ms\n", berth_graph_name(m->graph),
         info.n_steps, cli_plural(info.n_steps), info.n_values, cli_plural(info.n_values), info.n_buffers,
         cli_plural(info.n_buffers), made->ms);
  format_memory(&info);
  if (made->generates) generation_print(&made->plans, made->answer.kv);
  if (info.order_optimal) printf("order: no other order of the nodes needs less (proven)\n");
  if (wanted->budget != 0) budget_print(plan, made->extra_flops);
  if (berth_plan_gpu_profile(plan)) printf("for a GPU: %s\n", berth_plan_gpu_profile(plan));
  if (wanted->model.compute) printf("products may be computed in %s\n", wanted->model.compute);
  bounds_print(berth_plan_graph(plan), "bound: output ");
  int code = segments_print(plan, model_device(&wanted->model));
  steps_print(plan, &made->steps);
  return code == CLI_OK ? loadchart_print(plan) : code;
}

static void print_written(const plan_options *wanted) {
  const char *files[] = {wanted->report, wanted->csv, wanted->picture, wanted->kernels};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
    if (files[i] && strcmp(files[i], "-") != 0) printf("wrote %s\n", files[i]);
  }
}

/* ---- Making plans ---- */

static int plan_make_one(const plan_options *wanted, model *m, berth_plan **plan, result *made) {
  berth_error err = {BERTH_OK, ""};
  if (wanted->ctx || wanted->chunk || wanted->fit || wanted->model.kv)
    return cli_usage("--ctx, --chunk, --kv and --fit are for GGUF models that generate text");
  dims_default(&m->dims, m->graph);
  berth_plan_desc desc = plan_describe(wanted, m);
  double start = cli_now_ms();
  if (berth_plan_create(m->graph, &desc, plan, &err) != BERTH_OK) return inputs_explain(m->graph, &err);
  made->ms = cli_now_ms() - start;
  made->plan = *plan;
  return CLI_OK;
}

static void plan_set_dim(model *m, const char *name, int64_t extent) {
  for (size_t i = 0; i < m->dims.n; i++)
    if (strcmp(m->dims.items[i].name, name) == 0) m->dims.items[i].extent = extent;
}

/* The result of --fit determines the plan's sizes and the model's cache. */
static int plan_fit(const plan_options *wanted, model *m, const berth_plan_desc *desc, uint64_t made_with,
                    result *made) {
  made->request = (fit_request){.model = &wanted->model,
                                .ctx = m->ctx,
                                .desc = desc,
                                .bytes = wanted->fit,
                                .made_with = made_with,
                                .want_ctx = generation_dim(m, "ctx", wanted->ctx),
                                .want_chunk = generation_dim(m, "rows", wanted->chunk),
                                .want_kv = wanted->model.kv};
  int code = fit_search(&made->request, &made->answer);
  return code == CLI_OK ? model_reload(&wanted->model, made->answer.kv, m) : code;
}

static int plan_make_pair(const plan_options *wanted, model *m, result *made) {
  berth_error err = {BERTH_OK, ""};
  uint64_t made_with;
  int64_t ctx, chunk;
  const berth_plan_desc desc = plan_describe(wanted, m);
  int code = generation_check_dims(m, wanted->ctx, wanted->chunk);
  if (code == CLI_OK) code = generation_made_with(m->ctx, wanted->model.path, &made_with);
  if (code != CLI_OK) return code;
  made->answer.kv = wanted->model.kv ? wanted->model.kv : "f16";
  generation_sizes(made_with, generation_dim(m, "ctx", wanted->ctx), generation_dim(m, "rows", wanted->chunk), &ctx,
                   &chunk);
  if (wanted->fit != 0) {
    code = plan_fit(wanted, m, &desc, made_with, made);
    ctx = made->answer.ctx;
    chunk = made->answer.chunk;
  }
  if (code != CLI_OK) return code;
  double start = cli_now_ms();
  if (generation_plan(m->graph, &desc, ctx, chunk, &made->plans, &err) != BERTH_OK) return cli_report(&err);
  made->ms = cli_now_ms() - start;
  made->generates = true;
  made->plan = generation_larger(&made->plans);
  berth_dim bound[BERTH_GENERATOR_DIMS];
  const int64_t rows = made->plan == made->plans.reading ? chunk : 1;
  size_t n = berth_generator_dims(m->graph, (uint32_t)ctx, (uint32_t)chunk, (uint32_t)rows, bound);
  while (n-- > 0) plan_set_dim(m, bound[n].name, bound[n].extent);
  return CLI_OK;
}

/* ---- The verb ---- */

static int plan_show(const plan_options *wanted, model *m, result *made) {
  int code = price_budget(wanted, m, made->plan, &made->extra_flops);
  if (code == CLI_OK) code = steps_read(made->plan, &made->steps);
  if (code == CLI_OK) code = plan_write_files(wanted, made->plan);
  if (code == CLI_OK && wanted->fit != 0 && !wanted->json) fit_print(&made->request, &made->answer);
  if (code == CLI_OK) code = wanted->json ? plan_print_json(wanted, made, &m->dims) : plan_print_text(wanted, m, made);
  if (code == CLI_OK && !wanted->json) print_written(wanted);
  steps_close(&made->steps);
  return code == CLI_OK && wanted->fit != 0 && !made->answer.fits ? CLI_FAILED : code;
}

static int plan_model(const plan_options *wanted, model *m) {
  berth_plan *plan = NULL;
  result made = {.plan = NULL};
  int code = generation_is(m->graph) && wanted->model.path ? plan_make_pair(wanted, m, &made)
                                                           : plan_make_one(wanted, m, &plan, &made);
  if (code == CLI_OK) code = plan_show(wanted, m, &made);
  generation_close(&made.plans);
  berth_plan_destroy(plan);
  return code;
}

int cmd_plan(int argc, char **argv) {
  plan_options wanted = {0};
  int code;
  if (args_parse(&cmd_plan_verb, argc, argv, &wanted, &code) && (code = plan_check_options(&wanted)) == CLI_OK) {
    model m;
    inputs given = {NULL, 0};
    code = model_open(&wanted.model, &m);
    if (code == CLI_OK) code = inputs_read(&m, &wanted.inputs, &given);
    if (code == CLI_OK) code = inputs_fix(&m, &given, wanted.model.device);
    if (code == CLI_OK) code = plan_model(&wanted, &m);
    inputs_close(&m, &given);
    model_close(&m);
  }
  args_free(&cmd_plan_verb, &wanted);
  return code;
}
