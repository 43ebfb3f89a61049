/* The order in which a bound graph is rewritten for the fast kernels, and why it is this one. */
#include "device/cpu/lower.h"

#include "pass/pass.h"

berth_status berth__cpu_lower(berth_graph *graph, uint32_t flags, berth_error *err) {
  BERTH__TRY(berth__cpu_isa_check(err));
  if (flags & BERTH_PLAN_PARAMS_OUTSIDE) return BERTH_OK; /* the caller's memory is not packed */
  BERTH__TRY(berth__lower_attention(graph, err));         /* before fusion takes its scale and bias */
  BERTH__TRY(berth__lower_quant(graph, err));             /* its convolutions are none for what comes behind */
  BERTH__TRY(berth__lower_layout(graph, err));            /* first: it decides which nodes there are */
  BERTH__TRY(berth__lower_product(graph, flags, err));    /* before fusion, which hangs tails behind products */
  BERTH__TRY(berth__lower_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err));    /* a weight that is packed twice is packed once */
  BERTH__TRY(berth__lower_beside(graph, err)); /* products that fusion gave their biases, and no tail */
  return berth__pass_dead(graph, err);         /* transposes that nobody reads */
}
