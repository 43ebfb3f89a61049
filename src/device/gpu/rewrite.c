/* The order in which a bound graph is rewritten for GPUs, and why. Weights keep their layout, except those of
 * convolutions on matrix units: with channels last, both sides can be copied directly, 16 bytes at a time. */
#include "rewrite/rewrite.h"

#include "device/gpu/recipe.h"
#include "ops/conv.h"
#include "pass/pass.h"

#define PANEL 32 /* columns per panel of packed bytes, the same on every GPU */
/* The size of a binding that Vulkan and WebGPU guarantee: a plan must not depend on the driver. */
#define MOST_MERGED_BYTES ((uint64_t)1 << 27)

bool berth__gpu_multiplies_narrowly(const berth__kernel_limits *limits) {
  return limits->compute != BERTH_COMPUTE_F32 && (limits->multiplies >> limits->compute & 1u) != 0;
}

/* Whether the node is a convolution that has to keep its channels first. */
static bool stays_first(const berth_graph *graph, const berth__node *node) {
  if (node->op->code == BERTH__OP_conv_transpose || node->op->code == BERTH__OP_qconv_last) return true;
  if (node->op->code != BERTH__OP_conv) return false;
  const berth__shape *x = &graph->values[node->in[BERTH__CONV_X]].shape;
  return node->attrs[BERTH__CONV_GROUP].i != 1 || graph->values[node->in[BERTH__CONV_X]].type != BERTH_F32 ||
         x->rank > 4;
}

/* Whether both sides of a convolution are copied asynchronously if channels are last. */
static bool gpu_rewrite_copies(const berth__kernel_limits *limits) {
  return (limits->multiplies >> limits->compute & 1u) != 0;
}

/* All or none, because values between the two layouts have to be copied. */
static bool goes_last(const berth_graph *graph, const berth__kernel_limits *limits, uint32_t flags) {
  if (!gpu_rewrite_copies(limits) || (flags & (BERTH_PLAN_F16_WEIGHTS | BERTH_PLAN_PARAMS_OUTSIDE)) != 0) return false;
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (stays_first(graph, &graph->nodes[n])) return false;
  return true;
}

/* On matrix units its own kernels are faster than separate products, and keep no scores in memory. */
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
  BERTH__TRY(berth__rewrite_blocks(graph, err));    /* before any pass sees unpacked weights */
  BERTH__TRY(berth__rewrite_attention(graph, err)); /* before fusion absorbs its scale and bias */
  BERTH__TRY(berth__rewrite_norms(graph, err));     /* before fusion absorbs its parts */
  BERTH__TRY(berth__rewrite_attention_grad(graph, gpu_rewrite_keeps, &limits->profile.loops,
                                           err));             /* after that, and before the passes on products */
  BERTH__TRY(berth__rewrite_raise_views(graph, err));         /* before the int8 patterns */
  BERTH__TRY(berth__rewrite_quantized(graph, &target, err));  /* integer sums are exact, as on the CPU */
  BERTH__TRY(berth__rewrite_fold_norms(graph, &target, err)); /* before fusion, which fuses the rest of a norm */
  if (goes_last(graph, &limits->profile.loops, flags)) {      /* before fusion, which adds epilogues to convolutions */
    const berth__rewrite_target whole = {.panel = 0, .lanes = 1};
    BERTH__TRY(berth__rewrite_channels_last(graph, &whole, err));
  }
  BERTH__TRY(berth__rewrite_plain_products(graph, err)); /* before fusion, which adds epilogues to products */
  BERTH__TRY(berth__rewrite_rope_rows(graph, err));
  BERTH__TRY(berth__rewrite_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err));
  BERTH__TRY(berth__rewrite_merge_products(graph, &target, err)); /* products with no epilogue but a bias */
  BERTH__TRY(berth__rewrite_row_products(graph, &target, err));   /* the products that are left */
  if (berth__gpu_has_factors(&limits->profile.loops, flags)) {    /* products are final now */
    BERTH__TRY(berth__gpu_copy_factors(&limits->profile.loops, graph, err));
    BERTH__TRY(berth__pass_same(graph, err));
  }
  return berth__pass_dead(graph, err);
}
