/* Ranks of inputs for which the file gives none. */
#ifndef BERTH_IMPORT_ONNX_RANKS_H
#define BERTH_IMPORT_ONNX_RANKS_H

#include "import/onnx/model.h"

/* The rank that the nodes of a graph require of a value, which they read directly or through nodes that keep ranks. 0:
 * not determined. */
uint32_t berth__onnx_wanted_rank(const berth__onnx_graph *graph, berth__span name);

#endif
