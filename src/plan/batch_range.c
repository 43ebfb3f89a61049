/* Finds ranges of steps that are worth slicing on their own: peaks of the load, at several heights. */
#include "plan/batch.h"

#define LEVELS 16u
#define LEAST_STEPS 3u
#define LONGEST_SHARE 8u /* of all steps: longer ranges keep too many sums alive */

uint32_t berth__batch_ranges(const uint64_t *load, uint32_t n_steps, uint32_t fullest, uint64_t target,
                             berth__batch_range *ranges, uint32_t most) {
  const uint64_t height = load[fullest] > target ? load[fullest] - target : 0;
  uint32_t n = 0;
  for (uint32_t level = 1; level <= LEVELS && n < most; level++) {
    const uint64_t floor = load[fullest] - height / LEVELS * level;
    uint32_t from = fullest, to = fullest + 1;
    while (from > 0 && load[from - 1] > floor) from--;
    while (to < n_steps && load[to] > floor) to++;
    const bool is_known = n > 0 && ranges[n - 1].from == from && ranges[n - 1].to == to;
    if (is_known || to - from < LEAST_STEPS) continue;
    if (to - from > n_steps / LONGEST_SHARE) break;
    ranges[n++] = (berth__batch_range){.from = from, .to = to};
  }
  return n;
}
