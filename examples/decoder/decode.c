/* Generates tokens with decoder.berth: the prompt in one run, then token by token, with the caches as states.
 *
 *   cc decode.c -o decode $(pkg-config --cflags --libs berth) && ./decode decoder.berth [DEVICE]
 *
 * The weights are random numbers, and so are the tokens; but read as a prompt, all of them at once must give the same
 * tokens again. The program fails where they do not. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/berth.h"

#define CAPACITY 64
#define VOCABULARY 64
#define PROMPT 8

static berth_error error;

static void must(berth_status status) {
  if (status == BERTH_OK) return;
  fprintf(stderr, "decode: %s\n", error.message);
  exit(1);
}

static float next_number(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (float)(*seed >> 40) / (float)(1 << 23) - 1;
}

/* Scales are 1, the rest is random. */
static void set_weights(berth_session *session, const berth_graph *graph) {
  uint64_t seed = 1;
  for (uint32_t i = 0; i < berth_graph_n_params(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    must(berth_graph_value(graph, berth_graph_param_at(graph, i), &info, &error));
    const size_t count = (size_t)info.size / sizeof(float);
    float *weights = malloc(count * sizeof *weights);
    if (weights == NULL) exit(1);
    for (size_t k = 0; k < count; k++) weights[k] = info.shape.rank == 1 ? 1 : next_number(&seed) / 2;
    must(berth_session_set_param(session, info.name, weights, count * sizeof *weights, &error));
    free(weights);
  }
}

static berth_session *start(const berth_graph *graph, const char *device, int64_t n) {
  berth_dim dim = {"n", n};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  plan.dims = &dim;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = device;
  must(berth_session_create(graph, &desc, &session, &error));
  set_weights(session, graph);
  return session;
}

/* Reads n tokens at a position. choice[i] becomes the token that follows token i. */
static void step(berth_session *session, const int32_t *token, int32_t position, int32_t n, int32_t *choice) {
  static float logits[CAPACITY][VOCABULARY];
  must(berth_session_write(session, "token", token, (size_t)n * sizeof *token, &error));
  must(berth_session_write(session, "position", &position, sizeof position, &error));
  must(berth_session_run(session, &error));
  must(berth_session_read(session, "logits", logits, (size_t)n * sizeof logits[0], &error));
  for (int32_t i = 0; i < n; i++) {
    choice[i] = 0;
    for (int32_t k = 1; k < VOCABULARY; k++)
      if (logits[i][k] > logits[i][choice[i]]) choice[i] = k;
  }
}

static void tell(const berth_session *session) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  must(berth_plan_get_info(berth_session_plan(session), &info, &error));
  printf("arena %llu bytes, of which states %llu\n", (unsigned long long)info.arena_size,
         (unsigned long long)info.state_size);
}

int main(int argc, char **argv) {
  int32_t token[CAPACITY], choice[CAPACITY];
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_graph *graph;
  if (argc < 2) {
    fprintf(stderr, "usage: decode GRAPH [DEVICE]\n");
    return 2;
  }
  const char *device = argc > 2 ? argv[2] : "cpu";
  must(berth_context_create(&desc, &ctx, &error));
  must(berth_graph_load(ctx, argv[1], &graph, &error));

  berth_session *session = start(graph, device, PROMPT);
  for (int32_t i = 0; i < PROMPT; i++) token[i] = 7 * i % VOCABULARY;
  step(session, token, 0, PROMPT, choice);
  token[PROMPT] = choice[PROMPT - 1];
  must(berth_session_bind(session, &(berth_dim){"n", 1}, 1, &error)); /* the caches stay */
  for (int32_t at = PROMPT; at + 1 < CAPACITY; at++) step(session, &token[at], at, 1, &token[at + 1]);
  for (int32_t i = 0; i < CAPACITY; i++) printf("%d%s", token[i], i + 1 < CAPACITY ? " " : "\n");
  tell(session);
  berth_session_destroy(session);

  session = start(graph, device, CAPACITY);
  step(session, token, 0, CAPACITY, choice);
  const int same = memcmp(&choice[PROMPT - 1], &token[PROMPT], (CAPACITY - PROMPT) * sizeof *token) == 0;
  printf("%s\n", same ? "all at once: the same tokens" : "all at once: other tokens");
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return same ? 0 : 1;
}
