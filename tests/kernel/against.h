/* Ops as graphs of one node: compares their interpreted kernels with the reference kernel. */
#ifndef BERTH_TESTS_LOOP_AGAINST_H
#define BERTH_TESTS_LOOP_AGAINST_H

#include "kernel/lower.h"

extern const berth__kernel_limits limits_large, limits_small, limits_least, limits_plain, limits_lanes, limits_quads;

/* Operands are random. Results may differ by `tolerance` * (1 + |expected|). `form`: part of the name of a kernel that
 * must exist; NULL: any. */
void check_against(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
/* The same with narrow types in their own width; and with every store being that of a whole word. */
void check_narrow(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
void check_words(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
/* With matrix units of this compute type, and expanded, with equal bits. is_narrow: types in their own width. */
void check_matrix(const char *graph, berth_compute compute, bool is_narrow, double tolerance);
/* The same with cooperative matrices. */
void check_apart(const char *graph, berth_compute compute, bool is_narrow, double tolerance);
/* The same as check_matrix, where the results are stored 16 bytes at a time. */
void check_staged(const char *graph, berth_compute compute, bool is_narrow, double tolerance);
/* With lanes that exchange values, and expanded, with equal bits. */
void check_exchanges(const char *graph, const berth__kernel_limits *limits, double tolerance);
/* With each of the limits above; the form is the one for large limits. */
void check_all_limits(const char *graph, const char *form, double tolerance);

#endif
