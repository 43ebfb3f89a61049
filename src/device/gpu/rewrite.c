/* The order in which a bound graph is rewritten for GPUs, and why. Weights keep their layout, but for convolutions that
 * matrix units multiply: with channels last, both sides are copied as they lie, 16 bytes at a time. */
#include "rewrite/rewrite.h"

#include "device/gpu/recipe.h"
#include "ops/conv.h"
#include "pass/pass.h"

#define PANEL 32 /* columns of a panel of packed bytes, the same on every GPU */
/* What Vulkan and WebGPU promise to bind in one piece, whatever the device is: a plan must not follow the driver. */
#define MOST_MERGED_BYTES ((uint64_t)1 << 27)

bool berth__gpu_multiplies_narrowly(const berth__kernel_limits *limits) {
  return limits->compute != BERTH_COMPUTE_F32 && (limits->multiplies >> limits->compute & 1u) != 0;
}

/* A convolution that gains, is indifferent (it is small), or would have to be turned around. */
static bool stays_first(const berth_graph *graph, const berth__node *node) {
  if (node->op->code == BERTH__OP_conv_transpose || node->op->code == BERTH__OP_qconv_last) return true;
  if (node->op->code != BERTH__OP_conv) return false;
  const berth__shape *x = &graph->values[node->in[BERTH__CONV_X]].shape;
  return node->attrs[BERTH__CONV_GROUP].i != 1 || graph->values[node->in[BERTH__CONV_X]].type != BERTH_F32 ||
         x->rank > 4;
}

/* Whether both sides of a convolution are copied where its channels are last. */
static bool gpu_rewrite_copies(const berth__kernel_limits *limits) {
  return (limits->multiplies >> limits->compute & 1u) != 0;
}

/* All or none: what goes from one layout to the other is copied. */
static bool goes_last(const berth_graph *graph, const berth__kernel_limits *limits, uint32_t flags) {
  if (!gpu_rewrite_copies(limits) || (flags & (BERTH_PLAN_F16_WEIGHTS | BERTH_PLAN_PARAMS_OUTSIDE)) != 0) return false;
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (stays_first(graph, &graph->nodes[n])) return false;
  return true;
}

/* By matrix units its own kernels are faster than products, and have no scores in memory. */
static bool gpu_rewrite_keeps(const berth_graph *graph, const berth__node *node, const void *limits) {
  return berth__gpu_attends_by_units(limits, graph, node);
}

berth_status berth__gpu_rewrite(const berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err) {
  const uint32_t keep = BERTH_PLAN_F16_WEIGHTS | BERTH_PLAN_PARAMS_OUTSIDE;
  const berth__rewrite_target target = {.panel = PANEL,
                                        .keeps_params = (flags & keep) != 0,
                                        .most_merged_rows = INT64_MAX,
                                        .most_merged_bytes = MOST_MERGED_BYTES,
                                        .pairs_plain_weights = limits->profile.loops.begins_early};
  BERTH__TRY(berth__rewrite_blocks(graph, err));    /* before anything sees unpacked weights */
  BERTH__TRY(berth__rewrite_attention(graph, err)); /* before fusion takes its scale and bias */
  BERTH__TRY(berth__rewrite_norms(graph, err));     /* before fusion takes its parts */
  BERTH__TRY(berth__rewrite_attention_grad(graph, gpu_rewrite_keeps, &limits->profile.loops,
                                           err));             /* after it, and before products are looked at */
  BERTH__TRY(berth__rewrite_raise_views(graph, err));         /* before patterns of bytes are looked for */
  BERTH__TRY(berth__rewrite_quantized(graph, &target, err));  /* sums of bytes are exact, as on the CPU */
  BERTH__TRY(berth__rewrite_fold_norms(graph, &target, err)); /* before fusion: what is left of a norm is fused */
  if (goes_last(graph, &limits->profile.loops, flags)) {      /* before fusion, which gives convolutions epilogues */
    const berth__rewrite_target whole = {.panel = 0, .lanes = 1};
    BERTH__TRY(berth__rewrite_channels_last(graph, &whole, err));
  }
  BERTH__TRY(berth__rewrite_plain_products(graph, err)); /* before fusion, which gives products epilogues */
  BERTH__TRY(berth__rewrite_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err));
  BERTH__TRY(berth__rewrite_merge_products(graph, &target, err)); /* products that fusion gave their biases alone */
  BERTH__TRY(berth__rewrite_row_products(graph, &target, err));   /* what is left of products after all of this */
  if (berth__gpu_has_factors(&limits->profile.loops, flags)) {    /* products are what they will be */
    BERTH__TRY(berth__gpu_copy_factors(&limits->profile.loops, graph, err));
    BERTH__TRY(berth__pass_same(graph, err));
  }
  return berth__pass_dead(graph, err);
}
