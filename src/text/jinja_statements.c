/* Statements: the tags of a template and what is between them. */
#include <string.h>

#include "text/jinja.h"

static berth_status statement_body(berth__jinja *j, const char *const *ends, berth__jinja_node **out);

/* Whether the next tag is one of these. Its name is the token after the {%. */
static bool statement_is_end(const berth__jinja *j, const char *const *ends) {
  if (!berth__jinja_is(j, BERTH__JINJA_T_TAG_BEGIN, NULL)) return false;
  const berth__jinja_token *name = &j->tokens[j->at + 1];
  for (size_t i = 0; ends[i] != NULL; i++) {
    if (name->kind == BERTH__JINJA_T_NAME && berth__jinja_string_is(name->text, ends[i])) return true;
  }
  return false;
}

/* {% NAME %}, where NAME is one of the tags that ended the body before it. */
static berth_status statement_close(berth__jinja *j, const char *name) {
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_TAG_BEGIN, NULL));
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, name));
  if (strcmp(name, "endmacro") == 0) (void)berth__jinja_take(j, BERTH__JINJA_T_NAME, NULL);
  return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
}

/* The end of the tag, and the body up to one of the tags. */
static berth_status statement_open(berth__jinja *j, const char *const *ends, berth__jinja_node **body) {
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL));
  return statement_body(j, ends, body);
}

/* a, or a, b; also in parentheses. */
static berth_status statement_targets(berth__jinja *j, berth__jinja_node **out) {
  const bool in_parens = berth__jinja_take(j, BERTH__JINJA_T_SIGN, "(");
  berth__jinja_node **next = out;
  do {
    *next = berth__jinja_new_node(j, BERTH__JINJA_NAME);
    if (*next == NULL) return berth__jinja_nomem(j);
    (*next)->name = berth__jinja_peek(j)->text;
    BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
    if (berth__jinja_take(j, BERTH__JINJA_T_SIGN, ".")) { /* a member of a namespace */
      berth__jinja_node *member = berth__jinja_new_node(j, BERTH__JINJA_ATTRIBUTE);
      if (member == NULL) return berth__jinja_nomem(j);
      member->a = *next;
      member->name = berth__jinja_peek(j)->text;
      BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
      *next = member;
    }
    next = &(*next)->next;
  } while (berth__jinja_take(j, BERTH__JINJA_T_SIGN, ","));
  return in_parens ? berth__jinja_expect(j, BERTH__JINJA_T_SIGN, ")") : BERTH_OK;
}

/* An expression that does not contain "if": the iterable of a loop, before its condition. */
static berth_status statement_iterable(berth__jinja *j, berth__jinja_node **iterable, berth__jinja_node **condition) {
  BERTH__TRY(berth__jinja_parse_expression(j, iterable));
  if ((*iterable)->type == BERTH__JINJA_IF_ELSE &&
      (*iterable)->c == NULL) { /* `x if y` without an else iterates over x */
    *condition = (*iterable)->a;
    *iterable = (*iterable)->b;
  }
  return BERTH_OK;
}

static berth_status statement_for(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"else", "endfor", NULL};
  node->type = BERTH__JINJA_FOR;
  BERTH__TRY(statement_targets(j, &node->list));
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, "in"));
  BERTH__TRY(statement_iterable(j, &node->a, &node->b));
  BERTH__TRY(statement_open(j, ends, &node->c));
  if (berth__jinja_string_is(j->tokens[j->at + 1].text, "else")) {
    BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_TAG_BEGIN, NULL));
    j->at++;
    BERTH__TRY(statement_open(j, ends + 1, &node->d));
  }
  return statement_close(j, "endfor");
}

static berth_status statement_if(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  for (;;) {
    node->type = BERTH__JINJA_IF;
    BERTH__TRY(berth__jinja_parse_expression(j, &node->a));
    BERTH__TRY(statement_open(j, ends, &node->b));
    if (!berth__jinja_string_is(j->tokens[j->at + 1].text, "elif")) break;
    j->at += 2;
    berth__jinja_node *other = berth__jinja_new_node(j, BERTH__JINJA_IF);
    if (other == NULL) return berth__jinja_nomem(j);
    node->c = other;
    node = other;
  }
  if (berth__jinja_string_is(j->tokens[j->at + 1].text, "else")) {
    j->at += 2;
    BERTH__TRY(statement_open(j, ends + 2, &node->c));
  }
  return statement_close(j, "endif");
}

static berth_status statement_set(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"endset", NULL};
  node->type = BERTH__JINJA_SET;
  BERTH__TRY(statement_targets(j, &node->list));
  if (berth__jinja_take(j, BERTH__JINJA_T_SIGN, "=")) {
    BERTH__TRY(berth__jinja_parse_expression(j, &node->a));
    if (!berth__jinja_is(j, BERTH__JINJA_T_SIGN, ",")) return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
    berth__jinja_node *list = berth__jinja_new_node(j, BERTH__JINJA_MAKE_LIST); /* a, b = 1, 2 */
    if (list == NULL) return berth__jinja_nomem(j);
    list->list = node->a;
    node->a = list;
    for (berth__jinja_node *last = list->list; berth__jinja_take(j, BERTH__JINJA_T_SIGN, ","); last = last->next)
      BERTH__TRY(berth__jinja_parse_expression(j, &last->next));
    return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
  }
  node->type = BERTH__JINJA_SET_BLOCK;
  if (berth__jinja_take(j, BERTH__JINJA_T_SIGN, "|")) BERTH__TRY(berth__jinja_parse_filters(j, NULL, &node->c));
  BERTH__TRY(statement_open(j, ends, &node->b));
  return statement_close(j, "endset");
}

static berth_status statement_macro(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"endmacro", NULL};
  node->type = BERTH__JINJA_DEFINE;
  node->name = berth__jinja_peek(j)->text;
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_SIGN, "("));
  berth__jinja_node **next = &node->list;
  while (!berth__jinja_take(j, BERTH__JINJA_T_SIGN, ")")) {
    *next = berth__jinja_new_node(j, BERTH__JINJA_ARGUMENT);
    if (*next == NULL) return berth__jinja_nomem(j);
    (*next)->name = berth__jinja_peek(j)->text;
    BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
    if (berth__jinja_take(j, BERTH__JINJA_T_SIGN, "=")) BERTH__TRY(berth__jinja_parse_expression(j, &(*next)->a));
    next = &(*next)->next;
    if (!berth__jinja_take(j, BERTH__JINJA_T_SIGN, ",") && !berth__jinja_is(j, BERTH__JINJA_T_SIGN, ")"))
      return berth__jinja_expect(j, BERTH__JINJA_T_SIGN, ")");
  }
  BERTH__TRY(statement_open(j, ends, &node->b));
  return statement_close(j, "endmacro");
}

static berth_status statement_filter(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"endfilter", NULL};
  node->type = BERTH__JINJA_FILTER_BLOCK;
  BERTH__TRY(berth__jinja_parse_filters(j, NULL, &node->c));
  BERTH__TRY(statement_open(j, ends, &node->b));
  return statement_close(j, "endfilter");
}

/* Marked by transformers for training; its body runs as if there were no tag. */
static berth_status statement_generation(berth__jinja *j, berth__jinja_node *node) {
  static const char *const ends[] = {"endgeneration", NULL};
  node->type = BERTH__JINJA_BLOCK;
  BERTH__TRY(statement_open(j, ends, &node->b));
  return statement_close(j, "endgeneration");
}

static berth_status statement_do(berth__jinja *j, berth__jinja_node *node) {
  node->type = BERTH__JINJA_DO;
  BERTH__TRY(berth__jinja_parse_expression(j, &node->a));
  return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
}

static berth_status statement_break(berth__jinja *j, berth__jinja_node *node) {
  node->type = BERTH__JINJA_BREAK;
  return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
}

static berth_status statement_continue(berth__jinja *j, berth__jinja_node *node) {
  node->type = BERTH__JINJA_CONTINUE;
  return berth__jinja_expect(j, BERTH__JINJA_T_TAG_END, NULL);
}

static berth_status statement_tag(berth__jinja *j, berth__jinja_node **out) {
  static const struct {
    const char *name;
    berth_status (*parse)(berth__jinja *j, berth__jinja_node *node);
  } tags[] = {{"for", statement_for},     {"if", statement_if},         {"set", statement_set},
              {"macro", statement_macro}, {"filter", statement_filter}, {"generation", statement_generation},
              {"do", statement_do},       {"break", statement_break},   {"continue", statement_continue}};
  const berth__jinja_token *name = berth__jinja_peek(j);
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_NAME, NULL));
  *out = berth__jinja_new_node(j, BERTH__JINJA_BLOCK);
  if (*out == NULL) return berth__jinja_nomem(j);
  for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
    if (berth__jinja_string_is(name->text, tags[i].name)) return tags[i].parse(j, *out);
  }
  j->line = name->line;
  return berth__jinja_fail(j, "the tag '%.*s' is not known, or has no place here",
                           (int)(name->text.size < 40 ? name->text.size : 40), name->text.data);
}

static berth_status statement_one(berth__jinja *j, berth__jinja_node **out) {
  if (berth__jinja_is(j, BERTH__JINJA_T_TEXT, NULL)) {
    *out = berth__jinja_new_node(j, BERTH__JINJA_TEXT);
    if (*out == NULL) return berth__jinja_nomem(j);
    (*out)->name = j->tokens[j->at++].text;
    return BERTH_OK;
  }
  if (berth__jinja_take(j, BERTH__JINJA_T_OUTPUT_BEGIN, NULL)) {
    *out = berth__jinja_new_node(j, BERTH__JINJA_OUTPUT);
    if (*out == NULL) return berth__jinja_nomem(j);
    BERTH__TRY(berth__jinja_parse_expression(j, &(*out)->a));
    return berth__jinja_expect(j, BERTH__JINJA_T_OUTPUT_END, NULL);
  }
  BERTH__TRY(berth__jinja_expect(j, BERTH__JINJA_T_TAG_BEGIN, NULL));
  return statement_tag(j, out);
}

/* *out is a block, even if it is empty. */
static berth_status statement_body(berth__jinja *j, const char *const *ends, berth__jinja_node **out) {
  if (++j->depth > BERTH__TEMPLATE_NESTING) {
    j->line = berth__jinja_peek(j)->line;
    return berth__jinja_fail(j, "blocks are nested more than %u deep", BERTH__TEMPLATE_NESTING);
  }
  *out = berth__jinja_new_node(j, BERTH__JINJA_BLOCK);
  if (*out == NULL) return berth__jinja_nomem(j);
  berth__jinja_node **next = &(*out)->list;
  while (!statement_is_end(j, ends)) {
    if (berth__jinja_is(j, BERTH__JINJA_T_END, NULL)) {
      if (ends[0] == NULL) break;
      j->line = (*out)->line;
      return berth__jinja_fail(j, "the block that begins here has no {%% %s %%}", ends[ends[1] == NULL ? 0 : 1]);
    }
    BERTH__TRY(statement_one(j, next));
    next = &(*next)->next;
  }
  j->depth--;
  return BERTH_OK;
}

berth_status berth__jinja_parse(berth__jinja *j, berth__jinja_node **out) {
  static const char *const none[] = {NULL};
  j->at = 0;
  j->depth = 0;
  return statement_body(j, none, out);
}
