/* Mixture of experts: which experts a row goes through, and their products. */
#include <math.h>
#include <stdio.h>

#include "import/gguf/parts.h"

typedef struct experts {
  int64_t count, used, hidden;
  berth_value which, weights; /* per row: [rows, used], and [rows, used, 1] */
} experts;

/* ---- Choosing ---- */

typedef struct best {
  berth_value values, places;
} best;

static best experts_best(berth__net *net, berth_value x, int64_t k) {
  berth_value out[2] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  const berth_attr attr = berth_attr_int("k", k);
  if (net->status == BERTH_OK) net->status = berth_graph_add(net->graph, "top_k", &x, 1, &attr, 1, out, 2, net->err);
  return (best){out[0], out[1]};
}

static berth_value experts_reduce(berth__net *net, const char *op, berth_value x, int64_t axis, bool keeps) {
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_int("keepdims", keeps)};
  return berth__net_add(net, op, &x, 1, attrs, 2);
}

/* If experts are in groups, only those in the best groups can be chosen: a group counts as much as its best two. */
static berth_value experts_in_groups(berth__net *net, berth_value scores, const experts *e) {
  enum {
    COUNTED = 2
  };
  const int64_t groups = berth__net_whole_or(net, ".expert_group_count", 0),
                used = berth__net_whole_or(net, ".expert_group_used_count", 0);
  if (net->status != BERTH_OK || groups <= 1) return scores;
  const int64_t each = e->count / groups;
  if (e->count % groups != 0 || each < COUNTED || used < 1 || used > groups || used * each < e->used) {
    net->status = berth__fail(net->err, BERTH_MALFORMED,
                              "%lld experts, of which %lld are used, are not in %lld groups, "
                              "of which %lld are used",
                              (long long)e->count, (long long)e->used, (long long)groups, (long long)used);
    return scores;
  }
  const berth_shape apart = {.rank = 3, .dim = {{.name = "rows"}, {.extent = groups}, {.extent = each}}};
  const berth_shape columns = {.rank = 3, .dim = {{.name = "rows"}, {.extent = groups}, {.extent = 1}}};
  scores = berth__net_reshape(net, scores, apart);
  const berth_value sums = experts_reduce(net, "reduce_sum", experts_best(net, scores, COUNTED).values, 2, false);
  const berth_value least = experts_reduce(net, "reduce_min", experts_best(net, sums, used).values, 1, true);
  const berth_value is_in = berth__net_reshape(net, berth__net_two(net, "ge", sums, least), columns);
  const berth_value in[] = {is_in, scores, berth__net_number(net, -INFINITY)};
  return berth__net_reshape(net, berth__net_add(net, "where", in, 3, NULL, 0), berth__net_rows(e->count));
}

/* The best experts of each row, and their weights. A softmax over the scores of the chosen ones equals a softmax over
 * all scores divided by its sum over the chosen ones, and takes less work. A bias ("exp_probs_b") takes part in the
 * choice and not in the weights. */
static void experts_choose(berth__net *net, berth_value x, const berth__mixture *mixture, experts *e) {
  static const char bias[] = "exp_probs_b.bias";
  const bool is_biased = berth__net_has(net, bias), is_grouped = berth__net_whole_or(net, ".expert_group_count", 0) > 1;
  const bool is_sigmoid = mixture->scores == BERTH__SCORES_SIGMOID;
  const bool is_early = is_sigmoid || is_biased || is_grouped || mixture->keeps_scores;
  const berth_shape apart = {.rank = 3, .dim = {{.name = "rows"}, {.extent = e->used}, {.extent = 1}}};
  berth_value scores = berth__net_linear(net, x, "ffn_gate_inp", net->width, e->count);
  if (is_early) scores = berth__net_one(net, is_sigmoid ? "sigmoid" : "softmax", scores);
  berth_value counted = is_biased ? berth__net_two(net, "add", scores, berth__net_vector(net, bias, e->count)) : scores;
  counted = experts_in_groups(net, counted, e);
  const best chosen = experts_best(net, counted, e->used);
  const berth_attr axis = berth_attr_int("axis", 1);
  berth_value weights = chosen.values;
  if (is_biased)
    weights = berth__net_add(net, "gather_elements", (const berth_value[]){scores, chosen.places}, 2, &axis, 1);
  if (!is_early) {
    weights = berth__net_one(net, "softmax", weights);
  } else if (!mixture->keeps_scores) {
    const berth_value least = berth__net_number(net, 0x1p-14),
                      sum = experts_reduce(net, "reduce_sum", weights, 1, true);
    weights = berth__net_two(net, "div", weights, berth__net_two(net, "max", sum, least));
  }
  e->which = chosen.places;
  e->weights = berth__net_scaled(net, berth__net_reshape(net, weights, apart),
                                 berth__net_factor(berth__net_real_or(net, ".expert_weights_scale", 1)));
}

berth__mixture berth__net_mixture(berth__net *net, berth__expert_scores otherwise) {
  enum {
    SOFTMAX = 1,
    SIGMOID = 2
  };
  berth__mixture out = {.is_shared = berth__net_whole_or(net, ".expert_shared_count", 0) > 0};
  const int64_t scores =
      berth__net_size_or(net, ".expert_gating_func", otherwise == BERTH__SCORES_SIGMOID ? SIGMOID : SOFTMAX);
  bool is_divided = false;
  if (net->status == BERTH_OK)
    net->status = berth__gguf_bool_or(net->file, ".expert_weights_norm", false, &is_divided, net->err);
  if (net->status == BERTH_OK && scores != SOFTMAX && scores != SIGMOID)
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED,
                              "key '.expert_gating_func' is %lld: experts are chosen by softmax (1) or sigmoid (2)",
                              (long long)scores);
  out.scores = scores == SIGMOID ? BERTH__SCORES_SIGMOID : BERTH__SCORES_SOFTMAX;
  out.keeps_scores = !is_divided;
  return out;
}

/* ---- Products ---- */

/* The result is [rows, used, columns], for x [rows, inner] or [rows, used, inner]. */
static berth_value experts_linear(berth__net *net, const experts *e, berth_value x, const char *name, int64_t inner,
                                  int64_t columns) {
  char text[BERTH__NET_NAME];
  snprintf(text, sizeof text, "%s.weight", name);
  const berth_value weights = berth__net_param(net, text, 3, (const int64_t[]){e->count, columns, inner});
  const berth_value product =
      berth__net_add(net, "expert_matmul", (const berth_value[]){x, weights, e->which}, 3, NULL, 0);
  snprintf(text, sizeof text, "%s.bias", name);
  if (!berth__net_has(net, text)) return product;
  const berth_value bias = berth__net_weight(net, text, 2, (const int64_t[]){e->count, columns});
  return berth__net_two(net, "add", product, berth__net_two(net, "embedding", bias, e->which));
}

/* The shared experts, which every row goes through: one, or several as one, each as wide as another expert. */
static berth_value experts_shared(berth__net *net, berth_value x, berth__gate gate, const experts *e) {
  static const char key[] = ".expert_shared_feed_forward_length";
  const int64_t count = berth__net_whole_or(net, ".expert_shared_count", 0);
  const int64_t hidden = berth__net_size_or(net, key, count > 0 ? count * e->hidden : net->hidden);
  const berth_value y = berth__net_gated(net, x, gate, "_shexp", key, hidden);
  if (!berth__net_has(net, "ffn_gate_inp_shexp.weight")) return y;
  const berth_value column = berth__net_vector(net, "ffn_gate_inp_shexp.weight", net->width);
  const berth_shape turned = {.rank = 2, .dim = {{.extent = net->width}, {.extent = 1}}};
  const berth_value open = berth__net_two(net, "matmul", x, berth__net_reshape(net, column, turned));
  return berth__net_two(net, "mul", y, berth__net_one(net, "sigmoid", open));
}

berth_value berth__net_experts(berth__net *net, berth_value x, berth__gate gate, const berth__mixture *mixture) {
  experts e = {.count = berth__net_whole(net, ".expert_count"), .used = berth__net_whole(net, ".expert_used_count")};
  if (net->status == BERTH_OK && e.used < 1)
    net->status = berth__fail(net->err, BERTH_MALFORMED, "key '.expert_used_count' is 0, and must be above 0");
  const int64_t parts = net->status == BERTH_OK && mixture->splits_width ? e.used : 1;
  e.hidden = berth__net_size_or(net, ".expert_feed_forward_length", net->hidden / parts);
  experts_choose(net, x, mixture, &e);
  const berth_value g = experts_linear(net, &e, x, "ffn_gate_exps", net->width, e.hidden),
                    up = experts_linear(net, &e, x, "ffn_up_exps", net->width, e.hidden);
  berth__net_need_hidden(net, ".expert_feed_forward_length", e.hidden);
  const berth_value y =
      experts_linear(net, &e, berth__net_gate(net, gate, g, up), "ffn_down_exps", e.hidden, net->width);
  const berth_value weighed = berth__net_two(net, "mul", y, e.weights);
  const berth_value sum = experts_reduce(net, "reduce_sum", weighed, 1, false);
  return mixture->is_shared ? berth__net_two(net, "add", sum, experts_shared(net, x, gate, &e)) : sum;
}
