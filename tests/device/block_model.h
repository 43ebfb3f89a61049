/* Blocks of a device against a model of them, an array on the host: random writes, fills, reads and copies. */
#ifndef BERTH_TESTS_DEVICE_BLOCK_MODEL_H
#define BERTH_TESTS_DEVICE_BLOCK_MODEL_H

#include "device/device.h"

#define BLOCK_MODELS 3u

/* The blocks are of `size` bytes, all 0; the last one may be of another engine than the others. */
void block_model_compare(const berth__device *device, berth__block *const blocks[BLOCK_MODELS], uint64_t size,
                         uint32_t n_steps, uint64_t seed);

#endif
