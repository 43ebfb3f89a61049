/* berth run: a model, its inputs, its outputs, and the memory that it took. */
#include <string.h>

#include "check.h"
#include "cmd.h"
#include "digits.h"
#include "format.h"
#include "json.h"
#include "outputs.h"
#include "runner.h"

typedef struct run_options {
  model_options model;
  runner_options runner;
  const char *output_dir;
  bool check, json;
} run_options;

static const arg_option options[] = {
    RUNNER_OPTION_ROWS(run_options),
    MODEL_OPTION_ROWS(run_options),
    MODEL_THREADS_ROW(run_options),
    {"output-dir", 0, ARG_TEXT, "DIR", "write every output to DIR/<name>.npy", offsetof(run_options, output_dir), 0, 0},
    {"check", 0, ARG_FLAG, NULL, "compare every node with the reference kernels", offsetof(run_options, check), 0, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(run_options, json), 0, 0},
};

const arg_verb cmd_run_verb = {
    .name = "run",
    .purpose = "run a model and show what it gives and the memory it took",
    .operand = "MODEL",
    .operand_offset = offsetof(run_options, model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Without MODEL it runs the digit classifier inside this program on sample digits; --dim batch=10 shows\n"
        "all ten of them.\n\n" RUNNER_DETAILS "\n" CHECK_DETAILS,
    .examples =
        "  berth run --dim batch=10\n"
        "  berth run model.berth --weights model.safetensors --input image=cat.npy --output-dir out\n",
};

typedef struct run_result {
  outputs outputs;
  check_result check;
  double ms;
} run_result;

static int print_json(const runner *r, const run_options *wanted, const run_result *result) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  outputs_write_json(&result->outputs, &out);
  json_double(&out, "ms", result->ms);
  json_uint(&out, "arena_size", berth_plan_arena_size(berth_session_plan(r->session)));
  json_string(&out, "device", model_device(&wanted->model));
  dims_write_json(&r->model.dims, &out);
  if (wanted->check) check_write_json(&result->check, &out);
  json_close_object(&out);
  return json_print(&out);
}

static int print_text(const runner *r, const run_options *wanted, const run_result *result) {
  berth_plan_info info = cli_plan_info(berth_session_plan(r->session));
  int code = r->model.built_in ? digits_print(r, &result->outputs) : CLI_OK;
  outputs_print(&result->outputs);
  printf("ran in %.3f ms on %s, %u thread%s\n", result->ms, model_device(&wanted->model),
         berth_session_n_threads(r->session), berth_session_n_threads(r->session) == 1 ? "" : "s");
  format_memory(&info);
  if (wanted->check) check_print(&result->check);
  return code;
}

static int run_model(runner *r, const run_options *wanted, run_result *result) {
  double start = cli_now_ms();
  int code = runner_run_shown(r->session);
  result->ms = cli_now_ms() - start;
  if (code == CLI_OK) code = outputs_read(r, &result->outputs);
  if (code == CLI_OK && wanted->output_dir) code = outputs_save(r, wanted->output_dir, &result->outputs);
  if (code == CLI_OK && wanted->check) code = check_run(r, &result->check);
  if (code != CLI_OK) return code;
  code = wanted->json ? print_json(r, wanted, result) : print_text(r, wanted, result);
  if (code != CLI_OK || !wanted->check || result->check.ok) return code;
  return cli_failed("node '%s' differs from the reference by more than the tolerance",
                    result->check.nodes[result->check.worst].name);
}

int cmd_run(int argc, char **argv) {
  run_options wanted = {0};
  int code;
  if (args_parse(&cmd_run_verb, argc, argv, &wanted, &code)) {
    runner r;
    run_result result;
    memset(&result, 0, sizeof(result));
    code = runner_open(&wanted.model, &wanted.runner, &r);
    if (code == CLI_OK) code = run_model(&r, &wanted, &result);
    check_close(&result.check);
    outputs_close(&result.outputs);
    runner_close(&r);
  }
  args_free(&cmd_run_verb, &wanted);
  return code;
}
