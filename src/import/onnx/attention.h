/* Shared by the handlers of attention: berth's op, and the same as separate ops when the scores are wanted or changed
 * on the way. */
#ifndef BERTH_IMPORT_ONNX_ATTENTION_H
#define BERTH_IMPORT_ONNX_ATTENTION_H

#include "import/onnx/chain.h"

typedef struct berth__onnx_heads {
  berth_value q, k, v;            /* [B, H, S, D], or packed as [B, S, H D] */
  berth_value mask, bias, length; /* or BERTH_VALUE_NONE; mask and bias broadcast to [B, H, S, T], length is [B] */
  int64_t heads, kv_heads;        /* of packed operands */
  double scale;                   /* 0: 1 / sqrt(D) */
  const char *mode;
  int64_t window;
  double softcap;      /* scores become softcap tanh(score / softcap); 0: unchanged */
  bool wants_scores;   /* `scores` must be set */
  int64_t scores_mode; /* to: 0 the products, 1 after the soft cap, 2 with mask and bias, 3 the softmax */
  berth_value scores;
  /* Graphs that change the scores and the weights, with the types of their inputs; or NULL. */
  const berth__onnx_graph *score_graph, *weight_graph;
  berth_type graph_type;
} berth__onnx_heads;

uint32_t berth__onnx_attend_rank(const berth__onnx_chain *c, berth_value x); /* 0 after a failure */
berth_status berth__onnx_attend_check(const berth__onnx_call *call, const berth__onnx_heads *a, berth_error *err);
/* Prepends the past to keys and values; they are also results if the node asks for them. */
void berth__onnx_attend_past(berth__onnx_chain *c, berth__onnx_heads *a, berth_value past_k, berth_value past_v,
                             bool is_wanted);
/* The extent of the axis of keys, as [1] and as a dimension of the graph. */
berth_value berth__onnx_attend_key_count(berth__onnx_chain *c, const berth__onnx_heads *a);
int64_t berth__onnx_attend_key_dim(const berth__onnx_chain *c, const berth__onnx_heads *a);
/* The position of the first row, as berth's op defines it: keys, or the lengths, minus rows. [1] or [B, 1, 1, 1]. */
berth_value berth__onnx_attend_offset(berth__onnx_chain *c, const berth__onnx_heads *a);
/* key < length[b], as [B, 1, 1, T] */
berth_value berth__onnx_attend_before(berth__onnx_chain *c, const berth__onnx_heads *a, berth_value lengths);
/* Row i, at position i + offset, sees `left` keys before it and `right` keys after it; negative: all. */
void berth__onnx_attend_within(berth__onnx_chain *c, berth__onnx_heads *a, berth_value offset, int64_t left,
                               int64_t right);
/* The result is packed if the queries were. */
berth_value berth__onnx_attend(berth__onnx_chain *c, berth__onnx_heads *a);

#endif
