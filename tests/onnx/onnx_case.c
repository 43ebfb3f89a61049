#include "onnx_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "import/onnx/tensor.h"
#include "ops/op.h"
#include "run_model.h"

#define MAX_TENSORS 32

typedef struct test_case {
  const char *folder;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  run_input in[MAX_TENSORS]; /* in the model's order */
  size_t n_in;
  berth_error err;
} test_case;

static bool pb_path(const test_case *t, const char *kind, size_t index, char *path, size_t size) {
  snprintf(path, size, "%s/test_data_set_0/%s_%zu.pb", t->folder, kind, index);
  return access(path, R_OK) == 0;
}

/* A file may hold an OptionalProto with a tensor in field 3; a TensorProto has no message there. */
static berth__span tensor_in(berth__span message) {
  berth__span rest = message;
  berth__field field;
  bool more = true;
  while (berth__wire_next(&rest, &field, &more, NULL) == BERTH_OK && more)
    if (field.number == 3 && field.type == BERTH__WIRE_BYTES) return field.bytes;
  return message;
}

/* The data is in memory from malloc. */
static berth_status load_pb(test_case *t, const char *path, berth_array *out) {
  berth__mapping file;
  berth__onnx_tensor tensor;
  berth__onnx_files files = {.ctx = t->ctx};
  const void *data = NULL;
  void *owned = NULL;
  size_t size = 0;
  BERTH__TRY(berth__file_map(path, &file, &t->err));
  berth_status status = berth__onnx_parse_tensor(tensor_in((berth__span){file.data, file.size}), &tensor, &t->err);
  if (status == BERTH_OK) status = berth__onnx_elements(&tensor, &files, &out->type, &data, &size, &owned, &t->err);
  if (status == BERTH_OK) {
    out->rank = tensor.rank;
    memcpy(out->dim, tensor.dim, sizeof out->dim);
    out->size = size;
    out->data = malloc(size + 1);
    if (size != 0) memcpy(out->data, data, size);
  }
  berth__free(t->ctx, owned);
  berth__file_unmap(&file);
  return status;
}

static berth_status load_inputs(test_case *t) {
  char path[4096];
  for (; t->n_in < MAX_TENSORS && pb_path(t, "input", t->n_in, path, sizeof path); t->n_in++) {
    if (berth_graph_input_at(t->graph, (uint32_t)t->n_in) == BERTH_VALUE_NONE) break;
    BERTH__TRY(load_pb(t, path, &t->in[t->n_in].array));
  }
  for (size_t i = 0; i < t->n_in; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    BERTH__TRY(berth_graph_value(t->graph, berth_graph_input_at(t->graph, (uint32_t)i), &info, &t->err));
    t->in[i].name = info.name;
  }
  return BERTH_OK;
}

/* ONNX's own tolerance is rtol 1e-3; halves are rounded more coarsely. */
static bool is_close(berth_type type, double a, double b) {
  double slack = type == BERTH_F16 || type == BERTH_BF16 ? 1e-2 : 1e-6;
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b || fabs(a - b) <= slack + 1e-3 * fabs(b);
}

static onnx_verdict compare(test_case *t, uint32_t index, const berth_array *expected, char *message, size_t size) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  const berth_graph *graph = berth_plan_graph(berth_session_plan(t->session));
  const char *name = berth_graph_output_name(t->graph, index);
  if (berth_graph_value(graph, berth_graph_output_at(graph, index), &info, &t->err) != BERTH_OK) return ONNX_FAIL;
  int64_t dim[BERTH_MAX_RANK];
  uint32_t rank = 0;
  if (berth_session_output_shape(t->session, index, &rank, dim, &t->err) != BERTH_OK) return ONNX_FAIL;
  bool same = info.type == expected->type && rank == expected->rank;
  for (uint32_t d = 0; same && d < rank; d++) same = dim[d] == expected->dim[d];
  if (!same) {
    snprintf(message, size, "output '%s' has another type or shape than expected (%s rank %u, expected %s rank %u)",
             name, berth_type_name(info.type), rank, berth_type_name(expected->type), expected->rank);
    return ONNX_FAIL;
  }
  void *data = malloc(expected->size + 1);
  onnx_verdict verdict = ONNX_PASS;
  if (berth_session_read_at(t->session, index, data, expected->size, &t->err) != BERTH_OK) {
    snprintf(message, size, "%s", t->err.message);
    verdict = ONNX_FAIL;
  }
  berth_tensor a = {.data = data, .type = info.type}, b = {.data = expected->data, .type = info.type};
  for (int64_t i = 0; verdict == ONNX_PASS && i < (int64_t)(expected->size / berth_type_size(info.type)); i++) {
    bool is_float = berth__type_is_float(info.type);
    double x = is_float ? berth__load_f64(&a, i) : (double)berth__load_i64(&a, i);
    double y = is_float ? berth__load_f64(&b, i) : (double)berth__load_i64(&b, i);
    if (is_float ? is_close(info.type, x, y) : berth__load_i64(&a, i) == berth__load_i64(&b, i)) continue;
    snprintf(message, size, "output '%s': element %lld is %.9g, expected %.9g", name, (long long)i, x, y);
    verdict = ONNX_FAIL;
  }
  free(data);
  return verdict;
}

/* ONNX 1.12's files say uint16 where they hold the bits of bfloat16. */
static berth_type stored_type(const test_case *t, uint32_t output) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  info.type = BERTH_U16;
  berth_graph_value(t->graph, berth_graph_output_at(t->graph, output), &info, NULL);
  return info.type == BERTH_BF16 ? BERTH_BF16 : BERTH_U16;
}

static onnx_verdict compare_outputs(test_case *t, char *message, size_t size) {
  char path[4096];
  onnx_verdict verdict = ONNX_PASS;
  for (uint32_t i = 0; i < berth_graph_n_outputs(t->graph) && verdict == ONNX_PASS; i++) {
    berth_array expected = {0};
    if (!pb_path(t, "output", i, path, sizeof path)) break;
    if (load_pb(t, path, &expected) != BERTH_OK) {
      snprintf(message, size, "%s", t->err.message);
      return ONNX_FAIL;
    }
    if (expected.type == BERTH_U16) expected.type = stored_type(t, i);
    verdict = compare(t, i, &expected, message, size);
    free(expected.data);
  }
  return verdict;
}

onnx_verdict onnx_case_run(const char *folder, char *message, size_t message_size) {
  test_case t = {.folder = folder};
  run_dims dims;
  char path[4096];
  onnx_verdict verdict = ONNX_FAIL;
  message[0] = '\0';
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  berth_status status = berth_context_create(NULL, &t.ctx, &t.err);
  if (status == BERTH_OK) status = berth_graph_load(t.ctx, path, &t.graph, &t.err);
  if (status == BERTH_OK) status = load_inputs(&t);
  if (status == BERTH_OK) status = run_model(t.graph, t.in, t.n_in, &dims, &t.session, &t.err);
  if (status == BERTH_OK)
    verdict = compare_outputs(&t, message, message_size);
  else
    snprintf(message, message_size, "%s", t.err.message);
  if (status == BERTH_UNSUPPORTED) verdict = ONNX_UNSUPPORTED;
  for (size_t i = 0; i < MAX_TENSORS; i++) free(t.in[i].array.data);
  berth_session_destroy(t.session);
  berth_graph_destroy(t.graph);
  berth_context_destroy(t.ctx);
  return verdict;
}

onnx_verdict onnx_case_run_apart(const char *folder, char *message, size_t message_size) {
  int ends[2];
  message[0] = '\0';
  if (pipe(ends) != 0) return ONNX_FAIL;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(300); /* a hang, not a slow machine */
    onnx_verdict verdict = onnx_case_run(folder, message, message_size);
    if (write(ends[1], message, strlen(message)) < 0) _exit(ONNX_FAIL);
    exit((int)verdict); /* exit, so that leaks are reported */
  }
  close(ends[1]);
  size_t used = 0;
  ssize_t n;
  while (used + 1 < message_size && (n = read(ends[0], message + used, message_size - 1 - used)) > 0) used += (size_t)n;
  message[used] = '\0';
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && (WEXITSTATUS(status) == ONNX_PASS || WEXITSTATUS(status) == ONNX_UNSUPPORTED))
    return (onnx_verdict)WEXITSTATUS(status);
  if (!WIFEXITED(status)) snprintf(message, message_size, "it crashed (signal %d)", WTERMSIG(status));
  return ONNX_FAIL;
}
