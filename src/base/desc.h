/* Structs that can grow, at the boundary of the library: converts what a caller of another version passes to the struct
 * of this version, and back. */
#ifndef BERTH_BASE_DESC_H
#define BERTH_BASE_DESC_H

#include "base/status.h"

/* *dst holds the defaults (its _INIT macro) and gets the fields that the caller's struct has; with the shorter struct
 * of an older header, later fields keep their defaults. src NULL: all defaults. `name` is the type's name, for the
 * message. Both structs start with their size. On failure *dst is unchanged. */
berth_status berth__desc_copy(void *dst, size_t dst_size, const void *src, const char *name, berth_error *err);

/* For `berth_x_desc copy = BERTH_X_DESC_INIT; BERTH__TRY(BERTH__DESC_COPY(&copy, desc, "berth_x_desc", err));` */
#define BERTH__DESC_COPY(dst, src, name, err) berth__desc_copy((dst), sizeof *(dst), (src), (name), (err))

/* Results: *out starts with the caller's struct_size and gets at most that many bytes of *made. The part of *out that
 * this version does not know is cleared. Refuses a struct_size that no version has; on failure *out is unchanged. The
 * separate check is for results that are expensive to compute. */
berth_status berth__result_check(const void *out, const char *name, berth_error *err);
berth_status berth__result_write(void *out, const void *made, size_t made_size, const char *name, berth_error *err);
#define BERTH__RESULT_WRITE(out, made, name, err) berth__result_write((out), (made), sizeof *(made), (name), (err))

#endif
