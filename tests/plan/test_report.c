/* Reports: the text of a small plan to the letter, CSV that other tools read, pictures that are whole. */
#include <stdio.h>
#include <stdlib.h>

#include "plan/planning.h"
#include "plan/random_graph.h"

#define GRAPH                                                                                                \
  "input %in : f32[20]\nparam %w : f32[20]\nconst %k : f32[] = [2]\n%zz = mul(%in, %w)\n%b = add(%zz, %k)\n" \
  "%v = reshape(%b) {shape = [4, 5]}\n%s = softmax(%v)\n%a = exp(%s)\noutput \"a\" = %a"

static test_buffer report(const berth_plan *plan, berth_report_kind kind) {
  test_buffer text = {0};
  berth_error err;
  TEST_OK(berth_plan_report(plan, kind, test_buffer_write, &text, &err));
  assert_non_null(text.data);
  return text;
}

/* No two activations live at once, so that every one lies right after the weights whatever the packer does. */
static void test_text(void **state) {
  const berth_plan *plan = plan_text(*state,
                                     "input %in : f32[20]\nparam %w : f32[20]\nconst %k : f32[] = [2]\n"
                                     "%zz = exp(%in)\n%small = reduce_sum(%in)\n%b = exp(%in)\n%y = add(%in, %w)\n"
                                     "%v = reshape(%y) {shape = [4, 5]}\noutput \"v\" = %v",
                                     BERTH_PLAN_INPUTS_OUTSIDE);
  test_buffer text = report(plan, BERTH_REPORT_TEXT);
  assert_int_equal(strcmp(text.data,
                          "# arena_size=272 total_unshared=640 saved=368\n"
                          "# offset\tsize\tnode\n"
                          "0\t80\tw\n"
                          "128\t4\tk\n"
                          "192\t4\tsmall\n"
                          "192\t80\tb\n"
                          "192\t80\ty\n"
                          "192\t80\tzz\n"),
                   0);
  test_buffer_free(&text);
}

/* Whatever the plan: the rows are sorted by offset, size and name, and there is one for each buffer. */
static void test_text_is_sorted(void **state) {
  fixture *f = *state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    berth_graph *graph = random_graph(f->ctx, seed, 50);
    berth_plan *plan = make_plan(graph, NULL);
    test_buffer text = report(plan, BERTH_REPORT_TEXT);
    unsigned long long offset = 0, size = 0;
    char name[128] = "";
    size_t rows = 0;
    for (char *line = strtok(text.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
      unsigned long long next_offset, next_size;
      char next_name[128];
      if (line[0] == '#') continue;
      assert_int_equal(sscanf(line, "%llu\t%llu\t%127s", &next_offset, &next_size, next_name), 3);
      bool ordered = next_offset != offset ? next_offset > offset
                     : next_size != size   ? next_size > size
                                           : strcmp(next_name, name) > 0;
      assert_true(ordered || rows == 0);
      offset = next_offset;
      size = next_size;
      strcpy(name, next_name);
      rows++;
    }
    assert_int_equal(rows, test_plan_info(plan).n_buffers);
    test_buffer_free(&text);
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
}

/* ---- CSV ---- */

typedef struct csv_row {
  char id[128];
  long long lower, upper;
  unsigned long long size, offset;
} csv_row;

static size_t read_csv(char *text, csv_row *rows, size_t most) {
  size_t n = 0;
  char *line = strtok(text, "\n");
  assert_string_equal(line, "id,lower,upper,size,offset");
  while ((line = strtok(NULL, "\n")) != NULL) {
    assert_true(n < most);
    csv_row *row = &rows[n++];
    int used = 0;
    assert_int_equal(sscanf(line, "%127[^,],%lld,%lld,%llu,%llu%n", row->id, &row->lower, &row->upper, &row->size,
                            &row->offset, &used),
                     5);
    assert_int_equal(line[used], '\0');
    assert_true(row->lower < row->upper);
  }
  return n;
}

static void assert_no_overlap(const csv_row *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) {
      const csv_row *a = &rows[i], *b = &rows[k];
      assert_string_not_equal(a->id, b->id);
      bool in_time = a->lower < b->upper && b->lower < a->upper;
      if (in_time && a->offset < b->offset + b->size && b->offset < a->offset + a->size)
        fail_msg("'%s' and '%s' overlap", a->id, b->id);
    }
  }
}

static void test_csv(void **state) {
  fixture *f = *state;
  static csv_row rows[400];
  for (uint64_t seed = 1; seed <= 20; seed++) {
    berth_graph *graph = random_graph(f->ctx, seed, 50);
    berth_plan_desc desc = random_options(seed);
    berth_plan *plan = make_plan(graph, &desc);
    test_buffer text = report(plan, BERTH_REPORT_CSV);
    size_t n = read_csv(text.data, rows, 400);
    uint64_t end = 0;
    assert_int_equal(n, test_plan_info(plan).n_buffers);
    assert_no_overlap(rows, n);
    for (size_t i = 0; i < n; i++)
      if (rows[i].offset + rows[i].size > end) end = rows[i].offset + rows[i].size;
    assert_int_equal(end, berth_plan_arena_size(plan));
    test_buffer_free(&text);
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
}

/* Names that would break a line or a field. */
static void test_names_that_are_awkward(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_value x, out;
  static const char *const names[] = {"a,b", "a_b", "a\"b", "tab\tnewline\n", "<&>", "\xff"};
  TEST_OK(berth_graph_create(f->ctx, "names <>&\" \n", &f->graph, &err));
  TEST_OK(berth_graph_input(f->graph, "x", BERTH_F32, BERTH_SHAPE(4), &x, &err));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    TEST_OK(berth_graph_add(f->graph, "exp", &x, 1, NULL, 0, &out, 1, &err));
    TEST_OK(berth_graph_rename(f->graph, out, names[i], &err));
    TEST_OK(berth_graph_output(f->graph, names[i], out, &err));
  }
  const berth_plan *plan = plan_again(f, 0);
  csv_row rows[16];
  test_buffer text = report(plan, BERTH_REPORT_CSV);
  assert_int_equal(read_csv(text.data, rows, 16), 7);
  assert_no_overlap(rows, 7);
  test_buffer_free(&text);
  text = report(plan, BERTH_REPORT_TEXT);
  size_t lines = 0;
  for (const char *c = text.data; *c != '\0'; c++) lines += *c == '\n';
  assert_int_equal(lines, 2 + 7);
  test_buffer_free(&text);
}

/* ---- Pictures ---- */

/* Tags are closed in the order in which they were opened. Good enough for SVG that we write ourselves. */
static void assert_well_formed(const char *text) {
  char open[64][24];
  size_t depth = 0;
  for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
    if (at[1] == '?' || at[1] == '!') continue;
    bool closes = at[1] == '/';
    size_t length = strcspn(at + 1 + closes, " >/\n");
    char name[24];
    assert_true(length > 0 && length < sizeof name);
    memcpy(name, at + 1 + closes, length);
    name[length] = '\0';
    const char *end = at;
    bool quoted = false;
    while (*end != '\0' && (quoted || *end != '>')) quoted ^= *end++ == '"';
    assert_int_equal(*end, '>');
    if (closes) {
      assert_true(depth > 0);
      assert_string_equal(open[--depth], name);
    } else if (end[-1] != '/') {
      assert_true(depth < 64);
      strcpy(open[depth++], name);
    }
    if (!closes && (strcmp(name, "style") == 0 || strcmp(name, "script") == 0)) { /* their text is no markup */
      char close[32];
      snprintf(close, sizeof close, "</%s>", name);
      at = strstr(end, close);
      assert_non_null(at);
      at--;
      continue;
    }
    at = end - 1;
  }
  assert_int_equal(depth, 0);
}

static void test_pictures(void **state) {
  const berth_plan *plan =
      plan_text(*state, GRAPH "\n%att = attention(%v, %v, %v) {heads = 1}\noutput \"att\" = %att", 0);
  test_buffer svg = report(plan, BERTH_REPORT_SVG);
  assert_well_formed(svg.data);
  assert_non_null(strstr(svg.data, "<svg"));
  const char *names[] = {"in", "w", "k", "zz", "att", "att:scratch"};
  test_buffer html = report(plan, BERTH_REPORT_HTML);
  assert_non_null(strstr(html.data, "<html"));
  assert_non_null(strstr(html.data, "</html>"));
  for (size_t i = 0; i < 6; i++) {
    assert_non_null(strstr(svg.data, names[i]));
    assert_non_null(strstr(html.data, names[i]));
  }
  assert_null(strstr(html.data, "src=\"http")); /* in one file */
  test_buffer_free(&svg);
  test_buffer_free(&html);
}

static void test_guards_are_drawn(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, GRAPH);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.guard = BERTH_GUARD_AUTO;
  f->plan = make_plan(f->graph, &desc);
  test_buffer svg = report(f->plan, BERTH_REPORT_SVG);
  assert_well_formed(svg.data);
  assert_non_null(strstr(svg.data, "guard"));
  test_buffer_free(&svg);
}

static void test_plans_of_nothing(void **state) {
  const berth_plan *plan = plan_text(*state, "input %in : f32[0]\noutput \"y\" = %in", BERTH_PLAN_INPUTS_OUTSIDE);
  test_buffer text = report(plan, BERTH_REPORT_TEXT);
  assert_string_equal(text.data, "# arena_size=0 total_unshared=0 saved=0\n# offset\tsize\tnode\n");
  test_buffer_free(&text);
  text = report(plan, BERTH_REPORT_CSV);
  assert_string_equal(text.data, "id,lower,upper,size,offset\n");
  test_buffer_free(&text);
  text = report(plan, BERTH_REPORT_SVG);
  assert_well_formed(text.data);
  test_buffer_free(&text);
}

/* ---- Writers ---- */

typedef struct stubborn {
  size_t calls, accept;
  berth_status status;
} stubborn;

static berth_status write_stubborn(void *user, const char *text, size_t size) {
  stubborn *s = user;
  assert_true(text != NULL && size > 0);
  return s->calls++ < s->accept ? BERTH_OK : s->status;
}

static void test_writers_that_fail(void **state) {
  fixture *f = *state;
  f->graph = random_graph(f->ctx, 3, 300);
  f->plan = make_plan(f->graph, NULL);
  for (int kind = BERTH_REPORT_TEXT; kind <= BERTH_REPORT_HTML; kind++) {
    stubborn all = {.accept = SIZE_MAX};
    berth_error err;
    TEST_OK(berth_plan_report(f->plan, (berth_report_kind)kind, write_stubborn, &all, &err));
    assert_true(all.calls >= 1);
    for (size_t accept = 0; accept < all.calls; accept++) {
      stubborn some = {.accept = accept, .status = accept % 2 ? BERTH_IO : BERTH_INFEASIBLE};
      berth_status status = berth_plan_report(f->plan, (berth_report_kind)kind, write_stubborn, &some, &err);
      test_expect_error(status, some.status, &err, NULL);
      assert_int_equal(some.calls, accept + 1); /* it stops there */
    }
  }
}

static void test_wrong_arguments(void **state) {
  const berth_plan *plan = plan_text(*state, GRAPH, 0);
  berth_error err;
  test_buffer text = {0};
  test_expect_error(berth_plan_report(NULL, BERTH_REPORT_TEXT, test_buffer_write, &text, &err), BERTH_INVALID, &err,
                    NULL);
  test_expect_error(berth_plan_report(plan, BERTH_REPORT_TEXT, NULL, &text, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_report(plan, (berth_report_kind)9, test_buffer_write, &text, &err), BERTH_INVALID, &err,
                    "kind 9");
  test_buffer_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_text),
      PLAN_TEST(test_text_is_sorted),
      PLAN_TEST(test_csv),
      PLAN_TEST(test_names_that_are_awkward),
      PLAN_TEST(test_pictures),
      PLAN_TEST(test_guards_are_drawn),
      PLAN_TEST(test_plans_of_nothing),
      PLAN_TEST(test_writers_that_fail),
      PLAN_TEST(test_wrong_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
