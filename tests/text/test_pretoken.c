/* Code points, and how texts are split into words. */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"
#include "text/pretoken.h"
#include "text/unicode.h"

static void utf8_is_read_and_written(void **state) {
  (void)state;
  static const uint32_t points[] = {0, 'a', 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF};
  for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
    char bytes[BERTH__UTF8_MAX];
    uint32_t c;
    const size_t n = berth__utf8_write(points[i], bytes);
    assert_int_equal(berth__utf8_read(bytes, n, &c), n);
    assert_int_equal(c, points[i]);
    assert_int_equal(berth__utf8_valid(bytes, n), n);
    if (n > 1) {
      assert_int_equal(berth__utf8_read(bytes, n - 1, &c), 1);
      assert_int_equal(c, BERTH__REPLACEMENT);
      assert_int_equal(berth__utf8_valid(bytes, n - 1), 0);
    }
  }
}

static void what_begins_a_character_is_not_whole(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t whole;
  } cases[] = {{"", 0},
               {"abc", 3},
               {"a\xC3", 1},
               {"a\xC3\xA9", 3},
               {"\xE2", 0},
               {"\xE2\x96", 0},
               {"\xE2\x96\x81", 3},
               {"\xF0\x9F\x98", 0},
               {"\xF0\x9F\x98\x80", 4},
               {"\x80\x80", 2}, /* begin nothing */
               {"\xC0", 1},     /* begins overlong forms alone */
               {"\xE0\x80", 2}, /* so do these */
               {"\xED\xA0", 2}, /* a surrogate */
               {"\xED\x9F", 0}, /* not yet one */
               {"\xF4\x90", 2}, /* over U+10FFFF */
               {"\xF5", 1},
               {"\xFF", 1},
               {"\xE2\x28", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(berth__utf8_whole(cases[i].text, strlen(cases[i].text)), cases[i].whole);
}

static void code_points_have_their_properties(void **state) {
  (void)state;
  assert_int_equal(berth__unicode_category_of('a'), BERTH__UNICODE_LETTER);
  assert_int_equal(berth__unicode_category_of('7'), BERTH__UNICODE_NUMBER);
  assert_int_equal(berth__unicode_category_of('~'), BERTH__UNICODE_SYMBOL);
  assert_int_equal(berth__unicode_category_of('_'), BERTH__UNICODE_PUNCTUATION);
  assert_int_equal(berth__unicode_category_of(0x301), BERTH__UNICODE_MARK);
  assert_int_equal(berth__unicode_category_of(0x2028), BERTH__UNICODE_SEPARATOR);
  assert_int_equal(berth__unicode_category_of(0x378), BERTH__UNICODE_UNASSIGNED);
  assert_int_equal(berth__unicode_category_of(0x2EBF0), BERTH__UNICODE_LETTER); /* new in 15.1 */
  assert_int_equal(berth__unicode_category_of(0x10FFFF), BERTH__UNICODE_UNASSIGNED);
  assert_int_equal(berth__unicode_category_of(0x110000), BERTH__UNICODE_UNASSIGNED);
  assert_true(berth__unicode_is_space(0x3000) && berth__unicode_is_space('\v') && !berth__unicode_is_space(0x200B));
  assert_int_equal(berth__unicode_lower('Q'), 'q');
  assert_int_equal(berth__unicode_lower(0xC0), 0xE0);
  assert_int_equal(berth__unicode_lower(0xD7), 0xD7); /* a sign among letters */
  assert_int_equal(berth__unicode_lower(0x100), 0x101);
  assert_int_equal(berth__unicode_lower(0x101), 0x101);
  assert_int_equal(berth__unicode_lower(0x130), 'i');
  assert_int_equal(berth__unicode_lower(0x1E921), 0x1E943);
  assert_int_equal(berth__unicode_upper('q'), 'Q');
  assert_int_equal(berth__unicode_upper(0x3B1), 0x391);
  assert_int_equal(berth__unicode_upper(0x101), 0x100);
  assert_int_equal(berth__unicode_upper(0x100), 0x100);
  assert_int_equal(berth__unicode_base_of(0xE9), 'e');
  assert_int_equal(berth__unicode_base_of(0x1EAD), 'a'); /* two accents */
  assert_int_equal(berth__unicode_base_of(0xAC01), 0x1100);
  assert_int_equal(berth__unicode_base_of(0x2FA1D), 0x2A600);
  assert_int_equal(berth__unicode_base_of('e'), 'e');
}

/* The words of a text, with | after each. */
static const char *words(berth_context *ctx, const char *name, const char *text) {
  static char out[1024];
  berth_error err = {BERTH_OK, ""};
  berth__pre *pre;
  uint32_t points[256];
  size_t count = 0, *ends, n_ends, at = 0;
  const berth__pre_row *row = berth__pre_find(name, strlen(name));
  assert_non_null(row);
  TEST_OK(berth__pre_create(ctx, row, &pre, &err));
  for (const char *p = text; *p != '\0';) p += berth__utf8_read(p, strlen(p), &points[count++]);
  TEST_OK(berth__pre_split(ctx, pre, points, count, &ends, &n_ends, &err));
  for (size_t i = 0, k = 0; i < n_ends; i++) {
    for (; k < ends[i]; k++) at += berth__utf8_write(points[k], out + at);
    out[at++] = '|';
  }
  out[at] = '\0';
  berth__free(ctx, ends);
  berth__pre_destroy(ctx, pre);
  return out;
}

static void words_are_split_as_the_name_says(void **state) {
  (void)state;
  static const struct {
    const char *name, *text, *words;
  } cases[] = {
      {"gpt-2", "Hello  world's 123abc!?\n\n x", "Hello| | world|'s| 123|abc|!?|\n\n| x|"},
      {"gpt-2", "I'LL we'll   ", "I|'|LL| we|'ll|   |"},
      {"llama3", "I'LL say 12345 (ok)\n\nx \n y", "I|'LL| say| |123|45| (|ok|)\n\n|x| \n| y|"},
      {"llama3",
       " \xE3\x80\x80"
       "a",
       " |\xE3\x80\x80"
       "a|"},
      {"qwen2", "12a\n", "1|2|a|\n|"},
      {"qwen35",
       "e\xCC\x81"
       "a!",
       "e\xCC\x81"
       "a|!|"},
      {"qwen2",
       "e\xCC\x81"
       "a!",
       "e|\xCC\x81"
       "a|!|"},
      {"gpt-4o", "HTTPServer's helloWorld x/\n", "HTTPServer's| hello|World| x|/\n|"},
      {"gpt-4o",
       "\xC3\x80\xC3\x89"
       "B",
       "\xC3\x80\xC3\x89|B|"},
      {"tekken", "it's 12", "it|'s| |1|2|"},
      {"deepseek-v3",
       "a1234 ~x~\xC3\xA9 \xE4\xB8\x80\xE4\xBA\x8C"
       "b",
       "a|123|4| |~x|~\xC3\xA9| |\xE4\xB8\x80\xE4\xBA\x8C|b|"},
      {"deepseek-llm", "a b\r\n!  ", "a| b|\r|\n|!|  |"},
      {"deepseek-coder", "ab 12!", "ab| |1|2|!|"},
      {"starcoder", "x 12", "x| |1|2|"},
      {"falcon", "a 12345, b", "a| |123|45|,| b|"},
      {"default", "a12345", "a|123|45|"},
      {"bloom", "Hi, you (x)", "Hi|,| you| (|x|)|"},
      {"viking", "a1 2", "a|1| |2|"},
      {"tiny_aya", "x1234567", "x|1|234|567|"},
      {"superbpe", "x1234567 12 123", "x|1|234|567| |12| |123|"},
      {"afmoe", "12345", "12|345|"},
      {"kimi-k2",
       "\xE4\xB8\x80"
       "a's 1234",
       "\xE4\xB8\x80|a's| |123|4|"},
      {"exaone-moe", "a b c1", "a b c|1|"},
      {"chameleon", "<sentinel:12>IMGIMGABZ    !", "<|sentinel|:|1|2|>|IMGIMGABZ|    |!|"},
      {"jais-2", "a          b", "a|        | | b|"},
      {"seed-coder", "a!\nb", "a|!|\n|b|"},
      {"minicpm5", "a1234", "a|123|4|"},
      {"youtu",
       "\xE4\xB8\x80"
       "it's/",
       "\xE4\xB8\x80|it's|/|"},
      {"gemma4", "a b\n\nc", "a b|\n\n|c|"},
      {"llama3", "", ""},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *got = words(ctx, cases[i].name, cases[i].text);
    if (strcmp(got, cases[i].words) != 0) print_error("%s, \"%s\": %s\n", cases[i].name, cases[i].text, got);
    assert_string_equal(got, cases[i].words);
  }
  berth_context_destroy(ctx);
}

static void every_pattern_can_be_read(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  size_t count;
  const berth__pre_row *rows = berth__pre_rows(&count);
  for (size_t i = 0; i < count; i++) {
    berth__pre *pre;
    TEST_OK(berth__pre_create(ctx, &rows[i], &pre, &err));
    berth__pre_destroy(ctx, pre);
  }
  assert_true(count >= 25);
  assert_null(berth__pre_find("gpt", 3));
  assert_null(berth__pre_find("", 0));
  assert_non_null(berth__pre_find("llama-bpe", 9));
  berth_context_destroy(ctx);
}

/* A megabyte of one character, and another at its end. A pattern that goes back n times at n places would take hours,
 * and the test's time runs out. */
static void long_runs_take_linear_time(void **state) {
  (void)state;
  enum {
    N = 1 << 20
  };
  static const struct {
    const char *name;
    uint32_t fill, last;
  } cases[] = {{"deepseek-llm", ' ', 0x4E00}, {"gpt-4o", 'A', 'A'},    {"llama3", ' ', 'x'},
               {"jais-2", ' ', 'x'},          {"chameleon", '<', 'x'}, {"deepseek-v3", 0x301, '1'}};
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  uint32_t *text = malloc(N * sizeof *text);
  assert_non_null(text);
  for (size_t r = 0; r < sizeof cases / sizeof cases[0]; r++) {
    berth__pre *pre;
    size_t *ends, n_ends;
    TEST_OK(berth__pre_create(ctx, berth__pre_find(cases[r].name, strlen(cases[r].name)), &pre, &err));
    for (size_t i = 0; i < N; i++) text[i] = i + 1 < N ? cases[r].fill : cases[r].last;
    TEST_OK(berth__pre_split(ctx, pre, text, N, &ends, &n_ends, &err));
    assert_int_equal(ends[n_ends - 1], N);
    berth__free(ctx, ends);
    berth__pre_destroy(ctx, pre);
  }
  free(text);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(utf8_is_read_and_written),          cmocka_unit_test(what_begins_a_character_is_not_whole),
      cmocka_unit_test(code_points_have_their_properties), cmocka_unit_test(words_are_split_as_the_name_says),
      cmocka_unit_test(every_pattern_can_be_read),         cmocka_unit_test(long_runs_take_linear_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
