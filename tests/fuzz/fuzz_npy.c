/* Any bytes as an npy file: refused, or an array whose size is that of its shape. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth_array array;
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_npy_parse(ctx, data, size, &array, &err);
  FUZZ_CHECK((status == BERTH_OK) == (array.data != NULL));
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && err.message[0] != '\0'));
  if (status == BERTH_OK) {
    uint64_t bytes = berth_type_size(array.type);
    for (uint32_t i = 0; i < array.rank; i++) bytes *= (uint64_t)array.dim[i];
    FUZZ_CHECK(array.rank <= BERTH_MAX_RANK && bytes == array.size && bytes < size);
  }
  berth_array_free(ctx, &array);
  berth_context_destroy(ctx);
  return 0;
}
