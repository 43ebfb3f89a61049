/* What the examples share: an error ends the program with its message. */
#ifndef BERTH_EXAMPLE_H
#define BERTH_EXAMPLE_H

#include <berth/berth.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For every call: MUST(berth_graph_verify(graph, &err)). */
static berth_error err;

#define MUST(call) must((call), #call)

static void must(berth_status status, const char *call) {
  if (status == BERTH_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, berth_status_name(status), err.message);
  exit(1);
}

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#endif
