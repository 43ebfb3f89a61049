/* Helpers to make, finish and run kernels. */
#ifndef BERTH_TESTS_LOOP_RUN_H
#define BERTH_TESTS_LOOP_RUN_H

#include "kernel/kernel.h"
#include "kernel/lanes.h"
#include "support.h"

/* A kernel of n_groups workgroups of group_size threads. */
berth__kernel *kernel_of(berth_context *ctx, const char *name, uint32_t group_size, uint64_t n_groups);
/* group * group_size + thread. */
berth__x flat_index(berth__kernel *k);
/* Runs it; buffer i of it is words[i], of counts[i] elements. */
berth_status run_kernel(const berth__kernel *k, uint32_t **words, const uint64_t *counts, berth_error *err);
/* The number of instructions of this kind. */
size_t count_of(const berth__kernel *k, berth__inst_code code);
/* Finishes, runs with one buffer, and destroys the kernel; fails the test on errors. */
void finish_and_run(berth__kernel *k, uint32_t *words, uint64_t count);

#endif
