/* The JSON reader: what it accepts, what it refuses, what strings decode to. */
#include "import/json.h"
#include "support/support.h"

/* Reads to the end; the kinds it saw as letters. */
static berth_status scan(const char *text, char *kinds, size_t room, berth_error *err) {
  static const char letters[] = ".{}[]ksntf0";
  berth__json json;
  berth__json_token token;
  size_t n = 0;
  berth__json_init(&json, text, strlen(text));
  do {
    BERTH__TRY(berth__json_next(&json, &token, err));
    if (n + 1 < room) kinds[n++] = letters[token.kind];
  } while (token.kind != BERTH__JSON_END);
  kinds[n] = '\0';
  return BERTH_OK;
}

static void accepts(void **state) {
  (void)state;
  static const struct {
    const char *text, *kinds;
  } cases[] = {
      {"{}", "{}."},
      {" [ ] ", "[]."},
      {"0", "n."},
      {"-0.5e+3", "n."},
      {"[1,-2,3.25,1e9,true,false,null,\"x\"]", "[nnnntf0s]."},
      {"{\"a\":{\"b\":[{}]},\"c\":\"\"}", "{k{k[{}]}ks}."},
      {"\t\r\n {\"a\" : 1 , \"b\":[ 1 , 2 ] }\n", "{knk[nn]}."},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err;
    char kinds[64];
    TEST_OK(scan(cases[i].text, kinds, sizeof kinds, &err));
    assert_string_equal(kinds, cases[i].kinds);
  }
}

static void refuses(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } cases[] = {
      {"", "ends too early"},
      {"{", "ends too early"},
      {"[1", "ends too early"},
      {"\"abc", "not closed"},
      {"{\"a\"}", "colon"},
      {"{\"a\" 1}", "colon"},
      {"{a:1}", "key in quotes"},
      {"{\"a\":1,}", "key in quotes"},
      {"[1,]", "value is expected"},
      {"[1 2]", "comma"},
      {"[1}", "comma"},
      {"{\"a\":1]", "comma"},
      {"{]", "key in quotes"},
      {"]", "value is expected"},
      {"1 2", "nothing may follow"},
      {"{}{}", "nothing may follow"},
      {"01", "begin with 0"},
      {"-", "needs a digit"},
      {"1.", "behind its point"},
      {"1e", "exponent"},
      {"+1", "value is expected"},
      {"NaN", "value is expected"},
      {"tru", "value is expected"},
      {"'a'", "value is expected"},
      {"\"\t\"", "control character"},
      {"\"\\x\"", "escape"},
      {"\"\\u12\"", "escape"},
      {"\"\\u12g4\"", "escape"},
      {"\"\\ud800\"", "escape"},
      {"\"\\ud800\\u0041\"", "escape"},
      {"\"\\udc00\"", "escape"},
      {"\"\\", "escape"},
      {"\"\xff\"", "UTF-8"},
      {"\"\xc0\x80\"", "UTF-8"},
      {"\"\xe0\x80\x80\"", "UTF-8"},
      {"\"\xed\xa0\x80\"", "UTF-8"},
      {"\"\xf4\x90\x80\x80\"", "UTF-8"},
      {"\"\xe2\x82", "UTF-8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err;
    char kinds[64];
    berth_status status = scan(cases[i].text, kinds, sizeof kinds, &err);
    test_expect_error(status, BERTH_MALFORMED, &err, cases[i].part);
  }
}

static void limits_the_depth(void **state) {
  (void)state;
  char text[2 * (BERTH__JSON_DEPTH + 1) + 1] = {0}, kinds[128];
  berth_error err;
  memset(text, '[', BERTH__JSON_DEPTH);
  memset(text + BERTH__JSON_DEPTH, ']', BERTH__JSON_DEPTH);
  TEST_OK(scan(text, kinds, sizeof kinds, &err));
  memset(text, '[', BERTH__JSON_DEPTH + 1);
  memset(text + BERTH__JSON_DEPTH + 1, ']', BERTH__JSON_DEPTH + 1);
  test_expect_error(scan(text, kinds, sizeof kinds, &err), BERTH_MALFORMED, &err, "too deeply");
}

static void decodes_strings(void **state) {
  (void)state;
  static const struct {
    const char *text, *want;
  } cases[] = {
      {"\"\"", ""},
      {"\"plain\"", "plain"},
      {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
      {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
      {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
      {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err;
    berth__json json;
    berth__json_token token;
    char out[64];
    size_t length;
    berth__json_init(&json, cases[i].text, strlen(cases[i].text));
    TEST_OK(berth__json_expect(&json, BERTH__JSON_STRING, "a string", &token, &err));
    TEST_OK(berth__json_decode(&token, out, &length, &err));
    assert_string_equal(out, cases[i].want);
    assert_int_equal(length, strlen(cases[i].want));
  }
}

static void refuses_a_zero_character(void **state) {
  (void)state;
  const char *text = "\"a\\u0000b\"";
  berth_error err;
  berth__json json;
  berth__json_token token;
  char out[64];
  size_t length;
  berth__json_init(&json, text, strlen(text));
  TEST_OK(berth__json_next(&json, &token, &err));
  test_expect_error(berth__json_decode(&token, out, &length, &err), BERTH_MALFORMED, &err, "zero character");
}

static berth_status natural(const char *text, int64_t *out, berth_error *err) {
  berth__json json;
  berth__json_token token;
  berth__json_init(&json, text, strlen(text));
  BERTH__TRY(berth__json_next(&json, &token, err));
  return berth__json_natural(&token, out, err);
}

static void reads_natural_numbers(void **state) {
  (void)state;
  berth_error err;
  int64_t value;
  TEST_OK(natural("0", &value, &err));
  assert_int_equal(value, 0);
  TEST_OK(natural("9223372036854775807", &value, &err));
  assert_true(value == INT64_MAX);
  test_expect_error(natural("9223372036854775808", &value, &err), BERTH_MALFORMED, &err, "too large");
  test_expect_error(natural("-1", &value, &err), BERTH_MALFORMED, &err, "whole number");
  test_expect_error(natural("1.0", &value, &err), BERTH_MALFORMED, &err, "whole number");
  test_expect_error(natural("1e3", &value, &err), BERTH_MALFORMED, &err, "whole number");
  test_expect_error(natural("\"1\"", &value, &err), BERTH_MALFORMED, &err, "whole number");
  test_expect_error(natural("true", &value, &err), BERTH_MALFORMED, &err, "whole number");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts),
      cmocka_unit_test(refuses),
      cmocka_unit_test(limits_the_depth),
      cmocka_unit_test(decodes_strings),
      cmocka_unit_test(refuses_a_zero_character),
      cmocka_unit_test(reads_natural_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
