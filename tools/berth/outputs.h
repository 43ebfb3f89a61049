/* What a model gave: read from the session, shown, and written as .npy files. */
#ifndef BERTH_TOOLS_OUTPUTS_H
#define BERTH_TOOLS_OUTPUTS_H

#include "json.h"
#include "runner.h"

typedef struct output {
  const char *name;  /* the graph's */
  berth_array array; /* data from malloc */
  char *file;        /* where it was written; NULL: nowhere */
} output;

/* Outputs, or states. */
typedef struct outputs {
  output *items;
  uint32_t n;
} outputs;

/* Exit codes, with an error printed. Close either way. */
int output_read(berth_session *session, uint32_t index, output *out); /* the array is malloced */
int outputs_read(runner *r, outputs *out);
int outputs_save(const runner *r, const char *folder, outputs *set); /* makes the folder where there is none */
void outputs_print(const char *label, const outputs *set);           /* label: "output", "state" */
void outputs_write_json(const char *key, const outputs *set, json *out);
/* The states of a session, as its last run left them; replaces what was read before. */
int states_read(berth_session *session, outputs *out);
void outputs_close(outputs *set);

#endif
