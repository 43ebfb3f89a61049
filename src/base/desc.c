#include "base/desc.h"

/* The size and at least one field. All descriptors are made of fields of four and eight bytes. */
#define SMALLEST 8u
/* No descriptor comes near this: a larger value was never set. */
#define LARGEST 4096u

berth_status berth__desc_copy(void *dst, size_t dst_size, const void *src, const char *name, berth_error *err) {
  if (src == NULL) return BERTH_OK;
  uint32_t given;
  memcpy(&given, src, sizeof given);
  if (given < SMALLEST || given > LARGEST || given % 4 != 0) {
    return berth__fail(err, BERTH_INVALID,
                       "struct_size of %s is %u, which no version of it has; start from the _INIT macro of that type",
                       name, (unsigned)given);
  }
  memcpy(dst, src, given < dst_size ? given : dst_size);
  uint32_t size = (uint32_t)dst_size;
  memcpy(dst, &size, sizeof size);
  return BERTH_OK;
}
