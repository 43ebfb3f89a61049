/* BERT and nomic-bert: an embedding of a text.
 * Norms come after each part. BERT adds a position embedding, nomic-bert rotates queries and keys. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

static berth_value bert_begin(berth__net *net) {
  net->sees_all = true;
  berth__net_enter(net, -1);
  berth__net_read_keys(net);
  net->norm = BERTH__NORM_LAYER;
  net->epsilon = berth__net_real(net, ".attention.layer_norm_epsilon");
  net->tokens = berth__net_input(net, "tokens", BERTH_I32, (berth_shape){.rank = 1, .dim = {{.name = "rows"}}});
  net->length = berth__net_input(net, "length", BERTH_I32, (berth_shape){0});
  berth__net_count_rows(net);
  return berth__net_embed_tokens(net);
}

/* All tokens have token type 0, whose embedding is the same for every token, so it is added once. */
static berth_value bert_embed(berth__net *net, berth_value x) {
  if (berth__net_has(net, "token_types.weight")) {
    const int64_t types = berth__net_whole_or(net, "tokenizer.ggml.token_type_count", 2), first = 0, end = 1;
    const berth_attr attrs[] = {berth_attr_ints("starts", &first, 1), berth_attr_ints("ends", &end, 1)};
    const berth_value table = berth__net_weight(net, "token_types.weight", 2, (const int64_t[]){types, net->width});
    x = berth__net_two(net, "add", x, berth__net_add(net, "narrow", &table, 1, attrs, 2));
  }
  if (berth__net_has(net, "position_embd.weight")) {
    const int64_t extents[] = {berth__net_whole(net, ".context_length"), net->width};
    const berth_value table = berth__net_weight(net, "position_embd.weight", 2, extents);
    x = berth__net_two(net, "add", x, berth__net_two(net, "embedding", table, net->steps));
  }
  return berth__net_norm(net, x, "token_embd_norm");
}

static berth_value bert_layer(berth__net *net, berth_value x, int64_t layer, const berth__attending *form) {
  berth__net_enter(net, layer);
  x = berth__net_two(net, "add", x, berth__net_attend(net, x, form));
  x = berth__net_norm(net, x, "attn_output_norm");
  const bool is_gated = berth__net_has(net, "ffn_gate.weight");
  const berth_value y = berth__net_feed(net, x, is_gated ? BERTH__GATE_SILU : BERTH__PLAIN_GELU_ERF);
  return berth__net_norm(net, berth__net_two(net, "add", x, y), "layer_output_norm");
}

void berth__arch_bert(berth__net *net) {
  berth_value x = bert_embed(net, bert_begin(net));
  berth__attending form = {0};
  berth__rope_tables rope;
  if (net->status == BERTH_OK && !berth__net_has(net, "position_embd.weight")) {
    rope = berth__net_rope(net, BERTH__ROPE_HALVES, berth__net_rope_base(net), true);
    form.rope = &rope;
  }
  for (int64_t layer = 0; layer < net->layers && net->status == BERTH_OK; layer++) x = bert_layer(net, x, layer, &form);
  berth__net_enter(net, -1);
  berth__net_pool(net, x);
}
