/* Tensor data as text. */
#include "graph/literal.h"

#include <math.h>

#include "base/blocks.h"
#include "base/number.h"
#include "ops/op.h"

#define MAX_DECIMAL_COUNT 64

void berth__literal_print_double(berth__text *text, double value) {
  char digits[BERTH__DOUBLE_TEXT];
  berth__format_double(value, digits);
  bool has_mark = strpbrk(digits, ".en") != NULL; /* a fraction, an exponent, inf or nan */
  berth__text_printf(text, "%s%s", digits, has_mark ? "" : ".0");
}

static berth_tensor as_line(berth_type type, const void *data, uint64_t count) {
  berth_tensor line = {.data = (void *)(uintptr_t)data, .type = type, .rank = 1};
  line.dim[0] = (int64_t)count;
  line.stride[0] = 1;
  return line;
}

/* NaNs have bits that digits do not show, and so has a bool that a caller made from a byte other than 0 and 1. Integers
 * of the text form have 63 bits. */
static bool loses_bits(const berth_tensor *line) {
  const unsigned char *bytes = line->data;
  for (int64_t i = 0; i < line->dim[0]; i++) {
    if (berth__type_is_float(line->type) && isnan(berth__load_f64(line, i))) return true;
    if (line->type == BERTH_BOOL && bytes[i] > 1) return true;
    if (line->type == BERTH_U64 && berth__load_i64(line, i) < 0) return true;
  }
  return false;
}

void berth__literal_print(berth__text *text, berth_type type, const void *data, uint64_t count) {
  berth_tensor line = as_line(type, data, count);
  const unsigned char *bytes = data;
  if (count > MAX_DECIMAL_COUNT || berth__type_is_block(type) || loses_bits(&line)) {
    berth__text_printf(text, "hex \"");
    for (uint64_t i = 0; i < berth__tensor_bytes(&line); i++) berth__text_printf(text, "%02x", bytes[i]);
    berth__text_printf(text, "\"");
    return;
  }
  berth__text_printf(text, "[");
  for (int64_t i = 0; i < line.dim[0]; i++) {
    if (i != 0) berth__text_printf(text, ", ");
    if (berth__type_is_float(type))
      berth__literal_print_double(text, berth__load_f64(&line, i));
    else
      berth__text_printf(text, "%lld", (long long)berth__load_i64(&line, i));
  }
  berth__text_printf(text, "]");
}

static berth_status parse_hex(berth__lexer *lexer, unsigned char *bytes, uint64_t size, berth_error *err) {
  const berth__token *token = &lexer->token;
  if (token->kind != BERTH__TOKEN_STRING) return berth__lexer_expected(lexer, "a string of hex digits", err);
  if (token->size != size * 2)
    return berth__lexer_fail(lexer, err, "%zu hex digits are given, the shape needs %llu", token->size,
                             (unsigned long long)size * 2);
  for (uint64_t i = 0; i < size; i++) {
    int high = berth__hex_digit(token->text[2 * i]), low = berth__hex_digit(token->text[2 * i + 1]);
    if (high < 0 || low < 0) return berth__lexer_fail(lexer, err, "byte %llu is not hex", (unsigned long long)i);
    bytes[i] = (unsigned char)(high * 16 + low);
  }
  return berth__lexer_next(lexer, err);
}

static bool int_fits(berth_type type, int64_t value) {
  switch (type) {
    case BERTH_I8: return value >= INT8_MIN && value <= INT8_MAX;
    case BERTH_U8: return value >= 0 && value <= UINT8_MAX;
    case BERTH_I16: return value >= INT16_MIN && value <= INT16_MAX;
    case BERTH_U16: return value >= 0 && value <= UINT16_MAX;
    case BERTH_U64: return value >= 0;
    case BERTH_I32: return value >= INT32_MIN && value <= INT32_MAX;
    case BERTH_U32: return value >= 0 && value <= (int64_t)UINT32_MAX;
    case BERTH_BOOL: return value == 0 || value == 1;
    default: return true;
  }
}

static berth_status parse_element(berth__lexer *lexer, const berth_tensor *line, int64_t index, berth_error *err) {
  if (berth__type_is_float(line->type)) {
    double value;
    BERTH__TRY(berth__lexer_double(lexer, &value, err));
    berth__store_f64(line, index, value);
    return BERTH_OK;
  }
  int64_t value;
  uint32_t text_line = lexer->line;
  BERTH__TRY(berth__lexer_int(lexer, &value, err));
  if (!int_fits(line->type, value))
    return berth__fail(err, BERTH_MALFORMED, "line %u: %lld does not fit in %s", text_line, (long long)value,
                       berth_type_name(line->type));
  berth__store_i64(line, index, value);
  return BERTH_OK;
}

berth_status berth__literal_parse(berth__lexer *lexer, berth_type type, void *data, uint64_t count, berth_error *err) {
  berth_tensor line = as_line(type, data, count);
  if (berth__lexer_is_word(lexer, "hex")) {
    BERTH__TRY(berth__lexer_next(lexer, err));
    return parse_hex(lexer, data, berth__tensor_bytes(&line), err);
  }
  if (berth__type_is_block(type))
    return berth__lexer_fail(lexer, err, "blocks of %s are given as hex \"...\", byte by byte", berth_type_name(type));
  BERTH__TRY(berth__lexer_take(lexer, '[', err));
  for (uint64_t i = 0; i < count; i++) {
    if (i != 0) BERTH__TRY(berth__lexer_take(lexer, ',', err));
    BERTH__TRY(parse_element(lexer, &line, (int64_t)i, err));
  }
  if (lexer->token.kind != ']')
    return berth__lexer_fail(lexer, err, "there are more than the %llu numbers that the shape needs",
                             (unsigned long long)count);
  return berth__lexer_next(lexer, err);
}
