/* Weights that are mapped pages of their file instead of copies: they have the same offset within a page in the arena
 * as in the file. */
#ifndef BERTH_PLAN_FILE_RUNS_H
#define BERTH_PLAN_FILE_RUNS_H

#include "plan/plan.h"

#define BERTH__FILE_ALIGN 32 /* alignment of weights in such a run, as in GGUF files */

/* Gives the params of a plan their offsets, from *at on. Those of a model in blocks that are contiguous in a file, a
 * run, keep their distances and their offset within a page, so that pages of the file can be pages of the arena (the
 * map of device.h). All others follow each other. *at becomes the next free offset, which depends only on sizes and
 * types: a plan made from a file's header equals that of the whole file. So the number of reserved pages depends on the
 * model's size, and the longest runs get them. */
berth_status berth__file_runs_place(berth_plan *plan, uint64_t *at, berth_error *err);

#endif
