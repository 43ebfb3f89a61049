/* Expressions, by recursive descent, with Jinja's precedence. */
#include <string.h>

#include "text/jinja.h"

const berth__jinja_token *berth__jinja_peek(const berth__jinja *j) { return &j->tokens[j->at]; }

bool berth__jinja_is(const berth__jinja *j, berth__jinja_token_kind kind, const char *text) {
  const berth__jinja_token *token = &j->tokens[j->at];
  return token->kind == kind && (text == NULL || berth__jinja_string_is(token->text, text));
}

bool berth__jinja_take(berth__jinja *j, berth__jinja_token_kind kind, const char *text) {
  if (!berth__jinja_is(j, kind, text)) return false;
  if (kind != BERTH__JINJA_T_END) j->at++;
  return true;
}

static berth_status parse_fail(berth__jinja *j, const char *wanted) {
  const berth__jinja_token *token = &j->tokens[j->at];
  const int n = (int)(token->text.size < 40 ? token->text.size : 40);
  j->line = token->line;
  if (token->kind == BERTH__JINJA_T_END)
    return berth__jinja_fail(j, "%s is missing at the end of the template", wanted);
  return berth__jinja_fail(j, "there is '%.*s' where %s was expected", n, token->text.data, wanted);
}

berth_status berth__jinja_expect(berth__jinja *j, berth__jinja_token_kind kind, const char *text) {
  if (berth__jinja_take(j, kind, text)) return BERTH_OK;
  return parse_fail(j, text != NULL                     ? text
                       : kind == BERTH__JINJA_T_NAME    ? "a name"
                       : kind == BERTH__JINJA_T_TAG_END ? "%}"
                                                        : "}}");
}

berth__jinja_node *berth__jinja_new_node(berth__jinja *j, berth__jinja_type type) {
  berth__jinja_node *node = berth__jinja_alloc(j, sizeof *node);
  if (node == NULL) return NULL;
  memset(node, 0, sizeof *node);
  node->type = type;
  node->line = j->tokens[j->at].line;
  return node;
}

/* A node over two others. */
static berth_status parse_make(berth__jinja *j, berth__jinja_type type, berth__jinja_op op, berth__jinja_node *a,
                               berth__jinja_node *b, berth__jinja_node **out) {
  berth__jinja_node *node = berth__jinja_new_node(j, type);
  if (node == NULL) return berth__jinja_nomem(j);
  node->op = op;
  node->a = a;
  node->b = b;
  *out = node;
  return BERTH_OK;
}

#define PARSE_SIGN(text) berth__jinja_take(j, BERTH__JINJA_T_SIGN, text)
#define PARSE_WORD(text) berth__jinja_take(j, BERTH__JINJA_T_NAME, text)

static berth_status parse_or(berth__jinja *j, berth__jinja_node **out);
static berth_status parse_unary(berth__jinja *j, bool with_filters, berth__jinja_node **out);

/* ---- Primaries ---- */

static berth_status parse_literal(berth__jinja *j, berth__jinja_value value, berth__jinja_node **out) {
  BERTH__TRY(parse_make(j, BERTH__JINJA_LITERAL, 0, NULL, NULL, out));
  (*out)->value = value;
  return BERTH_OK;
}

/* Expressions up to a closing bracket. */
static berth_status parse_list(berth__jinja *j, const char *end, berth__jinja_node **first, bool *had_comma) {
  berth__jinja_node **next = first;
  while (!PARSE_SIGN(end)) {
    BERTH__TRY(berth__jinja_parse_expression(j, next));
    next = &(*next)->next;
    if (PARSE_SIGN(",")) {
      *had_comma = true;
    } else if (!berth__jinja_is(j, BERTH__JINJA_T_SIGN, end)) {
      return parse_fail(j, end);
    }
  }
  return BERTH_OK;
}

static berth_status parse_dict(berth__jinja *j, berth__jinja_node **out) {
  BERTH__TRY(parse_make(j, BERTH__JINJA_MAKE_DICT, 0, NULL, NULL, out));
  berth__jinja_node **next = &(*out)->list;
  while (!PARSE_SIGN("}")) {
    BERTH__TRY(parse_make(j, BERTH__JINJA_PAIR, 0, NULL, NULL, next));
    BERTH__TRY(berth__jinja_parse_expression(j, &(*next)->a));
    BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_SIGN, ":"));
    BERTH__TRY(berth__jinja_parse_expression(j, &(*next)->b));
    next = &(*next)->next;
    if (!PARSE_SIGN(",") && !berth__jinja_is(j, BERTH__JINJA_T_SIGN, "}")) return parse_fail(j, "}");
  }
  return BERTH_OK;
}

/* (a) is a; (a, b) and () are tuples. */
static berth_status parse_parens(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_node *first = NULL;
  bool had_comma = false;
  BERTH__TRY(parse_list(j, ")", &first, &had_comma));
  if (first != NULL && !had_comma) {
    *out = first;
    return BERTH_OK;
  }
  BERTH__TRY(parse_make(j, BERTH__JINJA_MAKE_LIST, 0, NULL, NULL, out));
  (*out)->list = first;
  return BERTH_OK;
}

static berth_status parse_strings(berth__jinja *j, berth__jinja_node **out) {
  BERTH__TRY(parse_literal(j, berth__jinja_make_string(j->tokens[j->at++].text), out));
  while (berth__jinja_is(j, BERTH__JINJA_T_STRING, NULL)) { /* adjacent strings are concatenated */
    berth__jinja_string parts[2] = {(*out)->value.as.string, j->tokens[j->at++].text};
    BERTH__TRY(berth__jinja_join(j, parts, 2, &(*out)->value));
  }
  return BERTH_OK;
}

static berth_status parse_name(berth__jinja *j, berth__jinja_node **out) {
  static const struct {
    const char *name;
    berth__jinja_value value;
  } constants[] = {
      {"true", {BERTH__JINJA_BOOL, {.boolean = true}}},   {"True", {BERTH__JINJA_BOOL, {.boolean = true}}},
      {"false", {BERTH__JINJA_BOOL, {.boolean = false}}}, {"False", {BERTH__JINJA_BOOL, {.boolean = false}}},
      {"none", {BERTH__JINJA_NONE, {.integer = 0}}},      {"None", {BERTH__JINJA_NONE, {.integer = 0}}}};
  for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
    if (PARSE_WORD(constants[i].name)) return parse_literal(j, constants[i].value, out);
  }
  BERTH__TRY(parse_make(j, BERTH__JINJA_NAME, 0, NULL, NULL, out));
  (*out)->name = j->tokens[j->at++].text;
  return BERTH_OK;
}

static berth_status parse_primary(berth__jinja *j, berth__jinja_node **out) {
  const berth__jinja_token *token = berth__jinja_peek(j);
  bool had_comma;
  if (token->kind == BERTH__JINJA_T_STRING) return parse_strings(j, out);
  if (token->kind == BERTH__JINJA_T_NAME) return parse_name(j, out);
  if (token->kind == BERTH__JINJA_T_NUMBER) {
    j->at++;
    return parse_literal(j, token->value, out);
  }
  if (PARSE_SIGN("(")) return parse_parens(j, out);
  if (PARSE_SIGN("{")) return parse_dict(j, out);
  if (!PARSE_SIGN("[")) return parse_fail(j, "an expression");
  BERTH__TRY(parse_make(j, BERTH__JINJA_MAKE_LIST, 0, NULL, NULL, out));
  return parse_list(j, "]", &(*out)->list, &had_comma);
}

/* ---- Postfix ---- */

berth_status berth__jinja_parse_arguments(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_node **next = out;
  while (!PARSE_SIGN(")")) {
    BERTH__TRY(parse_make(j, BERTH__JINJA_ARGUMENT, 0, NULL, NULL, next));
    const berth__jinja_token *after = &j->tokens[j->at + (berth__jinja_peek(j)->kind != BERTH__JINJA_T_END)];
    if (berth__jinja_is(j, BERTH__JINJA_T_NAME, NULL) && after->kind == BERTH__JINJA_T_SIGN &&
        berth__jinja_string_is(after->text, "=")) {
      (*next)->name = berth__jinja_peek(j)->text;
      j->at += 2;
    }
    BERTH__TRY(berth__jinja_parse_expression(j, &(*next)->a));
    next = &(*next)->next;
    if (!PARSE_SIGN(",") && !berth__jinja_is(j, BERTH__JINJA_T_SIGN, ")")) return parse_fail(j, ")");
  }
  return BERTH_OK;
}

/* After the [: an index, or a slice. */
static berth_status parse_subscript(berth__jinja *j, berth__jinja_node *on, berth__jinja_node **out) {
  berth__jinja_node *parts[3] = {NULL, NULL, NULL};
  size_t n = 0;
  for (;;) {
    const bool is_empty = berth__jinja_is(j, BERTH__JINJA_T_SIGN, ":") || berth__jinja_is(j, BERTH__JINJA_T_SIGN, "]");
    if (!is_empty) BERTH__TRY(berth__jinja_parse_expression(j, &parts[n]));
    if (n == 2 || !PARSE_SIGN(":")) break;
    n++;
  }
  if (n == 0 && parts[0] == NULL) return parse_fail(j, "an index");
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_SIGN, "]"));
  BERTH__TRY(parse_make(j, n == 0 ? BERTH__JINJA_INDEX : BERTH__JINJA_SLICE, 0, on, parts[0], out));
  (*out)->c = parts[1];
  (*out)->d = parts[2];
  return BERTH_OK;
}

static berth_status parse_postfix(berth__jinja *j, berth__jinja_node *on, berth__jinja_node **out) {
  for (;; on = *out) {
    *out = on;
    if (PARSE_SIGN(".")) {
      BERTH__TRY(parse_make(j, BERTH__JINJA_ATTRIBUTE, 0, on, NULL, out));
      if (berth__jinja_is(j, BERTH__JINJA_T_NUMBER, NULL)) {
        (*out)->type = BERTH__JINJA_INDEX;
        BERTH__TRY(parse_primary(j, &(*out)->b));
        continue;
      }
      (*out)->name = berth__jinja_peek(j)->text;
      BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
    } else if (PARSE_SIGN("[")) {
      BERTH__TRY(parse_subscript(j, on, out));
    } else if (PARSE_SIGN("(")) {
      BERTH__TRY(parse_make(j, BERTH__JINJA_CALL, 0, on, NULL, out));
      BERTH__TRY(berth__jinja_parse_arguments(j, &(*out)->list));
    } else {
      return BERTH_OK;
    }
  }
}

berth_status berth__jinja_parse_filters(berth__jinja *j, berth__jinja_node *on, berth__jinja_node **out) {
  do {
    BERTH__TRY(parse_make(j, BERTH__JINJA_FILTER, 0, on, NULL, out));
    (*out)->name = berth__jinja_peek(j)->text;
    BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
    if (PARSE_SIGN("(")) BERTH__TRY(berth__jinja_parse_arguments(j, &(*out)->list));
    on = *out;
  } while (PARSE_SIGN("|"));
  return BERTH_OK;
}

/* Whether an argument of a test follows without parentheses: `is divisibleby 3`. */
static bool parse_is_bare_argument(const berth__jinja *j) {
  static const char *const words[] = {"else", "or", "and", "is", "if", "in", "not"};
  const berth__jinja_token *token = berth__jinja_peek(j);
  if (token->kind == BERTH__JINJA_T_SIGN)
    return berth__jinja_string_is(token->text, "[") || berth__jinja_string_is(token->text, "{");
  if (token->kind != BERTH__JINJA_T_NAME)
    return token->kind == BERTH__JINJA_T_STRING || token->kind == BERTH__JINJA_T_NUMBER;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (berth__jinja_string_is(token->text, words[i])) return false;
  }
  return true;
}

static berth_status parse_test(berth__jinja *j, berth__jinja_node *on, berth__jinja_node **out) {
  BERTH__TRY(parse_make(j, BERTH__JINJA_TEST, 0, on, NULL, out));
  berth__jinja_node *test = *out;
  test->op = PARSE_WORD("not");
  test->name = berth__jinja_peek(j)->text;
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
  if (PARSE_SIGN("(")) return berth__jinja_parse_arguments(j, &test->list);
  if (!parse_is_bare_argument(j)) return BERTH_OK;
  BERTH__TRY(parse_make(j, BERTH__JINJA_ARGUMENT, 0, NULL, NULL, &test->list));
  berth__jinja_node *primary;
  BERTH__TRY(parse_primary(j, &primary));
  return parse_postfix(j, primary, &test->list->a);
}

static berth_status parse_filtered(berth__jinja *j, berth__jinja_node *on, berth__jinja_node **out) {
  for (;; on = *out) {
    *out = on;
    if (PARSE_SIGN("|")) {
      BERTH__TRY(berth__jinja_parse_filters(j, on, out));
    } else if (PARSE_WORD("is")) {
      BERTH__TRY(parse_test(j, on, out));
    } else if (PARSE_SIGN("(")) { /* calling the result of a filter */
      BERTH__TRY(parse_make(j, BERTH__JINJA_CALL, 0, on, NULL, out));
      BERTH__TRY(berth__jinja_parse_arguments(j, &(*out)->list));
    } else {
      return BERTH_OK;
    }
  }
}

static berth_status parse_enter(berth__jinja *j) {
  if (++j->depth <= BERTH__TEMPLATE_NESTING) return BERTH_OK;
  j->line = j->tokens[j->at].line;
  return berth__jinja_fail(j, "expressions or blocks are nested more than %u deep", BERTH__TEMPLATE_NESTING);
}

static berth_status parse_unary(berth__jinja *j, bool with_filters, berth__jinja_node **out) {
  berth__jinja_node *node;
  BERTH__TRY(parse_enter(j));
  if (PARSE_SIGN("-")) {
    BERTH__TRY(parse_unary(j, false, &node));
    BERTH__TRY(parse_make(j, BERTH__JINJA_NEGATE, 0, node, NULL, &node));
  } else if (PARSE_SIGN("+")) {
    BERTH__TRY(parse_unary(j, false, &node));
  } else {
    berth__jinja_node *primary = NULL;
    BERTH__TRY(parse_primary(j, &primary));
    BERTH__TRY(parse_postfix(j, primary, &node));
  }
  j->depth--;
  *out = node;
  return with_filters ? parse_filtered(j, node, out) : BERTH_OK;
}

/* ---- Operators ---- */

typedef struct parse_operator {
  const char *sign;
  berth__jinja_op op;
} parse_operator;

typedef berth_status (*parse_level)(berth__jinja *j, berth__jinja_node **out);

/* Left-associative operators of one precedence, over operands of the next. */
static berth_status parse_binary(berth__jinja *j, const parse_operator *operators, size_t count, parse_level operand,
                                 berth__jinja_node **out) {
  BERTH__TRY(operand(j, out));
  for (size_t i = 0; i < count;) {
    if (!PARSE_SIGN(operators[i].sign)) {
      i++;
      continue;
    }
    berth__jinja_node *right;
    BERTH__TRY(operand(j, &right));
    BERTH__TRY(parse_make(j, BERTH__JINJA_BINARY, operators[i].op, *out, right, out));
    i = 0;
  }
  return BERTH_OK;
}

static berth_status parse_operand(berth__jinja *j, berth__jinja_node **out) { return parse_unary(j, true, out); }

static berth_status parse_power(berth__jinja *j, berth__jinja_node **out) {
  static const parse_operator operators[] = {{"**", BERTH__JINJA_POWER}};
  return parse_binary(j, operators, 1, parse_operand, out);
}

static berth_status parse_product(berth__jinja *j, berth__jinja_node **out) {
  static const parse_operator operators[] = {{"*", BERTH__JINJA_MULTIPLY},
                                             {"//", BERTH__JINJA_FLOOR_DIVIDE},
                                             {"/", BERTH__JINJA_DIVIDE},
                                             {"%", BERTH__JINJA_MODULO}};
  return parse_binary(j, operators, 4, parse_power, out);
}

static berth_status parse_concat(berth__jinja *j, berth__jinja_node **out) {
  static const parse_operator operators[] = {{"~", BERTH__JINJA_CONCAT}};
  return parse_binary(j, operators, 1, parse_product, out);
}

static berth_status parse_sum(berth__jinja *j, berth__jinja_node **out) {
  static const parse_operator operators[] = {{"+", BERTH__JINJA_ADD}, {"-", BERTH__JINJA_SUBTRACT}};
  return parse_binary(j, operators, 2, parse_concat, out);
}

static bool parse_comparison(berth__jinja *j, berth__jinja_op *op) {
  static const parse_operator signs[] = {{"==", BERTH__JINJA_EQUAL},      {"!=", BERTH__JINJA_NOT_EQUAL},
                                         {"<=", BERTH__JINJA_LESS_EQUAL}, {">=", BERTH__JINJA_GREATER_EQUAL},
                                         {"<", BERTH__JINJA_LESS},        {">", BERTH__JINJA_GREATER}};
  for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
    *op = signs[i].op;
    if (PARSE_SIGN(signs[i].sign)) return true;
  }
  *op = BERTH__JINJA_IN;
  if (PARSE_WORD("in")) return true;
  *op = BERTH__JINJA_NOT_IN;
  const berth__jinja_token *after = &j->tokens[j->at + (berth__jinja_peek(j)->kind != BERTH__JINJA_T_END)];
  if (!berth__jinja_is(j, BERTH__JINJA_T_NAME, "not") || after->kind != BERTH__JINJA_T_NAME ||
      !berth__jinja_string_is(after->text, "in"))
    return false;
  j->at += 2;
  return true;
}

static berth_status parse_compare(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_op op;
  BERTH__TRY(parse_sum(j, out));
  if (!parse_comparison(j, &op)) return BERTH_OK;
  BERTH__TRY(parse_make(j, BERTH__JINJA_COMPARE, 0, *out, NULL, out));
  berth__jinja_node **next = &(*out)->list;
  do {
    berth__jinja_node *right;
    BERTH__TRY(parse_sum(j, &right));
    BERTH__TRY(parse_make(j, BERTH__JINJA_ARGUMENT, op, right, NULL, next));
    next = &(*next)->next;
  } while (parse_comparison(j, &op));
  return BERTH_OK;
}

static berth_status parse_not(berth__jinja *j, berth__jinja_node **out) {
  if (!PARSE_WORD("not")) return parse_compare(j, out);
  berth__jinja_node *operand;
  BERTH__TRY(parse_enter(j));
  BERTH__TRY(parse_not(j, &operand));
  j->depth--;
  return parse_make(j, BERTH__JINJA_NOT, 0, operand, NULL, out);
}

static berth_status parse_and(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_node *right;
  BERTH__TRY(parse_not(j, out));
  while (PARSE_WORD("and")) {
    BERTH__TRY(parse_not(j, &right));
    BERTH__TRY(parse_make(j, BERTH__JINJA_AND, 0, *out, right, out));
  }
  return BERTH_OK;
}

static berth_status parse_or(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_node *right;
  BERTH__TRY(parse_and(j, out));
  while (PARSE_WORD("or")) {
    BERTH__TRY(parse_and(j, &right));
    BERTH__TRY(parse_make(j, BERTH__JINJA_OR, 0, *out, right, out));
  }
  return BERTH_OK;
}

berth_status berth__jinja_parse_expression(berth__jinja *j, berth__jinja_node **out) {
  berth__jinja_node *node, *condition;
  BERTH__TRY(parse_enter(j));
  BERTH__TRY(parse_or(j, &node));
  while (PARSE_WORD("if")) {
    BERTH__TRY(parse_or(j, &condition));
    BERTH__TRY(parse_make(j, BERTH__JINJA_IF_ELSE, 0, condition, node, &node));
    if (PARSE_WORD("else")) BERTH__TRY(berth__jinja_parse_expression(j, &node->c));
  }
  j->depth--;
  *out = node;
  return BERTH_OK;
}
