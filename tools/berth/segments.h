/* Where the steps of a plan run, when not all of them run on its device. */
#ifndef BERTH_TOOLS_SEGMENTS_H
#define BERTH_TOOLS_SEGMENTS_H

#include "berth/berth.h"
#include "json.h"

/* Exit codes, with an error printed. Nothing is said of a plan that runs in one place. */
int segments_print(const berth_plan *plan, const char *asked); /* asked: the device, as the user named it */
/* A device that was asked for by its other name is printed by that one. */
const char *segments_device_name(const char *device, const char *asked);
int segments_write_json(const berth_plan *plan, const char *asked, json *out);

#endif
