/* What `inspect` shows for each kind of file, as text or as one JSON object; all return exit codes. */
#ifndef BERTH_TOOLS_INSPECT_H
#define BERTH_TOOLS_INSPECT_H

#include <stdbool.h>

#include "berth/berth.h"

int inspect_npy(berth_context *ctx, const char *path, bool as_json);
int inspect_weights(berth_context *ctx, const char *path, bool as_json);
int inspect_onnx(berth_context *ctx, const char *path, bool as_json);
int inspect_gguf(berth_context *ctx, const char *path, bool as_json);
int inspect_graph(berth_context *ctx, const char *path, bool as_json);

#endif
