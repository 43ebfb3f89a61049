/* Any bytes as a safetensors file: refused, or every tensor readable and inside its bounds. */
#include "fuzz/fuzz.h"

static void touch(const berth_weight_info *info) {
  unsigned sum = 0;
  for (uint64_t i = 0; i < info->size; i++) sum += ((const uint8_t *)info->data)[i];
  FUZZ_CHECK(sum <= 255 * info->size);
  FUZZ_CHECK((uintptr_t)info->data % berth_type_size(info->type) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth_weights *weights;
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_weights_from_memory(ctx, data, size, &weights, &err);
  FUZZ_CHECK((status == BERTH_OK) == (weights != NULL));
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && err.message[0] != '\0'));
  for (uint32_t i = 0; i < berth_weights_count(weights); i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    FUZZ_CHECK(berth_weights_at(weights, i, &info, NULL) == BERTH_OK);
    FUZZ_CHECK(berth_weights_find(weights, info.name) == i);
    touch(&info);
  }
  berth_weights_destroy(weights);
  berth_context_destroy(ctx);
  return 0;
}
