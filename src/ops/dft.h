/* A call of dft, and its lines in f64. */
#ifndef BERTH_OPS_DFT_H
#define BERTH_OPS_DFT_H

#include "ops/registry.h"

typedef struct berth__dft {
  const berth_op_call *call;
  uint32_t axis;
  int64_t inner; /* complex or real elements after the axis */
  int64_t parts, extent, kept;
  bool is_inverse;
  bool is_real;   /* the result of a one-sided inverse */
  int64_t length; /* length of the transform; until the kernel runs, its upper bound */
} berth__dft;

/* As far as shapes determine it. */
berth__dft berth__dft_describe(const berth_op_call *call);
/* Including the length, which may be an operand's element. */
berth__dft berth__dft_read(const berth_op_call *call);
int64_t berth__dft_lines(const berth__dft *d);
/* A line of x, truncated or zero-padded to the length; for a one-sided inverse, the whole spectrum. */
void berth__dft_load(const berth__dft *d, int64_t line, double *re, double *im);
/* Stores the part of the line that is kept, scaled if it is an inverse. */
void berth__dft_store(const berth__dft *d, int64_t line, const double *re, const double *im);

#endif
