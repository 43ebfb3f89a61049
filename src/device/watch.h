/* The checked mode: checks around every step, on any device whose block the host can access (cpu/checked.c). */
#ifndef BERTH_DEVICE_WATCH_H
#define BERTH_DEVICE_WATCH_H

#include "plan/plan.h"

typedef struct berth__watch berth__watch;
berth_status berth__watch_create(const berth_plan *plan, berth__watch **out, berth_error *err);
void berth__watch_destroy(berth__watch *watch); /* NULL is fine */
void berth__watch_start(berth__watch *watch, unsigned char *base);
void berth__watch_before(berth__watch *watch, uint32_t step);
/* INTERNAL if the step wrote outside its results; the message names its node and the value that was hit. */
berth_status berth__watch_after(berth__watch *watch, uint32_t step, berth_error *err);
void berth__watch_stop(berth__watch *watch); /* makes the arena plain memory again */

#endif
