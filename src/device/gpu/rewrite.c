/* The order in which a bound graph is rewritten for GPUs: attention gets its op, products get one that takes a tail,
 * and element-wise nodes go into chains and into the products and convolutions before them. Weights stay as they are:
 * what a GPU gains by another layout differs from one to the next, and a plan must not. */
#include "rewrite/rewrite.h"

#include "device/gpu/recipe.h"
#include "pass/pass.h"

#define PANEL 32 /* columns of a panel of packed bytes, the same on every GPU */

berth_status berth__gpu_rewrite(berth_graph *graph, uint32_t flags, berth_error *err) {
  const berth__rewrite_target target = {.panel = PANEL};
  BERTH__TRY(berth__rewrite_attention(graph, err));          /* before fusion takes its scale and bias */
  BERTH__TRY(berth__rewrite_quantized(graph, &target, err)); /* sums of bytes are exact, as on the CPU */
  BERTH__TRY(berth__rewrite_plain_products(graph, err));
  BERTH__TRY(berth__rewrite_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err));
  (void)flags;
  return berth__pass_dead(graph, err);
}
