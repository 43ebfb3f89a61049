/* The order in which a bound graph is rewritten for the fast kernels, and the reasons for it. */
#include "rewrite/rewrite.h"

#include "device/cpu/cpu.h"
#include "device/cpu/winograd_rule.h"
#include "ops/conv_last.h"
#include "pass/pass.h"

/* With more rows, three products take so long that starting them separately costs nothing. */
#define MOST_MERGED_ROWS 32

berth_status berth__cpu_rewrite(const berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err) {
  (void)limits;
  BERTH__TRY(berth__cpu_kernels_check(graph->ctx, err));
  BERTH__TRY(berth__rewrite_blocks(graph, err));          /* before any other rewrite sees unpacked weights */
  if (flags & BERTH_PLAN_PARAMS_OUTSIDE) return BERTH_OK; /* the caller's memory is never packed */
  const berth__cpu_kernels kernels = berth__cpu_kernels_of(graph->ctx);
  const berth__rewrite_target target = {.panel = kernels.isa->panel,
                                        .lanes = kernels.isa->lanes,
                                        .winograd_tile = berth__cpu_winograd_tile,
                                        .turned_channels = kernels.backend == NULL ? BERTH__TURNED_CHANNELS : 0,
                                        .takes_sums = true,
                                        .rounds_to_bf16 = (flags & BERTH_PLAN_BF16_WEIGHTS) != 0,
                                        .most_merged_rows = MOST_MERGED_ROWS,
                                        .most_merged_bytes = UINT64_MAX};
  BERTH__TRY(berth__rewrite_attention(graph, err));                /* before fusion takes the scale and bias */
  BERTH__TRY(berth__rewrite_norms(graph, err));                    /* before fusion takes their element-wise parts */
  BERTH__TRY(berth__rewrite_single_rows(graph, err));              /* what shows them may be shown in turn */
  BERTH__TRY(berth__rewrite_raise_views(graph, err));              /* before patterns of quantised bytes are matched */
  BERTH__TRY(berth__rewrite_quantized(graph, &target, err));       /* later rewrites leave its convolutions alone */
  BERTH__TRY(berth__rewrite_channels_last(graph, &target, err));   /* it decides which nodes there are */
  if (kernels.backend == NULL)                                     /* a backend packs weights itself */
    BERTH__TRY(berth__rewrite_pack_products(graph, &target, err)); /* before fusion, which gives products epilogues */
  BERTH__TRY(berth__rewrite_pack_recurrent(graph, &target, err));
  BERTH__TRY(berth__rewrite_pack_raw(graph, err)); /* after every rewrite that packs */
  BERTH__TRY(berth__rewrite_fuse(graph, err));
  BERTH__TRY(berth__pass_same(graph, err)); /* a weight that was packed twice is packed once */
  BERTH__TRY(
      berth__rewrite_merge_products(graph, &target, err)); /* products with a bias from fusion, but no epilogue */
  return berth__pass_dead(graph, err);                     /* transposes without readers */
}
