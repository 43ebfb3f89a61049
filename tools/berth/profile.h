/* Where the time of a run goes: steps observed over a few runs, as a table, as JSON, or as a Chrome trace. */
#ifndef BERTH_TOOLS_PROFILE_H
#define BERTH_TOOLS_PROFILE_H

#include "json.h"
#include "runner.h"

typedef struct profile_event {
  uint32_t node, run;
  double start_ms, ms; /* start_ms counts from the first observed run */
} profile_event;

typedef struct profile_node {
  const char *name, *op;
  double ms;      /* a run, on average */
  uint64_t bytes; /* read and written */
} profile_node;

typedef struct profile {
  profile_event *events;
  size_t n_events, capacity;
  profile_node *nodes; /* slowest first */
  uint32_t n_nodes, n_runs, run;
  double start_ms, total_ms;
} profile;

/* Exit codes, with an error printed. Close either way, before the runner. */
int profile_collect(runner *r, uint32_t n_runs, profile *out);
void profile_print(const profile *p);
void profile_write_json(const profile *p, json *out);
int profile_write_trace(const runner *r, const profile *p, const char *path);
void profile_close(profile *p);

#endif
