/* Graphs that a device rewrites: each runs unchanged, on the reference kernels, and rewritten. The results must agree,
 * and the rewritten graph must have the expected ops. */
#ifndef TESTS_SUPPORT_PATTERNS_H
#define TESTS_SUPPORT_PATTERNS_H

#include "support.h"

typedef struct pattern {
  const char *text;
  const char *has;   /* an op that the rewritten graph has ... */
  uint32_t count;    /* ... this many times */
  const char *lacks; /* an op that it no longer has; NULL: any */
  double tolerance;
} pattern;

void pattern_check(const pattern *p);
/* On another device than the CPU. */
void pattern_check_on(const pattern *p, const char *device, uint32_t plan_flags);
/* The same with a named GPU profile. */
void pattern_check_profile(const pattern *p, const char *device, const char *profile);
/* With flags for the plan of the rewritten graph. */
void pattern_check_with(const pattern *p, uint32_t plan_flags);
void patterns_check(const pattern *patterns, size_t n);
#define CHECK_ALL(patterns) patterns_check(patterns, sizeof(patterns) / sizeof *(patterns))

/* Parses and plans the text `user`: for test_fail_each_allocation. */
berth_status pattern_plan(berth_context *ctx, berth_error *err, void *user);

/* Parts of graphs for tests of both the CPU's and the GPUs' rewriting: an image, the operands of a batch norm over so
 * many channels up to its variances, and variances of four. */
#define PATTERN_IMAGE(channels) "graph \"i\" { input %x : f32[1, " channels ", 12, 16]\n"
#define PATTERN_NORM(c) "param %ns : f32[" c "] param %nb : f32[" c "] param %nm : f32[" c "] const %nv : f32[" c "] = "
#define PATTERN_FOUR "[0.5, 1.0, 2.0, 0.25] "

#endif
