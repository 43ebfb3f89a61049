/* Rewriting a bound graph for a device: one file per pass. Which passes a device uses, in which order and why, is said
 * beside the device (src/device/cpu/rewrite.c, src/device/gpu/rewrite.c); what the passes need to know of it is in
 * berth__rewrite_target. */
#ifndef BERTH_REWRITE_REWRITE_H
#define BERTH_REWRITE_REWRITE_H

#include "graph/rewrite.h"

typedef struct berth__rewrite_target {
  int64_t panel; /* columns of a panel of packed weights; of convolutions, 0: all of a group */
  int64_t lanes; /* output channels that a convolution computes together */
  /* The tile (2 or 4) with which a 3x3 convolution with stride 1 is faster by Winograd's algorithm; 0: none is. NULL:
   * never. */
  int64_t (*winograd_tile)(int64_t channels, int64_t outputs, int64_t height, int64_t width);
  bool rounds_to_bf16;        /* weights of products, and x where it meets them */
  bool takes_sums;            /* products of bytes may have results of i32 */
  bool keeps_params;          /* weights must stay the params that they are: they lie in their own way, or elsewhere */
  int64_t most_merged_rows;   /* products of the same x with more rows than this gain nothing by being one */
  uint64_t most_merged_bytes; /* of their weights together: a device must be able to bind them in one piece */
  bool pairs_plain_weights; /* a gate and what it gates are one product where their weights do not lie in blocks, too */
} berth__rewrite_target;

/* attention.c: attention that was written as products and a softmax. */
berth_status berth__rewrite_attention(berth_graph *graph, berth_error *err);
/* norms.c: norms of lines that were written as means and roots. */
berth_status berth__rewrite_norms(berth_graph *graph, berth_error *err);
/* attention_grad.c: the gradients of attention as products, a few sequences at a time, but for nodes that the device
 * keeps. */
typedef bool berth__rewrite_keeps(const berth_graph *graph, const berth__node *node, const void *user);
berth_status berth__rewrite_attention_grad(berth_graph *graph, berth__rewrite_keeps *keeps, const void *user,
                                           berth_error *err);
/* blocks.c: products and tables whose weights lie in blocks read those. */
berth_status berth__rewrite_blocks(berth_graph *graph, berth_error *err);
/* raise_views.c: changes of shape before the dequantize that they show. */
berth_status berth__rewrite_raise_views(berth_graph *graph, berth_error *err);
/* quantized.c: int8 products. */
berth_status berth__rewrite_quantized(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* channels_last.c: convolutions and what is around them with their channels last. */
berth_status berth__rewrite_channels_last(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* fold_norms.c: batch norms into the convolutions before them, channels first; others into element-wise nodes. */
berth_status berth__rewrite_fold_norms(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* plain_products.c: matmul as product, which takes an epilogue; weights stay as they are. */
berth_status berth__rewrite_plain_products(berth_graph *graph, berth_error *err);
/* pack_products.c: products with weights that are packed once. */
berth_status berth__rewrite_pack_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* pack_raw.c: packed weights from the bytes or halves that they are in the model. */
berth_status berth__rewrite_pack_raw(berth_graph *graph, berth_error *err);
/* fuse.c: element-wise nodes into chains, and into the products and convolutions before them. */
berth_status berth__rewrite_fuse(berth_graph *graph, berth_error *err);
/* row_products.c: products of few rows with the norm before them, and gates with what they gate. After
 * merge_products.c, whose weights must be the same for any number of rows. */
berth_status berth__rewrite_row_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);
/* merge_products.c: products of the same x as one. */
berth_status berth__rewrite_merge_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err);

#endif
