/* A small net learns from points on a circle: a graph with a loss becomes one whose runs are steps of training. */
#include "example.h"

#define POINTS 64
#define HIDDEN 16

/* Inside or outside? tanh(x w1 + b1) w2 + b2, and the mean of the squares of its errors. */
static const char net[] =
    "graph \"circle\" {\n"
    "  input %x : f32[64, 2]\n"
    "  input %wanted : f32[64, 1]\n"
    "  param %w1 : f32[2, 16]\n"
    "  param %b1 : f32[16]\n"
    "  param %w2 : f32[16, 1]\n"
    "  param %b2 : f32[1]\n"
    "  %m1 = matmul(%x, %w1)\n"
    "  %a1 = add(%m1, %b1)\n"
    "  %h = tanh(%a1)\n"
    "  %m2 = matmul(%h, %w2)\n"
    "  %y = add(%m2, %b2)\n"
    "  %error = sub(%y, %wanted)\n"
    "  %square = mul(%error, %error)\n"
    "  %loss = reduce_mean(%square) {keepdims = 0}\n"
    "  output \"y\" = %y\n"
    "  output \"loss\" = %loss\n"
    "}\n";

static float random_number(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1;
}

/* A gradient is a value like any other: here it is an output. */
static void look_at_a_gradient(berth_context *ctx) {
  berth_graph *graph;
  MUST(berth_graph_parse(ctx, net, strlen(net), &graph, &err));
  const berth_value b2 = berth_graph_find(graph, "b2");
  berth_value gradient;
  MUST(berth_graph_grad(graph, berth_graph_find(graph, "loss"), &b2, 1, &gradient, &err));
  CHECK(gradient != BERTH_VALUE_NONE);
  MUST(berth_graph_output(graph, "gradient", gradient, &err));
  MUST(berth_graph_verify(graph, &err));
  berth_graph_destroy(graph);
}

static void start_weights(berth_session *session, unsigned *seed) {
  float w1[2 * HIDDEN], w2[HIDDEN];
  for (int i = 0; i < 2 * HIDDEN; i++) w1[i] = random_number(seed);
  for (int i = 0; i < HIDDEN; i++) w2[i] = random_number(seed) * 0.25f;
  MUST(berth_session_state_write(session, "w1", w1, sizeof w1, &err));
  MUST(berth_session_state_write(session, "w2", w2, sizeof w2, &err));
}

static float run_steps(berth_session *session, int steps) {
  float loss = 0;
  for (int i = 0; i < steps; i++) {
    const float rate = 0.03f * (1 - (float)i / (float)steps); /* a schedule is what is written here */
    MUST(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
    MUST(berth_session_run(session, &err));
    MUST(berth_session_read(session, "loss", &loss, sizeof loss, &err));
    if (i % 100 == 0) printf("step %d: loss %.4f\n", i, (double)loss);
  }
  return loss;
}

int main(void) {
  const berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  float x[2 * POINTS], wanted[POINTS];
  unsigned seed = 1;
  MUST(berth_context_create(&desc, &ctx, &err));
  look_at_a_gradient(ctx);
  MUST(berth_graph_parse(ctx, net, strlen(net), &graph, &err));
  how.weight_decay = 0.001;
  how.clip = 1;
  MUST(berth_graph_train(graph, berth_graph_find(graph, "loss"), &how, &err));
  MUST(berth_session_create(graph, NULL, &session, &err));
  for (int i = 0; i < POINTS; i++) {
    x[2 * i] = random_number(&seed);
    x[2 * i + 1] = random_number(&seed);
    wanted[i] = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1] < 0.5f ? 1.0f : 0.0f;
  }
  start_weights(session, &seed);
  MUST(berth_session_write(session, "x", x, sizeof x, &err));
  MUST(berth_session_write(session, "wanted", wanted, sizeof wanted, &err));
  const float loss = run_steps(session, 500);
  printf("the loss is %.4f after 500 steps\n", (double)loss);
  CHECK(loss < 0.06f); /* it begins above 0.2 */
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  printf("ok\n");
  return 0;
}
