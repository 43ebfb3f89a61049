/* A call of dft, and its lines in f64. */
#ifndef BERTH_OPS_DFT_H
#define BERTH_OPS_DFT_H

#include "ops/registry.h"

typedef struct berth__dft {
  const berth_op_call *call;
  uint32_t axis;
  int64_t inner; /* elements, of numbers, after the axis */
  int64_t parts, extent, kept;
  bool is_inverse;
  bool is_real;   /* the result of a onesided inverse */
  int64_t length; /* that of the transform; until the kernel runs, the largest that it can be */
} berth__dft;

/* As far as shapes tell. */
berth__dft berth__dft_describe(const berth_op_call *call);
/* With the length that only the operand's elements tell. */
berth__dft berth__dft_read(const berth_op_call *call);
int64_t berth__dft_lines(const berth__dft *d);
/* A line of x, cut or filled with zeros to the length; of a onesided inverse all of its spectrum. */
void berth__dft_load(const berth__dft *d, int64_t line, double *re, double *im);
/* What is kept of the line, scaled where it is an inverse. */
void berth__dft_store(const berth__dft *d, int64_t line, const double *re, const double *im);

#endif
