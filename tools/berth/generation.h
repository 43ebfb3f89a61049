/* What the verbs say of the plans of a model that generates text. */
#ifndef BERTH_TOOLS_GENERATION_H
#define BERTH_TOOLS_GENERATION_H

#include "cli.h"
#include "dims.h"
#include "generation_plan.h"
#include "json.h"
#include "model.h"

/* What the model was made with; 0: its file does not say. Exit codes. */
int generation_made_with(berth_context *ctx, const char *path, uint64_t *out);

/* What an option says, and if it says 0, what --dim says. */
uint64_t generation_dim(const model *m, const char *name, uint64_t option);

void generation_print(const generation *plans, const char *kv);
void generation_write_json(const generation *plans, const char *kv, json *out);

#endif
