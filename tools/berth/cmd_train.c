/* berth train: trains a model on data, with a loss and an optimiser; writes weights, and checkpoints to resume from. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "out.h"
#include "train.h"

#define AT(field) offsetof(train_options, field), 0, 0
#define AT_LEAST_1(field) offsetof(train_options, field), 1, 0
static const arg_option options[] = {
    {"input", 0, ARG_LIST, "NAME=FILE",
     "rows of an input, once per input: a .npy file, or a tensor (x.safetensors:NAME)", AT(inputs)},
    {"labels", 0, ARG_TEXT, "FILE", "the wanted output of each row: class indices, or values", AT(labels)},
    {"text", 0, ARG_TEXT, "FILE", "learn to continue a text, character by character, instead of --input and --labels",
     AT(text)},
    {"scale", 0, ARG_LIST, "NAME=F", "multiply an input, of any type, by F", AT(scales)},
    {"hold-out", 0, ARG_REAL, "P", "percentage of the rows to hold out for evaluation (0)", AT(hold_out)},
    {"loss", 0, ARG_TEXT, "L", "cross_entropy or mse (cross_entropy)", AT(loss)},
    {"optimizer", 0, ARG_TEXT, "O", "adamw or sgd (adamw)", AT(optimizer)},
    {"rate", 0, ARG_REAL, "R", "the learning rate (0.001)", AT(rate)},
    {"warmup", 0, ARG_COUNT, "N", "steps over which the rate rises from 0 (0)", AT(warmup)},
    {"schedule", 0, ARG_TEXT, "S", "the rate after the warm-up: constant, cosine or linear (constant)", AT(schedule)},
    {"momentum", 0, ARG_REAL, "M", "momentum of sgd (0.9)", AT(momentum)},
    {"weight-decay", 0, ARG_REAL, "D", "weight decay (0.01)", AT(weight_decay)},
    {"clip", 0, ARG_REAL, "N", "clip gradients to this global norm; 0: no clipping (0)", AT(clip)},
    {"steps", 0, ARG_COUNT, "N", "number of training steps (1000)", AT_LEAST_1(steps)},
    {"batch", 0, ARG_COUNT, "N", "rows per run (32)", offsetof(train_options, batch), 1, 1u << 30},
    {"accumulate", 0, ARG_COUNT, "N", "runs per step, whose gradients are averaged (1)",
     offsetof(train_options, accumulate), 1, 1u << 20},
    {"budget", 0, ARG_BYTES, "BYTES",
     "largest block to use, for example 64K or 2M; runs a batch in slices and recomputes values", AT(budget)},
    {"seed", 0, ARG_COUNT, "N", "seed for the order of rows and for random initial weights (1)", AT(seed)},
    {"train", 0, ARG_LIST, "NAME", "train only params with this name; * matches anything", AT(trained)},
    {"freeze", 0, ARG_LIST, "NAME", "do not train params with this name; * matches anything", AT(frozen)},
    {"lora", 0, ARG_COUNT, "RANK", "train low-rank adapters (LoRA) of this rank instead of the model; 0: none (0)",
     offsetof(train_options, lora), 0, 1u << 16},
    {"lora-on", 0, ARG_LIST, "NAME", "matrices that get adapters; * matches anything (all)", AT(lora_on)},
    {"lora-alpha", 0, ARG_REAL, "A", "scale adapters by A / RANK (RANK)", AT(lora_alpha)},
    {"save", 0, ARG_TEXT, "FILE", "write the weights to FILE as safetensors, or the whole model to FILE.onnx",
     AT(save)},
    {"adapters", 0, ARG_TEXT, "FILE", "write only the adapters to FILE, as safetensors", AT(adapters)},
    {"checkpoint", 0, ARG_TEXT, "FILE", "resume from FILE if it exists, and write it every --every steps",
     AT(checkpoint)},
    {"every", 0, ARG_COUNT, "N", "steps between checkpoints (500)", AT_LEAST_1(every)},
    {"sample", 0, ARG_COUNT, "N", "with --text: print N characters written by the trained model (0)", AT(sample)},
    {"prompt", 0, ARG_TEXT, "T", "beginning of that sample", AT(prompt)},
    MODEL_OPTION_ROWS(train_options),
    MODEL_THREADS_ROW(train_options),
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", AT(json)},
};

const arg_verb cmd_train_verb = {
    .name = "train",
    .purpose = "train a model on rows of data",
    .operand = "MODEL",
    .operand_required = true,
    .operand_offset = offsetof(train_options, model.path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Every run takes --batch rows, shuffled by --seed. The loss is computed from the first output of a float\n"
        "type; a softmax there is skipped for cross_entropy. All params of a float type are trained. Training that\n"
        "resumes from a checkpoint gives the same results as without a break, and Ctrl-C leaves a checkpoint. Files\n"
        "are replaced as a whole, never left half written.\n",
    .examples =
        "  berth train model.onnx --input x=images.npy --labels digits.npy --hold-out 10 --save trained.onnx\n"
        "  berth train model.berth --weights start.safetensors --input x=x.npy --labels y.npy --loss mse\n"
        "  berth train model.onnx --input x=x.npy --labels y.npy --lora 8 --adapters small.safetensors\n"
        "  berth train chars.berth --text book.txt --dim time=64 --steps 2000 --sample 200\n",
};

/* ---- Options ---- */

/* Each is for one of the arrays that --input gives. */
static int train_check_scales(const train_options *wanted) {
  for (size_t i = 0; i < wanted->scales.n; i++) {
    const char *scale = wanted->scales.items[i];
    const size_t length = strcspn(scale, "=") + 1;
    bool is_given = false;
    for (size_t k = 0; k < wanted->inputs.n; k++)
      is_given = is_given || strncmp(wanted->inputs.items[k], scale, length) == 0;
    if (scale[length - 1] == '=' && !is_given)
      return cli_usage("--scale %s: no --input gives '%.*s'", scale, (int)length - 1, scale);
  }
  return CLI_OK;
}

static int train_check_data(const train_options *wanted) {
  if (wanted->text != NULL && (wanted->labels != NULL || wanted->inputs.n != 0))
    return cli_usage("--text takes the place of --input and --labels");
  if (wanted->text == NULL && wanted->labels == NULL) return cli_usage("--labels is missing");
  if (wanted->text != NULL && strcmp(wanted->loss, "cross_entropy") != 0)
    return cli_usage("--text needs --loss cross_entropy");
  if (wanted->text == NULL && wanted->sample != 0) return cli_usage("--sample needs --text");
  if (!(wanted->hold_out >= 0 && wanted->hold_out < 100))
    return cli_usage("--hold-out is a percentage from 0 to less than 100");
  return train_check_scales(wanted);
}

static int train_check_numbers(const train_options *wanted) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"rate", wanted->rate},
                 {"momentum", wanted->momentum},
                 {"weight-decay", wanted->weight_decay},
                 {"clip", wanted->clip},
                 {"lora-alpha", wanted->lora_alpha}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    if (!(numbers[i].value >= 0)) return cli_usage("--%s takes a number of at least 0", numbers[i].name);
  return CLI_OK;
}

static int train_check_names(const train_options *wanted) {
  static const char *const schedules[] = {"constant", "cosine", "linear"};
  bool is_known = false;
  if (strcmp(wanted->loss, "cross_entropy") != 0 && strcmp(wanted->loss, "mse") != 0)
    return cli_usage("--loss takes cross_entropy or mse, not '%s'", wanted->loss);
  if (strcmp(wanted->optimizer, "adamw") != 0 && strcmp(wanted->optimizer, "sgd") != 0)
    return cli_usage("--optimizer takes adamw or sgd, not '%s'", wanted->optimizer);
  for (size_t i = 0; i < 3; i++) is_known = is_known || strcmp(wanted->schedule, schedules[i]) == 0;
  if (!is_known) return cli_usage("--schedule takes constant, cosine or linear, not '%s'", wanted->schedule);
  if (wanted->lora == 0 && (wanted->lora_on.n != 0 || wanted->lora_alpha != 0 || wanted->adapters != NULL))
    return cli_usage("--lora-on, --lora-alpha and --adapters need --lora");
  const int code = train_check_numbers(wanted);
  return code == CLI_OK ? train_check_data(wanted) : code;
}

/* Files that would overwrite each other. */
static int train_check_apart(const train_options *wanted) {
  const char *const paths[] = {wanted->save, wanted->adapters, wanted->checkpoint};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < i; k++)
      if (paths[i] != NULL && paths[k] != NULL && strcmp(paths[i], paths[k]) == 0)
        return cli_usage("--save, --adapters and --checkpoint write different files; %s is given twice", paths[i]);
  return CLI_OK;
}

static int train_check_places(const train_options *wanted) {
  const size_t length = wanted->save != NULL ? strlen(wanted->save) : 0;
  berth_format_info format = BERTH_FORMAT_INFO_INIT;
  int code = train_check_apart(wanted);
  if (code == CLI_OK) code = out_check_place(wanted->save);
  if (code == CLI_OK) code = out_check_place(wanted->adapters);
  if (code == CLI_OK) code = out_check_place(wanted->checkpoint);
  if (code != CLI_OK || length < 5 || strcmp(wanted->save + length - 5, ".onnx") != 0) return code;
  if (berth_file_format(wanted->model.path, &format, NULL) == BERTH_OK && strcmp(format.name, "onnx") == 0)
    return CLI_OK;
  return cli_usage("--save %s: the model is not an ONNX file, so its weights can only be written as safetensors",
                   wanted->save);
}

/* ---- Steps ---- */

static volatile sig_atomic_t train_is_stopped;

static void train_stop(int signal_number) {
  (void)signal_number;
  train_is_stopped = 1;
}

/* The current step is completed; a second signal ends the program at once. */
static void train_catch(void) {
  static const int signals[] = {SIGINT, SIGTERM};
  struct sigaction action;
  for (size_t i = 0; i < 2; i++) {
    if (sigaction(signals[i], NULL, &action) != 0 || action.sa_handler == SIG_IGN) continue; /* a background job */
    memset(&action, 0, sizeof action);
    action.sa_handler = train_stop;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(signals[i], &action, NULL);
  }
}

static int train_create_session(training *t) {
  const train_options *wanted = t->wanted;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_value loss = BERTH_VALUE_NONE, *params = NULL;
  int code = train_add_loss(t, &loss);
  if (code == CLI_OK) code = train_choose(t, &params, &how.n_params);
  if (code != CLI_OK) return code;
  how.optimizer = strcmp(wanted->optimizer, "sgd") == 0 ? BERTH_OPTIMIZER_SGD : BERTH_OPTIMIZER_ADAMW;
  how.momentum = wanted->momentum;
  how.weight_decay = wanted->weight_decay;
  how.clip = wanted->clip;
  how.accumulate = (uint32_t)wanted->accumulate;
  how.params = params;
  plan.flags = model_plan_flags(&wanted->model);
  plan.gpu_profile = wanted->model.gpu_profile;
  plan.compute = model_compute(&wanted->model);
  plan.device = desc.device = wanted->model.device;
  plan.budget = wanted->budget;
  desc.plan = &plan;
  berth_status status = berth_graph_train(t->graph, loss, &how, &err);
  if (status == BERTH_OK) status = berth_session_create(t->graph, &desc, &t->session, &err);
  free(params);
  return status == BERTH_OK ? train_start_params(t) : cli_report(&err);
}

/* Reports whether a failed run has left the weights as before it, as after it, or lost. */
static int train_report_failure(const training *t, const berth_error *err) {
  const int code = cli_report(err);
  if (berth_session_states_lost(t->session))
    cli_hint("the weights are lost since step %" PRIu64 "%s", t->step,
             t->wanted->checkpoint != NULL ? "; the checkpoint is whole, and the same command goes on from it"
                                           : "; --checkpoint keeps them from time to time");
  return code;
}

static int train_step(training *t) {
  const float rate = (float)train_rate(t);
  double sum = 0;
  berth_error err = {BERTH_OK, ""};
  for (uint64_t i = 0; i < t->wanted->accumulate; i++) {
    float loss = 0;
    const int code = train_write_batch(t, t->step * t->wanted->accumulate + i);
    if (code != CLI_OK) return code;
    if (berth_session_write(t->session, "learning_rate", &rate, sizeof rate, &err) != BERTH_OK ||
        berth_session_run(t->session, &err) != BERTH_OK)
      return train_report_failure(t, &err);
    if (berth_session_read(t->session, "train.loss", &loss, sizeof loss, &err) != BERTH_OK) return cli_report(&err);
    sum += (double)loss;
  }
  t->step++;
  t->loss = sum / (double)t->wanted->accumulate;
  if (isfinite(t->loss)) return CLI_OK;
  return cli_failed("the loss is not a number after step %" PRIu64 "; a lower --rate or --clip may help", t->step);
}

static void train_show(const training *t, double start, uint64_t first) {
  const double ms = cli_now_ms() - start;
  printf("step %" PRIu64 " of %" PRIu64 ": loss %.5f, %.2f ms per step", t->step, t->wanted->steps, t->loss,
         ms / (double)(t->step - first));
  if (t->score.count != 0) printf("; held out: loss %.5f", t->score.loss);
  if (t->score.count != 0 && train_has_classes(t)) printf(", %.2f %% right", t->score.accuracy * 100);
  printf("\n");
  fflush(stdout);
}

/* After a step: shows its loss and writes the checkpoint, when they are due. */
static int train_after(training *t, double start, uint64_t first) {
  const train_options *wanted = t->wanted;
  const uint64_t shown = wanted->steps >= 20 ? wanted->steps / 10 : 1;
  const bool is_last = t->step == wanted->steps || train_is_stopped;
  int code = CLI_OK;
  if ((!wanted->json && t->step % shown == 0) || is_last) {
    if (!train_is_stopped) code = train_measure(t);
    if (code == CLI_OK && !wanted->json) train_show(t, start, first);
  }
  if (code == CLI_OK && wanted->checkpoint != NULL && (t->step % wanted->every == 0 || is_last))
    code = train_save_checkpoint(t, wanted->checkpoint);
  return code;
}

static int train_interrupted(const training *t) {
  if (t->wanted->checkpoint != NULL)
    cli_note("interrupted after step %" PRIu64 "; the same command goes on from %s", t->step, t->wanted->checkpoint);
  else
    cli_note("interrupted after step %" PRIu64 "; with --checkpoint it could go on from there", t->step);
  return CLI_INTERRUPTED;
}

static int train_all(training *t, double *ms) {
  const double start = cli_now_ms();
  const uint64_t first = t->step;
  int code = CLI_OK;
  train_catch();
  while (t->step < t->wanted->steps && code == CLI_OK && !train_is_stopped) {
    code = train_step(t);
    if (code == CLI_OK) code = train_after(t, start, first);
  }
  if (t->step == first && code == CLI_OK && !train_is_stopped) code = train_measure(t); /* it was complete before */
  *ms = t->step > first ? (cli_now_ms() - start) / (double)(t->step - first) : 0;
  return code == CLI_OK && train_is_stopped ? train_interrupted(t) : code;
}

static int train_report(const training *t, double ms) {
  const berth_plan_info info = cli_plan_info(berth_session_plan(t->session));
  json out = JSON_INIT;
  if (!t->wanted->json) {
    printf("%" PRIu64 " bytes for everything: %" PRIu64 " of weights and moments, %" PRIu64 " of activations\n",
           info.arena_size, info.state_size, info.activations_size);
    return CLI_OK;
  }
  json_open_object(&out, NULL);
  json_uint(&out, "steps", t->step);
  json_double(&out, "loss", t->loss);
  json_double(&out, "ms", ms);
  json_uint(&out, "arena_size", info.arena_size);
  json_uint(&out, "state_size", info.state_size);
  json_uint(&out, "samples", (uint64_t)t->n_samples);
  json_uint(&out, "batch", (uint64_t)t->batch);
  json_string(&out, "device", model_device(&t->wanted->model));
  json_uint(&out, "accumulate", t->wanted->accumulate);
  json_uint(&out, "trained", (uint64_t)t->n_train);
  if (t->score.count != 0) {
    json_open_object(&out, "held_out");
    json_uint(&out, "count", t->score.count);
    json_double(&out, "loss", t->score.loss);
    json_double(&out, "accuracy", t->score.accuracy);
    json_close_object(&out);
  } else {
    json_null(&out, "held_out");
  }
  json_close_object(&out);
  return json_print(&out);
}

/* Also trains small weights of an ONNX file. */
static int train_thaw(training *t) {
  berth_error err = {BERTH_OK, ""};
  if (!t->is_onnx || t->wanted->lora != 0) return CLI_OK;
  return berth_graph_thaw(t->model.graph, NULL, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

static int train_run(training *t) {
  const train_options *wanted = t->wanted;
  double ms = 0;
  int code = train_check_names(wanted);
  if (code == CLI_OK) code = train_check_places(wanted);
  if (code == CLI_OK) code = model_open(&wanted->model, &t->model);
  if (code == CLI_OK) {
    berth_format_info format = BERTH_FORMAT_INFO_INIT;
    t->is_onnx = berth_file_format(wanted->model.path, &format, NULL) == BERTH_OK && strcmp(format.name, "onnx") == 0;
    code = train_thaw(t);
  }
  if (code == CLI_OK) code = train_read_rows(t);
  if (code == CLI_OK) code = train_adapt(t);
  if (code == CLI_OK) code = train_create_session(t);
  if (code == CLI_OK && wanted->checkpoint != NULL) code = train_load_checkpoint(t, wanted->checkpoint);
  if (code == CLI_OK) code = train_all(t, &ms);
  if (code == CLI_OK && wanted->save != NULL) code = train_save_weights(t, wanted->save);
  if (code == CLI_OK && wanted->adapters != NULL) code = train_save_adapters(t, wanted->adapters);
  if (code == CLI_OK && wanted->sample != 0 && !wanted->json) code = train_write_sample(t);
  return code == CLI_OK ? train_report(t, ms) : code;
}

static void train_close(training *t) {
  berth_session_destroy(t->session);
  berth_session_destroy(t->forward);
  berth_graph_destroy(t->graph);
  berth_graph_destroy(t->adapted);
  train_free_rows(t);
  model_close(&t->model);
}

int cmd_train(int argc, char **argv) {
  train_options wanted = {.loss = "cross_entropy",
                          .optimizer = "adamw",
                          .schedule = "constant",
                          .rate = 0.001,
                          .momentum = 0.9,
                          .weight_decay = 0.01,
                          .steps = 1000,
                          .batch = 32,
                          .accumulate = 1,
                          .seed = 1,
                          .every = 500};
  int code;
  if (args_parse(&cmd_train_verb, argc, argv, &wanted, &code)) {
    training t = {.wanted = &wanted, .loss = (double)NAN};
    code = train_run(&t);
    train_close(&t);
  }
  args_free(&cmd_train_verb, &wanted);
  return code;
}
