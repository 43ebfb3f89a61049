/* The outputs of a model: read from the session, printed, and written as .npy files. */
#ifndef BERTH_TOOLS_OUTPUTS_H
#define BERTH_TOOLS_OUTPUTS_H

#include "json.h"
#include "runner.h"

typedef struct output {
  const char *name;  /* the graph's */
  berth_array array; /* data from malloc */
  char *file;        /* the file written; NULL: none */
} output;

/* Outputs, or states. */
typedef struct outputs {
  output *items;
  uint32_t n;
} outputs;

/* Return exit codes, and print errors. Close either way. */
int output_read(berth_session *session, uint32_t index, output *out); /* allocates the array with malloc */
int outputs_read(runner *r, outputs *out);
int outputs_save(const runner *r, const char *folder, outputs *set); /* creates the folder if necessary */
void outputs_print(const char *label, const outputs *set);           /* label: "output", "state" */
void outputs_write_json(const char *key, const outputs *set, json *out);
/* The states of a session after its last run; replaces those read before. */
int states_read(berth_session *session, outputs *out);
void outputs_close(outputs *set);

#endif
