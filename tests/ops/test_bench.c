/* The bench itself: wrong case files are refused, and wrong results are noticed. */
#include "direct.h"
#include "support.h"

/* ---- Files ---------------------------------------------------------------------------------------------------- */

/* The folder of the test's own files holds only what this writes. */
static int load_text(op_cases *cases, const char *text) {
  char folder[4096];
  const char *path = test_path("one.case");
  test_write_file(path, text, strlen(text));
  size_t length = (size_t)(strrchr(path, '/') - path);
  memcpy(folder, path, length);
  folder[length] = '\0';
  memset(cases, 0, sizeof *cases);
  return op_cases_load(cases, folder);
}

static void files_are_read(void **state) {
  op_cases cases;
  (void)state;
  assert_true(load_text(&cases,
                        "# a comment\n\ncase one\nop top_k\nattr k = -2\nattr list = [1, 2]\nattr f = 1.5\n"
                        "attr fs = [inf, 2]\nattr s = \"same\"\nin f32[2,1] = nan -0x1p-3\nin none\nin i8[0] =\n"
                        "out bool[] = 1\nout i64[1] = -9223372036854775808\ntol 0.5 0.25\nend\n"
                        "case two\nop add\nerror \"part of it\"\nend\n"));
  assert_int_equal(cases.count, 2);
  const op_case *c = &cases.items[0];
  assert_string_equal(c->name, "one");
  assert_string_equal(c->op, "top_k");
  assert_int_equal(c->n_attrs, 5);
  assert_int_equal(c->attrs[0].i, -2);
  assert_int_equal(c->attrs[1].ints[1], 2);
  assert_true(c->attrs[2].f == 1.5 && c->attrs[3].floats[1] == 2.0);
  assert_string_equal(c->attrs[4].s, "same");
  assert_int_equal(c->n_in, 3);
  assert_true(((const float *)c->in[0].data)[1] == -0.125f);
  assert_int_equal(c->in[1].type, BERTH_TYPE_NONE);
  assert_int_equal(c->in[2].count, 0);
  assert_int_equal(c->out[0].rank, 0);
  assert_true(((const int64_t *)c->out[1].data)[0] == INT64_MIN);
  assert_true(c->absolute == 0.5 && c->relative == 0.25);
  assert_string_equal(cases.items[1].error, "part of it");
  op_cases_free(&cases);
}

static void wrong_files_are_refused(void **state) {
  static const char *const wrong[] = {
      "op add\n",
      "case a\n",
      "case a\ncase b\n",
      "case a\nend\n",
      "case a\nop add\nend\n",
      "case a\nop add\nout f32[1] = 1\nerror \"x\"\nend\n",
      "case a\nop add\nnonsense\nend\n",
      "case a\nop add\nin f31[1] = 1\nend\n",
      "case a\nop add\nin f32[-1] = 1\nend\n",
      "case a\nop add\nin f32[2] = 1\nend\n",
      "case a\nop add\nin f32[1] = 1 2\nend\n",
      "case a\nop add\nin f32[1] = x\nend\n",
      "case a\nop add\nin i8[1] = 128\nend\n",
      "case a\nop add\nin u32[1] = -1\nend\n",
      "case a\nop add\nin bool[1] = 2\nend\n",
      "case a\nop add\nin f32[1,1,1,1,1,1,1,1,1] = 1\nend\n",
      "case a\nop add\nattr k\nend\n",
      "case a\nop add\nattr k = z\nend\n",
      "case a\nop add\nattr k = [1, z]\nend\n",
      "case a\nop add\ntol 1\nend\n",
      "",
  };
  (void)state;
  for (size_t i = 0; i + 1 < sizeof wrong / sizeof *wrong; i++) {
    op_cases cases;
    assert_false(load_text(&cases, wrong[i]));
    op_cases_free(&cases);
  }
  op_cases none = {0};
  assert_false(op_cases_load(&none, "no/such/folder"));
}

/* ---- Results -------------------------------------------------------------------------------------------------- */

static int holds(const char *text, int (*check)(const op_case *c)) {
  op_cases cases;
  assert_true(load_text(&cases, text));
  int result = check(&cases.items[0]);
  op_cases_free(&cases);
  return result;
}

static void wrong_values_are_noticed(void **state) {
  (void)state;
  assert_true(holds("case a\nop neg\nin f32[2] = 1 nan\nout f32[2] = -1 nan\nend\n", direct_run));
  assert_false(holds("case a\nop neg\nin f32[2] = 1 2\nout f32[2] = -1 -2.001\nend\n", direct_run));
  assert_true(holds("case a\nop neg\nin f32[2] = 1 2\nout f32[2] = -1 -2.001\ntol 0 1e-3\nend\n", direct_run));
  assert_false(holds("case a\nop neg\nin f32[1] = 1\nout f32[1] = nan\ntol 9 9\nend\n", direct_run));
  assert_false(holds("case a\nop neg\nin f32[1] = 1e38\nout f32[1] = -inf\ntol 9 9\nend\n", direct_run));
  assert_false(holds("case a\nop neg\nin i32[1] = 1\nout i32[1] = 1\ntol 9 9\nend\n", direct_run));
}

static void wrong_shapes_and_types_are_noticed(void **state) {
  (void)state;
  assert_true(holds("case a\nop neg\nin f32[1] = 1\nout f32[1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop neg\nin f32[1] = 1\nout f32[1,1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop neg\nin f32[1] = 1\nout f64[1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop neg\nin f32[1] = 1\nout f32[2] = -1 -1\nend\n", direct_infer_open));
  assert_false(holds("case a\nop nothing\nin f32[1] = 1\nout f32[1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop neg\nout f32[1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop cast\nin f32[1] = 1\nout f32[1] = 1\nend\n", direct_infer));
  assert_false(holds("case a\nop neg\nattr x = 1\nin f32[1] = 1\nout f32[1] = -1\nend\n", direct_infer));
  assert_false(holds("case a\nop clamp\nattr min = \"x\"\nin f32[1] = 1\nout f32[1] = 1\nend\n", direct_infer));
}

static void wrong_errors_are_noticed(void **state) {
  (void)state;
  assert_true(holds("case a\nop exp\nin i32[1] = 1\nerror \"type i32\"\nend\n", direct_infer));
  assert_false(holds("case a\nop exp\nin i32[1] = 1\nerror \"rank\"\nend\n", direct_infer));
  assert_false(holds("case a\nop exp\nin f32[1] = 1\nerror \"type\"\nend\n", direct_infer));
}

static void wrong_views_are_noticed(void **state) {
  (void)state;
  assert_true(holds("case a\nop identity\nin f32[2] = 1 2\nout f32[2] = 1 2\nend\n", direct_view));
  assert_false(holds("case a\nop identity\nin f32[2] = 1 2\nout f32[2] = 2 1\nend\n", direct_view));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_read),           cmocka_unit_test(wrong_files_are_refused),
      cmocka_unit_test(wrong_values_are_noticed), cmocka_unit_test(wrong_shapes_and_types_are_noticed),
      cmocka_unit_test(wrong_errors_are_noticed), cmocka_unit_test(wrong_views_are_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
