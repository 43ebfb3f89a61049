/* Mapped files that shrink while they are read: catches SIGBUS if the host asks for it.
 *
 * Touching a page of a mapping past the end of its file raises SIGBUS. The handler replaces such pages by zeros and
 * marks the file as lost, so the read goes on and the reader finds out afterwards (berth__file_check). systemd's
 * journal and Wayland compositors treat mapped files in the same way. A handler belongs to the whole process, so a
 * library must not install one unasked: BERTH_OPTION_CATCH_SIGBUS. */
#ifndef BERTH_BASE_SIGBUS_H
#define BERTH_BASE_SIGBUS_H

#include "base/status.h"

typedef struct berth__watch berth__watch; /* one mapping that the handler knows */

/* Installs the handler, once per process; it stays. */
berth_status berth__sigbus_catch(berth_error *err);
/* From now on a SIGBUS in these bytes is caught. NULL if not: there is no handler, or its table is full. */
berth__watch *berth__sigbus_watch(const void *base, size_t size);
void berth__sigbus_unwatch(berth__watch *watch); /* call before the bytes are unmapped; NULL is fine */
int berth__sigbus_is_lost(const berth__watch *watch);

#endif
