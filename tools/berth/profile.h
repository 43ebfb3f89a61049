/* Where the time of a run goes: observes steps over a few runs, and reports a table, JSON, or a Chrome trace. */
#ifndef BERTH_TOOLS_PROFILE_H
#define BERTH_TOOLS_PROFILE_H

#include "json.h"
#include "peak.h"
#include "runner.h"
#include "steps.h"
#include "work.h"

typedef struct profile_event {
  uint32_t node;
  double start_ms, ms; /* start_ms is relative to the first observed run */
} profile_event;

typedef struct profile_run {
  double start_ms, ms;
  size_t first_event, end_event;
} profile_run;

typedef struct profile_row {
  const char *name; /* of a node; NULL for the sum over an op */
  const char *op;
  const berth_step_info *step;   /* of a node: its kernel */
  uint32_t n_nodes, n_reference; /* nodes, and those of them with a reference kernel */
  double ms;                     /* per run, on average */
  work work;                     /* per run; zero for a node without a kernel */
  double least_ms;               /* lower bound by the machine's peak */
} profile_row;

typedef struct profile {
  profile_event *events;
  size_t n_events, capacity;
  profile_run *runs;
  uint32_t n_runs;
  step_list steps;
  const berth_step_info **step_of; /* one per node of the graph; NULL: not a step */
  const char *device;              /* as the user named it */
  bool on_gpu;
  profile_row *nodes, *ops; /* slowest first */
  uint32_t n_nodes, n_ops;
  double start_ms;
  double run_ms;     /* mean over the observed runs */
  profile_row total; /* over all nodes; its ms is the time in kernels */
  peak peak;         /* zeros if not measured */
  berth_clock clock;
} profile;

/* Return exit codes, and print errors. Close either way, before the runner. with_peak also measures the machine, or the
 * device that the model runs on. */
int profile_collect(runner *r, uint32_t n_runs, bool with_peak, profile *out);
void profile_close(profile *p);

void profile_print(const profile *p);
void profile_write_json(const profile *p, json *out);
int profile_write_trace(const runner *r, const profile *p, const char *path);

/* For a row; 0 if unknown. */
double profile_gflops(const profile_row *row);
double profile_gb_per_s(const profile_row *row);
double profile_of_peak(const profile_row *row);                 /* least_ms over ms */
double profile_share(const profile *p, const profile_row *row); /* fraction of the time in kernels */

#endif
