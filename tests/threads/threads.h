/* Several threads that start together. cmocka's assertions are for the thread of the test, so what runs here says
 * what went wrong, and the test's thread fails. */
#ifndef BERTH_TESTS_THREADS_H
#define BERTH_TESTS_THREADS_H

#include <stdbool.h>

#include "support.h"

#define THREADS_MOST 8

typedef struct crew crew;
typedef struct crew_member {
  crew *crew;
  uint32_t number;
  bool failed;
  char message[600]; /* the first thing that went wrong */
} crew_member;

typedef void (*crew_fn)(crew_member *self, void *user);

/* Runs fn on n threads at once and waits for them. Fails the test when one of them has failed. */
void crew_run(uint32_t n, crew_fn fn, void *user);

/* In fn; each returns whether it held. */
bool crew_ok(crew_member *self, berth_status status, const berth_error *err, const char *what);
bool crew_true(crew_member *self, bool holds, const char *what);
#define CREW_OK(call) crew_ok(self, (call), &err, #call) /* needs a berth_error err in scope */
#define CREW_TRUE(condition) crew_true(self, (condition), #condition)

/* y = softmax(relu(x w + c) v), x is f32[n, 48]: two products, so that the pool has work. */
enum {
  CREW_ROWS = 512, /* at most */
  CREW_IN = 48,
  CREW_MIDDLE = 96,
  CREW_OUT = 24
};
extern const char crew_text[];
typedef struct crew_data {
  int64_t rows; /* n: many on the CPU, few where kernels are interpreted */
  float w[CREW_IN * CREW_MIDDLE], v[CREW_MIDDLE * CREW_OUT], x[CREW_ROWS * CREW_IN];
  float y[CREW_ROWS * CREW_OUT]; /* what one session on one thread gave */
} crew_data;
crew_data *crew_data_make(const char *device); /* free with free() */
/* A session of crew_text with its weights, bound to data->rows; NULL when that failed. */
berth_session *crew_session(crew_member *self, const berth_graph *graph, const char *device, uint32_t n_threads,
                            const crew_data *data);
/* Runs a session of crew_text and compares y, bit for bit: a split of the work changes no result. */
bool crew_session_run(crew_member *self, berth_session *session, const crew_data *data);

#endif
