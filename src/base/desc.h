/* Structs that can grow, at the border of the library: what a caller of another version passes becomes the struct of
 * this version, and the other way round. */
#ifndef BERTH_BASE_DESC_H
#define BERTH_BASE_DESC_H

#include "base/status.h"

/* *dst holds the defaults (its _INIT macro) and gets the fields that the caller's struct has; a shorter struct of an
 * older header leaves the later fields at their defaults. src NULL: all defaults. `name` is the type's, for the
 * message. Both structs start with their size. On failure *dst is unchanged. */
berth_status berth__desc_copy(void *dst, size_t dst_size, const void *src, const char *name, berth_error *err);

/* For `berth_x_desc copy = BERTH_X_DESC_INIT; BERTH__TRY(BERTH__DESC_COPY(&copy, desc, "berth_x_desc", err));` */
#define BERTH__DESC_COPY(dst, src, name, err) berth__desc_copy((dst), sizeof *(dst), (src), (name), (err))

/* Results: *out starts with the caller's struct_size and gets as many bytes of *made, never more. What *out has beyond
 * this version is cleared. Refuses a struct_size that no version has; on failure *out is unchanged. The check alone is
 * for results that would cost time. */
berth_status berth__result_check(const void *out, const char *name, berth_error *err);
berth_status berth__result_write(void *out, const void *made, size_t made_size, const char *name, berth_error *err);
#define BERTH__RESULT_WRITE(out, made, name, err) berth__result_write((out), (made), sizeof *(made), (name), (err))

#endif
