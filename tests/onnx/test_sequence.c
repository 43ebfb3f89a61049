/* Sequences of tensors, which are lists when a file is read. Expected values are worked out by hand. */
#include "onnx_writer.h"
#include "support.h"

typedef struct file {
  pb graph;
  const int64_t *dims;
} file;

static void begin(file *f, const int64_t dims[2]) {
  *f = (file){.dims = dims};
  pb value = onnx_value("x", ONNX_F32, 2, dims);
  pb_text(&f->graph, 2, "sequences");
  pb_put(&f->graph, GRAPH_INPUT, &value);
  onnx_add_output(&f->graph, "y");
}

/* An initializer of i64; rank 0 has one number. */
static void integers(file *f, const char *name, uint32_t rank, const int64_t *values, int64_t n) {
  pb tensor = onnx_tensor(name, ONNX_I64, rank, &n);
  pb_bytes(&tensor, TENSOR_RAW, values, (size_t)n * sizeof *values);
  pb_put(&f->graph, GRAPH_INITIALIZER, &tensor);
}

static berth_status load(file *f, berth_context *ctx, berth_graph **out, berth_error *err) {
  pb model = onnx_model(&f->graph);
  test_write_file(test_path("sequences.onnx"), model.data, model.size);
  pb_free(&model);
  return berth_graph_load(ctx, test_path("sequences.onnx"), out, err);
}

/* x counts from 0; y is read. */
static void run(file *f, float *y, size_t n) {
  float x[64];
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_error err = {BERTH_OK, ""};
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  TEST_OK(load(f, ctx, &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, (size_t)(f->dims[0] * f->dims[1]) * sizeof *x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, n * sizeof *y, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void refuse(file *f, const char *why) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  assert_int_not_equal(load(f, ctx, &graph, &err), BERTH_OK);
  if (strstr(err.message, why) == NULL) fail_msg("'%s' does not say '%s'", err.message, why);
  test_context_done(ctx, &alloc);
}

static const int64_t five_by_two[] = {5, 2};

/* Rows 0 and 1, 2 and 3, 4; the last one and the first, joined. */
static void tensors_are_split_and_joined(void **state) {
  const int64_t two = 2, last = -1, first = 0;
  const float expected[] = {8, 9, 0, 1, 2, 3};
  float y[6];
  file f;
  (void)state;
  begin(&f, five_by_two);
  integers(&f, "two", 0, &two, 1);
  integers(&f, "last", 0, &last, 1);
  integers(&f, "first", 0, &first, 1);
  onnx_add_node(&f.graph, "SplitToSequence", "x,two", "s");
  onnx_add_node(&f.graph, "SequenceAt", "s,last", "a");
  onnx_add_node(&f.graph, "SequenceAt", "s,first", "b");
  onnx_add_node(&f.graph, "SequenceConstruct", "a,b", "t");
  onnx_add_node(&f.graph, "ConcatFromSequence", "t", "y");
  run(&f, y, 6);
  assert_memory_equal(y, expected, sizeof y);
}

/* Columns without their axis, one put before the others and one taken away, stacked along a new axis. */
static void tensors_are_inserted_and_erased(void **state) {
  const int64_t front = 0, second = 1;
  const float expected[] = {1, 1, 3, 3, 5, 5, 7, 7, 9, 9}; /* column 1, twice */
  float y[10];
  file f;
  (void)state;
  begin(&f, five_by_two);
  integers(&f, "front", 0, &front, 1);
  integers(&f, "second", 0, &second, 1);
  pb split = onnx_node("SplitToSequence", "x", "s");
  onnx_attr_int(&split, "axis", 1);
  onnx_attr_int(&split, "keepdims", 0);
  pb_put(&f.graph, GRAPH_NODE, &split);
  onnx_add_node(&f.graph, "SequenceAt", "s,second", "column");
  onnx_add_node(&f.graph, "SequenceInsert", "s,column,front", "more");
  onnx_add_node(&f.graph, "SequenceErase", "more,second", "fewer");
  onnx_add_node(&f.graph, "Identity", "fewer", "same");
  pb join = onnx_node("ConcatFromSequence", "same", "y");
  onnx_attr_int(&join, "axis", 1);
  onnx_attr_int(&join, "new_axis", 1);
  pb_put(&f.graph, GRAPH_NODE, &join);
  run(&f, y, 10);
  assert_memory_equal(y, expected, sizeof y);
}

static void a_piece_may_be_longer_than_all_there_is(void **state) {
  const int64_t most = INT64_MAX;
  const float expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  float y[10];
  file f;
  (void)state;
  begin(&f, five_by_two);
  integers(&f, "most", 0, &most, 1);
  onnx_add_node(&f.graph, "SplitToSequence", "x,most", "s");
  onnx_add_node(&f.graph, "ConcatFromSequence", "s", "y");
  run(&f, y, 10);
  assert_memory_equal(y, expected, sizeof y);
}

/* From an empty one; its length is a number that shapes can follow from. */
static void sequences_grow_from_nothing(void **state) {
  const int64_t sizes[] = {1, 4};
  const float expected[] = {3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  float y[11];
  file f;
  (void)state;
  begin(&f, five_by_two);
  integers(&f, "sizes", 1, sizes, 2);
  onnx_add_node(&f.graph, "SequenceEmpty", "", "none");
  onnx_add_node(&f.graph, "SequenceInsert", "none,x", "one");
  onnx_add_node(&f.graph, "SplitToSequence", "x,sizes", "parts");
  onnx_add_node(&f.graph, "ConcatFromSequence", "parts", "whole");
  onnx_add_node(&f.graph, "SequenceInsert", "one,whole", "two");
  onnx_add_node(&f.graph, "SequenceInsert", "two,x", "three");
  onnx_add_node(&f.graph, "SequenceLength", "three", "length");
  pb cast = onnx_node("Cast", "length", "count");
  onnx_attr_int(&cast, "to", ONNX_F32);
  pb_put(&f.graph, GRAPH_NODE, &cast);
  const int64_t flat = -1;
  integers(&f, "flat", 1, &flat, 1);
  onnx_add_node(&f.graph, "Reshape", "count,flat", "head");
  onnx_add_node(&f.graph, "Reshape", "whole,flat", "tail");
  pb join = onnx_node("Concat", "head,tail", "y");
  onnx_attr_int(&join, "axis", 0);
  pb_put(&f.graph, GRAPH_NODE, &join);
  run(&f, y, 11);
  assert_memory_equal(y, expected, sizeof y);
}

static void what_cannot_be_a_list_is_said(void **state) {
  static const int64_t open_rows[] = {-1, 2};
  const int64_t far = 7, two = 2;
  file f;
  (void)state;
  begin(&f, open_rows);
  integers(&f, "two", 0, &two, 1);
  onnx_add_node(&f.graph, "SplitToSequence", "x,two", "s");
  onnx_add_node(&f.graph, "ConcatFromSequence", "s", "y");
  refuse(&f, "an extent that the file leaves open");

  begin(&f, five_by_two);
  integers(&f, "far", 0, &far, 1);
  onnx_add_node(&f.graph, "SplitToSequence", "x", "s");
  onnx_add_node(&f.graph, "SequenceAt", "s,far", "y");
  refuse(&f, "place 7 is outside of a sequence with 5");

  begin(&f, five_by_two);
  onnx_add_node(&f.graph, "SplitToSequence", "x", "s");
  onnx_add_node(&f.graph, "Relu", "s", "y");
  refuse(&f, "operand 0 is a sequence");

  begin(&f, five_by_two);
  onnx_add_node(&f.graph, "SequenceConstruct", "x", "y");
  refuse(&f, "output 'y' is a sequence");

  begin(&f, five_by_two);
  onnx_add_node(&f.graph, "SequenceLength", "x", "y");
  refuse(&f, "operand 0 is not a sequence");

  begin(&f, five_by_two);
  integers(&f, "two", 0, &two, 1);
  onnx_add_node(&f.graph, "SplitToSequence", "x,two", "s"); /* two of two rows, and one of one */
  onnx_add_node(&f.graph, "ReduceSum", "x", "sum");
  pb cast = onnx_node("Cast", "sum", "place");
  onnx_attr_int(&cast, "to", ONNX_I64);
  pb_put(&f.graph, GRAPH_NODE, &cast);
  onnx_add_node(&f.graph, "SequenceAt", "s,place", "y");
  refuse(&f, "tensors 0 and 2 of a sequence differ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_split_and_joined),
      cmocka_unit_test(tensors_are_inserted_and_erased),
      cmocka_unit_test(a_piece_may_be_longer_than_all_there_is),
      cmocka_unit_test(sequences_grow_from_nothing),
      cmocka_unit_test(what_cannot_be_a_list_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
