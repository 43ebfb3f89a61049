/* Output of the verbs about plans of models that generate text. */
#ifndef BERTH_TOOLS_GENERATION_H
#define BERTH_TOOLS_GENERATION_H

#include "cli.h"
#include "dims.h"
#include "generation_plan.h"
#include "json.h"
#include "model.h"

/* The context that the model was made with; 0: unknown. Returns exit codes. */
int generation_made_with(berth_context *ctx, const char *path, uint64_t *out);

/* --ctx and --chunk (0: not given) must not contradict --dim, and what follows from them cannot be given. */
int generation_check_dims(const model *m, uint64_t ctx, uint64_t chunk);
/* The value of an option or, if that is 0, of --dim. */
uint64_t generation_dim(const model *m, const char *name, uint64_t option);

void generation_print(const generation *plans, const char *kv);
void generation_write_json(const generation *plans, const char *kv, json *out);

#endif
