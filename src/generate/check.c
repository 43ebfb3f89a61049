/* Whether a model can be used: everything that a generator does with a file, except for creating a session. */
#include "generate/generator.h"
#include "import/gguf/arch.h"

static berth_status check_model(berth_context *ctx, berth__gguf *model, berth_error *err) {
  berth_graph *graph = NULL;
  berth__tokenizer *tokenizer = NULL;
  BERTH__TRY(berth__arch_graph(model, NULL, &graph, err));
  berth_graph_destroy(graph);
  BERTH__TRY(berth__tokenizer_create(ctx, model, &tokenizer, err));
  berth__tokenizer_destroy(tokenizer);
  return BERTH_OK;
}

berth_status berth_model_check(berth_context *ctx, const char *path, berth_error *err) {
  berth__mapping file;
  berth__gguf *model = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_model_check needs a context and a path");
  BERTH__TRY(berth__file_map(path, &file, err));
  berth_status status = berth__gguf_open(ctx, path, &file, &model, err);
  if (status == BERTH_OK) status = check_model(ctx, model, err);
  berth__gguf_destroy(model);
  return status == BERTH_OK ? BERTH_OK : berth__fail_within(err, status, "%s", path);
}
