/* Ops as graphs of one node: their kernels, interpreted, against the reference kernel. */
#ifndef BERTH_TESTS_LOOP_AGAINST_H
#define BERTH_TESTS_LOOP_AGAINST_H

#include "kernel/lower.h"

extern const berth__kernel_limits limits_large, limits_small, limits_least, limits_plain, limits_lanes, limits_quads;

/* Operands are filled at random. Results may differ by `tolerance` * (1 + |what is expected|). `form`: in the name of a
 * kernel that must be there; NULL: any will do. */
void check_against(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
/* The same where narrow types lie in their own width; and where every store is one of a whole word, too. */
void check_narrow(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
void check_words(const char *graph, const berth__kernel_limits *limits, const char *form, double tolerance);
/* By matrix units that multiply numbers so, and the same expanded, with equal bits. is_narrow: types in their own
 * width.
 */
void check_matrix(const char *graph, berth_compute compute, bool is_narrow, double tolerance);
/* By lanes that exchange what they have, and the same expanded, with equal bits. */
void check_exchanges(const char *graph, const berth__kernel_limits *limits, double tolerance);
/* With each of the limits above; the form is that on large ones. */
void check_all_limits(const char *graph, const char *form, double tolerance);

#endif
