/* Ranks of inputs that the file does not give. */
#ifndef BERTH_IMPORT_ONNX_RANKS_H
#define BERTH_IMPORT_ONNX_RANKS_H

#include "import/onnx/model.h"

/* The rank that the nodes of a graph want a value to have, which they read as it is or after others that keep ranks.
 * 0: they do not say. */
uint32_t berth__onnx_wanted_rank(const berth__onnx_graph *graph, berth__span name);

#endif
