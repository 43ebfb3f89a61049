#include <stddef.h>

#include "row.h"

const row *const row_tables[] = {rows_of_products,  rows_of_convolutions, rows_of_bytes,
                                 rows_of_attention, rows_of_memory,       NULL};
