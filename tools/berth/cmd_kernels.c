/* berth kernels: the compiled kernels of a model in one file, for machines that have a driver and no compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "generation.h"
#include "inputs.h"
#include "model.h"
#include "out.h"

typedef struct kernels_options {
  model_options model;
  arg_list inputs;
  uint64_t ctx, chunk;
  const char *output, *target;
} kernels_options;

#define FIELD(name) offsetof(kernels_options, name)
static const arg_option options[] = {
    INPUT_OPTION_ROW(FIELD(inputs)),
    MODEL_OPTION_ROWS(kernels_options),
    MODEL_THREADS_ROW(kernels_options),
    {"output", 'o', ARG_TEXT, "FILE", "where to write the pack; - is stdout", FIELD(output), 0, 0},
    {"target", 0, ARG_TEXT, "LIST",
     "sm_90: code for GPUs of that kind; compute_80: for it and newer ones (the GPU here)", FIELD(target), 0, 0},
    {"ctx", 0, ARG_COUNT, "N", "tokens of context of a GGUF model (0: what it was made for, at most 4096)", FIELD(ctx),
     0, INT32_MAX},
    {"chunk", 0, ARG_COUNT, "N", "tokens of text that a GGUF model reads at a time (0: 64)", FIELD(chunk), 0,
     INT32_MAX},
    {"kv", 0, ARG_TEXT, "f32|f16|bf16|q8_0", "how a GGUF model keeps keys and values (f16)", FIELD(model.kv), 0, 0},
};

const arg_verb cmd_kernels_verb = {
    .name = "kernels",
    .purpose = "compile the GPU kernels of a model into one file",
    .operand = "MODEL",
    .operand_offset = FIELD(model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "For the device cuda. A machine with NVIDIA's driver and BERTH_KERNEL_PACK=FILE runs the model with the same\n"
        "dimensions and options without a compiler. With --target no GPU is needed to make the file, but NVRTC is.\n",
    .examples =
        "  berth kernels model.onnx --dim batch=1 -o model.pack --target sm_90,compute_80\n"
        "  BERTH_KERNEL_PACK=model.pack berth run model.onnx --dim batch=1 --device cuda\n",
};

/* What GPUs of the targets, here or not, are planned for as: all before sm_80, whose matrix units are not used; some of
 * sm_90, which ask for kernels that no other can have; or neither. Targets that are none are left to the library. */
static const char *kernels_profile(const char *targets) {
  enum {
    FIRST_WITH_UNITS = 80,
    WITH_WARPGROUPS = 90
  };
  const char *profile = "turing", *at = targets;
  for (;;) {
    const size_t word = strcspn(at, "_,"), end = strcspn(at, ",");
    const long number = at[word] == '_' ? strtol(at + word + 1, NULL, 10) : FIRST_WITH_UNITS;
    if (number == WITH_WARPGROUPS && strncmp(at, "sm_", 3) == 0) return "hopper";
    if (number >= FIRST_WITH_UNITS) profile = "nvidia";
    if (at[end] == '\0') return profile;
    at += end + 1;
  }
}

typedef struct packing {
  const berth_plan *plans[2];
  uint32_t n;
  const char *target;
} packing;

static berth_status kernels_make(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  const packing *p = subject;
  return berth_kernels_pack(p->plans, p->n, p->target, write, user, err);
}

/* The plan that `run` and `bench` make. */
static int kernels_of_model(const kernels_options *wanted, model *m, berth_plan_desc *desc) {
  berth_error err = {BERTH_OK, ""};
  berth_plan *plan = NULL;
  if (wanted->ctx || wanted->chunk || wanted->model.kv)
    return cli_usage("--ctx, --chunk and --kv are for GGUF models that generate text");
  dims_default(&m->dims, m->graph);
  desc->flags |= BERTH_PLAN_INPUTS_DIE;
  desc->dims = m->dims.items;
  desc->n_dims = m->dims.n;
  if (berth_plan_create(m->graph, desc, &plan, &err) != BERTH_OK) return inputs_explain(m->graph, &err);
  const packing p = {{plan}, 1, wanted->target};
  const int code = out_make(wanted->output, kernels_make, &p);
  berth_plan_destroy(plan);
  return code;
}

static int kernels_of_generator(const kernels_options *wanted, const model *m, const berth_plan_desc *desc) {
  berth_error err = {BERTH_OK, ""};
  generation plans = {.reading = NULL};
  uint64_t made_with;
  int64_t ctx, chunk;
  int code = generation_made_with(m->ctx, wanted->model.path, &made_with);
  if (code != CLI_OK) return code;
  generation_sizes(made_with, generation_dim(m, "ctx", wanted->ctx), generation_dim(m, "rows", wanted->chunk), &ctx,
                   &chunk);
  if (generation_plan(m->graph, desc, ctx, chunk, &plans, &err) != BERTH_OK) return cli_report(&err);
  const packing p = {{plans.reading, plans.writing}, 2, wanted->target};
  code = out_make(wanted->output, kernels_make, &p);
  generation_close(&plans);
  return code;
}

static int kernels_write(const kernels_options *wanted, model *m) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags |= model_plan_flags(&wanted->model);
  desc.device = wanted->model.device;
  desc.gpu_profile = wanted->model.gpu_profile;
  desc.compute = model_compute(&wanted->model);
  const int code = generation_is(m->graph) && wanted->model.path ? kernels_of_generator(wanted, m, &desc)
                                                                 : kernels_of_model(wanted, m, &desc);
  if (code == CLI_OK && strcmp(wanted->output, "-") != 0) printf("wrote %s\n", wanted->output);
  return code;
}

int cmd_kernels(int argc, char **argv) {
  kernels_options wanted = {.model = {.device = NULL}};
  int code;
  if (args_parse(&cmd_kernels_verb, argc, argv, &wanted, &code)) {
    if (!wanted.model.device) wanted.model.device = "cuda";
    if (wanted.target && !wanted.model.gpu_profile) wanted.model.gpu_profile = kernels_profile(wanted.target);
    model_options opened = wanted.model;
    if (wanted.target) opened.device = NULL; /* which need not be here */
    model m;
    inputs given = {NULL, 0};
    code = wanted.output ? model_open(&opened, &m) : cli_usage("-o FILE says where to write the pack");
    if (wanted.output) {
      if (code == CLI_OK) code = inputs_read(&m, &wanted.inputs, &given);
      if (code == CLI_OK) code = inputs_fix(&m, &given, wanted.model.device);
      if (code == CLI_OK) code = kernels_write(&wanted, &m);
      inputs_close(&m, &given);
      model_close(&m);
    }
  }
  args_free(&cmd_kernels_verb, &wanted);
  return code;
}
