/* Where the steps of a plan run, if not all run on its device. */
#ifndef BERTH_TOOLS_SEGMENTS_H
#define BERTH_TOOLS_SEGMENTS_H

#include "berth/berth.h"
#include "json.h"

/* Return exit codes, and print errors. Prints nothing for a plan that runs on one device. */
int segments_print(const berth_plan *plan, const char *asked); /* asked: the device, as the user named it */
/* The name that was used to ask for a device, if that is its other name. */
const char *segments_device_name(const char *device, const char *asked);
int segments_write_json(const berth_plan *plan, const char *asked, json *out);

#endif
