/* The rows of the table: a kernel at a shape of a real model. */
#ifndef BERTH_BENCH_KERNELS_ROW_H
#define BERTH_BENCH_KERNELS_ROW_H

#include "bar.h"
#include "call.h"

typedef struct subject {
  call call;
  char shape[64];
  double operations; /* multiplications and additions; 0: it is about memory alone */
  bool is_bytes;     /* the operations are on bytes */
  bar_work work;
} subject;

typedef struct row {
  const char *kernel, *model;
  void (*make)(subject *s, const berth__cpu_isa *isa, const int64_t *size);
  int64_t size[8]; /* what they are, `make` knows */
} row;

/* All of them; NULL past the end. */
extern const row *const row_tables[];
/* Each ends with a row without a kernel. */
extern const row rows_of_products[], rows_of_convolutions[], rows_of_bytes[], rows_of_attention[], rows_of_memory[];

/* Weights as they are packed. */
static inline int64_t row_panels(const berth__cpu_isa *isa, int64_t columns) {
  return (columns + isa->panel - 1) / isa->panel;
}

#endif
