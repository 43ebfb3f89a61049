/* The parts that architectures are made of. */
#ifndef BERTH_IMPORT_GGUF_PARTS_H
#define BERTH_IMPORT_GGUF_PARTS_H

#include "import/gguf/net.h"

/* x w' + bias, of tensors "name.weight" [columns, inner] and, where the model has it, "name.bias" [columns]. */
berth_value berth__net_linear(berth__net *net, berth_value x, const char *name, int64_t inner, int64_t columns);
/* net->norm along the last axis, of x [..., width], with "name.weight" and its bias. */
berth_value berth__net_norm(berth__net *net, berth_value x, const char *name);
/* The same without a bias, of x [..., size] with a scale [size]; BERTH_VALUE_NONE: none. */
berth_value berth__net_norm_by(berth__net *net, berth_value x, berth_value scale);
/* cap * tanh(x / cap); x itself where the cap is 0. */
berth_value berth__net_soft_cap(berth__net *net, berth_value x, double cap);

/* ---- Positions (rope.c) ---- */

typedef enum berth__rope_kind {
  BERTH__ROPE_HALVES,    /* pairs are (i, i + dims / 2) */
  BERTH__ROPE_NEIGHBOURS /* (2 i, 2 i + 1) */
} berth__rope_kind;

/* Tables [rows, rotated / 2] that all layers with these frequencies share. */
typedef struct berth__rope_tables {
  berth__rope_kind kind;
  berth_value cosines, sines;
} berth__rope_tables;

/* As the keys below .rope.scaling say, with the tensors "rope_freqs" or "rope_factors_long" and "_short" where the
 * model has them. scaled: false for layers that keep plain frequencies (`base` alone counts). */
berth__rope_tables berth__net_rope(berth__net *net, berth__rope_kind kind, double base, bool scaled);
double berth__net_rope_base(berth__net *net); /* .rope.freq_base, 10000 where it is not said */
berth_value berth__net_turn(berth__net *net, berth_value x, int64_t heads, const berth__rope_tables *tables);

/* ---- Attention (attention.c) ---- */

typedef struct berth__attending {
  double scale;                   /* of the scores; 0: 1 / sqrt(key_size) */
  double cap;                     /* soft cap of the scores; 0: none */
  int64_t window;                 /* keys that a query sees; 0: all before it */
  bool has_sinks;                 /* "attn_sinks": a score per head that counts in the sum of weights alone */
  bool sees_all;                  /* no cache: every row sees the first `length` rows */
  const berth__rope_tables *rope; /* NULL: none */
} berth__attending;

/* Self-attention of x [rows, width], of "attn_q", "attn_k", "attn_v" (or "attn_qkv") and "attn_output"; with norms of
 * queries and keys where the model has "attn_q_norm": of each head, all by one scale [size] or each by its own
 * [heads, size], or of all heads together [heads * size]. */
berth_value berth__net_attend(berth__net *net, berth_value x, const berth__attending *form);

/* ---- The rest of a layer (feed.c) ---- */

typedef enum berth__gate {
  BERTH__GATE_SILU,
  BERTH__GATE_GELU,    /* the tanh form */
  BERTH__GATE_GPT_OSS, /* clamped, with a steeper sigmoid and up + 1 */
  /* Without a gate: f(x u) alone. */
  BERTH__PLAIN_GELU,     /* the tanh form */
  BERTH__PLAIN_GELU_ERF, /* the exact one */
  BERTH__PLAIN_RELU2     /* relu(x)^2 */
} berth__gate;

/* gate(x g) * (x u), times "ffn_down": of "ffn_gate" and "ffn_up", or of an "ffn_up" that has both. Without a gate
 * f(x u), times "ffn_down". */
berth_value berth__net_feed(berth__net *net, berth_value x, berth__gate gate);

typedef struct berth__mixture {
  bool weighs_all; /* weights are a softmax over all experts, not over those that are chosen */
  bool is_shared;  /* every row goes through "ffn_gate_shexp" and so on as well, times a sigmoid where the model has
                      "ffn_gate_inp_shexp" */
} berth__mixture;
/* The same with some of many experts for each row: "ffn_gate_inp" chooses, "ffn_gate_exps" and so on compute. */
berth_value berth__net_experts(berth__net *net, berth_value x, berth__gate gate, const berth__mixture *mixture);

/* ---- Whole decoders (decoder.c) ---- */

/* net->places, net->positions, of rows from net->position on (from 0 where that is none), and then net->length too. */
void berth__net_count_rows(berth__net *net);
berth_value berth__net_embed_tokens(berth__net *net);
/* What the graph takes; reads the keys, the epsilon of its norms too. Returns the rows of the embedding. */
berth_value berth__net_begin(berth__net *net);
/* "output_norm" and "output" (or the embedding again) of the row that `last` names, scaled, then capped (0: not). */
void berth__net_finish(berth__net *net, berth_value x, double scale, double cap);

/* Layers of this shape: x += attention(norm(x)), x += feed(norm(x)), with norms after each part (post) where they have
 * a name. */
typedef struct berth__layer_form {
  berth__attending attention;
  berth__gate gate;
  berth__mixture mixture;     /* where the model has experts */
  const char *attention_norm; /* before attention; NULL: none */
  const char *feed_norm;      /* before the feed-forward part; NULL: none, or attention's where both are parallel */
  const char *attention_post, *feed_post; /* NULL: none */
  bool is_parallel;                       /* both parts see the x that comes into the layer */
  double residual;                        /* what is added to x is scaled by it; 0: not */
} berth__layer_form;
/* "attn_norm" and "ffn_norm", a gate of silu, and the rest 0. */
berth__layer_form berth__net_layer_form(void);
/* Whether a layer has a sliding window: .attention.sliding_window_pattern says it for each, or how many layers go
 * together, of which the last sees all (`period` where the key is missing). */
bool berth__net_is_local(berth__net *net, int64_t layer, int64_t period);
/* All layers: `local` where berth__net_is_local says so, `global` otherwise. */
berth_value berth__net_layers(berth__net *net, berth_value x, const berth__layer_form *global,
                              const berth__layer_form *local, int64_t period);
/* A whole decoder of layers that are all alike, with positions of this kind. */
void berth__net_decoder(berth__net *net, berth__rope_kind kind, const berth__layer_form *form);

#endif
