/* What the checked mode does around every step, on any device whose block the host sees (cpu/checked.c). */
#ifndef BERTH_DEVICE_WATCH_H
#define BERTH_DEVICE_WATCH_H

#include "plan/plan.h"

typedef struct berth__watch berth__watch;
berth_status berth__watch_create(const berth_plan *plan, berth__watch **out, berth_error *err);
void berth__watch_destroy(berth__watch *watch); /* NULL is fine */
void berth__watch_start(berth__watch *watch, unsigned char *base);
void berth__watch_before(berth__watch *watch, uint32_t step);
/* INTERNAL when the step wrote where it may not; the message names its node and whom it hit. */
berth_status berth__watch_after(berth__watch *watch, uint32_t step, berth_error *err);
void berth__watch_stop(berth__watch *watch); /* the arena is plain memory again */

#endif
