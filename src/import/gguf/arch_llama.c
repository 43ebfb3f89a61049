/* Llama, Mistral, SmolLM, Mixtral (with experts), and models with the same structure. */
#include <math.h>

#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_llama(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.attention.scale = berth__net_real_or(net, ".attention.scale", 0);
  berth__net_decoder(net, BERTH__ROPE_NEIGHBOURS, &form);
}

void berth__arch_arcee(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.gate = BERTH__PLAIN_RELU2;
  berth__net_decoder(net, BERTH__ROPE_NEIGHBOURS, &form);
}

/* Positions of several dimensions, of which a text has one: pairs are then halves. A fourth one would always be 0. */
static berth__rope_kind llama_dimensions(berth__net *net, berth__rope_kind otherwise) {
  static const char name[] = ".rope.dimension_sections";
  berth__gguf_array sections;
  if (net->status != BERTH_OK || berth__gguf_find(net->file, name) == NULL) return otherwise;
  net->status = berth__gguf_array_of(net->file, name, &sections, net->err);
  if (net->status != BERTH_OK) return otherwise;
  const bool is_whole = sections.count == 4 && berth__gguf_array_is_whole(&sections);
  if (!is_whole || berth__gguf_array_i64(&sections, 3) != 0)
    net->status =
        berth__fail(net->err, BERTH_UNSUPPORTED, "key '%s' must have four whole numbers, of which the last is 0", name);
  if (net->status != BERTH_OK) return otherwise;
  const bool has_dimensions = berth__gguf_array_i64(&sections, 0) > 0 && berth__gguf_array_i64(&sections, 1) > 0;
  return has_dimensions ? BERTH__ROPE_HALVES : otherwise;
}

/* Qwen 2 and 2.5 (biases of queries, keys and values) and Qwen 3 (norms of queries and keys), with and without experts,
 * what of Qwen VL reads text, whose dimensions of positions are then all the same, and EXAONE: they are told apart by
 * their tensors. */
void berth__arch_halves(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.mixture.splits_width = true;
  berth__net_decoder(net, llama_dimensions(net, BERTH__ROPE_HALVES), &form);
}

void berth__arch_qwen2moe(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.mixture = (berth__mixture){.keeps_scores = true, .splits_width = true, .is_shared = true};
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* ERNIE 4.5, dots.llm1 and Ling 2: some layers have experts, and the others, which come first, none. */
void berth__arch_ernie4_5_moe(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.mixture.is_shared = berth__net_whole_or(net, ".expert_shared_feed_forward_length", 0) > 0;
  berth__net_decoder(net, BERTH__ROPE_NEIGHBOURS, &form);
}

void berth__arch_dots1(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.mixture = berth__net_mixture(net, BERTH__SCORES_SIGMOID);
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* Hunyuan: queries and keys are normalised after their positions have been applied. */
void berth__arch_hunyuan(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.attention.norms_late = true;
  form.mixture.is_shared = true;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

void berth__arch_seed_oss(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.feed_norm = "post_attention_norm";
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* GLM 4: norms after each part too, and one product for gate and up. */
void berth__arch_glm4(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.attention_post = "post_attention_norm";
  form.feed_post = "post_ffw_norm";
  berth__net_decoder(net, llama_dimensions(net, BERTH__ROPE_NEIGHBOURS), &form);
}

/* GLM 4.5 and later. */
void berth__arch_glm4_moe(berth__net *net) {
  berth__layer_form form = berth__net_layer_form();
  form.feed_norm = "post_attention_norm";
  form.mixture = berth__net_mixture(net, BERTH__SCORES_SIGMOID);
  berth__net_decoder(net, llama_dimensions(net, BERTH__ROPE_HALVES), &form);
}

/* Phi 3 and 4: one product for queries, keys and values, one for gate and up, and frequency factors that depend on the
 * length of the context. In models for short contexts, all layers have a sliding window, as in transformers; llama.cpp
 * (b10361) ignores it and warns. Models for long contexts state a window that is longer than their context. */
void berth__arch_phi3(berth__net *net) {
  const int64_t window = berth__net_whole_or(net, ".attention.sliding_window", 0);
  const int64_t context = berth__net_whole_or(net, ".context_length", INT32_MAX);
  berth__layer_form form = berth__net_layer_form();
  form.attention.window = window < context ? window : 0;
  berth__net_decoder(net, BERTH__ROPE_HALVES, &form);
}

/* SmolLM 3: every fourth layer has no positions. */
void berth__arch_smollm3(berth__net *net) {
  const berth_value x = berth__net_begin(net);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
  berth__layer_form without = berth__net_layer_form();
  without.attention.scale = berth__net_real_or(net, ".attention.scale", 0);
  berth__layer_form with = without;
  with.attention.rope = &rope;
  berth__net_finish(net, berth__net_layers(net, x, &without, &with, 4), 1, 0);
}

/* ---- Scaled embeddings, residuals and logits ---- */

typedef struct factors {
  double embedding, residual, logits;
} factors;

static void llama_scaled(berth__net *net, const factors *by, bool turns) {
  const berth_value x = berth__net_scaled(net, berth__net_begin(net), by->embedding);
  berth__rope_tables rope;
  berth__layer_form form = berth__net_layer_form();
  form.attention.scale = berth__net_real_or(net, ".attention.scale", 0);
  form.residual = by->residual;
  form.mixture.is_shared = berth__net_whole_or(net, ".expert_shared_feed_forward_length", 0) > 0;
  if (turns) {
    rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
    form.attention.rope = &rope;
  }
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), by->logits, 0);
}

static double llama_over(berth__net *net, double divisor) {
  if (net->status == BERTH_OK && divisor == 0)
    net->status = berth__fail(net->err, BERTH_MALFORMED, "key '.logit_scale' is 0, and logits are divided by it");
  return divisor != 0 ? 1 / divisor : 1;
}

/* The key says whether there are positions at all. */
void berth__arch_granite(berth__net *net) {
  bool turns = true;
  const factors by = {.embedding = berth__net_factor(berth__net_real_or(net, ".embedding_scale", 1)),
                      .residual = berth__net_real_or(net, ".residual_scale", 1),
                      .logits = llama_over(net, berth__net_real(net, ".logit_scale"))};
  if (net->status == BERTH_OK)
    net->status = berth__gguf_bool_or(net->file, ".rope.scaling.finetuned", true, &turns, net->err);
  llama_scaled(net, &by, turns);
}

/* Older files do not contain the factors, which follow from the sizes. */
void berth__arch_minicpm(berth__net *net) {
  const double layers = (double)berth__net_whole(net, ".block_count"),
               width = (double)berth__net_whole(net, ".embedding_length");
  if (net->status != BERTH_OK) return;
  const factors by = {.embedding = berth__net_factor(berth__net_real_or(net, ".embedding_scale", 12)),
                      .residual = berth__net_real_or(net, ".residual_scale", layers > 0 ? 1.4 / sqrt(layers) : 1),
                      .logits = llama_over(net, berth__net_real_or(net, ".logit_scale", width > 0 ? 256 / width : 1))};
  llama_scaled(net, &by, true);
}

/* ---- Mistral 3 ---- */

/* The temperature of queries: it depends on how many times the original context fits before them. */
static berth_value mistral_temperature(berth__net *net, double scale) {
  const double context = (double)berth__net_whole_or(net, ".rope.scaling.original_context_length",
                                                     berth__net_whole(net, ".context_length"));
  if (net->status == BERTH_OK && context < 1)
    net->status = berth__fail(net->err, BERTH_MALFORMED, "attention's temperature needs an original context");
  if (net->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_value one = berth__net_number(net, 1);
  const berth_value times = berth__net_two(net, "div", net->positions, berth__net_number(net, context));
  const berth_value whole = berth__net_two(net, "add", berth__net_one(net, "floor", times), one);
  return berth__net_two(net, "add", berth__net_scaled(net, berth__net_one(net, "log", whole), scale), one);
}

void berth__arch_mistral3(berth__net *net) {
  const berth_value x = berth__net_begin(net);
  const double scale = berth__net_real_or(net, ".attention.temperature_scale", 0);
  const berth__rope_tables rope = berth__net_rope(net, BERTH__ROPE_NEIGHBOURS, berth__net_rope_base(net), true);
  berth__layer_form form = berth__net_layer_form();
  form.attention.scale = berth__net_real_or(net, ".attention.scale", 0);
  form.attention.rope = &rope;
  if (scale != 0) net->temperature = mistral_temperature(net, scale);
  berth__net_finish(net, berth__net_layers(net, x, &form, &form, 0), 1, 0);
}
