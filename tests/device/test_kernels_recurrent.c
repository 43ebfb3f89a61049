/* The fast kernels of lstm, gru, rnn and qlstm. */
#include <stdio.h>

#include "fast.h"

#define RANGED(...)                                                                                                   \
  {                                                                                                                   \
    .type = BERTH_F32, .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}, .low = -0.5, \
    .high = 0.5                                                                                                       \
  }

typedef struct layer_shape {
  const char *op, *direction;
  int64_t steps, batch, inputs, hidden;
  bool is_bare; /* no bias and no first state */
} layer_shape;

static int64_t gates_of(const char *op) { return op[0] == 'l' ? 4 : op[0] == 'g' ? 3 : 1; }

static fast_case layer_case(const layer_shape *s) {
  const int64_t d = strcmp(s->direction, "bidirectional") == 0 ? 2 : 1, rows = gates_of(s->op) * s->hidden;
  fast_case c = {.op = s->op,
                 .in = {RANGED(s->steps, s->batch, s->inputs), RANGED(d, rows, s->inputs), RANGED(d, rows, s->hidden)},
                 .attrs = {FAST_STRING("direction", s->direction)},
                 .absolute = 1e-5,
                 .relative = 1e-5,
                 .n_out = s->op[0] == 'l' ? 3 : 2};
  if (s->is_bare) return c;
  c.in[3] = (fast_operand)RANGED(d, 2 * rows);
  c.in[5] = (fast_operand)RANGED(d, s->batch, s->hidden);
  if (s->op[0] == 'l') c.in[6] = (fast_operand)RANGED(d, s->batch, s->hidden);
  return c;
}

static const char *const ops[] = {"lstm", "gru", "rnn"};

static void every_direction(void **state) {
  static const char *const directions[] = {"forward", "reverse", "bidirectional"};
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (size_t d = 0; d < 3; d++)
      for (int is_bare = 0; is_bare < 2; is_bare++) {
        const layer_shape shape = {ops[op], directions[d], 21, 2, 19, 24, is_bare};
        fast_case c = layer_case(&shape);
        fast_check(&c);
        c.in[0].layout = FAST_PADDED;
        fast_check(&c);
      }
}

static void every_width(void **state) {
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (int64_t hidden = 1; hidden <= 35; hidden += 2) {
      const layer_shape shape = {ops[op], "bidirectional", hidden % 6 + 1, 1, 36 - hidden, hidden, false};
      const fast_case c = layer_case(&shape);
      fast_check(&c);
    }
}

static void linear_before_reset(void **state) {
  (void)state;
  for (int is_bare = 0; is_bare < 2; is_bare++) {
    const layer_shape shape = {"gru", "bidirectional", 9, 2, 7, 33, is_bare};
    fast_case c = layer_case(&shape);
    c.attrs[1] = (berth_attr)FAST_INT("linear_before_reset", 1);
    fast_check(&c);
  }
}

/* The cell state has no place of its own in a result then; without a bias, or without a first state, zeros are read. */
static void fewer_results_and_operands(void **state) {
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (int missing = 0; missing < 8; missing++) {
      const layer_shape shape = {ops[op], "bidirectional", 5, 2, 11, 17, false};
      fast_case c = layer_case(&shape);
      if (missing & 1) c.in[3] = (fast_operand){.type = BERTH_TYPE_NONE};
      if (missing & 2) c.in[5] = (fast_operand){.type = BERTH_TYPE_NONE};
      if (missing & 4) c.in[6] = (fast_operand){.type = BERTH_TYPE_NONE};
      for (uint32_t n_out = 1; n_out <= (op == 0 ? 3 : 2); n_out++) {
        c.n_out = n_out;
        fast_check(&c);
      }
      c.attrs[1] = (berth_attr)FAST_INT("linear_before_reset", 1);
      fast_check(&c);
    }
}

/* A model that hears a step at a time runs the layer for one step: nothing is kept but the gates. */
static void one_step_takes_little_scratch(void **state) {
  const layer_shape shape = {"lstm", "forward", 1, 1, 257, 128, false};
  const fast_case c = layer_case(&shape);
  (void)state;
  assert_int_equal(fast_scratch(&c), 4 * 128 * sizeof(float));
}

static void named_activations_that_are_the_usual_ones(void **state) {
  const layer_shape shape = {"lstm", "forward", 3, 1, 7, 8, false};
  fast_case c = layer_case(&shape);
  (void)state;
  c.attrs[1] = (berth_attr)FAST_STRING("activations", "sigmoid tanh tanh");
  fast_check(&c);
}

/* Bounds, lengths, peepholes, coupled gates, and activations by name with their numbers, in both directions. */
static void other_forms(void **state) {
  static const double lengths[] = {3, 0, 5, 1};
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (int form = 0; form < 32; form++) {
      const layer_shape shape = {ops[op], form & 1 ? "bidirectional" : "reverse", 5, 4, 11, 17, (form & 3) == 3};
      fast_case c = layer_case(&shape);
      int n = 1;
      if (form & 2) c.attrs[n++] = (berth_attr)FAST_FLOAT("clip", 0.3);
      if (form & 4)
        c.in[4] = (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {4}, .values = lengths, .n_values = 4};
      if (form & 8 && op == 0) c.in[7] = (fast_operand)RANGED(form & 1 ? 2 : 1, 51);
      if (form & 8 && op == 1) c.attrs[n++] = (berth_attr)FAST_INT("linear_before_reset", 1);
      if (form & 16 && op == 0) c.attrs[n++] = (berth_attr)FAST_INT("input_forget", 1);
      fast_check(&c);
      c.n_out = 1;
      fast_check(&c);
    }
}

/* With many rows an item is several of them, which need not be as many in every item; each has its own length. */
static void many_rows(void **state) {
  static const int64_t batches[] = {3, 5, 8, 9, 15, 17, 32, 33, 41};
  static const double lengths[] = {3, 0, 5, 1, 5, 4, 2};
  static const char *const directions[] = {"forward", "reverse", "bidirectional"};
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
      for (int form = 0; form < 16; form++) {
        const int64_t batch = batches[b], d = form % 3 == 2 ? 2 : 1;
        const layer_shape shape = {ops[op], directions[form % 3], 5, batch, 7, 19, form % 5 == 0};
        fast_case c = layer_case(&shape);
        if (form & 1)
          c.in[4] = (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {batch}, .values = lengths, .n_values = 7};
        if (form & 2) c.attrs[1] = (berth_attr)FAST_FLOAT("clip", 0.3);
        if (form & 4 && op == 0) c.in[7] = (fast_operand)RANGED(d, 57);
        if (form & 4 && op == 1) c.attrs[form & 2 ? 2 : 1] = (berth_attr)FAST_INT("linear_before_reset", 1);
        if (form & 8) c.in[0].layout = FAST_PADDED;
        fast_check(&c);
        c.n_out = 1;
        fast_check(&c);
      }
}

/* Packed weights, beside plain ones or not: as many rows as make several tiles, each with its own length. */
static void packed_weights(void **state) {
  static const int64_t batches[] = {1, 2, 8, 9, 17, 41};
  static const double lengths[] = {3, 0, 5, 1, 5, 4, 2};
  static const char *const directions[] = {"forward", "reverse", "bidirectional"};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
      for (int form = 0; form < 12; form++) {
        const int64_t batch = batches[b], d = form % 3 == 2 ? 2 : 1, hidden = form < 6 ? 19 : 16;
        const layer_shape shape = {"lstm", directions[form % 3], 5, batch, 7, hidden, form % 5 == 0};
        const int64_t panels = (4 * hidden + isa->panel - 1) / isa->panel;
        fast_case c = layer_case(&shape);
        if (form != 4) c.in[1] = (fast_operand)RANGED(panels, 7, d, isa->panel);
        if (form != 5) c.in[2] = (fast_operand)RANGED(panels, hidden, d, isa->panel);
        if (form & 1)
          c.in[4] = (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {batch}, .values = lengths, .n_values = 7};
        if (form & 2) c.attrs[1] = (berth_attr)FAST_FLOAT("clip", 0.3);
        fast_check_on(&c, isa);
        c.n_out = 1;
        fast_check_on(&c, isa);
      }
}

/* Fewer rows or steps than planned take no more scratch, though items are cut otherwise then. */
static void many_rows_as_a_bound(void **state) {
  (void)state;
  for (size_t op = 0; op < 3; op++)
    for (int64_t steps = 1; steps <= 19; steps += 6) {
      const layer_shape shape = {ops[op], "bidirectional", steps, 35, 3, 5, true};
      const fast_case c = layer_case(&shape);
      fast_check_bounds(&c, 0, 1, 1, NULL);
      fast_check_bounds(&c, 0, 0, 1, NULL);
    }
}

/* Eight rows share a read of the weights, and take the scratch of sixteen inputs, as the steps of one row do. */
static void rows_share_scratch(void **state) {
  const layer_shape one = {"lstm", "forward", 50, 1, 64, 64, false}, many = {"lstm", "forward", 50, 64, 64, 64, false};
  const fast_case few = layer_case(&one), most = layer_case(&many);
  (void)state;
  assert_int_equal(fast_scratch(&few), 16 * 4 * 64 * sizeof(float));
  assert_int_equal(fast_scratch(&most), 16 * 4 * 64 * sizeof(float));
}

static void every_activation(void **state) {
  static const char *const names[] = {"affine", "relu",        "leaky_relu", "thresholded_relu",
                                      "tanh",   "scaled_tanh", "sigmoid",    "hard_sigmoid",
                                      "elu",    "softsign",    "softplus"};
  (void)state;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const layer_shape rnn = {"rnn", "forward", 3, 2, 7, 13, false}, lstm = {"lstm", "reverse", 3, 2, 7, 13, false},
                      gru = {"gru", "forward", 3, 2, 7, 13, false};
    fast_case one = layer_case(&rnn), three = layer_case(&lstm), two = layer_case(&gru);
    char list[80];
    one.attrs[1] = (berth_attr)FAST_STRING("activations", names[k]);
    fast_check(&one);
    one.attrs[2] = (berth_attr)FAST_FLOATS("alpha", 0.3);
    one.attrs[3] = (berth_attr)FAST_FLOATS("beta", 0.2);
    fast_check(&one);
    snprintf(list, sizeof list, "hard_sigmoid %s softsign", names[k]);
    three.attrs[1] = (berth_attr)FAST_STRING("activations", list);
    fast_check(&three);
    snprintf(list, sizeof list, "%s relu", names[k]);
    two.attrs[1] = (berth_attr)FAST_STRING("activations", list);
    fast_check(&two);
  }
}

static void what_is_left_to_the_reference(void **state) {
  const layer_shape shape = {"lstm", "forward", 3, 2, 7, 8, false};
  fast_case turned = layer_case(&shape);
  (void)state;
  turned.in[0].layout = FAST_REVERSED;
  fast_check_declined(&turned);
  fast_case panels = layer_case(&shape);
  panels.in[1] = (fast_operand)RANGED(32, 7, 1, 1);
  fast_check_declined(&panels);
}

/* Scales and zero points: one for all rows of a direction, or one for each; zero points are there with `zeros`. */
static fast_case bytes_case(berth_type type, int64_t directions, int64_t hidden, bool each, bool zeros, bool is_bare) {
  const int64_t rows = 4 * hidden, steps = hidden % 3 + 2, batch = hidden % 2 + 1;
  const fast_operand entry = {.type = BERTH_F32, .rank = each ? 2 : 1, .dim = {directions, rows}};
  fast_case c = {.op = "qlstm",
                 .in = {RANGED(steps, directions, batch, rows), entry, RANGED(directions, rows, hidden)},
                 .attrs = {FAST_STRING("direction", directions == 2 ? "bidirectional" : "reverse")},
                 .absolute = 1e-5,
                 .relative = 1e-5,
                 .n_out = 3};
  c.in[1].low = 0.001;
  c.in[1].high = 0.004;
  c.in[2].type = type;
  c.in[2].low = type == BERTH_U8 ? 0 : -128;
  c.in[2].high = type == BERTH_U8 ? 255 : 127;
  if (zeros) {
    c.in[8] = entry;
    c.in[8].type = type;
    c.in[8].low = type == BERTH_U8 ? 120 : -8;
    c.in[8].high = type == BERTH_U8 ? 136 : 8;
  }
  if (is_bare) return c;
  c.in[3] = (fast_operand)RANGED(directions, 2 * rows);
  c.in[5] = (fast_operand)RANGED(directions, batch, hidden);
  c.in[6] = (fast_operand)RANGED(directions, batch, hidden);
  return c;
}

static void recurrences_of_bytes(void **state) {
  static const int64_t widths[] = {1, 3, 8, 15, 16, 17, 33, 48, 67};
  (void)state;
  for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
    for (int form = 0; form < 8; form++) {
      fast_case c = bytes_case(form & 1 ? BERTH_U8 : BERTH_I8, (int64_t)k % 2 + 1, widths[k], (form & 2) != 0,
                               (form & 4) != 0, form == 3);
      fast_check(&c);
      c.in[0].layout = FAST_PADDED;
      c.n_out = 1;
      fast_check(&c);
    }
}

static void what_is_left_to_the_reference_of_bytes(void **state) {
  const fast_case plain = bytes_case(BERTH_I8, 1, 8, false, false, true);
  fast_case clip = plain, lengths = plain;
  (void)state;
  clip.attrs[1] = (berth_attr)FAST_FLOAT("clip", 2.0);
  lengths.in[4] = (fast_operand){.type = BERTH_I32, .rank = 1, .dim = {1}, .low = 1, .high = 2};
  fast_check_declined(&clip);
  fast_check_declined(&lengths);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_direction),
      cmocka_unit_test(every_width),
      cmocka_unit_test(linear_before_reset),
      cmocka_unit_test(fewer_results_and_operands),
      cmocka_unit_test(one_step_takes_little_scratch),
      cmocka_unit_test(named_activations_that_are_the_usual_ones),
      cmocka_unit_test(other_forms),
      cmocka_unit_test(many_rows),
      cmocka_unit_test(packed_weights),
      cmocka_unit_test(many_rows_as_a_bound),
      cmocka_unit_test(rows_share_scratch),
      cmocka_unit_test(every_activation),
      cmocka_unit_test(what_is_left_to_the_reference),
      cmocka_unit_test(recurrences_of_bytes),
      cmocka_unit_test(what_is_left_to_the_reference_of_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
