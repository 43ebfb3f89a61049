/* Running a template: expressions become values, statements become text. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "text/jinja.h"

/* ---- Variables ---- */

/* NULL: not defined. */
static berth_status run_find(berth__jinja *j, berth__jinja_scope *scope, berth__jinja_string name, bool outward,
                             berth__jinja_variable **out) {
  size_t n = 0;
  for (; scope != NULL; scope = outward ? scope->outer : NULL) {
    for (berth__jinja_variable *v = scope->variables; v != NULL; v = v->next) {
      bool same = false;
      if (++n % 4 == 0) BERTH__TRY(berth__jinja_step(j, 0));
      BERTH__TRY(berth__jinja_match(j, v->name, name, &same));
      *out = v;
      if (same) return BERTH_OK;
    }
  }
  *out = NULL;
  return BERTH_OK;
}

berth_status berth__jinja_set(berth__jinja *j, berth__jinja_scope *scope, berth__jinja_string name,
                              berth__jinja_value value) {
  berth__jinja_variable *v;
  BERTH__TRY(berth__jinja_step(j, 0));
  BERTH__TRY(run_find(j, scope, name, false, &v));
  if (v == NULL) {
    v = berth__jinja_alloc(j, sizeof *v);
    if (v == NULL) return berth__jinja_nomem(j);
    *v = (berth__jinja_variable){name, value, scope->variables};
    scope->variables = v;
  }
  v->value = value;
  return BERTH_OK;
}

static berth_status run_name(berth__jinja *j, berth__jinja_string name, berth__jinja_value *out) {
  berth__jinja_variable *v = NULL;
  BERTH__TRY(run_find(j, j->scope, name, true, &v));
  *out = berth__jinja_make_undefined(name);
  if (v != NULL) {
    *out = v->value;
  } else if (berth__jinja_is_function(name)) {
    out->kind = BERTH__JINJA_FUNCTION;
  }
  return BERTH_OK;
}

/* ---- Members ---- */

static berth_status run_undefined(berth__jinja *j, berth__jinja_value value) {
  const int n = (int)(value.as.string.size < 60 ? value.as.string.size : 60);
  return berth__jinja_fail(j, "'%.*s' is not defined", n, value.as.string.data);
}

static bool run_loop_attribute(const berth__jinja_loop *loop, berth__jinja_string name, berth__jinja_value *out) {
  const int64_t at = (int64_t)loop->at, count = (int64_t)loop->items->count;
  const struct {
    const char *name;
    berth__jinja_value value;
  } attributes[] = {
      {"index", berth__jinja_make_int(at + 1)},        {"index0", berth__jinja_make_int(at)},
      {"revindex", berth__jinja_make_int(count - at)}, {"revindex0", berth__jinja_make_int(count - at - 1)},
      {"first", berth__jinja_make_bool(at == 0)},      {"last", berth__jinja_make_bool(at + 1 == count)},
      {"length", berth__jinja_make_int(count)}};
  for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
    if (!berth__jinja_string_is(name, attributes[i].name)) continue;
    *out = attributes[i].value;
    return true;
  }
  if (berth__jinja_string_is(name, "previtem")) {
    if (at > 0) *out = loop->items->items[at - 1];
    return true;
  }
  if (!berth__jinja_string_is(name, "nextitem")) return false;
  if (at + 1 < count) *out = loop->items->items[at + 1];
  return true;
}

berth_status berth__jinja_attribute(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                    berth__jinja_value *out) {
  *out = berth__jinja_make_undefined(name);
  if (on.kind == BERTH__JINJA_UNDEFINED) return run_undefined(j, on);
  if (on.kind == BERTH__JINJA_DICT || on.kind == BERTH__JINJA_NAMESPACE)
    return berth__jinja_get(j, on.as.dict, name, out);
  if (on.kind == BERTH__JINJA_LOOP) (void)run_loop_attribute(on.as.loop, name, out);
  return BERTH_OK;
}

berth_status berth__jinja_item(berth__jinja *j, berth__jinja_value on, berth__jinja_value key,
                               berth__jinja_value *out) {
  *out = berth__jinja_make_undefined(key.kind == BERTH__JINJA_STRING ? key.as.string
                                                                     : BERTH__JINJA_STRING_OF("an element"));
  if (on.kind == BERTH__JINJA_UNDEFINED) return run_undefined(j, on);
  if (on.kind == BERTH__JINJA_DICT || on.kind == BERTH__JINJA_NAMESPACE) {
    for (size_t i = 0; i < on.as.dict->count; i++) {
      bool same = false;
      BERTH__TRY(berth__jinja_equal(j, on.as.dict->members[i].key, key, &same));
      if (same) *out = on.as.dict->members[i].value;
      if (same) break;
    }
    return BERTH_OK;
  }
  if (key.kind == BERTH__JINJA_STRING) return berth__jinja_attribute(j, on, key.as.string, out);
  if (key.kind != BERTH__JINJA_INT || (on.kind != BERTH__JINJA_LIST && on.kind != BERTH__JINJA_STRING)) return BERTH_OK;
  const bool is_list = on.kind == BERTH__JINJA_LIST;
  BERTH__TRY(berth__jinja_step(j, is_list ? 0 : on.as.string.size));
  const int64_t count = is_list ? (int64_t)on.as.list->count : (int64_t)berth__jinja_characters(on.as.string);
  const int64_t at = key.as.integer < 0 ? key.as.integer + count : key.as.integer;
  if (at < 0 || at >= count) return BERTH_OK;
  *out = is_list ? on.as.list->items[at]
                 : berth__jinja_make_string(berth__jinja_substring(on.as.string, (size_t)at, (size_t)at + 1));
  return BERTH_OK;
}

static int64_t run_bound(berth__jinja_value bound, int64_t otherwise, int64_t count, int64_t least) {
  if (bound.kind != BERTH__JINJA_INT) return otherwise;
  const int64_t at = bound.as.integer < 0 ? bound.as.integer + count : bound.as.integer;
  return at < least ? least : at > count + least ? count + least : at;
}

berth_status berth__jinja_slice(berth__jinja *j, berth__jinja_value on, const berth__jinja_value bounds[3],
                                berth__jinja_value *out) {
  berth__jinja_value items = on;
  const int64_t step = bounds[2].kind == BERTH__JINJA_INT ? bounds[2].as.integer : 1;
  if (on.kind == BERTH__JINJA_UNDEFINED) return run_undefined(j, on);
  if (on.kind != BERTH__JINJA_LIST && on.kind != BERTH__JINJA_STRING)
    return berth__jinja_fail(j, "a value of type %s has no slices", berth__jinja_kind_name(on.kind));
  if (step == 0) return berth__jinja_fail(j, "the step of a slice is 0");
  if (on.kind == BERTH__JINJA_STRING) BERTH__TRY(berth__jinja_items(j, on, &items));
  const int64_t count = (int64_t)items.as.list->count, least = step < 0 ? -1 : 0;
  const int64_t from = run_bound(bounds[0], step < 0 ? count - 1 : 0, count, least);
  const int64_t to = run_bound(bounds[1], step < 0 ? -1 : count, count, least);
  berth__jinja_buffer text = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (int64_t i = from; step < 0 ? i > to : i < to; i += step) {
    const berth__jinja_value item = items.as.list->items[i];
    BERTH__TRY(on.kind == BERTH__JINJA_LIST ? berth__jinja_append(j, out->as.list, item)
                                            : berth__jinja_add(j, &text, item.as.string.data, item.as.string.size));
    if (step > count || step < -count) break;
  }
  if (on.kind == BERTH__JINJA_STRING)
    *out = berth__jinja_make_string((berth__jinja_string){text.data != NULL ? text.data : "", text.size});
  return BERTH_OK;
}

/* ---- Expressions ---- */

static berth_status run_enter(berth__jinja *j, const berth__jinja_node *node) {
  j->line = node->line;
  BERTH__TRY(berth__jinja_step(j, 0));
  if (++j->depth > BERTH__TEMPLATE_DEPTH)
    return berth__jinja_fail(j, "values or calls are nested more than %u deep", BERTH__TEMPLATE_DEPTH);
  return BERTH_OK;
}

berth_status berth__jinja_evaluate_arguments(berth__jinja *j, const berth__jinja_node *list,
                                             berth__jinja_arguments *out) {
  out->count = 0;
  for (; list != NULL; list = list->next) {
    if (out->count == BERTH__JINJA_MAX_ARGUMENTS)
      return berth__jinja_fail(j, "a call has more than %d arguments", BERTH__JINJA_MAX_ARGUMENTS);
    out->names[out->count] = list->name;
    BERTH__TRY(berth__jinja_evaluate(j, list->a, &out->values[out->count]));
    out->count++;
  }
  return BERTH_OK;
}

static berth_status run_call(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  berth__jinja_arguments *args = berth__jinja_alloc(j, sizeof *args); /* too large for the stack in deep recursions */
  berth__jinja_value on;
  if (args == NULL) return berth__jinja_nomem(j);
  if (node->a->type == BERTH__JINJA_ATTRIBUTE) { /* a method, unless the member itself can be called */
    berth__jinja_value member = berth__jinja_make_undefined(node->a->name);
    BERTH__TRY(berth__jinja_evaluate(j, node->a->a, &on));
    if (on.kind == BERTH__JINJA_DICT || on.kind == BERTH__JINJA_NAMESPACE)
      BERTH__TRY(berth__jinja_get(j, on.as.dict, node->a->name, &member));
    if (member.kind != BERTH__JINJA_MACRO) {
      BERTH__TRY(berth__jinja_evaluate_arguments(j, node->list, args));
      j->line = node->line;
      return berth__jinja_method(j, on, node->a->name, args, out);
    }
    on = member;
  } else {
    BERTH__TRY(berth__jinja_evaluate(j, node->a, &on));
  }
  BERTH__TRY(berth__jinja_evaluate_arguments(j, node->list, args));
  j->line = node->line;
  if (on.kind == BERTH__JINJA_MACRO) return berth__jinja_call_macro(j, on.as.macro, args, out);
  if (on.kind == BERTH__JINJA_FUNCTION) return berth__jinja_function(j, on.as.string, args, out);
  if (on.kind == BERTH__JINJA_UNDEFINED) return run_undefined(j, on);
  return berth__jinja_fail(j, "a value of type %s cannot be called", berth__jinja_kind_name(on.kind));
}

static berth_status run_compare_one(berth__jinja *j, berth__jinja_op op, berth__jinja_value a, berth__jinja_value b,
                                    bool *out) {
  int order = 0;
  if (op == BERTH__JINJA_EQUAL || op == BERTH__JINJA_NOT_EQUAL) {
    BERTH__TRY(berth__jinja_equal(j, a, b, out));
    *out = *out == (op == BERTH__JINJA_EQUAL);
    return BERTH_OK;
  }
  if (op == BERTH__JINJA_IN || op == BERTH__JINJA_NOT_IN) {
    BERTH__TRY(berth__jinja_contains(j, b, a, out));
    *out = *out == (op == BERTH__JINJA_IN);
    return BERTH_OK;
  }
  BERTH__TRY(berth__jinja_compare(j, a, b, &order));
  *out = op == BERTH__JINJA_LESS         ? order < 0
         : op == BERTH__JINJA_LESS_EQUAL ? order <= 0
         : op == BERTH__JINJA_GREATER    ? order > 0
                                         : order >= 0;
  return BERTH_OK;
}

static berth_status run_compare(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  berth__jinja_value left, right;
  bool holds = true;
  BERTH__TRY(berth__jinja_evaluate(j, node->a, &left));
  for (const berth__jinja_node *next = node->list; next != NULL && holds; next = next->next, left = right) {
    BERTH__TRY(berth__jinja_evaluate(j, next->a, &right));
    BERTH__TRY(run_compare_one(j, next->op, left, right, &holds));
  }
  *out = berth__jinja_make_bool(holds);
  return BERTH_OK;
}

static berth_status run_make_list(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (const berth__jinja_node *item = node->list; item != NULL; item = item->next) {
    berth__jinja_value value;
    BERTH__TRY(berth__jinja_evaluate(j, item, &value));
    BERTH__TRY(berth__jinja_append(j, out->as.list, value));
  }
  return BERTH_OK;
}

static berth_status run_make_dict(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_dict(j, out));
  for (const berth__jinja_node *pair = node->list; pair != NULL; pair = pair->next) {
    berth__jinja_value key, value;
    BERTH__TRY(berth__jinja_evaluate(j, pair->a, &key));
    BERTH__TRY(berth__jinja_evaluate(j, pair->b, &value));
    BERTH__TRY(berth__jinja_put(j, out->as.dict, key, value));
  }
  return BERTH_OK;
}

static berth_status run_slice(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  const berth__jinja_node *const parts[3] = {node->b, node->c, node->d};
  berth__jinja_value on, bounds[3];
  BERTH__TRY(berth__jinja_evaluate(j, node->a, &on));
  for (int i = 0; i < 3; i++) {
    bounds[i] = BERTH__JINJA_NO_VALUE;
    if (parts[i] != NULL) BERTH__TRY(berth__jinja_evaluate(j, parts[i], &bounds[i]));
  }
  return berth__jinja_slice(j, on, bounds, out);
}

/* A filter or a test; `on` is what it is applied to. */
static berth_status run_filter(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value on,
                               berth__jinja_value *out) {
  berth__jinja_arguments *args = berth__jinja_alloc(j, sizeof *args);
  if (args == NULL) return berth__jinja_nomem(j);
  BERTH__TRY(berth__jinja_evaluate_arguments(j, node->list, args));
  j->line = node->line;
  if (node->type == BERTH__JINJA_FILTER) return berth__jinja_filter(j, on, node->name, args, out);
  bool holds = false;
  BERTH__TRY(berth__jinja_test(j, on, node->name, args, &holds));
  *out = berth__jinja_make_bool(holds != (node->op != 0));
  return BERTH_OK;
}

static berth_status run_expression(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  berth__jinja_value a = BERTH__JINJA_NO_VALUE, b;
  switch (node->type) {
    case BERTH__JINJA_LITERAL: *out = node->value; return BERTH_OK;
    case BERTH__JINJA_NAME: return run_name(j, node->name, out);
    case BERTH__JINJA_MAKE_LIST: return run_make_list(j, node, out);
    case BERTH__JINJA_MAKE_DICT: return run_make_dict(j, node, out);
    case BERTH__JINJA_CALL: return run_call(j, node, out);
    case BERTH__JINJA_COMPARE: return run_compare(j, node, out);
    case BERTH__JINJA_SLICE: return run_slice(j, node, out);
    default: break;
  }
  BERTH__TRY(berth__jinja_evaluate(j, node->a, &a));
  j->line = node->line;
  switch (node->type) {
    case BERTH__JINJA_ATTRIBUTE: return berth__jinja_attribute(j, a, node->name, out);
    case BERTH__JINJA_INDEX: BERTH__TRY(berth__jinja_evaluate(j, node->b, &b)); return berth__jinja_item(j, a, b, out);
    case BERTH__JINJA_FILTER:
    case BERTH__JINJA_TEST: return run_filter(j, node, a, out);
    case BERTH__JINJA_NOT: *out = berth__jinja_make_bool(!berth__jinja_truth(a)); return BERTH_OK;
    case BERTH__JINJA_NEGATE: return berth__jinja_binary(j, BERTH__JINJA_SUBTRACT, berth__jinja_make_int(0), a, out);
    case BERTH__JINJA_BINARY:
      BERTH__TRY(berth__jinja_evaluate(j, node->b, &b));
      return berth__jinja_binary(j, node->op, a, b, out);
    case BERTH__JINJA_AND:
    case BERTH__JINJA_OR:
      *out = a;
      return berth__jinja_truth(a) == (node->type == BERTH__JINJA_OR) ? BERTH_OK
                                                                      : berth__jinja_evaluate(j, node->b, out);
    case BERTH__JINJA_IF_ELSE:
      *out = berth__jinja_make_undefined(BERTH__JINJA_STRING_OF("the missing else"));
      if (berth__jinja_truth(a)) return berth__jinja_evaluate(j, node->b, out);
      return node->c != NULL ? berth__jinja_evaluate(j, node->c, out) : BERTH_OK;
    default: return berth__jinja_fail(j, "this is no expression");
  }
}

berth_status berth__jinja_evaluate(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out) {
  BERTH__TRY(run_enter(j, node));
  BERTH__TRY(run_expression(j, node, out));
  j->depth--;
  return BERTH_OK;
}

/* ---- Statements ---- */

static berth_status run_assign_one(berth__jinja *j, const berth__jinja_node *target, berth__jinja_value value) {
  if (target->type == BERTH__JINJA_NAME) return berth__jinja_set(j, j->scope, target->name, value);
  berth__jinja_value on;
  BERTH__TRY(berth__jinja_evaluate(j, target->a, &on));
  if (on.kind != BERTH__JINJA_NAMESPACE)
    return berth__jinja_fail(j, "only members of a namespace can be set, not of a value of type %s",
                             berth__jinja_kind_name(on.kind));
  return berth__jinja_put(j, on.as.dict, berth__jinja_make_string(target->name), value);
}

/* One target takes the value, several take its items. */
static berth_status run_assign(berth__jinja *j, const berth__jinja_node *targets, berth__jinja_value value) {
  if (targets->next == NULL) return run_assign_one(j, targets, value);
  berth__jinja_value items;
  BERTH__TRY(berth__jinja_items(j, value, &items));
  size_t i = 0;
  for (; targets != NULL && i < items.as.list->count; targets = targets->next, i++)
    BERTH__TRY(run_assign_one(j, targets, items.as.list->items[i]));
  if (targets != NULL || i != items.as.list->count)
    return berth__jinja_fail(j, "%zu values for another number of names", items.as.list->count);
  return BERTH_OK;
}

/* Opens a scope inside the current one. */
static berth_status run_push_scope(berth__jinja *j, berth__jinja_scope *outer) {
  berth__jinja_scope *scope = berth__jinja_alloc(j, sizeof *scope);
  if (scope == NULL) return berth__jinja_nomem(j);
  *scope = (berth__jinja_scope){NULL, outer};
  j->scope = scope;
  return BERTH_OK;
}

static berth_status run_for_items(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value iterable,
                                  berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_items(j, iterable, out));
  if (node->b == NULL) return BERTH_OK;
  const berth__jinja_list *all = out->as.list;
  BERTH__TRY(berth__jinja_new_list(j, out));
  BERTH__TRY(run_push_scope(j, j->scope));
  for (size_t i = 0; i < all->count; i++) {
    berth__jinja_value condition;
    BERTH__TRY(run_assign(j, node->list, all->items[i]));
    BERTH__TRY(berth__jinja_evaluate(j, node->b, &condition));
    if (berth__jinja_truth(condition)) BERTH__TRY(berth__jinja_append(j, out->as.list, all->items[i]));
  }
  j->scope = j->scope->outer;
  return BERTH_OK;
}

static berth_status run_for(berth__jinja *j, const berth__jinja_node *node) {
  berth__jinja_value items;
  BERTH__TRY(berth__jinja_evaluate(j, node->a, &items));
  BERTH__TRY(run_for_items(j, node, items, &items));
  if (items.as.list->count == 0) return node->d != NULL ? berth__jinja_run(j, node->d) : BERTH_OK;
  berth__jinja_list *list = berth__jinja_alloc(j, sizeof *list); /* a copy: the body may change the list */
  berth__jinja_loop *loop = berth__jinja_alloc(j, sizeof *loop);
  if (list == NULL || loop == NULL) return berth__jinja_nomem(j);
  *list = *items.as.list;
  *loop = (berth__jinja_loop){list, 0};
  berth__jinja_scope *outer = j->scope;
  for (; loop->at < list->count && j->loop_state != BERTH__JINJA_STOP; loop->at++) {
    BERTH__TRY(run_push_scope(j, outer));
    BERTH__TRY(berth__jinja_set(j, j->scope, BERTH__JINJA_STRING_OF("loop"),
                                (berth__jinja_value){BERTH__JINJA_LOOP, {.loop = loop}}));
    BERTH__TRY(run_assign(j, node->list, list->items[loop->at]));
    BERTH__TRY(berth__jinja_run(j, node->c));
    if (j->loop_state == BERTH__JINJA_SKIP) j->loop_state = BERTH__JINJA_GO;
  }
  j->loop_state = BERTH__JINJA_GO;
  j->scope = outer;
  return BERTH_OK;
}

/* Runs a body and captures its text as a string. */
static berth_status run_capture(berth__jinja *j, const berth__jinja_node *body, berth__jinja_value *out) {
  berth__jinja_buffer buffer = {NULL, 0, 0}, *before = j->out;
  j->out = &buffer;
  const berth_status status = berth__jinja_run(j, body);
  j->out = before;
  *out = berth__jinja_make_string((berth__jinja_string){buffer.data != NULL ? buffer.data : "", buffer.size});
  return status;
}

/* Applies filters to a captured body; the innermost has no operand. */
static berth_status run_filters(berth__jinja *j, const berth__jinja_node *filters, berth__jinja_value on,
                                berth__jinja_value *out) {
  *out = on;
  if (filters == NULL) return BERTH_OK;
  berth__jinja_value inner;
  BERTH__TRY(run_enter(j, filters));
  BERTH__TRY(run_filters(j, filters->a, on, &inner));
  BERTH__TRY(run_filter(j, filters, inner, out));
  j->depth--;
  return BERTH_OK;
}

berth_status berth__jinja_call_macro(berth__jinja *j, const berth__jinja_node *macro,
                                     const berth__jinja_arguments *args, berth__jinja_value *out) {
  berth__jinja_scope *before = j->scope;
  size_t position = 0;
  BERTH__TRY(run_push_scope(j, j->global));
  for (const berth__jinja_node *parameter = macro->list; parameter != NULL; parameter = parameter->next) {
    berth__jinja_value value = berth__jinja_make_undefined(parameter->name);
    bool given = false;
    while (position < args->count && args->names[position].size != 0) position++;
    if (position < args->count) {
      value = args->values[position++];
      given = true;
    }
    for (size_t i = 0; i < args->count && !given; i++) {
      if (args->names[i].size != 0) BERTH__TRY(berth__jinja_match(j, args->names[i], parameter->name, &given));
      if (given) value = args->values[i];
    }
    if (!given && parameter->a != NULL) BERTH__TRY(berth__jinja_evaluate(j, parameter->a, &value));
    BERTH__TRY(berth__jinja_set(j, j->scope, parameter->name, value));
  }
  BERTH__TRY(run_capture(j, macro->b, out));
  j->scope = before;
  j->loop_state = BERTH__JINJA_GO;
  return BERTH_OK;
}

static berth_status run_statement(berth__jinja *j, const berth__jinja_node *node) {
  berth__jinja_value value;
  switch (node->type) {
    case BERTH__JINJA_TEXT: return berth__jinja_add(j, j->out, node->name.data, node->name.size);
    case BERTH__JINJA_OUTPUT:
      BERTH__TRY(berth__jinja_evaluate(j, node->a, &value));
      return berth__jinja_add_value(j, j->out, value);
    case BERTH__JINJA_FOR: return run_for(j, node);
    case BERTH__JINJA_IF:
      BERTH__TRY(berth__jinja_evaluate(j, node->a, &value));
      if (berth__jinja_truth(value)) return berth__jinja_run(j, node->b);
      return node->c != NULL ? berth__jinja_run(j, node->c) : BERTH_OK;
    case BERTH__JINJA_SET:
      BERTH__TRY(berth__jinja_evaluate(j, node->a, &value));
      return run_assign(j, node->list, value);
    case BERTH__JINJA_SET_BLOCK:
      BERTH__TRY(run_capture(j, node->b, &value));
      BERTH__TRY(run_filters(j, node->c, value, &value));
      return run_assign(j, node->list, value);
    case BERTH__JINJA_FILTER_BLOCK:
      BERTH__TRY(run_capture(j, node->b, &value));
      BERTH__TRY(run_filters(j, node->c, value, &value));
      return berth__jinja_add_value(j, j->out, value);
    case BERTH__JINJA_DEFINE:
      return berth__jinja_set(j, j->scope, node->name, (berth__jinja_value){BERTH__JINJA_MACRO, {.macro = node}});
    case BERTH__JINJA_DO: return berth__jinja_evaluate(j, node->a, &value);
    case BERTH__JINJA_BREAK: j->loop_state = BERTH__JINJA_STOP; return BERTH_OK;
    case BERTH__JINJA_CONTINUE: j->loop_state = BERTH__JINJA_SKIP; return BERTH_OK;
    default: break;
  }
  for (const berth__jinja_node *child = node->list; child != NULL && j->loop_state == BERTH__JINJA_GO;
       child = child->next)
    BERTH__TRY(berth__jinja_run(j, child));
  return node->b != NULL ? berth__jinja_run(j, node->b) : BERTH_OK;
}

berth_status berth__jinja_run(berth__jinja *j, const berth__jinja_node *node) {
  BERTH__TRY(run_enter(j, node));
  BERTH__TRY(run_statement(j, node));
  j->depth--;
  return BERTH_OK;
}
