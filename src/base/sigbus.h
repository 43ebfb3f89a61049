/* Mapped files that shrink while they are read: the signal SIGBUS, caught where the host wants that.
 *
 * A page of a mapping that lies past the end of its file raises SIGBUS when it is touched. The handler puts zeros in
 * the place of such pages and marks the file as lost, so that the read goes on and whoever reads files finds out
 * afterwards (berth__file_check). systemd's journal and Wayland's compositors deal with mapped files in this way. A
 * handler belongs to the whole process, so that a library must not install one unasked: BERTH_OPTION_CATCH_SIGBUS. */
#ifndef BERTH_BASE_SIGBUS_H
#define BERTH_BASE_SIGBUS_H

#include "base/status.h"

typedef struct berth__watch berth__watch; /* one mapping that the handler knows */

/* Installs the handler, once per process; it stays. */
berth_status berth__sigbus_catch(berth_error *err);
/* From now on a SIGBUS in these bytes is caught. NULL where it is not: there is no handler, or it knows too many. */
berth__watch *berth__sigbus_watch(const void *base, size_t size);
void berth__sigbus_unwatch(berth__watch *watch); /* before the bytes are unmapped; NULL is fine */
int berth__sigbus_is_lost(const berth__watch *watch);

#endif
