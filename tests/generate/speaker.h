/* A generator of a toy that talks, for tests. */
#ifndef BERTH_TESTS_SPEAKER_H
#define BERTH_TESTS_SPEAKER_H

#include "support.h"

#define SPEAKER_TEXT "the ring and the thing"

typedef struct speaker {
  test_alloc alloc;
  berth_context *ctx;
  berth_generator *g;
} speaker;

/* Writes the toy: for cmocka_run_group_tests. */
int speaker_write(void **state);
const char *speaker_path(void);

/* The best token always, room for 64, read 8 at a time. */
berth_generator_desc speaker_greedy(void);
void speaker_start(speaker *s, const berth_generator_desc *desc);
/* The same of another file. */
void speaker_start_with(speaker *s, const char *path, const berth_generator_desc *desc);
void speaker_finish(speaker *s);

void speaker_feed(berth_generator *g, const char *text);
void speaker_speak(berth_generator *g, int n, int32_t *tokens);
uint32_t speaker_count(const berth_generator *g); /* tokens of the conversation */
/* The toy with another name, or with other bytes at its end, which is a matrix. */
void speaker_write_changed(const char *to, const char *name, uint8_t flip, size_t n_flipped);

#endif
