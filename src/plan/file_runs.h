/* Weights that are mapped pages of their file instead of copies: they lie in the arena at the same offset within a
 * page as in the file. */
#ifndef BERTH_PLAN_FILE_RUNS_H
#define BERTH_PLAN_FILE_RUNS_H

#include "plan/plan.h"

#define BERTH__FILE_ALIGN 32 /* what the offsets of weights are multiples of in such a run, as in GGUF files */

/* Gives the params of a plan their offsets, from *at on. Those of a model in blocks that follow each other in a file, a
 * run, lie as far apart as there, and at the same place of a page, so that pages of the file can be pages of the arena
 * (the map of device.h). All others lie one after the other. *at is where the next may begin, which depends on sizes
 * and types alone: a plan of a file's header is that of the file. So pages of room are set aside by the size of the
 * model, and the longest runs get them. */
berth_status berth__file_runs_place(berth_plan *plan, uint64_t *at, berth_error *err);

#endif
