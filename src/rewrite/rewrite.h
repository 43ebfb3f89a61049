/* Rewriting a bound graph for a device: one file per pass. Which passes a device uses, in which order and why, is
 * documented in the device's file (src/device/cpu/rewrite.c, src/device/gpu/rewrite.c); what the passes need to know
 * about it is in berth__rewrite_target. */
#ifndef BERTH_REWRITE_REWRITE_H
#define BERTH_REWRITE_REWRITE_H

#include "graph/rewrite.h"

typedef struct berth__rewrite_target {
  int64_t panel; /* columns per panel of packed weights; for convolutions, 0: all columns of a group */
  int64_t lanes; /* output channels that a convolution computes together */
  /* The tile (2 or 4) for which Winograd's algorithm is faster for a 3x3 convolution with stride 1; 0: none. NULL:
   * never. */
  int64_t (*winograd_tile)(int64_t channels, int64_t outputs, int64_t height, int64_t width);
  int64_t turned_channels;    /* convolutions of at most that many read x where it has them first; 0: none do */
  bool rounds_to_bf16;        /* rounds weights of products, and x when it is multiplied */
  bool takes_sums;            /* int8 products may have i32 results */
  bool keeps_params;          /* params must keep their layout: they have another one, or are elsewhere */
  int64_t most_merged_rows;   /* products of the same x with more rows than this gain nothing by merging */
  uint64_t most_merged_bytes; /* of their weights together: a device must be able to bind them as one */
  bool pairs_plain_weights; /* a gate and its counterpart become one product even if their weights are not in blocks */
} berth__rewrite_target;

/* attention.c: attention written as products and a softmax. */
berth_status berth__rewrite_attention(berth_graph *graph, berth_error *err);
/* norms.c: norms written as means and roots. */
berth_status berth__rewrite_norms(berth_graph *graph, berth_error *err);
/* attention_grad.c: the gradients of attention as products, a few sequences at a time, except for nodes that the device
 * keeps. */
typedef bool berth__rewrite_keeps(const berth_graph *graph, const berth__node *node, const void *user);
berth_status berth__rewrite_attention_grad(berth_graph *graph, berth__rewrite_keeps *keeps, const void *user,
                                           berth_error *err);
/* blocks.c: products and tables read weights in blocks directly. */
berth_status berth__rewrite_blocks(berth_graph *graph, berth_error *err);
/* single_rows.c: a gather of one known row becomes a slice. */
berth_status berth__rewrite_single_rows(berth_graph *graph, berth_error *err);
/* raise_views.c: reshapes before dequantize. */
berth_status berth__rewrite_raise_views(berth_graph *graph, berth_error *err);
/* quantized.c: int8 products. */
berth_status berth__rewrite_quantized(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* channels_last.c: convolutions and neighbouring nodes in channels-last layout. */
berth_status berth__rewrite_channels_last(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* fold_norms.c: folds batch norms into the convolutions before them, channels first; others become element-wise
 * nodes. */
berth_status berth__rewrite_fold_norms(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* plain_products.c: matmul becomes product, which takes an epilogue; weights are unchanged. */
berth_status berth__rewrite_plain_products(berth_graph *graph, berth_error *err);
/* pack_products.c: products with weights that are packed once. */
berth_status berth__rewrite_pack_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* pack_recurrent.c: LSTMs over several rows with weights that are packed once. */
berth_status berth__rewrite_pack_recurrent(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* pack_raw.c: packs weights directly from the model's int8 or f16. */
berth_status berth__rewrite_pack_raw(berth_graph *graph, berth_error *err);
/* fuse.c: element-wise nodes become chains, or epilogues of products and convolutions. */
berth_status berth__rewrite_fuse(berth_graph *graph, berth_error *err);
/* row_products.c: products of few rows with the norm before them, and gates with their counterparts. After
 * merge_products.c, whose weights must be the same for any number of rows. */
berth_status berth__rewrite_row_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* rope_rows.c: rows of a cache are turned where they are written. */
berth_status berth__rewrite_rope_rows(berth_graph *graph, berth_error *err);
/* merge_products.c: merges products of the same x. */
berth_status berth__rewrite_merge_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);

#endif
