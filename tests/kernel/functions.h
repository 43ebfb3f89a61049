/* Functions of one f32, with the results of C's functions, and arguments from the whole range of floats. */
#ifndef BERTH_TESTS_LOOP_FUNCTIONS_H
#define BERTH_TESTS_LOOP_FUNCTIONS_H

#include <stdbool.h>

#include "ops/op.h"

#define ARGUMENTS 16384u

typedef struct function {
  const char *name;
  berth__op_code op;
  double (*of)(double);
  double relative, absolute; /* tolerance of a result: either */
  double far_out;            /* if it uses the device's own exp, the second of these on a device */
} function;

#define N_FUNCTIONS 31u
extern const function functions[N_FUNCTIONS];
/* A subnormal result is only as precise as its digits. */
#define TINY 1e-44

/* Special values first, then bit patterns at equal distances, so that every exponent occurs. */
float argument_at(uint32_t i);
/* NaN equals NaN; the largest float is close enough to infinity. */
bool is_close(double expected, float got, double relative, double absolute);

#endif
