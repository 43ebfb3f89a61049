/* Budgets on graphs whose branches come together again: fire modules, shortcuts, gates, attention. Whatever budget is
 * met, results are those without one. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/budgeting.h"

/* ---- Graphs as text ---- */

typedef struct writer {
  char text[32768];
  uint32_t length;
  uint64_t random;
  uint32_t n;                /* values so far */
  uint32_t x;                /* the value at hand: [1, channels, extent, extent], or [1, extent, channels] */
  uint32_t channels, extent; /* of it */
} writer;

static uint32_t draw(writer *w, uint32_t below) { return (uint32_t)(test_random(&w->random) % below); }

/* Adds text in which %x of numbers stand for values; returns a new number for the value that it makes. */
static uint32_t put(writer *w, const char *op, const char *operands, const char *attrs) {
  w->length += (uint32_t)snprintf(w->text + w->length, sizeof w->text - w->length, "%%v%u = %s(%s)%s%s\n", ++w->n, op,
                                  operands, attrs[0] != 0 ? " " : "", attrs);
  return w->n;
}

static uint32_t one(writer *w, const char *op, uint32_t x, const char *attrs) {
  char operands[32];
  snprintf(operands, sizeof operands, "%%v%u", x);
  return put(w, op, operands, attrs);
}

static uint32_t two(writer *w, const char *op, uint32_t x, uint32_t y, const char *attrs) {
  char operands[64];
  snprintf(operands, sizeof operands, "%%v%u, %%v%u", x, y);
  return put(w, op, operands, attrs);
}

static uint32_t conv(writer *w, uint32_t x, uint32_t from, uint32_t to, uint32_t kernel, uint32_t stride) {
  char attrs[128];
  const uint32_t pad = kernel / 2, weight = ++w->n;
  w->length += (uint32_t)snprintf(w->text + w->length, sizeof w->text - w->length,
                                  "param %%v%u : f32[%u, %u, %u, %u]\n", weight, to, from, kernel, kernel);
  snprintf(attrs, sizeof attrs, "{pads = [%u, %u, %u, %u], strides = [%u, %u]}", pad, pad, pad, pad, stride, stride);
  return two(w, "conv", x, weight, attrs);
}

static void put_output(writer *w, uint32_t value) {
  w->length +=
      (uint32_t)snprintf(w->text + w->length, sizeof w->text - w->length, "output \"o%u\" = %%v%u\n", value, value);
}

static void fire(writer *w) {
  const uint32_t wide = 4 + 4 * draw(w, 4);
  const uint32_t s = one(w, "relu", conv(w, w->x, w->channels, 4, 1, 1), "");
  const uint32_t a = one(w, "relu", conv(w, s, 4, wide, 1, 1), ""), b = one(w, "relu", conv(w, s, 4, 8, 3, 1), "");
  w->x = two(w, "concat", a, b, "{axis = 1}");
  w->channels = wide + 8;
}

static void shortcut(writer *w) {
  const uint32_t kernel = 1 + 2 * draw(w, 3);
  const uint32_t a = one(w, "relu", conv(w, w->x, w->channels, 24, 1, 1), "");
  w->x = two(w, "add", conv(w, a, 24, w->channels, kernel, 1), w->x, "");
}

static void halved(writer *w) {
  if (w->extent < 8) return;
  const uint32_t a = one(w, "relu", conv(w, w->x, w->channels, 12, 3, 2), "");
  const uint32_t b = conv(w, w->x, w->channels, 12, 1, 2);
  const bool joins = draw(w, 2) != 0;
  w->x = joins ? two(w, "concat", a, b, "{axis = 1}") : two(w, "add", a, b, "");
  w->channels = joins ? 24 : 12;
  w->extent = (w->extent + 1) / 2;
}

static void grown(writer *w) {
  if (w->extent > 24) return;
  const uint32_t kernel = 2 + draw(w, 3), weight = ++w->n, pad = (kernel - 1) / 2;
  char attrs[128];
  w->length += (uint32_t)snprintf(w->text + w->length, sizeof w->text - w->length, "param %%v%u : f32[%u, 6, %u, %u]\n",
                                  weight, w->channels, kernel, kernel);
  snprintf(attrs, sizeof attrs, "{pads = [%u, %u, %u, %u], strides = [2, 2]}", pad, pad, pad, pad);
  w->x = two(w, "conv_transpose", w->x, weight, attrs);
  w->channels = 6;
  w->extent = (w->extent - 1) * 2 + kernel - 2 * pad;
}

static void pooled(writer *w) {
  if (w->extent < 8) return;
  w->x = one(w, draw(w, 2) ? "max_pool" : "avg_pool", w->x, "{kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}");
  w->extent = (w->extent + 1) / 2;
}

static void gate(writer *w) {
  const uint32_t mean = one(w, draw(w, 2) ? "reduce_mean" : "reduce_max", w->x, "{axes = [1], keepdims = 1}");
  w->x = two(w, "mul", w->x, one(w, "sigmoid", mean, ""), "");
}

static void parted(writer *w) {
  if (w->channels < 4) return;
  char first[64], rest[64];
  const uint32_t half = w->channels / 2;
  snprintf(first, sizeof first, "{axes = [1], starts = [0], ends = [%u]}", half);
  snprintf(rest, sizeof rest, "{axes = [1], starts = [%u], ends = [%u]}", half, w->channels);
  const uint32_t a = one(w, "narrow", w->x, first), b = one(w, "narrow", w->x, rest);
  const uint32_t c = one(w, "relu", conv(w, a, half, 20, 3, 1), "");
  w->x = two(w, "concat", b, c, "{axis = 1}");
  w->channels += 20 - half;
}

static void write_net(writer *w, uint64_t seed) {
  static void (*const blocks[])(writer *) = {fire, shortcut, halved, grown, pooled, gate, parted};
  w->length = w->n = 0;
  w->random = seed;
  w->extent = 20 + draw(w, 13);
  w->channels = 3 + draw(w, 3);
  w->x = 0;
  w->length = (uint32_t)snprintf(w->text, sizeof w->text, "input %%v0 : f32[%u, %u, %u, %u]\n",
                                 draw(w, 6) == 0 ? 2u : 1u, w->channels, w->extent, w->extent);
  for (uint32_t i = 2 + draw(w, 5); i > 0; i--) {
    blocks[draw(w, 7)](w);
    if (draw(w, 12) == 0) put_output(w, one(w, "tanh", w->x, "")); /* a value that leaves on the way */
  }
  put_output(w, one(w, "relu", w->x, ""));
}

static uint32_t linear(writer *w, uint32_t x, uint32_t from, uint32_t to) {
  const uint32_t weight = ++w->n;
  w->length += (uint32_t)snprintf(w->text + w->length, sizeof w->text - w->length, "param %%v%u : f32[%u, %u]\n",
                                  weight, from, to);
  return two(w, "matmul", x, weight, "");
}

static void attend(writer *w) {
  const uint32_t n = one(w, "layer_norm", w->x, ""), width = w->channels;
  char operands[128];
  uint32_t q, k, v;
  if (draw(w, 2)) {
    const uint32_t all = linear(w, n, width, 3 * width);
    char attrs[3][64];
    for (uint32_t i = 0; i < 3; i++)
      snprintf(attrs[i], sizeof attrs[i], "{axes = [2], starts = [%u], ends = [%u]}", i * width, (i + 1) * width);
    q = one(w, "narrow", all, attrs[0]), k = one(w, "narrow", all, attrs[1]), v = one(w, "narrow", all, attrs[2]);
  } else {
    q = linear(w, n, width, width), k = linear(w, n, width, width), v = linear(w, n, width, width);
  }
  snprintf(operands, sizeof operands, "%%v%u, %%v%u, %%v%u", q, k, v);
  const uint32_t mixed = put(w, "attention", operands, draw(w, 3) ? "{heads = 2}" : "{heads = 2, mode = \"causal\"}");
  w->x = two(w, "add", linear(w, mixed, width, width), w->x, "");
}

static void feed(writer *w) {
  const uint32_t n = one(w, "layer_norm", w->x, ""), wide = one(w, "gelu", linear(w, n, w->channels, 64), "");
  w->x = two(w, "add", linear(w, wide, 64, w->channels), w->x, "");
}

static void write_transformer(writer *w, uint64_t seed) {
  w->n = 0;
  w->random = seed;
  w->extent = 9 + draw(w, 40);
  w->channels = 16;
  w->x = 0;
  w->length = (uint32_t)snprintf(w->text, sizeof w->text, "input %%v0 : f32[1, %u, 16]\n", w->extent);
  for (uint32_t i = 1 + draw(w, 3); i > 0; i--) {
    if (draw(w, 4)) attend(w);
    if (draw(w, 4)) feed(w);
  }
  put_output(w, one(w, "tanh", w->x, ""));
}

/* ---- With budgets ---- */

static const double shares[] = {0.75, 0.5, 0.3};

typedef struct tally {
  uint32_t n, n_met, n_split;
} tally;

static void try_shares(fixture *f, const char *text, uint32_t flags, tally *t) {
  const uint32_t session = flags & BERTH_PLAN_REFERENCE ? BERTH_SESSION_REFERENCE : 0u;
  f->graph = parse_graph(f->ctx, text);
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    berth_plan_desc desc = one_thread(flags);
    berth_error err;
    const berth_status status = plan_with_share(f, &desc, shares[i], &err);
    t->n++;
    if (status == BERTH_OK) {
      t->n_met++;
      t->n_split += test_plan_info(f->plan).n_split != 0;
      assert_same_results(f->graph, &desc, session);
    } else {
      test_expect_error(status, BERTH_INFEASIBLE, &err, "the budget is");
    }
    berth_plan_destroy(f->plan);
    f->plan = NULL;
  }
  berth_graph_destroy(f->graph);
  f->graph = NULL;
}

static void try_seeds(fixture *f, void (*write)(writer *, uint64_t), uint32_t flags, uint64_t last, tally *t) {
  writer *w = malloc(sizeof *w);
  assert_non_null(w);
  for (uint64_t seed = 1; seed <= last; seed++) {
    write(w, seed);
    try_shares(f, w->text, flags | (seed % 4 == 0 ? 0u : BERTH_PLAN_INPUTS_DIE), t);
  }
  free(w);
}

/* BERTH_TEST_SLOW: more of them. */
static uint64_t last_seed(void) { return getenv("BERTH_TEST_SLOW") != NULL ? 300 : 12; }

static void test_networks(void **state) {
  tally t = {0};
  try_seeds(*state, write_net, 0, last_seed(), &t);
  print_message("%u of %u budgets were met, %u by splitting\n", t.n_met, t.n, t.n_split);
  assert_true(t.n_split > t.n / 6);
}

static void test_transformers(void **state) {
  tally t = {0};
  try_seeds(*state, write_transformer, 0, last_seed(), &t);
  try_seeds(*state, write_transformer, BERTH_PLAN_REFERENCE, last_seed(), &t);
  print_message("%u of %u budgets were met, %u by splitting\n", t.n_met, t.n, t.n_split);
  assert_true(t.n_split > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_networks),
      PLAN_TEST(test_transformers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
