/* An ONNX file as a graph. */
#ifndef BERTH_IMPORT_ONNX_LOAD_H
#define BERTH_IMPORT_ONNX_LOAD_H

#include "base/file.h"
#include "graph/graph.h"

/* Takes over the mapping, also on failure. path is for external data and for messages; NULL: there is none, and
 * external data is refused. */
berth_status berth__onnx_load(berth_context *ctx, const char *path, berth__mapping *file, berth_graph **out,
                              berth_error *err);

#endif
