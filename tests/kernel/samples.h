/* Kernels for testing renderers. */
#ifndef BERTH_TESTS_LOOP_SAMPLES_H
#define BERTH_TESTS_LOOP_SAMPLES_H

#include "kernel/kernel.h"

typedef void (*sample_fn)(berth__kernel *k);
berth__kernel *sample_make(berth_context *ctx, const char *name, sample_fn fn);

void sample_scaled_sum(berth__kernel *k); /* element-wise */
void sample_row_sums(berth__kernel *k);   /* shared memory, and rows of the grid */
void sample_guarded(berth__kernel *k);    /* the same under a condition read from memory */
void sample_counted(berth__kernel *k);    /* barriers in a loop whose bounds are read from memory */
void sample_windows(berth__kernel *k);    /* halves and local arrays */
void sample_literals(berth__kernel *k);
void sample_everything(berth__kernel *k); /* every instruction that computes */
void sample_blocks(berth__kernel *k);
void sample_storages(berth__kernel *k);  /* loads and stores of every storage */
void sample_contended(berth__kernel *k); /* words that several threads write at once */
/* Lanes that exchange values, under a condition read from memory: for devices with subgroup exchange. */
void sample_exchanged(berth__kernel *k);

#define SAMPLES 10u
extern const sample_fn samples[SAMPLES]; /* all of these */

#endif
