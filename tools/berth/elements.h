/* Elements of every type: converted to numbers, summarised, and generated from a fixed pseudo-random sequence. */
#ifndef BERTH_TOOLS_ELEMENTS_H
#define BERTH_TOOLS_ELEMENTS_H

#include <stdbool.h>

#include "berth/berth.h"

size_t element_count_of(berth_type type, uint64_t size); /* for this many bytes in host memory */
double element_at(berth_type type, const void *data, size_t index);
bool element_is_float(berth_type type);

typedef struct element_summary {
  double min, max, mean; /* over the finite elements */
  uint64_t count, not_finite;
} element_summary;
element_summary element_summarise(berth_type type, const void *data, size_t count);

uint64_t element_random(uint64_t *state); /* the next number of splitmix64 */
/* The sequence for a name: splitmix64 from the FNV-1a hash of the name. Floats are uniform in [-1, 1) from the top
 * 24 bits (11 for f16, 8 for bf16, so that each is exact), divided by `divisor` (a power of two); integers are the
 * top 32 bits modulo `most` (at least 1), bool modulo 2. The same on every machine. */
void element_fill(berth_type type, void *data, size_t count, const char *name, double divisor, uint32_t most);
#define ELEMENT_MOST 10                                                    /* unless a smaller one is needed */
void element_set(berth_type type, void *data, size_t count, double value); /* all elements; no block type */

float element_from_bf16(uint16_t bits);
uint16_t element_to_bf16(float value); /* to nearest, ties to even */

#endif
