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

typedef struct outputs {
  output *items;
  uint32_t n;
} outputs;

/* Exit codes, with an error printed. Close either way. */
int output_read(berth_session *session, uint32_t index, output *out); /* the array is malloced */
int outputs_read(runner *r, outputs *out);
int outputs_save(const runner *r, const char *folder, outputs *set); /* makes the folder where there is none */
void outputs_print(const outputs *set);
void outputs_write_json(const outputs *set, json *out);
void outputs_close(outputs *set);

#endif
