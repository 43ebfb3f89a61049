/* berth kernels: a model's compiled kernels in one file, for machines with a driver but no compiler. */
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
     "sm_90: code for that compute capability; compute_80: PTX for it and newer ones (this GPU)", FIELD(target), 0, 0},
    {"ctx", 0, ARG_COUNT, "N", "context length of a GGUF model in tokens; 0: that of the model, at most 4096 (0)",
     FIELD(ctx), 0, INT32_MAX},
    {"chunk", 0, ARG_COUNT, "N", "tokens of the prompt that a GGUF model reads at a time; 0: 64 (0)", FIELD(chunk), 0,
     INT32_MAX},
    {"kv", 0, ARG_TEXT, "f32|f16|bf16|q8_0", "type of the KV cache of a GGUF model (f16)", FIELD(model.kv), 0, 0},
};

const arg_verb cmd_kernels_verb = {
    .name = "kernels",
    .purpose = "compile the GPU kernels of a model into one file",
    .operand = "MODEL",
    .operand_offset = FIELD(model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "The device is cuda here, or another GPU that --device names (cuda:1). A machine with NVIDIA's driver and\n"
        "BERTH_KERNEL_PACK=FILE runs the model with the same dimensions and options without a compiler. With\n"
        "--target no GPU is needed to make the file, but NVRTC is.\n",
    .examples =
        "  berth kernels model.onnx --dim batch=1 -o model.pack --target sm_90,compute_80\n"
        "  BERTH_KERNEL_PACK=model.pack berth run model.onnx --dim batch=1 --device cuda\n",
};

/* ---- Targets ---- */

/* GPUs need different kernels: those before sm_80 have no supported matrix units, and those of 9.0 have kernels of
 * their own. A pack has each target with the plan for its kind. */
enum {
  N_KINDS = 3,
  MOST_PLANS = 2 * N_KINDS
};
static const char *const kernels_profiles[N_KINDS] = {"turing", "nvidia", "hopper"};

/* The compute capability of sm_N or compute_N, of `size` characters; 0: that is no target. */
static long kernels_capability(const char *target, size_t size) {
  enum {
    OLDEST = 50,
    MOST_DIGITS = 3
  };
  const size_t word = strncmp(target, "sm_", 3) == 0 ? 3 : strncmp(target, "compute_", 8) == 0 ? 8 : 0;
  const size_t digits = strspn(target + word, "0123456789");
  if (word == 0 || digits == 0 || digits > MOST_DIGITS || word + digits != size || target[word] == '0') return 0;
  const long capability = strtol(target + word, NULL, 10);
  return capability >= OLDEST ? capability : 0;
}

static int kernels_check_targets(const char *targets) {
  for (const char *at = targets;; at++) {
    const size_t end = strcspn(at, ",");
    if (kernels_capability(at, end) == 0)
      return cli_usage(
          "'%.*s' is not a target: --target takes a list of sm_N (code) and compute_N (PTX), where N is a "
          "compute capability such as 75, 80, 86, 89, 90, 100 or 120",
          (int)end, at);
    at += end;
    if (*at == '\0') return CLI_OK;
  }
}

static size_t kernels_kind(const char *target) {
  enum {
    FIRST_WITH_UNITS = 80,
    WITH_WARPGROUPS = 90
  };
  const long capability = kernels_capability(target, strcspn(target, ","));
  if (capability == WITH_WARPGROUPS && strncmp(target, "sm_", 3) == 0) return 2;
  return capability >= FIRST_WITH_UNITS ? 1 : 0;
}

/* The targets of each kind, separated by commas; to be freed by the caller. NULL: out of memory. */
static char *kernels_sort(const char *targets, char *lists[N_KINDS]) {
  const size_t room = strlen(targets) + 2;
  char *all = calloc(N_KINDS, room);
  if (all == NULL) return NULL;
  for (size_t i = 0; i < N_KINDS; i++) lists[i] = all + i * room;
  for (const char *at = targets;; at++) {
    char *list = lists[kernels_kind(at)];
    const size_t end = strcspn(at, ",");
    snprintf(list + strlen(list), room - strlen(list), "%s%.*s", list[0] != '\0' ? "," : "", (int)end, at);
    at += end;
    if (*at == '\0') return all;
  }
}

/* ---- Plans ---- */

typedef struct packing {
  berth_plan *plans[MOST_PLANS];
  const char *targets[MOST_PLANS]; /* for each plan; NULL: the GPU of this machine */
  uint32_t n;
} packing;

static berth_status kernels_make(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  const packing *p = subject;
  if (p->targets[0] == p->targets[p->n - 1]) /* the same list for all */
    return berth_kernels_pack((const berth_plan *const *)p->plans, p->n, p->targets[0], write, user, err);
  return berth_kernels_pack_each((const berth_plan *const *)p->plans, p->targets, p->n, write, user, err);
}

static void kernels_add(packing *p, berth_plan *plan, const char *targets) {
  p->plans[p->n] = plan;
  p->targets[p->n++] = targets;
}

/* The same plan as for `run` and `bench`. */
static int kernels_of_model(const model *m, berth_plan_desc *desc, const char *targets, packing *out) {
  berth_error err = {BERTH_OK, ""};
  berth_plan *plan = NULL;
  desc->flags |= BERTH_PLAN_INPUTS_DIE;
  desc->dims = m->dims.items;
  desc->n_dims = m->dims.n;
  if (berth_plan_create(m->graph, desc, &plan, &err) != BERTH_OK) return inputs_explain(m->graph, &err);
  kernels_add(out, plan, targets);
  return CLI_OK;
}

static int kernels_of_generator(const kernels_options *wanted, const model *m, const berth_plan_desc *desc,
                                const char *targets, packing *out) {
  berth_error err = {BERTH_OK, ""};
  generation plans = {.reading = NULL};
  uint64_t made_with;
  int64_t ctx, chunk;
  int code = generation_check_dims(m, wanted->ctx, wanted->chunk);
  if (code == CLI_OK) code = generation_made_with(m->ctx, wanted->model.path, &made_with);
  if (code != CLI_OK) return code;
  generation_sizes(made_with, generation_dim(m, "ctx", wanted->ctx), generation_dim(m, "rows", wanted->chunk), &ctx,
                   &chunk);
  if (generation_plan(m->graph, desc, ctx, chunk, &plans, &err) != BERTH_OK) return cli_report(&err);
  kernels_add(out, plans.reading, targets);
  kernels_add(out, plans.writing, targets);
  return CLI_OK;
}

static int kernels_plan(const kernels_options *wanted, const model *m, const char *profile, const char *targets,
                        packing *out) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags |= model_plan_flags(&wanted->model);
  desc.device = wanted->model.device;
  desc.gpu_profile = profile;
  desc.compute = model_compute(&wanted->model);
  return generation_is(m->graph) && wanted->model.path ? kernels_of_generator(wanted, m, &desc, targets, out)
                                                       : kernels_of_model(m, &desc, targets, out);
}

static int kernels_plan_each(const kernels_options *wanted, const model *m, char *const lists[N_KINDS], packing *out) {
  int code = CLI_OK;
  for (size_t i = 0; i < N_KINDS && code == CLI_OK; i++)
    if (lists[i][0] != '\0') code = kernels_plan(wanted, m, kernels_profiles[i], lists[i], out);
  return code;
}

static int kernels_write(const kernels_options *wanted, model *m) {
  packing p = {.n = 0};
  char *lists[N_KINDS], *sorted = NULL;
  int code;
  if (!(generation_is(m->graph) && wanted->model.path)) {
    if (wanted->ctx || wanted->chunk || wanted->model.kv)
      return cli_usage("--ctx, --chunk and --kv are for GGUF models that generate text");
    dims_default(&m->dims, m->graph);
  }
  if (!wanted->target || wanted->model.gpu_profile)
    code = kernels_plan(wanted, m, wanted->model.gpu_profile, wanted->target, &p);
  else if ((sorted = kernels_sort(wanted->target, lists)) == NULL)
    code = cli_failed("out of host memory");
  else
    code = kernels_plan_each(wanted, m, lists, &p);
  if (code == CLI_OK) code = out_make(wanted->output, kernels_make, &p);
  if (code == CLI_OK && strcmp(wanted->output, "-") != 0) printf("wrote %s\n", wanted->output);
  for (uint32_t i = 0; i < p.n; i++) berth_plan_destroy(p.plans[i]);
  free(sorted);
  return code;
}

static int kernels_check_options(const kernels_options *wanted) {
  if (!wanted->output) return cli_usage("-o FILE says where to write the pack");
  return wanted->target ? kernels_check_targets(wanted->target) : CLI_OK;
}

int cmd_kernels(int argc, char **argv) {
  kernels_options wanted = {.model = {.device = NULL}};
  int code;
  if (args_parse(&cmd_kernels_verb, argc, argv, &wanted, &code) && (code = kernels_check_options(&wanted)) == CLI_OK) {
    if (!wanted.model.device) wanted.model.device = "cuda";
    model_options opened = wanted.model;
    if (wanted.target) opened.device = NULL; /* which need not be present */
    model m;
    inputs given = {NULL, 0};
    code = model_open(&opened, &m);
    if (code == CLI_OK) code = inputs_read(&m, &wanted.inputs, &given);
    if (code == CLI_OK) code = inputs_fix(&m, &given, wanted.model.device);
    if (code == CLI_OK) code = kernels_write(&wanted, &m);
    inputs_close(&m, &given);
    model_close(&m);
  }
  args_free(&cmd_kernels_verb, &wanted);
  return code;
}
