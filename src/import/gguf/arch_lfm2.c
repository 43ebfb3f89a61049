/* LFM 2, with and without experts: most layers have a short convolution over the last few rows instead of attention. */
#include <stdio.h>

#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

#define MOST_TAPS 64

/* Shared by all convolutions: for each tap but the last, where the row that it reads is in a ring buffer, and whether
 * there is one. */
typedef struct before {
  int64_t taps;
  berth_value rows[MOST_TAPS], exists[MOST_TAPS];
} before;

static berth_value lfm2_whole(berth__net *net, int64_t number) {
  return berth__net_cast(net, berth__net_number(net, (double)number), BERTH_I32);
}

/* The extent of the dimension "near", folded when the graph is bound. */
static berth_value lfm2_near(berth__net *net) {
  const berth_attr attr = berth_attr_dims("shape", &(berth_dim){.name = "near"}, 1);
  const berth_value one = berth__net_number(net, 1);
  const berth_value ones = berth__net_add(net, "expand", &one, 1, &attr, 1);
  return berth__net_cast(net, berth__net_one(net, "shape", ones), BERTH_I32);
}

static void lfm2_look_before(berth__net *net, before *b) {
  b->taps = berth__net_whole(net, ".shortconv.l_cache");
  if (net->status == BERTH_OK && (b->taps < 2 || b->taps > MOST_TAPS))
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED, "key '.shortconv.l_cache' is %lld, and must be from 2 to %d",
                              (long long)b->taps, MOST_TAPS);
  if (net->status != BERTH_OK) return;
  const berth_value near = lfm2_near(net), zero = lfm2_whole(net, 0);
  for (int64_t i = 0; i + 1 < b->taps; i++) {
    const berth_value place = berth__net_two(net, "sub", net->places, lfm2_whole(net, b->taps - 1 - i));
    b->exists[i] = berth__net_reshape(net, berth__net_two(net, "ge", place, zero), berth__net_rows(1));
    b->rows[i] = berth__net_two(net, "mod", berth__net_two(net, "max", place, zero), near);
  }
}

/* The tap's weight for each column. */
static berth_value lfm2_tap(berth__net *net, berth_value weights, int64_t tap) {
  const berth_shape one = {.rank = 1, .dim = {{.extent = net->width}}};
  return berth__net_reshape(net, berth__net_columns(net, weights, tap, 1), one);
}

/* x [rows, width]: each column is a sum over the rows up to its own, before which there are zeros. */
static berth_value lfm2_sum(berth__net *net, berth_value x, const before *b) {
  const berth_value weights =
      berth__net_weight(net, "shortconv.conv.weight", 2, (const int64_t[]){net->width, b->taps});
  const berth_value kept = berth__net_keep(net, "before", BERTH_F32, x, net->width, b->taps);
  const berth_value zero = berth__net_number(net, 0);
  berth_value sum = berth__net_two(net, "mul", x, lfm2_tap(net, weights, b->taps - 1));
  for (int64_t i = 0; i + 1 < b->taps; i++) {
    const berth_value row = berth__net_two(net, "gather", kept, b->rows[i]);
    const berth_value in[] = {b->exists[i], row, zero};
    const berth_value seen = berth__net_add(net, "where", in, 3, NULL, 0);
    sum = berth__net_two(net, "add", sum, berth__net_two(net, "mul", seen, lfm2_tap(net, weights, i)));
  }
  return sum;
}

static berth_value lfm2_convolve(berth__net *net, berth_value x, const void *state) {
  const int64_t width = net->width;
  const berth_value all = berth__net_linear(net, x, "shortconv.in_proj", width, 3 * width);
  const berth_value first = berth__net_columns(net, all, 0, width), gate = berth__net_columns(net, all, width, width);
  x = lfm2_sum(net, berth__net_two(net, "mul", first, berth__net_columns(net, all, 2 * width, width)), state);
  return berth__net_linear(net, berth__net_two(net, "mul", gate, x), "shortconv.out_proj", width, width);
}

/* Layers without heads for keys are those with a convolution. */
void berth__arch_lfm2(berth__net *net) {
  before b = {0};
  const berth_value x = berth__net_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
  lfm2_look_before(net, &b);
  berth__layer_form form = berth__net_layer_form();
  form.attention.rope = &rope;
  form.attention.window = berth__net_whole_or(net, ".attention.sliding_window", 0);
  form.mixture = berth__net_mixture(net, BERTH__SCORES_SIGMOID);
  form.mixture.keeps_scores = false;
  form.instead = lfm2_convolve;
  form.instead_state = &b;
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), 1, 0);
}
