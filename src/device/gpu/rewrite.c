/* The order in which a bound graph is rewritten for GPUs, and why. Weights keep their layout: what a GPU gains by
 * another one differs from one to the next, and a plan must not. */
#include "rewrite/rewrite.h"

#include "device/gpu/recipe.h"
#include "pass/pass.h"

#define PANEL 32 /* columns of a panel of packed bytes, the same on every GPU */
/* What Vulkan and WebGPU promise to bind in one piece, whatever the device is: a plan must not follow the driver. */
#define MOST_MERGED_BYTES ((uint64_t)1 << 27)

berth_status berth__gpu_rewrite(berth_graph *graph, uint32_t flags, berth_error *err) {
  const uint32_t keep = BERTH_PLAN_F16_WEIGHTS | BERTH_PLAN_PARAMS_OUTSIDE;
  const berth__rewrite_target target = {.panel = PANEL,
                                        .keeps_params = (flags & keep) != 0,
                                        .most_merged_rows = INT64_MAX,
                                        .most_merged_bytes = MOST_MERGED_BYTES};
  BERTH__TRY(berth__rewrite_blocks(graph, err));              /* before anything sees unpacked weights */
  BERTH__TRY(berth__rewrite_attention(graph, err));           /* before fusion takes its scale and bias */
  BERTH__TRY(berth__rewrite_raise_views(graph, err));         /* before patterns of bytes are looked for */
  BERTH__TRY(berth__rewrite_quantized(graph, &target, err));  /* sums of bytes are exact, as on the CPU */
  BERTH__TRY(berth__rewrite_fold_norms(graph, &target, err)); /* before fusion: what is left of a norm is fused */
  BERTH__TRY(berth__rewrite_plain_products(graph, err));      /* before fusion, which gives products epilogues */
  BERTH__TRY(berth__rewrite_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err));
  BERTH__TRY(berth__rewrite_merge_products(graph, &target, err)); /* products that fusion gave their biases alone */
  BERTH__TRY(berth__rewrite_row_products(graph, err));            /* what is left of products after all of this */
  return berth__pass_dead(graph, err);
}
