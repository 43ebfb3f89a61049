/* Self-attention: products, norms, positions, and the cache. */
#include <inttypes.h>
#include <stdio.h>

#include "import/gguf/parts.h"

typedef struct heads {
  berth_value q, k, v;
} heads;

static heads attention_project(berth__net *net, berth_value x) {
  const int64_t queries = net->heads * net->key_size, keys = net->kv_heads * net->key_size,
                values = net->kv_heads * net->value_size;
  if (berth__net_has(net, "attn_qkv.weight")) {
    const berth_value all = berth__net_linear(net, x, "attn_qkv", net->width, queries + keys + values);
    return (heads){berth__net_columns(net, all, 0, queries), berth__net_columns(net, all, queries, keys),
                   berth__net_columns(net, all, queries + keys, values)};
  }
  return (heads){berth__net_linear(net, x, "attn_q", net->width, queries),
                 berth__net_linear(net, x, "attn_k", net->width, keys),
                 berth__net_linear(net, x, "attn_v", net->width, values)};
}

/* The scale's shape tells what is normalised: all heads together, or each head separately. */
static berth_value attention_norm(berth__net *net, berth_value x, const char *name, int64_t n_heads) {
  const int64_t each[] = {n_heads, net->key_size}, all = n_heads * net->key_size;
  const berth__gguf_tensor *scale = berth__net_find(net, name);
  if (scale == NULL || net->status != BERTH_OK) return x;
  if (scale->rank == 1 && scale->dim[0] == all) return berth__net_norm_by(net, x, berth__net_vector(net, name, all));
  const berth_shape apart = {.rank = 3, .dim = {{.name = "rows"}, {.extent = n_heads}, {.extent = net->key_size}}};
  x = berth__net_reshape(net, x, apart);
  if (scale->rank == 2) /* one scale per head: more than a norm over the last axis can do */
    x = berth__net_two(net, "mul", berth__net_norm_by(net, x, BERTH_VALUE_NONE), berth__net_weight(net, name, 2, each));
  else
    x = berth__net_norm_by(net, x, berth__net_vector(net, name, net->key_size));
  return berth__net_reshape(net, x, berth__net_rows(all));
}

static void attention_norms(berth__net *net, heads *h) {
  h->q = attention_norm(net, h->q, "attn_q_norm.weight", net->heads);
  h->k = attention_norm(net, h->k, "attn_k_norm.weight", net->kv_heads);
}

berth_value berth__net_keep(berth__net *net, const char *what, berth_type type, berth_value rows, int64_t columns,
                            int64_t window) {
  char name[BERTH__NET_NAME];
  berth_value state = BERTH_VALUE_NONE;
  const berth_shape shape = {.rank = 2, .dim = {{.name = window > 0 ? "near" : "ctx"}, {.extent = columns}}};
  const berth_attr ring = berth_attr_int("ring", window);
  if (net->status != BERTH_OK) return state;
  snprintf(name, sizeof name, "%s%s", net->prefix, what);
  if (columns % (int64_t)berth_type_storage(type).elements != 0) {
    net->status =
        berth__fail(net->err, BERTH_UNSUPPORTED, "%s have %" PRId64 " columns, which are not whole blocks of %s", name,
                    columns, berth_type_name(type));
    return state;
  }
  net->status = berth_graph_state(net->graph, name, type, shape, NULL, 0, &state, net->err);
  const berth_value next =
      berth__net_add(net, "write_rows", (const berth_value[]){state, rows, net->position}, 3, &ring, window > 0);
  if (net->status == BERTH_OK) net->status = berth_graph_update(net->graph, state, next, net->err);
  return next;
}

/* Of rows that see all, those that are at most half a window away: bool [rows, rows]. */
static berth_value attention_near(berth__net *net, int64_t window) {
  const berth_shape across = {.rank = 2, .dim = {{.extent = 1}, {.name = "rows"}}};
  const berth_value row = berth__net_cast(net, berth__net_reshape(net, net->steps, across), BERTH_F32);
  const berth_value apart = berth__net_one(net, "abs", berth__net_two(net, "sub", net->positions, row));
  const int64_t half = window / 2;
  return berth__net_two(net, "le", apart, berth__net_number(net, (double)half));
}

/* A text that is embedded has no cache. Its rows are then all there are: those after its tokens are not seen, either
 * because `length` says so or because they are later. */
static berth_value attention_see(berth__net *net, const heads *h, const berth__attending *form) {
  const bool sees_all = net->embeds && net->sees_all;
  const char *mode = sees_all ? "none" : form->window > 0 ? "sliding_window" : "causal";
  const berth_attr attrs[] = {berth_attr_int("heads", net->heads),
                              berth_attr_int("kv_heads", net->kv_heads),
                              berth_attr_float("scale", form->scale),
                              berth_attr_string("mode", mode),
                              berth_attr_int("window", form->window),
                              berth_attr_float("cap", form->cap),
                              berth_attr_int("ring", form->window > 0 && !net->embeds)};
  const berth_value sinks =
      form->has_sinks ? berth__net_vector(net, "attn_sinks.weight", net->heads) : BERTH_VALUE_NONE;
  const berth_value mask = sees_all && form->window > 0 ? attention_near(net, form->window) : BERTH_VALUE_NONE;
  const berth_value length = net->embeds && !sees_all ? BERTH_VALUE_NONE : net->length;
  const berth_value in[] = {h->q, h->k, h->v, mask, BERTH_VALUE_NONE, length, sinks};
  return berth__net_add(net, "attention", in, form->has_sinks ? 7 : 6, attrs, sizeof attrs / sizeof *attrs);
}

berth_value berth__net_attend(berth__net *net, berth_value x, const berth__attending *form) {
  heads h = attention_project(net, x);
  if (!form->norms_late) attention_norms(net, &h);
  if (form->rope != NULL) {
    h.q = berth__net_turn(net, h.q, net->heads, form->rope);
    h.k = berth__net_turn(net, h.k, net->kv_heads, form->rope);
  }
  if (form->norms_late) attention_norms(net, &h);
  if (net->temperature != BERTH_VALUE_NONE) h.q = berth__net_two(net, "mul", h.q, net->temperature);
  if (!net->embeds) {
    h.k = berth__net_keep(net, "keys", net->cache, h.k, net->kv_heads * net->key_size, form->window);
    h.v = berth__net_keep(net, "values", net->cache, h.v, net->kv_heads * net->value_size, form->window);
  }
  const berth_value seen = attention_see(net, &h, form);
  return berth__net_linear(net, seen, "attn_output", net->heads * net->value_size, net->width);
}
