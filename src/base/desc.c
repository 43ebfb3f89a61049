#include "base/desc.h"

/* The size and at least one field. All fields of descriptors have four or eight bytes. */
#define SMALLEST 8u
/* No descriptor is that large: a larger value is uninitialised. */
#define LARGEST 4096u

static berth_status base_desc_check_size(uint32_t given, const char *name, berth_error *err) {
  if (given >= SMALLEST && given <= LARGEST && given % 4 == 0) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "struct_size of %s is %u, which no version of it has; start from the _INIT macro of that type",
                     name, (unsigned)given);
}

berth_status berth__desc_copy(void *dst, size_t dst_size, const void *src, const char *name, berth_error *err) {
  if (src == NULL) return BERTH_OK;
  uint32_t given;
  memcpy(&given, src, sizeof given);
  BERTH__TRY(base_desc_check_size(given, name, err));
  memcpy(dst, src, given < dst_size ? given : dst_size);
  uint32_t size = (uint32_t)dst_size;
  memcpy(dst, &size, sizeof size);
  return BERTH_OK;
}

berth_status berth__result_check(const void *out, const char *name, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "a pointer to store the %s is needed", name);
  uint32_t given;
  memcpy(&given, out, sizeof given);
  return base_desc_check_size(given, name, err);
}

berth_status berth__result_write(void *out, const void *made, size_t made_size, const char *name, berth_error *err) {
  BERTH__TRY(berth__result_check(out, name, err));
  uint32_t given;
  memcpy(&given, out, sizeof given);
  const size_t known = given < made_size ? given : made_size;
  unsigned char *bytes = out;
  memcpy(bytes + sizeof given, (const unsigned char *)made + sizeof given, known - sizeof given);
  memset(bytes + known, 0, given - known);
  return BERTH_OK;
}
