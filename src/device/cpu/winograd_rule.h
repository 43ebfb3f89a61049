/* Whether a 3x3 convolution with stride 1 is faster as conv_winograd. */
#ifndef BERTH_DEVICE_CPU_WINOGRAD_RULE_H
#define BERTH_DEVICE_CPU_WINOGRAD_RULE_H

#include <stdint.h>

/* The tile size (2 or 4) from `channels` to `outputs` channels with a result of height x width pixels; 0: conv_last. */
int64_t berth__cpu_winograd_tile(int64_t channels, int64_t outputs, int64_t height, int64_t width);

#endif
