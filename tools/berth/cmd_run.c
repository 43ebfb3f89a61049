/* berth run: runs a model, and shows its inputs, outputs and memory. */
#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "cmd.h"
#include "digits.h"
#include "format.h"
#include "generation_plan.h"
#include "json.h"
#include "outputs.h"
#include "runner.h"

typedef struct run_options {
  model_options model;
  runner_options runner;
  const char *output_dir;
  uint64_t runs;
  bool check, json;
} run_options;

static const arg_option options[] = {
    RUNNER_OPTION_ROWS(run_options),
    MODEL_OPTION_ROWS(run_options),
    MODEL_THREADS_ROW(run_options),
    {"output-dir", 0, ARG_TEXT, "DIR", "write every output to DIR/<name>.npy", offsetof(run_options, output_dir), 0, 0},
    {"runs", 0, ARG_COUNT, "N", "run N times in a row; states carry over from run to run (1)",
     offsetof(run_options, runs), 1, 0},
    {"check", 0, ARG_FLAG, NULL, "compare every node with the reference kernels", offsetof(run_options, check), 0, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(run_options, json), 0, 0},
};

const arg_verb cmd_run_verb = {
    .name = "run",
    .purpose = "run a model and show its outputs and the memory it took",
    .operand = "MODEL",
    .operand_offset = offsetof(run_options, model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Without MODEL it runs the built-in digit classifier on sample digits; --dim batch=10 shows all ten.\n"
        "\n" RUNNER_DETAILS "\n" CHECK_DETAILS,
    .examples =
        "  berth run --dim batch=10\n"
        "  berth run model.berth --weights model.safetensors --input image=cat.npy --output-dir out\n",
};

typedef struct run_result {
  outputs outputs, states;
  check_result check;
  double ms; /* of the last run */
} run_result;

static int run_print_json(const runner *r, const run_options *wanted, const run_result *result) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  outputs_write_json("outputs", &result->outputs, &out);
  outputs_write_json("states", &result->states, &out);
  json_uint(&out, "runs", wanted->runs);
  json_double(&out, "ms", result->ms);
  json_uint(&out, "arena_size", berth_plan_arena_size(berth_session_plan(r->session)));
  json_string(&out, "device", model_device(&wanted->model));
  dims_write_json(&r->model.dims, &out);
  if (wanted->check) check_write_json(&result->check, &out);
  json_close_object(&out);
  return json_print(&out);
}

static int run_print_text(const runner *r, const run_options *wanted, const run_result *result) {
  berth_plan_info info = cli_plan_info(berth_session_plan(r->session));
  int code = r->model.built_in ? digits_print(r, &result->outputs) : CLI_OK;
  outputs_print("output", &result->outputs);
  if (wanted->runs == 1) outputs_print("state", &result->states); /* otherwise every run has printed them */
  if (wanted->runs != 1) printf("%" PRIu64 " runs, the last: ", wanted->runs);
  printf("ran in %.3f ms on %s, %u thread%s\n", result->ms, model_device(&wanted->model),
         berth_session_n_threads(r->session), cli_plural(berth_session_n_threads(r->session)));
  format_memory(&info);
  if (wanted->check) check_print(&result->check);
  return code;
}

static int run_once(runner *r, const run_options *wanted, uint64_t run, run_result *result) {
  int code = run == 1 ? CLI_OK : runner_write_inputs(r, r->session);
  if (code != CLI_OK) return code;
  double start = cli_now_ms();
  code = runner_run_shown(r->session);
  result->ms = cli_now_ms() - start;
  if (code == CLI_OK) code = states_read(r->session, &result->states);
  if (code != CLI_OK || wanted->json || wanted->runs == 1 || result->states.n == 0) return code;
  printf("run %" PRIu64 "\n", run);
  outputs_print("  state", &result->states);
  return CLI_OK;
}

static int run_model(runner *r, const run_options *wanted, run_result *result) {
  int code = CLI_OK;
  for (uint64_t run = 1; run <= wanted->runs && code == CLI_OK; run++) code = run_once(r, wanted, run, result);
  if (code == CLI_OK) code = outputs_read(r, &result->outputs);
  if (code == CLI_OK && wanted->output_dir) code = outputs_save(r, wanted->output_dir, &result->outputs);
  if (code == CLI_OK && wanted->check) code = check_run(r, &result->check);
  if (code != CLI_OK) return code;
  code = wanted->json ? run_print_json(r, wanted, result) : run_print_text(r, wanted, result);
  if (code != CLI_OK || !wanted->check || result->check.ok) return code;
  return cli_failed("node '%s' differs from the reference by more than the tolerance",
                    result->check.nodes[result->check.worst].name);
}

int cmd_run(int argc, char **argv) {
  run_options wanted = {.runs = 1};
  int code;
  if (args_parse(&cmd_run_verb, argc, argv, &wanted, &code)) {
    runner r;
    run_result result;
    memset(&result, 0, sizeof(result));
    code = runner_open(&wanted.model, &wanted.runner, &r);
    if (code == CLI_OK && generation_is(r.model.graph) && wanted.runner.inputs.n == 0)
      cli_note("this is one step on made-up tokens; `berth generate %s -p TEXT` continues a text", wanted.model.path);
    if (code == CLI_OK) code = run_model(&r, &wanted, &result);
    check_close(&result.check);
    outputs_close(&result.outputs);
    outputs_close(&result.states);
    runner_close(&r);
  }
  args_free(&cmd_run_verb, &wanted);
  return code;
}
