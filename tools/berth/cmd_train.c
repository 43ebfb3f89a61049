/* berth train: a model, data, a loss and an optimiser; weights, and checkpoints to go on from. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "train.h"

static const arg_option options[] = {
    {"input", 0, ARG_LIST, "NAME=FILE.npy", "rows of an input; one for every input", offsetof(train_options, inputs), 0,
     0},
    {"labels", 0, ARG_TEXT, "FILE.npy",
     "what the first output should be, a row for each: numbers of classes, or values", offsetof(train_options, labels),
     0, 0},
    {"loss", 0, ARG_TEXT, "L", "cross_entropy or mse (cross_entropy)", offsetof(train_options, loss), 0, 0},
    {"optimizer", 0, ARG_TEXT, "O", "adamw or sgd (adamw)", offsetof(train_options, optimizer), 0, 0},
    {"rate", 0, ARG_REAL, "R", "the learning rate (0.001)", offsetof(train_options, rate), 0, 0},
    {"momentum", 0, ARG_REAL, "M", "of sgd (0.9)", offsetof(train_options, momentum), 0, 0},
    {"weight-decay", 0, ARG_REAL, "D", "how fast weights go to 0 by themselves (0.01)",
     offsetof(train_options, weight_decay), 0, 0},
    {"clip", 0, ARG_REAL, "N", "the largest norm of all gradients together (0: any)", offsetof(train_options, clip), 0,
     0},
    {"steps", 0, ARG_COUNT, "N", "steps in all (1000)", offsetof(train_options, steps), 1, 0},
    {"batch", 0, ARG_COUNT, "N", "rows of a step (32)", offsetof(train_options, batch), 1, 1u << 30},
    {"seed", 0, ARG_COUNT, "N", "of the order of rows (1)", offsetof(train_options, seed), 0, 0},
    {"save", 0, ARG_TEXT, "FILE", "write the weights to FILE, as safetensors", offsetof(train_options, save), 0, 0},
    {"checkpoint", 0, ARG_TEXT, "FILE", "go on from FILE where it is there, and write it as often as --every says",
     offsetof(train_options, checkpoint), 0, 0},
    {"every", 0, ARG_COUNT, "N", "steps between two checkpoints (500)", offsetof(train_options, every), 1, 0},
    MODEL_OPTION_ROWS(train_options),
    MODEL_THREADS_ROW(train_options),
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(train_options, json), 0, 0},
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
        "Every step takes --batch rows, in an order that follows from --seed. The loss is put behind the first\n"
        "output; a softmax there is left out for cross_entropy. All params of a float type are trained. A\n"
        "training that goes on from a checkpoint does what it would have done without a break. Files are whole at\n"
        "every moment.\n",
    .examples =
        "  berth train model.onnx --input x=images.npy --labels digits.npy --steps 2000 --save trained.safetensors\n"
        "  berth train model.berth --weights start.safetensors --input x=x.npy --labels y.npy --loss mse\n",
};

static int train_check_names(const train_options *wanted) {
  if (wanted->labels == NULL) return cli_usage("--labels is missing");
  if (strcmp(wanted->loss, "cross_entropy") != 0 && strcmp(wanted->loss, "mse") != 0)
    return cli_usage("--loss %s is none of cross_entropy and mse", wanted->loss);
  if (strcmp(wanted->optimizer, "adamw") != 0 && strcmp(wanted->optimizer, "sgd") != 0)
    return cli_usage("--optimizer %s is none of adamw and sgd", wanted->optimizer);
  return CLI_OK;
}

static int train_create_session(training *t) {
  const train_options *wanted = t->wanted;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_value loss = BERTH_VALUE_NONE;
  int code = train_add_loss(t, &loss);
  if (code != CLI_OK) return code;
  how.optimizer = strcmp(wanted->optimizer, "sgd") == 0 ? BERTH_OPTIMIZER_SGD : BERTH_OPTIMIZER_ADAMW;
  how.momentum = wanted->momentum;
  how.weight_decay = wanted->weight_decay;
  how.clip = wanted->clip;
  plan.flags = model_plan_flags(&wanted->model);
  plan.gpu_profile = wanted->model.gpu_profile;
  plan.compute = model_compute(&wanted->model);
  plan.device = desc.device = wanted->model.device;
  desc.plan = &plan;
  if (berth_graph_train(t->graph, loss, &how, &err) != BERTH_OK ||
      berth_session_create(t->graph, &desc, &t->session, &err) != BERTH_OK)
    return cli_report(&err);
  return train_start_params(t);
}

static int train_step(training *t) {
  const float rate = (float)t->wanted->rate;
  float loss = 0;
  berth_error err = {BERTH_OK, ""};
  int code = train_write_batch(t);
  if (code != CLI_OK) return code;
  if (berth_session_write(t->session, "learning_rate", &rate, sizeof rate, &err) != BERTH_OK ||
      berth_session_run(t->session, &err) != BERTH_OK ||
      berth_session_read(t->session, "train.loss", &loss, sizeof loss, &err) != BERTH_OK)
    return cli_report(&err);
  t->step++;
  t->loss = (double)loss;
  if (isfinite(loss)) return CLI_OK;
  return cli_failed("the loss is no number after step %" PRIu64 "; a lower --rate or --clip may help", t->step);
}

static void train_show(const training *t, double start, uint64_t first) {
  const double ms = cli_now_ms() - start;
  printf("step %" PRIu64 " of %" PRIu64 ": loss %.5f, %.2f ms a step\n", t->step, t->wanted->steps, t->loss,
         ms / (double)(t->step - first));
  fflush(stdout);
}

static int train_all(training *t, double *ms) {
  const train_options *wanted = t->wanted;
  const double start = cli_now_ms();
  const uint64_t first = t->step, shown = wanted->steps >= 20 ? wanted->steps / 10 : 1;
  int code = CLI_OK;
  while (t->step < wanted->steps && code == CLI_OK) {
    code = train_step(t);
    if (code == CLI_OK && !wanted->json && (t->step % shown == 0 || t->step == wanted->steps))
      train_show(t, start, first);
    if (code == CLI_OK && wanted->checkpoint != NULL && (t->step % wanted->every == 0 || t->step == wanted->steps))
      code = train_save_checkpoint(t, wanted->checkpoint);
  }
  *ms = t->step > first ? (cli_now_ms() - start) / (double)(t->step - first) : 0;
  return code;
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
  json_close_object(&out);
  return json_print(&out);
}

static int train_run(training *t) {
  double ms = 0;
  int code = train_check_names(t->wanted);
  if (code == CLI_OK) code = model_open(&t->wanted->model, &t->model);
  if (code == CLI_OK) code = train_read_rows(t);
  if (code == CLI_OK) code = train_create_session(t);
  if (code == CLI_OK && t->wanted->checkpoint != NULL) code = train_load_checkpoint(t, t->wanted->checkpoint);
  if (code == CLI_OK) code = train_all(t, &ms);
  if (code == CLI_OK && t->wanted->save != NULL) code = train_save_weights(t, t->wanted->save);
  return code == CLI_OK ? train_report(t, ms) : code;
}

static void train_close(training *t) {
  berth_session_destroy(t->session);
  berth_graph_destroy(t->graph);
  for (uint32_t i = 0; i < t->n_rows; i++) berth_array_free(t->model.ctx, &t->rows[i].array);
  free(t->order);
  free(t->gathered);
  model_close(&t->model);
}

int cmd_train(int argc, char **argv) {
  train_options wanted = {.loss = "cross_entropy",
                          .optimizer = "adamw",
                          .rate = 0.001,
                          .momentum = 0.9,
                          .weight_decay = 0.01,
                          .steps = 1000,
                          .batch = 32,
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
