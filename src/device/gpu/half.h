#ifndef BERTH_DEVICE_GPU_HALF_H
#define BERTH_DEVICE_GPU_HALF_H

#include "graph/graph.h"

/* Marks the weights of a graph that a uniform plan may keep as f16. */
berth_status berth__gpu_halve_weights(berth_graph *graph, berth_error *err);

#endif
