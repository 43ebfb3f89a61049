#include "plan/pack/heaps.h"

berth_status berth__pack_heaps(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                               const berth_pack_desc *desc, berth__pack_budget *budget, uint64_t *offsets,
                               berth_pack_result *result, berth_error *err) {
  (void)ctx; (void)buffers; (void)n; (void)desc; (void)budget; (void)offsets; (void)result;
  return berth__fail(err, BERTH_UNSUPPORTED, "pack: several heaps are not there yet");
}
