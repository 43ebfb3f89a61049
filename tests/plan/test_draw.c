/* Pictures: well-formed whatever the names hold, complete, and small enough with very many buffers. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/json.h"
#include "plan/draw.h"
#include "plan/draw_facts.h"
#include "support/support.h"

/* ---- A small XML checker: tags nest, attributes are quoted, entities exist, characters are allowed -----------------
 */

typedef struct xml {
  const char *at;
  char open[16][16]; /* the names of the tags that are open */
  unsigned depth, roots;
} xml;

static void xml_wrong(const xml *x, const char *what) { fail_msg("%s at: %.60s", what, x->at); }

static void xml_character(xml *x) {
  static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
  unsigned char c = (unsigned char)*x->at;
  if (c < 0x20 && !strchr("\t\n\r", c)) xml_wrong(x, "a control character");
  if (c == '&') {
    bool known = false;
    for (size_t i = 0; i < 4; i++) known |= strncmp(x->at, entities[i], strlen(entities[i])) == 0;
    if (!known) xml_wrong(x, "an entity that does not exist");
  }
  x->at++;
}

static void xml_attributes(xml *x) {
  while (*x->at == ' ') {
    x->at++;
    const char *start = x->at;
    while (isalnum((unsigned char)*x->at) || *x->at == '-' || *x->at == ':') x->at++;
    if (x->at == start || x->at[0] != '=' || x->at[1] != '"') xml_wrong(x, "a bad attribute");
    for (x->at += 2; *x->at != '"';) {
      if (*x->at == '\0' || *x->at == '<') xml_wrong(x, "a bad attribute value");
      xml_character(x);
    }
    x->at++;
  }
}

static void xml_tag(xml *x) {
  char name[16] = "";
  bool closing = x->at[1] == '/';
  x->at += closing ? 2 : 1;
  for (size_t n = 0; isalnum((unsigned char)*x->at) && n < 15; n++) name[n] = *x->at++;
  if (name[0] == '\0') xml_wrong(x, "a tag without a name");
  if (closing) {
    if (x->depth == 0 || strcmp(x->open[--x->depth], name) != 0) xml_wrong(x, "a tag is closed that is not open");
  } else {
    xml_attributes(x);
    if (x->depth == 0) x->roots++;
    if (*x->at == '/') {
      x->at++;
    } else {
      assert_true(x->depth < 16);
      memcpy(x->open[x->depth++], name, sizeof name);
    }
  }
  if (*x->at != '>') xml_wrong(x, "a tag that does not end");
  x->at++;
}

static void check_xml(const char *text) {
  xml x = {.at = text};
  while (*x.at != '\0') {
    if (*x.at == '<') {
      xml_tag(&x);
    } else {
      if (x.depth == 0 && !isspace((unsigned char)*x.at)) xml_wrong(&x, "text outside the root");
      if (*x.at == '>') xml_wrong(&x, "a bare >");
      xml_character(&x);
    }
  }
  assert_int_equal(x.depth, 0);
  assert_int_equal(x.roots, 1);
}

/* Not with strstr, which the sanitizer makes measure the whole text at every call. */
static size_t count(const char *text, const char *part) {
  size_t n = 0, length = strlen(part);
  for (; *text != '\0'; text++) n += *text == *part && strncmp(text, part, length) == 0;
  return n;
}

/* ---- The page's data, read by the library's own strict reader ------------------------------------------------------
 */

typedef struct page_data {
  size_t n_rects;
  char names[16][256]; /* of the first rectangles, decoded */
} page_data;

static void read_rects(berth__json *json, page_data *out) {
  berth__json_token token;
  berth_error err;
  TEST_OK(berth__json_expect(json, BERTH__JSON_ARRAY_BEGIN, "rects", &token, &err));
  for (;;) {
    TEST_OK(berth__json_next(json, &token, &err));
    if (token.kind == BERTH__JSON_ARRAY_END) return;
    assert_int_equal(token.kind, BERTH__JSON_ARRAY_BEGIN);
    TEST_OK(berth__json_expect(json, BERTH__JSON_STRING, "name", &token, &err));
    size_t length;
    if (out->n_rects < 16 && token.size < 256) {
      TEST_OK(berth__json_decode(&token, out->names[out->n_rects], &length, &err));
    }
    out->n_rects++;
    for (int i = 0; i < 5; i++) TEST_OK(berth__json_expect(json, BERTH__JSON_NUMBER, "number", &token, &err));
    TEST_OK(berth__json_next(json, &token, &err));
    if (token.kind == BERTH__JSON_STRING) TEST_OK(berth__json_next(json, &token, &err));
    assert_int_equal(token.kind, BERTH__JSON_ARRAY_END);
  }
}

static page_data read_page(const char *html) {
  static const char start[] = "<script type=\"application/json\" id=\"data\">";
  page_data out = {0};
  berth_error err;
  berth__json json;
  berth__json_token token;
  const char *begin = strstr(html, start);
  assert_non_null(begin);
  begin += sizeof start - 1;
  const char *end = strstr(begin, "</script>");
  assert_non_null(end);
  berth__json_init(&json, begin, (size_t)(end - begin));
  do {
    TEST_OK(berth__json_next(&json, &token, &err));
    if (token.kind == BERTH__JSON_KEY && berth__json_is(&token, "rects")) read_rects(&json, &out);
  } while (token.kind != BERTH__JSON_END);
  return out;
}

/* ---- Drawings ------------------------------------------------------------------------------------------------------
 */

static test_buffer draw(const berth__drawing *drawing, berth_report_kind kind) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  test_buffer out = {0};
  berth_error err;
  TEST_OK(berth__draw(ctx, drawing, kind, test_buffer_write, &out, &err));
  test_context_done(ctx, &alloc);
  return out;
}

static const berth__draw_rect few[] = {
    {"w", "param f32[256]", 0, 1024, 0, 4, BERTH__DRAW_WEIGHTS},
    {"x", "input f32[16]", 1024, 64, 0, 4, BERTH__DRAW_INPUT},
    {"a", "conv f32[16]", 1088, 64, 0, 2, BERTH__DRAW_ACTIVATION},
    {"b", "relu f32[16]", 1152, 64, 1, 3, BERTH__DRAW_ACTIVATION},
    {"s", NULL, 1088, 64, 2, 3, BERTH__DRAW_SCRATCH},
    {"y", "add f32[16]", 1088, 64, 3, 4, BERTH__DRAW_OUTPUT},
    {"empty", NULL, 0, 0, 0, 4, BERTH__DRAW_CONSTANT},
    {"never", NULL, 0, 64, 2, 2, BERTH__DRAW_ACTIVATION},
};
#define N_FEW (sizeof few / sizeof few[0])
#define N_FEW_VISIBLE 6

static berth__drawing few_drawing(void) {
  static const char *const labels[] = {"conv", "relu", "add <1>", NULL};
  return (berth__drawing){
      .title = "few & small", .rects = few, .n_rects = N_FEW, .arena_size = 1216, .end = 4, .step_labels = labels};
}

static void svg_shows_every_buffer(void **state) {
  (void)state;
  berth__drawing drawing = few_drawing();
  test_buffer svg = draw(&drawing, BERTH_REPORT_SVG);
  check_xml(svg.data);
  assert_int_equal(count(svg.data, "<title>"), N_FEW_VISIBLE);
  assert_int_equal(count(svg.data, "</title></rect>"), N_FEW_VISIBLE);
  assert_non_null(strstr(svg.data, "few &amp; small"));
  assert_non_null(
      strstr(svg.data, "<title>b\n64 B (64 bytes) at 1152\nactivation, alive over [1, 3)\nrelu f32[16]</title>"));
  assert_non_null(strstr(svg.data, "add &lt;1&gt;")); /* a step's label */
  assert_non_null(strstr(svg.data, "lower bound 1.19 KiB, reached"));
  assert_non_null(strstr(svg.data, "class=\"ld\""));
  assert_non_null(strstr(svg.data, "Unshared <tspan class=\"v\">1.38 KiB</tspan>"));
  test_buffer_free(&svg);
}

/* 1,024 bytes of weights below 192 of the rest: the axis is broken; 64 below 192: it is not. */
static void svg_breaks_the_axis_for_weights(void **state) {
  (void)state;
  berth__drawing drawing = few_drawing();
  test_buffer svg = draw(&drawing, BERTH_REPORT_SVG);
  assert_non_null(strstr(svg.data, ">weights</text>\n<text class=\"e\""));
  assert_non_null(strstr(svg.data, ">+64 B</text>"));
  test_buffer_free(&svg);
  const berth__draw_rect rects[] = {{"w", NULL, 0, 16, 0, 4, BERTH__DRAW_WEIGHTS},
                                    {"a", NULL, 16, 192, 0, 4, BERTH__DRAW_ACTIVATION}};
  drawing = (berth__drawing){.title = "t", .rects = rects, .n_rects = 2, .arena_size = 208, .end = 4};
  svg = draw(&drawing, BERTH_REPORT_SVG);
  assert_null(strstr(svg.data, ">weights</text>\n<text class=\"e\""));
  assert_non_null(strstr(svg.data, ">64 B</text>"));
  test_buffer_free(&svg);
}

static void html_holds_every_buffer(void **state) {
  (void)state;
  berth__drawing drawing = few_drawing();
  test_buffer html = draw(&drawing, BERTH_REPORT_HTML);
  page_data data = read_page(html.data);
  assert_int_equal(data.n_rects, N_FEW);
  assert_string_equal(data.names[3], "b");
  assert_non_null(strstr(html.data, "[\"b\",1152,64,1,3,0,\"relu f32[16]\"]"));
  assert_non_null(
      strstr(html.data, "\"arena\":1216,\"lower\":1216,\"unshared\":1408,\"floor\":1024,\"begin\":0,\"end\":4"));
  assert_non_null(strstr(html.data, "\"load\":[[0,1152],[1,1216],[2,1216],[3,1152],[4,0]]"));
  assert_non_null(strstr(html.data, "</html>"));
  assert_null(strstr(html.data, "@DATA@"));
  test_buffer_free(&html);
}

static void html_needs_nothing_from_elsewhere(void **state) {
  (void)state;
  static const char *const outside[] = {"http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "import("};
  berth__drawing drawing = few_drawing();
  test_buffer html = draw(&drawing, BERTH_REPORT_HTML);
  for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) assert_null(strstr(html.data, outside[i]));
  test_buffer_free(&html);
}

static void names_may_hold_anything(void **state) {
  (void)state;
  static const char *const names[] = {
      "</script><script>alert(1)</script>",
      "<!-- <script>",
      "\"quotes\" 'and' \\ slashes\\",
      "a & b &amp; c &#60;",
      "]]></title></svg>",
      "line\nbreak\ttab\x01\x1f\x7f",
      "not UTF-8: \xff\xc0\x80\xed\xa0\x80 \xf0\x9f",
      "U+FFFF: \xef\xbf\xbf",
      "\xf0\x9f\x98\x80 \xc3\xa9",
      "",
      NULL,
  };
  enum {
    N = sizeof names / sizeof names[0]
  };
  berth__draw_rect rects[N];
  for (size_t i = 0; i < N; i++) {
    rects[i] = (berth__draw_rect){names[i], names[i], 64 * i, 64, 0, 1, (berth__draw_group)(i % BERTH__DRAW_GROUPS)};
  }
  berth__drawing drawing = {
      .title = names[0], .rects = rects, .n_rects = N, .arena_size = 64 * N, .end = 1, .step_labels = &names[4]};
  test_buffer svg = draw(&drawing, BERTH_REPORT_SVG), html = draw(&drawing, BERTH_REPORT_HTML);
  check_xml(svg.data);
  assert_int_equal(count(svg.data, "</title></rect>"), N);
  assert_null(strstr(svg.data, "<script"));
  page_data data = read_page(html.data);
  assert_int_equal(data.n_rects, N);
  for (size_t i = 0; i < N; i++) {
    if (i == 6 || i >= 9) continue;
    assert_string_equal(data.names[i], names[i]);
  }
  assert_non_null(strstr(data.names[6], "not UTF-8: \xef\xbf\xbd"));
  assert_string_equal(data.names[9], "#9");
  assert_string_equal(data.names[10], "#10");
  assert_int_equal(count(html.data, "</script"), 2); /* the page's own */
  assert_int_equal(count(html.data, "<script"), 2);
  assert_int_equal(count(html.data, "<!--"), 0);
  test_buffer_free(&svg);
  test_buffer_free(&html);
}

static void very_many_buffers_stay_small(void **state) {
  (void)state;
  enum {
    N = 30000
  };
  berth__draw_rect *rects = calloc(N, sizeof *rects);
  char(*names)[40] = calloc(N, sizeof *names);
  uint64_t random = 1, arena = 0;
  for (size_t i = 0; i < N; i++) {
    int64_t birth = (int64_t)i / 3;
    snprintf(names[i], sizeof names[i], "encoder.layer.%zu.attention.output", i);
    rects[i] = (berth__draw_rect){names[i],
                                  "matmul f32[128, 384]",
                                  64 * (test_random(&random) % 100000),
                                  64 * (1 + test_random(&random) % 500),
                                  birth,
                                  birth + 1 + (int64_t)(test_random(&random) % 50),
                                  BERTH__DRAW_ACTIVATION};
    if (rects[i].offset + rects[i].size > arena) arena = rects[i].offset + rects[i].size;
  }
  berth__drawing drawing = {.title = "many", .rects = rects, .n_rects = N, .arena_size = arena, .end = N / 3 + 50};
  test_buffer svg = draw(&drawing, BERTH_REPORT_SVG), html = draw(&drawing, BERTH_REPORT_HTML);
  check_xml(svg.data);
  size_t elements = count(svg.data, "</title></rect>");
  assert_true(elements <= 4000);
  assert_int_equal(elements + count(svg.data, "zM") + count(svg.data, "z\""), N); /* small ones: a path each */
  assert_true(svg.size < 3000000);
  assert_true(html.size < 5000000);
  assert_int_equal(read_page(html.data).n_rects, N);
  test_buffer_free(&svg);
  test_buffer_free(&html);
  free(rects);
  free(names);
}

static void draws_odd_packings(void **state) {
  (void)state;
  const berth__draw_rect extremes[] = {
      {"all time", NULL, 0, 64, INT64_MIN, INT64_MAX, BERTH__DRAW_ACTIVATION},
      {"all bytes", NULL, 64, UINT64_MAX - 64, INT64_MAX - 1, INT64_MAX, BERTH__DRAW_ACTIVATION}};
  const berth__draw_rect late[] = {{"late", NULL, 0, 64, INT64_MAX - 10, INT64_MAX, BERTH__DRAW_ACTIVATION}};
  const berth__draw_rect weights[] = {{"w", NULL, 0, 64, 0, 1, BERTH__DRAW_WEIGHTS}};
  const berth__drawing drawings[] = {
      {.title = NULL},
      {.title = "no steps", .rects = weights, .n_rects = 0, .arena_size = 64},
      {.title = "extremes",
       .rects = extremes,
       .n_rects = 2,
       .arena_size = UINT64_MAX,
       .begin = INT64_MIN,
       .end = INT64_MAX},
      {.title = "late", .rects = late, .n_rects = 1, .arena_size = 64, .begin = INT64_MAX - 10, .end = INT64_MAX},
      {.title = "weights alone", .rects = weights, .n_rects = 1, .arena_size = 64, .end = 1},
  };
  for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++) {
    test_buffer svg = draw(&drawings[i], BERTH_REPORT_SVG), html = draw(&drawings[i], BERTH_REPORT_HTML);
    check_xml(svg.data);
    assert_true(svg.size < 20000);
    assert_int_equal(read_page(html.data).n_rects, drawings[i].n_rects);
    test_buffer_free(&svg);
    test_buffer_free(&html);
  }
}

/* ---- Text ----------------------------------------------------------------------------------------------------------
 */

static void writes_bytes_for_people(void **state) {
  (void)state;
  static const struct {
    uint64_t bytes;
    const char *text;
  } cases[] = {{0, "0 B"},
               {1023, "1023 B"},
               {1024, "1 KiB"},
               {1536, "1.5 KiB"},
               {1300, "1.27 KiB"},
               {12345, "12.1 KiB"},
               {202 * 1024, "202 KiB"},
               {1376256, "1.31 MiB"},
               {1ull << 30, "1 GiB"},
               {1ull << 63, "8 EiB"},
               {UINT64_MAX, "16 EiB"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_context *ctx = test_context();
    berth_error err;
    test_buffer out = {0};
    berth__text text;
    berth__text_init(&text, ctx, test_buffer_write, &out);
    berth__draw_bytes(&text, cases[i].bytes);
    TEST_OK(berth__text_finish(&text, &err));
    assert_string_equal(out.data, cases[i].text);
    test_buffer_free(&out);
    berth_context_destroy(ctx);
  }
}

static void cuts_names_at_whole_characters(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  test_buffer out = {0};
  berth__text text;
  berth__text_init(&text, ctx, test_buffer_write, &out);
  berth__draw_xml(&text, "\xc3\xa9\xc3\xa8<\xc3\xa0", 4);
  berth__draw_put(&text, "|");
  berth__draw_xml(&text, "\xc3\xa9\xc3\xa8<\xc3\xa0", 3);
  berth__draw_put(&text, "|");
  berth__draw_xml(&text, "abc", 0);
  TEST_OK(berth__text_finish(&text, &err));
  assert_string_equal(out.data, "\xc3\xa9\xc3\xa8&lt;\xc3\xa0|\xe2\x80\xa6&lt;\xc3\xa0|\xe2\x80\xa6");
  test_buffer_free(&out);
  berth_context_destroy(ctx);
}

/* ---- berth_pack_draw -----------------------------------------------------------------------------------------------
 */

static void draws_a_packing(void **state) {
  (void)state;
  const berth_pack_buffer buffers[] = {
      {64, 1, -2, 3, BERTH_PACK_FREE}, {32, 1, 1, 5, BERTH_PACK_FREE}, {0, 1, 0, 9, BERTH_PACK_FREE}};
  const uint64_t offsets[] = {0, 64, BERTH_PACK_FREE};
  const char *const names[] = {"first", "second", "nothing"};
  berth_context *ctx = test_context();
  berth_error err;
  test_buffer out = {0};
  TEST_OK(berth_pack_draw(ctx, buffers, 3, offsets, names, BERTH_REPORT_SVG, test_buffer_write, &out, &err));
  check_xml(out.data);
  assert_int_equal(count(out.data, "</title></rect>"), 2);
  assert_non_null(strstr(out.data, "<title>second\n32 B (32 bytes) at 64\n"));
  test_buffer_free(&out);
  TEST_OK(berth_pack_draw(ctx, buffers, 3, offsets, NULL, BERTH_REPORT_HTML, test_buffer_write, &out, &err));
  assert_int_equal(read_page(out.data).n_rects, 3);
  assert_non_null(strstr(out.data, "[\"#1\",64,32,1,5,0]"));
  assert_non_null(strstr(out.data, "\"begin\":-2,\"end\":9"));
  test_buffer_free(&out);
  TEST_OK(berth_pack_draw(ctx, NULL, 0, NULL, NULL, BERTH_REPORT_SVG, test_buffer_write, &out, &err));
  check_xml(out.data);
  test_buffer_free(&out);
  berth_context_destroy(ctx);
}

static berth_status refuse_to_write(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
  return BERTH_IO;
}

static void refuses_bad_input(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  test_buffer out = {0};
  berth_pack_buffer buffer = {64, 1, 0, 1, BERTH_PACK_FREE};
  uint64_t offset = 0;
#define DRAW(kind, write) berth_pack_draw(ctx, &buffer, 1, &offset, NULL, kind, write, &out, &err)
  test_expect_error(DRAW(BERTH_REPORT_TEXT, test_buffer_write), BERTH_INVALID, &err, "SVG or HTML");
  test_expect_error(DRAW(BERTH_REPORT_SVG, refuse_to_write), BERTH_IO, &err, NULL);
  test_expect_error(DRAW(BERTH_REPORT_HTML, refuse_to_write), BERTH_IO, &err, NULL);
  test_expect_error(DRAW(BERTH_REPORT_SVG, NULL), BERTH_INVALID, &err, "write function");
  test_expect_error(berth_pack_draw(ctx, NULL, 1, &offset, NULL, BERTH_REPORT_SVG, test_buffer_write, &out, &err),
                    BERTH_INVALID, &err, "buffers");
  offset = BERTH_PACK_FREE;
  test_expect_error(DRAW(BERTH_REPORT_SVG, test_buffer_write), BERTH_INVALID, &err, "buffer 0 has no offset");
  offset = 0;
  buffer.lower = 2;
  test_expect_error(DRAW(BERTH_REPORT_SVG, test_buffer_write), BERTH_INVALID, &err, "reversed");
#undef DRAW
  berth__draw_rect rect = {"r", NULL, 0, 64, 0, 2, BERTH__DRAW_ACTIVATION};
  berth__drawing drawing = {.rects = &rect, .n_rects = 1, .arena_size = 64, .end = 1};
#define DRAW berth__draw(ctx, &drawing, BERTH_REPORT_SVG, test_buffer_write, &out, &err)
  test_expect_error(DRAW, BERTH_INVALID, &err, "outside the steps");
  drawing.end = 2;
  drawing.arena_size = 63;
  test_expect_error(DRAW, BERTH_INVALID, &err, "outside the arena");
  drawing.arena_size = 64;
  rect.group = BERTH__DRAW_GROUPS;
  test_expect_error(DRAW, BERTH_INVALID, &err, "group");
  drawing.begin = 3;
  test_expect_error(DRAW, BERTH_INVALID, &err, "backwards");
#undef DRAW
  assert_null(out.data);
  berth_context_destroy(ctx);
}

/* ---- No memory -----------------------------------------------------------------------------------------------------
 */

static berth_status draw_once(berth_context *ctx, berth_error *err, void *user) {
  const berth_pack_buffer buffers[] = {{64, 1, 0, 3, BERTH_PACK_FREE}, {32, 1, 1, 5, BERTH_PACK_FREE}};
  const uint64_t offsets[] = {0, 64};
  test_buffer out = {0};
  berth_status status =
      berth_pack_draw(ctx, buffers, 2, offsets, NULL, *(berth_report_kind *)user, test_buffer_write, &out, err);
  test_buffer_free(&out);
  return status;
}

static void survives_failed_allocations(void **state) {
  (void)state;
  for (berth_report_kind kind = BERTH_REPORT_SVG; kind <= BERTH_REPORT_HTML; kind++) {
    assert_true(test_fail_each_allocation(draw_once, &kind) >= 5);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(svg_shows_every_buffer),
      cmocka_unit_test(svg_breaks_the_axis_for_weights),
      cmocka_unit_test(html_holds_every_buffer),
      cmocka_unit_test(html_needs_nothing_from_elsewhere),
      cmocka_unit_test(names_may_hold_anything),
      cmocka_unit_test(very_many_buffers_stay_small),
      cmocka_unit_test(draws_odd_packings),
      cmocka_unit_test(writes_bytes_for_people),
      cmocka_unit_test(cuts_names_at_whole_characters),
      cmocka_unit_test(draws_a_packing),
      cmocka_unit_test(refuses_bad_input),
      cmocka_unit_test(survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
