/* Functions of one f32, with what C's give for them, and arguments from all of the floats. */
#ifndef BERTH_TESTS_LOOP_FUNCTIONS_H
#define BERTH_TESTS_LOOP_FUNCTIONS_H

#include <stdbool.h>

#include "ops/op.h"

#define ARGUMENTS 16384u

typedef struct function {
  const char *name;
  berth__op_code op;
  double (*of)(double);
  double relative, absolute; /* what a result may be off: one of the two */
  double far_out;            /* where it rests on the device's own exp, the second of these on a device */
} function;

#define N_FUNCTIONS 31u
extern const function functions[N_FUNCTIONS];
/* A subnormal result is only as good as its digits. */
#define TINY 1e-44

/* What is special first, then patterns of bits at equal distances, so that every exponent is met. */
float argument_at(uint32_t i);
/* NaN equals NaN; of infinity, the largest float is close enough. */
bool is_close(double expected, float got, double relative, double absolute);

#endif
