/* The building blocks of architectures. */
#ifndef BERTH_IMPORT_GGUF_PARTS_H
#define BERTH_IMPORT_GGUF_PARTS_H

#include "import/gguf/net.h"

/* x w' + bias, for tensors "name.weight" [columns, inner] and, if the model has it, "name.bias" [columns]. */
berth_value berth__net_linear(berth__net *net, berth_value x, const char *name, int64_t inner, int64_t columns);
/* net->norm along the last axis of x [..., width], with "name.weight" and its bias. */
berth_value berth__net_norm(berth__net *net, berth_value x, const char *name);
/* The same without a bias, for x [..., size] with a scale [size]; BERTH_VALUE_NONE: no scale. */
berth_value berth__net_norm_by(berth__net *net, berth_value x, berth_value scale);
/* cap * tanh(x / cap); x itself if the cap is 0. */
berth_value berth__net_soft_cap(berth__net *net, berth_value x, double cap);

/* ---- Positions (rope.c) ---- */

typedef enum berth__rope_kind {
  BERTH__ROPE_HALVES,    /* pairs are (i, i + dims / 2) */
  BERTH__ROPE_NEIGHBOURS /* (2 i, 2 i + 1) */
} berth__rope_kind;

/* Tables [rows, rotated / 2], shared by all layers with these frequencies. */
typedef struct berth__rope_tables {
  berth__rope_kind kind;
  berth_value cosines, sines;
} berth__rope_tables;

/* As the keys below .rope.scaling say, with the tensors "rope_freqs", or "rope_factors_long" and "_short", if the model
 * has them. scaled: false for layers with plain frequencies, which depend only on `base`. */
berth__rope_tables berth__net_rope(berth__net *net, berth__rope_kind kind, double base, bool scaled);
double berth__net_rope_base(berth__net *net); /* .rope.freq_base; the default is 10000 */
/* What queries and keys are multiplied by because of YaRN, if that is in the scale of scores. */
double berth__net_yarn_magnitude(berth__net *net);
berth_value berth__net_turn(berth__net *net, berth_value x, int64_t heads, const berth__rope_tables *tables);

/* ---- Attention (attention.c) ---- */

typedef struct berth__attending {
  double scale;                   /* of the scores; 0: 1 / sqrt(key_size) */
  double cap;                     /* soft cap of the scores; 0: none */
  int64_t window;                 /* keys that a query sees, around its own if it sees all; 0: all up to its own */
  bool has_sinks;                 /* "attn_sinks": a score per head that counts only in the sum of the weights */
  bool norms_late;                /* queries and keys are normalised after they are turned */
  const berth__rope_tables *rope; /* NULL: none */
} berth__attending;

/* Self-attention of x [rows, width], with "attn_q", "attn_k", "attn_v" (or "attn_qkv") and "attn_output". If the model
 * has "attn_q_norm", queries and keys are normalised: per head, with one scale [size] or one per head [heads, size], or
 * over all heads together [heads * size]. */
berth_value berth__net_attend(berth__net *net, berth_value x, const berth__attending *form);

/* Writes the rows of this run to a state "blk.N.what" [.., columns] at their positions; returns the whole state. With a
 * window the state is a ring buffer: a row is read until `window` - 1 more have followed it. */
berth_value berth__net_keep(berth__net *net, const char *what, berth_type type, berth_value rows, int64_t columns,
                            int64_t window);

/* ---- The rest of a layer (feed.c) ---- */

typedef enum berth__gate {
  BERTH__GATE_SILU,
  BERTH__GATE_GELU,    /* the tanh form */
  BERTH__GATE_GPT_OSS, /* clamped, with a steeper sigmoid and up + 1 */
  /* Without a gate: only f(x u). */
  BERTH__PLAIN_GELU,     /* the tanh form */
  BERTH__PLAIN_GELU_ERF, /* the exact form */
  BERTH__PLAIN_RELU2     /* relu(x)^2 */
} berth__gate;

/* gate(x g) * (x u), times "ffn_down", with "ffn_gate" and "ffn_up", or with an "ffn_up" that has both. Without a gate:
 * f(x u), times "ffn_down". */
berth_value berth__net_feed(berth__net *net, berth_value x, berth__gate gate);

/* What is behind berth__net_feed: a gate's product, and the tensors "ffn_gate", "ffn_up" and "ffn_down" with a suffix
 * and the width that a key states. */
berth_value berth__net_gate(berth__net *net, berth__gate gate, berth_value g, berth_value up);
berth_value berth__net_gated(berth__net *net, berth_value x, berth__gate gate, const char *suffix, const char *key,
                             int64_t hidden);

/* ---- Mixture of experts (experts.c) ---- */

typedef enum berth__expert_scores {
  BERTH__SCORES_SOFTMAX, /* over all experts */
  BERTH__SCORES_SIGMOID
} berth__expert_scores;

typedef struct berth__mixture {
  berth__expert_scores scores;
  bool keeps_scores; /* they are the weights of the chosen experts; otherwise divided by their sum */
  bool splits_width; /* without a key, the experts of a row are together as wide as a feed-forward part */
  bool is_shared;    /* every row also goes through "ffn_gate_shexp" and so on, times a sigmoid if the model has
                      "ffn_gate_inp_shexp" */
} berth__mixture;
/* As the keys say: .expert_gating_func (otherwise `scores`), .expert_weights_norm, .expert_shared_count. */
berth__mixture berth__net_mixture(berth__net *net, berth__expert_scores scores);
/* A feed-forward part with several of many experts for each row: "ffn_gate_inp" chooses, with a bias "exp_probs_b" if
 * the model has one; "ffn_gate_exps" and so on compute. */
berth_value berth__net_experts(berth__net *net, berth_value x, berth__gate gate, const berth__mixture *mixture);

/* The graph's output "embedding", from the rows of a text (pooling.c): as .pooling_type says, then through "dense_2"
 * and "dense_3" if the model has them. */
void berth__net_pool(berth__net *net, berth_value x);

/* ---- Whole decoders (decoder.c) ---- */

/* Makes net->places and net->positions for rows from net->position on (from 0 if there is none, and then net->length
 * too). */
void berth__net_count_rows(berth__net *net);
berth_value berth__net_embed_tokens(berth__net *net);
/* Reads the keys, including the epsilon of norms, and adds the graph's inputs. Returns the embedded rows. */
berth_value berth__net_begin(berth__net *net);
/* "output_norm" and "output" (or the embedding, if tied) of the row that `last` names, scaled, then capped (0: not
 * capped). If the graph embeds: "output_norm" of all rows, pooled. */
void berth__net_finish(berth__net *net, berth_value x, double scale, double cap);

/* Layers of this form: x += attention(norm(x)), x += feed(norm(x)), with norms after each part (post) if they have a
 * name. */
typedef struct berth__layer_form {
  berth__attending attention;
  berth__gate gate;
  berth__mixture mixture;     /* used if the model has experts */
  const char *attention_norm; /* before attention; NULL: none */
  const char *feed_norm;      /* before the feed-forward part; NULL: none, or attention's if both are parallel */
  const char *attention_post, *feed_post; /* NULL: none */
  bool is_parallel;                       /* both parts read the input of the layer */
  double residual;                        /* scale of what is added to x; 0: none */
  /* What layers without heads for keys, or all, have instead of berth__net_attend; NULL: there are none. */
  berth_value (*instead)(berth__net *net, berth_value x, const void *state);
  const void *instead_state;
  bool is_instead_everywhere;
} berth__layer_form;
/* "attn_norm" and "ffn_norm", a gate of silu, and everything else 0. */
berth__layer_form berth__net_layer_form(void);
/* Whether a layer has a sliding window. .attention.sliding_window_pattern says so for each layer, or gives a period
 * whose last layer has full attention (`period` if the key is missing). */
bool berth__net_is_local(berth__net *net, int64_t layer, int64_t period);
/* All layers: `local` if berth__net_is_local says so, otherwise `global`. */
berth_value berth__net_layers(berth__net *net, berth_value x, const berth__layer_form *global,
                              const berth__layer_form *local, int64_t period);
/* A whole decoder with uniform layers and positions of this kind. */
void berth__net_decoder(berth__net *net, berth__rope_kind kind, const berth__layer_form *form);

#endif
