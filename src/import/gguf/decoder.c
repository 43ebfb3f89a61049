/* What decoders have in common: from tokens through layers to logits. */
#include "import/gguf/parts.h"

/* [0, 1, ..., rows - 1] is folded when the graph is bound. */
void berth__net_count_rows(berth__net *net) {
  const berth_dim rows = {.name = "rows"};
  const berth_attr shape = berth_attr_dims("shape", &rows, 1);
  const berth_attr sum[] = {berth_attr_int("axis", 0), berth_attr_int("exclusive", 1)};
  const berth_attr all = berth_attr_int("keepdims", 0);
  const berth_value one = berth__net_cast(net, berth__net_number(net, 1), BERTH_I32);
  const berth_value ones = berth__net_add(net, "expand", &one, 1, &shape, 1);
  const berth_value steps = berth__net_add(net, "cumsum", &ones, 1, sum, 2);
  berth_value positions = steps;
  net->steps = steps;
  if (net->position != BERTH_VALUE_NONE) {
    const berth_value count = berth__net_add(net, "reduce_sum", &ones, 1, &all, 1);
    positions = berth__net_two(net, "add", steps, net->position);
    net->length = berth__net_two(net, "add", count, net->position);
  }
  net->places = positions;
  net->positions = berth__net_reshape(net, berth__net_cast(net, positions, BERTH_F32), berth__net_rows(1));
}

berth_value berth__net_embed_tokens(berth__net *net) {
  const int64_t extents[2] = {net->vocabulary, net->width};
  berth_value table = berth__net_param(net, "token_embd.weight", 2, extents);
  if (net->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_type type = net->graph->values[table].type;
  if (berth_type_size(type) == 0) table = berth__net_one(net, "unpack", table);
  const berth_value rows = berth__net_two(net, "embedding", table, net->tokens);
  return berth_type_size(type) == 0 || type == BERTH_F32 ? rows : berth__net_cast(net, rows, BERTH_F32);
}

/* A model whose tokens see those after them computes embeddings of a text, and not what comes next. */
static void decoder_check_causal(berth__net *net) {
  bool is_causal = true;
  if (net->status == BERTH_OK)
    net->status = berth__gguf_bool_or(net->file, ".attention.causal", true, &is_causal, net->err);
  if (!is_causal) net->sees_all = true;
  if (net->status == BERTH_OK && !is_causal && !net->embeds)
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED,
                              "key '.attention.causal' is false: tokens see those after them, so the model generates "
                              "no text; berth embeds with it if key '.pooling_type' says how");
}

berth_value berth__net_begin(berth__net *net) {
  const berth_shape rows = {.rank = 1, .dim = {{.name = "rows"}}}, one = {.rank = 1, .dim = {{.extent = 1}}};
  berth__net_enter(net, -1);
  berth__net_read_keys(net);
  decoder_check_causal(net);
  net->epsilon = berth__net_real(
      net, net->norm == BERTH__NORM_RMS ? ".attention.layer_norm_rms_epsilon" : ".attention.layer_norm_epsilon");
  net->tokens = berth__net_input(net, "tokens", BERTH_I32, rows);
  if (net->embeds) {
    net->length = berth__net_input(net, "length", BERTH_I32, (berth_shape){0});
  } else {
    net->position = berth__net_input(net, "position", BERTH_I32, (berth_shape){0});
    net->last = berth__net_input(net, "last", BERTH_I32, net->every_row ? rows : one);
  }
  berth__net_count_rows(net);
  return berth__net_embed_tokens(net);
}

/* LFM 2 calls its last norm "token_embd_norm". */
void berth__net_finish(berth__net *net, berth_value x, double scale, double cap) {
  berth__net_enter(net, -1);
  if (!net->embeds) x = berth__net_two(net, "gather", x, net->last);
  x = berth__net_norm(net, x, berth__net_has(net, "output_norm.weight") ? "output_norm" : "token_embd_norm");
  if (net->embeds) {
    berth__net_pool(net, x);
    return;
  }
  const bool is_tied = !berth__net_has(net, "output.weight");
  x = berth__net_linear(net, x, is_tied ? "token_embd" : "output", net->width, net->vocabulary);
  berth__net_output(net, "logits", berth__net_soft_cap(net, berth__net_scaled(net, x, scale), cap));
}

bool berth__net_is_local(berth__net *net, int64_t layer, int64_t period) {
  static const char name[] = ".attention.sliding_window_pattern";
  const berth__gguf_key *key = berth__gguf_find(net->file, name);
  if (key != NULL && key->kind == BERTH__GGUF_ARRAY && berth__gguf_array_is_whole(&key->array))
    return (uint64_t)layer < key->array.count && berth__gguf_array_i64(&key->array, (uint64_t)layer) != 0;
  period = berth__net_whole_or(net, name, period);
  return period == 0 || layer % period < period - 1;
}

static berth_value decoder_norm(berth__net *net, berth_value x, const char *name) {
  return name != NULL ? berth__net_norm(net, x, name) : x;
}

static berth_value decoder_add(berth__net *net, berth_value x, berth_value part, const char *post, double residual) {
  part = decoder_norm(net, part, post);
  return berth__net_two(net, "add", x, residual != 0 ? berth__net_scaled(net, part, residual) : part);
}

static berth_value decoder_layer(berth__net *net, berth_value x, int64_t layer, const berth__layer_form *form) {
  berth__net_enter(net, layer);
  const berth_value seen = decoder_norm(net, x, form->attention_norm);
  if (!net->attends && form->instead == NULL && net->status == BERTH_OK)
    net->status = berth__fail(net->err, BERTH_MALFORMED, "layer %lld has no heads for keys", (long long)layer);
  const bool attends = form->instead == NULL || (net->attends && !form->is_instead_everywhere);
  const berth_value attended =
      attends ? berth__net_attend(net, seen, &form->attention) : form->instead(net, seen, form->instead_state);
  const berth_value after = decoder_add(net, x, attended, form->attention_post, form->residual);
  const bool shares = form->is_parallel && form->feed_norm == NULL;
  berth_value y = shares ? seen : decoder_norm(net, form->is_parallel ? x : after, form->feed_norm);
  y = berth__net_has(net, "ffn_gate_inp.weight") ? berth__net_experts(net, y, form->gate, &form->mixture)
                                                 : berth__net_feed(net, y, form->gate);
  return decoder_add(net, after, y, form->feed_post, form->residual);
}

berth_value berth__net_layers(berth__net *net, berth_value x, const berth__layer_form *global,
                              const berth__layer_form *local, int64_t period) {
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++)
    x = decoder_layer(net, x, layer, local != global && berth__net_is_local(net, layer, period) ? local : global);
  return x;
}

berth__layer_form berth__net_layer_form(void) {
  return (berth__layer_form){.gate = BERTH__GATE_SILU, .attention_norm = "attn_norm", .feed_norm = "ffn_norm"};
}

void berth__net_decoder(berth__net *net, berth__rope_kind kind, const berth__layer_form *form) {
  const berth_value x = berth__net_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, kind, berth__net_rope_base(net), true);
  berth__layer_form layer = *form;
  layer.attention.rope = &rope;
  berth__net_finish(net, berth__net_layers(net, x, &layer, &layer, 0), 1, 0);
}
