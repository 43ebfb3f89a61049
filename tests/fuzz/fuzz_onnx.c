/* Any bytes as an ONNX model: refused with a reason, or a graph that can be bound and whose plan holds. Nothing runs.
 */
#include "fuzz/fuzz.h"

#include "import/onnx/convert.h"

#define MAX_BLOCK ((size_t)1 << 24) /* larger blocks are refused, so that a run is fast for any shapes */
#define MAX_SIZE ((size_t)1 << 16)
#define MAX_DIMS 16

static void *small_blocks(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  return new_size <= MAX_BLOCK ? realloc(ptr, new_size) : NULL;
}

static berth_context *small_context(void) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx = NULL;
  desc.n_threads = 1;
  desc.alloc = small_blocks;
  FUZZ_CHECK(berth_context_create(&desc, &ctx, NULL) == BERTH_OK);
  return ctx;
}

static void check_status(berth_status status, const berth_error *err) {
  if (status == BERTH_OK) return;
  FUZZ_CHECK(err->status == status && err->message[0] != '\0');
  if (status == BERTH_INTERNAL) fprintf(stderr, "%s\n", err->message);
  FUZZ_CHECK(status != BERTH_INTERNAL && status != BERTH_IO);
}

/* Inputs that shapes depend on become constants of ones. */
static void fix_inputs(berth_graph *graph) {
  int64_t ones[16], extents[BERTH_MAX_RANK];
  for (size_t i = 0; i < 16; i++) ones[i] = 1;
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph);) {
    berth_value input = berth_graph_input_at(graph, i++);
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    FUZZ_CHECK(berth_graph_value(graph, input, &info, NULL) == BERTH_OK);
    if (!berth_graph_shapes_depend(graph, input) || info.type != BERTH_I64 || info.size > sizeof ones) continue;
    for (uint32_t d = 0; d < info.shape.rank; d++) extents[d] = info.shape.dim[d].name ? 1 : info.shape.dim[d].extent;
    size_t size = info.size != 0 ? (size_t)info.size : sizeof ones[0];
    berth_status status = berth_graph_fix(graph, info.name, info.type, info.shape.rank, extents, ones, size, &err);
    check_status(status, &err);
    if (status == BERTH_OK) i = 0; /* the inputs have moved up */
  }
}

static void check_plan(const berth_graph *graph) {
  berth_dim dims[MAX_DIMS];
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan *plan;
  berth_error err = {BERTH_OK, ""};
  uint32_t n = berth_graph_n_dims(graph);
  if (n > MAX_DIMS) return;
  for (uint32_t i = 0; i < n; i++) dims[i] = (berth_dim){berth_graph_dim_name(graph, i), 1};
  desc.dims = dims;
  desc.n_dims = n;
  desc.effort = 1;
  berth_status status = berth_plan_create(graph, &desc, &plan, &err);
  check_status(status, &err);
  FUZZ_CHECK((status == BERTH_OK) == (plan != NULL));
  if (status == BERTH_OK) {
    FUZZ_CHECK(berth_graph_verify(berth_plan_graph(plan), NULL) == BERTH_OK);
    FUZZ_CHECK(berth_plan_check(plan, NULL) == BERTH_OK);
  }
  berth_plan_destroy(plan);
}

static void check_model(berth_context *ctx, berth__onnx_model *model) {
  berth__onnx_files files = {.ctx = ctx};
  berth_graph *graph;
  berth_error err = {BERTH_OK, ""};
  FUZZ_CHECK(berth_graph_create(ctx, "fuzz", &graph, NULL) == BERTH_OK);
  berth_status status = berth__onnx_convert(model, &(berth__onnx_wanted){.files = &files}, graph, &err);
  check_status(status, &err);
  if (status == BERTH_OK) {
    fix_inputs(graph);
    check_plan(graph);
  }
  berth_graph_destroy(graph);
  berth__onnx_files_free(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth__onnx_model model;
  berth_error err = {BERTH_OK, ""};
  if (size > MAX_SIZE) return 0;
  berth_context *ctx = small_context();
  berth_status status = berth__onnx_parse(ctx, data, size, &model, &err);
  check_status(status, &err);
  if (status == BERTH_OK) check_model(ctx, &model);
  if (status == BERTH_OK) berth__onnx_free(&model);
  berth_context_destroy(ctx);
  return 0;
}
