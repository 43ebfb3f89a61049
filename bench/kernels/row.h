/* The rows of the table: a kernel at a shape of a real model. */
#ifndef BERTH_BENCH_KERNELS_ROW_H
#define BERTH_BENCH_KERNELS_ROW_H

#include "bar.h"
#include "call.h"

typedef struct subject {
  call call;
  char shape[64];
  double operations; /* multiplications and additions; 0: limited by memory */
  bool is_bytes;     /* int8 operations */
  bar_work work;
} subject;

typedef struct row {
  const char *kernel, *model;
  void (*make)(subject *s, const berth__cpu_isa *isa, const int64_t *size);
  int64_t size[8]; /* interpreted by `make` */
} row;

/* All tables; ends with NULL. */
extern const row *const row_tables[];
/* Each table ends with a row without a kernel. */
extern const row rows_of_products[], rows_of_convolutions[], rows_of_bytes[], rows_of_attention[], rows_of_memory[];

/* The panel width of packed weights. */
static inline int64_t row_panels(const berth__cpu_isa *isa, int64_t columns) {
  return (columns + isa->panel - 1) / isa->panel;
}

#endif
