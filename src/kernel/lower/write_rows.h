/* Shared by write_rows and rope_rows. */
#ifndef BERTH_KERNEL_LOWER_WRITE_ROWS_H
#define BERTH_KERNEL_LOWER_WRITE_ROWS_H

#include "kernel/lower.h"
#include "ops/write_rows.h"

/* Opens an `if` for rows that fit; returns the row of x for row `i`. */
berth__x berth__l_open_fitting(berth__kernel *k, const berth__write_rows *w, berth__x position, berth__x i);

#endif
