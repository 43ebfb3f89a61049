/* The kernel of each step of a plan, and which of them are reference kernels. */
#ifndef BERTH_TOOLS_STEPS_H
#define BERTH_TOOLS_STEPS_H

#include "berth/berth.h"
#include "json.h"

typedef struct step_list {
  berth_step_info *items;
  uint32_t n, n_reference; /* steps with a reference kernel */
} step_list;

/* Return exit codes, and print errors. */
int steps_read(const berth_plan *plan, step_list *out); /* close either way */
void steps_close(step_list *list);
/* Prints the nodes that run on reference kernels; nothing if there are none. */
void steps_print(const berth_plan *plan, const step_list *list);
void steps_write_json(const berth_plan *plan, const step_list *list, const char *asked, json *out);
/* The JSON fields for a step; asked: the device, as the user named it. */
void steps_write_kernel(const berth_step_info *step, const char *asked, json *out);

#endif
