/* A small text chart of a plan: bytes in use over the steps. */
#ifndef BERTH_TOOLS_LOADCHART_H
#define BERTH_TOOLS_LOADCHART_H

#include "berth/berth.h"

int loadchart_print(const berth_plan *plan); /* an exit code */

#endif
