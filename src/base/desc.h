/* Descriptors that can grow: what a caller of another version passes becomes the struct of this version. */
#ifndef BERTH_BASE_DESC_H
#define BERTH_BASE_DESC_H

#include "base/status.h"

/* *dst holds the defaults (its _INIT macro) and gets the fields that the caller's struct has; a shorter struct of an
 * older header leaves the later fields at their defaults. src NULL: all defaults. `name` is the type's, for the
 * message. Both structs start with their size. On failure *dst is unchanged. */
berth_status berth__desc_copy(void *dst, size_t dst_size, const void *src, const char *name, berth_error *err);

/* For `berth_x_desc copy = BERTH_X_DESC_INIT; BERTH__TRY(BERTH__DESC_COPY(&copy, desc, "berth_x_desc", err));` */
#define BERTH__DESC_COPY(dst, src, name, err) berth__desc_copy((dst), sizeof *(dst), (src), (name), (err))

#endif
