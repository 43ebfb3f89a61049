/* DeepSeek 2 and 3, and GLM 4.7 Flash: attention with latent vectors (MLA). The cache has one short row per token,
 * which serves all heads: its first part, the latent vector, is what keys and values are made of, and the rest are
 * positions. Queries are brought to the latent space instead of bringing all keys out of it, and results come from
 * there. */
#include <math.h>

#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

typedef struct latent {
  int64_t rank, plain; /* elements of a latent vector, and those of a query's head that have no positions */
  int64_t values;      /* elements of a head's value */
  double scale;        /* of scores */
  const berth__rope_tables *rope;
  berth_value heads; /* 0, 1, ... in every row: i32 [rows, heads] */
} latent;

static berth_value latent_heads(berth__net *net) {
  const berth_attr shape = berth_attr_dims("shape", (const berth_dim[]){{.name = "rows"}, {.extent = net->heads}}, 2);
  const berth_attr sum[] = {berth_attr_int("axis", 1), berth_attr_int("exclusive", 1)};
  const berth_value one = berth__net_cast(net, berth__net_number(net, 1), BERTH_I32);
  const berth_value ones = berth__net_add(net, "expand", &one, 1, &shape, 1);
  return berth__net_add(net, "cumsum", &ones, 1, sum, 2);
}

static berth_shape latent_shape(const berth__net *net, int64_t size) {
  return (berth_shape){.rank = 3, .dim = {{.name = "rows"}, {.extent = net->heads}, {.extent = size}}};
}

/* x [rows, heads, inner] times a matrix of each head: [rows, heads, columns]. */
static berth_value latent_through(berth__net *net, const latent *l, berth_value x, const char *name, int64_t columns,
                                  int64_t inner) {
  const berth_value weights = berth__net_param(net, name, 3, (const int64_t[]){net->heads, columns, inner});
  return berth__net_add(net, "expert_matmul", (const berth_value[]){x, weights, l->heads}, 3, NULL, 0);
}

static berth_value latent_part(berth__net *net, berth_value x, int64_t first, int64_t count) {
  const int64_t axis = 2, end = first + count;
  const berth_attr attrs[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &first, 1),
                              berth_attr_ints("ends", &end, 1)};
  return berth__net_add(net, "narrow", &x, 1, attrs, 3);
}

static berth_value latent_join(berth__net *net, berth_value a, berth_value b, int64_t axis) {
  const berth_attr attr = berth_attr_int("axis", axis);
  return berth__net_add(net, "concat", (const berth_value[]){a, b}, 2, &attr, 1);
}

/* [rows, heads * (rank + rotated)]. Large models make queries from short vectors too. */
static berth_value latent_queries(berth__net *net, berth_value x, const latent *l) {
  const int64_t rotated = net->rotated, size = l->plain + rotated;
  const char *name = "attn_q";
  int64_t inner = net->width;
  if (!berth__net_has(net, "attn_q.weight")) {
    const int64_t rank = berth__net_whole(net, ".attention.q_lora_rank");
    x = berth__net_linear(net, x, "attn_q_a", net->width, rank);
    x = berth__net_norm_by(net, x, berth__net_vector(net, "attn_q_a_norm.weight", rank));
    name = "attn_q_b", inner = rank;
  }
  x = berth__net_reshape(net, berth__net_linear(net, x, name, inner, net->heads * size), latent_shape(net, size));
  berth_value turned = latent_part(net, x, l->plain, rotated);
  turned =
      berth__net_turn(net, berth__net_reshape(net, turned, berth__net_rows(net->heads * rotated)), net->heads, l->rope);
  const berth_value plain =
      latent_through(net, l, latent_part(net, x, 0, l->plain), "attn_k_b.weight", l->rank, l->plain);
  const berth_value all = latent_join(net, plain, berth__net_reshape(net, turned, latent_shape(net, rotated)), 2);
  return berth__net_reshape(net, all, berth__net_rows(net->heads * (l->rank + rotated)));
}

static berth_value latent_attend(berth__net *net, berth_value x, const void *state) {
  const latent *l = state;
  const int64_t rank = l->rank, row = rank + net->rotated;
  const berth_attr attrs[] = {berth_attr_int("heads", net->heads), berth_attr_int("kv_heads", 1),
                              berth_attr_float("scale", l->scale), berth_attr_string("mode", "causal")};
  const berth_value q = latent_queries(net, x, l);
  const berth_value made = berth__net_linear(net, x, "attn_kv_a_mqa", net->width, row);
  const berth_value vector = berth__net_norm_by(net, berth__net_columns(net, made, 0, rank),
                                                berth__net_vector(net, "attn_kv_a_norm.weight", rank));
  const berth_value place = berth__net_turn(net, berth__net_columns(net, made, rank, net->rotated), 1, l->rope);
  const berth_value keys = berth__net_keep(net, "keys", net->cache, latent_join(net, vector, place, 1), row, 0);
  /* Rows in blocks have no part that is a view. */
  const berth_value values = berth_type_size(net->cache) == 0
                                 ? berth__net_keep(net, "values", net->cache, vector, rank, 0)
                                 : berth__net_columns(net, keys, 0, rank);
  const berth_value in[] = {q, keys, values, BERTH_VALUE_NONE, BERTH_VALUE_NONE, net->length};
  berth_value seen = berth__net_add(net, "attention", in, 6, attrs, 4);
  seen = latent_through(net, l, berth__net_reshape(net, seen, latent_shape(net, rank)), "attn_v_b.weight", l->values,
                        rank);
  seen = berth__net_reshape(net, seen, berth__net_rows(net->heads * l->values));
  return berth__net_linear(net, seen, "attn_output", net->heads * l->values, net->width);
}

static latent latent_of(berth__net *net, const berth__rope_tables *rope) {
  const int64_t size = berth__net_whole(net, ".attention.key_length_mla");
  latent l = {.rank = berth__net_whole(net, ".attention.kv_lora_rank"),
              .plain = size - net->rotated,
              .values = berth__net_whole(net, ".attention.value_length_mla"),
              .rope = rope};
  if (net->status == BERTH_OK && (l.rank < 1 || l.values < 1 || l.plain < 1))
    net->status = berth__fail(net->err, BERTH_MALFORMED,
                              "keys of %lld elements, %lld of them rotated, values of %lld and latent vectors of %lld "
                              "are not possible",
                              (long long)size, (long long)net->rotated, (long long)l.values, (long long)l.rank);
  if (net->status != BERTH_OK) return l;
  const double magnitude = berth__net_yarn_magnitude(net);
  l.scale = magnitude * magnitude / sqrt((double)size);
  l.heads = latent_heads(net);
  return l;
}

/* Files from before there was a key for it choose experts by softmax, but for GLM 4.7 Flash. */
static berth__expert_scores deepseek_scores(const berth__net *net) {
  enum {
    FLASH_LAYERS = 47,
    FLASH_VOCABULARY = 154880
  };
  const bool is_flash = net->layers == FLASH_LAYERS && net->vocabulary == FLASH_VOCABULARY;
  return is_flash ? BERTH__SCORES_SIGMOID : BERTH__SCORES_SOFTMAX;
}

void berth__arch_deepseek2(berth__net *net) {
  net->yarn_in_scores = true;
  const berth_value x = berth__net_begin(net);
  if (berth__net_real_or(net, ".attention.temperature_scale", 0) != 0 && net->status == BERTH_OK)
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED,
                              "key '.attention.temperature_scale': attention with latent vectors has no temperature");
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
  const latent l = latent_of(net, &rope);
  berth__layer_form form = berth__net_layer_form();
  form.mixture = berth__net_mixture(net, deepseek_scores(net));
  form.instead = latent_attend;
  form.instead_state = &l;
  form.is_instead_everywhere = true;
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), 1, 0);
}
