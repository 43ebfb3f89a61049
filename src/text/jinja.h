/* The internals of templates: values, the syntax tree, and what their files share. All memory is one arena, which is
 * freed when rendering ends. */
#ifndef BERTH_TEXT_JINJA_H
#define BERTH_TEXT_JINJA_H

#include "text/template.h"

typedef struct berth__jinja_string {
  const char *data;
  size_t size;
} berth__jinja_string;

typedef enum berth__jinja_kind {
  BERTH__JINJA_UNDEFINED,
  BERTH__JINJA_NONE,
  BERTH__JINJA_BOOL,
  BERTH__JINJA_INT,
  BERTH__JINJA_FLOAT,
  BERTH__JINJA_STRING,
  BERTH__JINJA_LIST,
  BERTH__JINJA_DICT,
  BERTH__JINJA_NAMESPACE, /* a dict whose members templates can set */
  BERTH__JINJA_MACRO,
  BERTH__JINJA_FUNCTION, /* one of the predefined names */
  BERTH__JINJA_LOOP
} berth__jinja_kind;

typedef struct berth__jinja_value {
  berth__jinja_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double number;
    berth__jinja_string string; /* of an undefined value: its name */
    struct berth__jinja_list *list;
    struct berth__jinja_dict *dict;
    const struct berth__jinja_node *macro;
    struct berth__jinja_loop *loop;
  } as;
} berth__jinja_value;

typedef struct berth__jinja_list {
  berth__jinja_value *items;
  size_t count, capacity;
} berth__jinja_list;

typedef struct berth__jinja_member {
  berth__jinja_value key, value;
} berth__jinja_member;

typedef struct berth__jinja_dict { /* in insertion order */
  berth__jinja_member *members;
  size_t count, capacity;
} berth__jinja_dict;

typedef struct berth__jinja_loop {
  const berth__jinja_list *items;
  size_t at;
} berth__jinja_loop;

/* ---- The tree ---- */

typedef enum berth__jinja_type {
  /* expressions */
  BERTH__JINJA_LITERAL,
  BERTH__JINJA_NAME,
  BERTH__JINJA_MAKE_LIST,
  BERTH__JINJA_MAKE_DICT, /* list: pairs a, b */
  BERTH__JINJA_ATTRIBUTE, /* a.name */
  BERTH__JINJA_INDEX,     /* a[b] */
  BERTH__JINJA_SLICE,     /* a[b:c:d] */
  BERTH__JINJA_CALL,      /* a(list) */
  BERTH__JINJA_FILTER,    /* a | name(list) */
  BERTH__JINJA_TEST,      /* a is name(list); negated: op */
  BERTH__JINJA_NOT,
  BERTH__JINJA_NEGATE,
  BERTH__JINJA_BINARY, /* a op b */
  BERTH__JINJA_AND,
  BERTH__JINJA_OR,
  BERTH__JINJA_COMPARE, /* a, list: op a */
  BERTH__JINJA_IF_ELSE, /* b if a else c */
  BERTH__JINJA_PAIR,
  BERTH__JINJA_ARGUMENT, /* name=a, in a call; name is empty for positional arguments */
  /* statements */
  BERTH__JINJA_TEXT,
  BERTH__JINJA_OUTPUT,
  BERTH__JINJA_FOR,          /* list: targets; in a; if b: c; else d */
  BERTH__JINJA_IF,           /* a: b; else c */
  BERTH__JINJA_SET,          /* list: targets = a */
  BERTH__JINJA_SET_BLOCK,    /* list: target; b: body, c: filters or NULL */
  BERTH__JINJA_DEFINE,       /* macro name(list) b */
  BERTH__JINJA_FILTER_BLOCK, /* b: body, c: filters */
  BERTH__JINJA_DO,
  BERTH__JINJA_BLOCK, /* b */
  BERTH__JINJA_BREAK,
  BERTH__JINJA_CONTINUE
} berth__jinja_type;

typedef enum berth__jinja_op {
  BERTH__JINJA_ADD,
  BERTH__JINJA_SUBTRACT,
  BERTH__JINJA_MULTIPLY,
  BERTH__JINJA_DIVIDE,
  BERTH__JINJA_FLOOR_DIVIDE,
  BERTH__JINJA_MODULO,
  BERTH__JINJA_POWER,
  BERTH__JINJA_CONCAT,
  BERTH__JINJA_EQUAL,
  BERTH__JINJA_NOT_EQUAL,
  BERTH__JINJA_LESS,
  BERTH__JINJA_LESS_EQUAL,
  BERTH__JINJA_GREATER,
  BERTH__JINJA_GREATER_EQUAL,
  BERTH__JINJA_IN,
  BERTH__JINJA_NOT_IN
} berth__jinja_op;

typedef struct berth__jinja_node {
  berth__jinja_type type;
  berth__jinja_op op;
  uint32_t line;
  berth__jinja_string name;
  berth__jinja_value value;
  struct berth__jinja_node *a, *b, *c, *d;
  struct berth__jinja_node *list; /* its first child */
  struct berth__jinja_node *next; /* next sibling */
} berth__jinja_node;

/* ---- Tokens ---- */

typedef enum berth__jinja_token_kind {
  BERTH__JINJA_T_TEXT,
  BERTH__JINJA_T_OUTPUT_BEGIN, /* {{ */
  BERTH__JINJA_T_OUTPUT_END,
  BERTH__JINJA_T_TAG_BEGIN, /* {% */
  BERTH__JINJA_T_TAG_END,
  BERTH__JINJA_T_NAME,
  BERTH__JINJA_T_STRING,
  BERTH__JINJA_T_NUMBER,
  BERTH__JINJA_T_SIGN,
  BERTH__JINJA_T_END
} berth__jinja_token_kind;

typedef struct berth__jinja_token {
  berth__jinja_token_kind kind;
  uint32_t line;
  berth__jinja_string text;
  berth__jinja_value value; /* numbers */
} berth__jinja_token;

/* ---- Rendering ---- */

typedef struct berth__jinja_variable {
  berth__jinja_string name;
  berth__jinja_value value;
  struct berth__jinja_variable *next;
} berth__jinja_variable;

typedef struct berth__jinja_scope {
  berth__jinja_variable *variables;
  struct berth__jinja_scope *outer;
} berth__jinja_scope;

typedef struct berth__jinja_buffer { /* text that grows */
  char *data;
  size_t size, capacity;
} berth__jinja_buffer;

typedef struct berth__jinja {
  berth_context *ctx;
  berth_error *err;
  struct berth__jinja_block *blocks; /* the arena */
  size_t used;
  uint32_t steps, depth, line;
  int64_t now;
  berth__jinja_token *tokens;
  size_t n_tokens, at; /* of the parser */
  berth__jinja_scope *scope, *global;
  berth__jinja_buffer *out;
  enum {
    BERTH__JINJA_GO,
    BERTH__JINJA_STOP,
    BERTH__JINJA_SKIP
  } loop_state; /* break and continue */
} berth__jinja;

/* Arguments of a call, a filter or a test. */
#define BERTH__JINJA_MAX_ARGUMENTS 16
typedef struct berth__jinja_arguments {
  berth__jinja_value values[BERTH__JINJA_MAX_ARGUMENTS];
  berth__jinja_string names[BERTH__JINJA_MAX_ARGUMENTS]; /* size 0: positional */
  size_t count;
} berth__jinja_arguments;

void *berth__jinja_alloc(berth__jinja *j, size_t size); /* NULL: out of memory, reported in the error */
void berth__jinja_free(berth__jinja *j);
berth_status berth__jinja_fail(berth__jinja *j, const char *fmt, ...)
    BERTH__PRINTF(2, 3);                                /* MALFORMED, with the line */
berth_status berth__jinja_nomem(const berth__jinja *j); /* the status of a failed berth__jinja_alloc */
/* Counts work that is about to be done, and fails if there was too much. */
berth_status berth__jinja_step(berth__jinja *j, size_t bytes);

#ifdef __clang_analyzer__ /* as in base/status.h: a failure is never OK */
#define berth__jinja_fail(j, ...) (berth__jinja_fail(j, __VA_ARGS__), BERTH_MALFORMED)
#define berth__jinja_nomem(j) (berth__jinja_nomem(j), BERTH_NOMEM)
#define berth__jinja_step(j, bytes) (berth__jinja_step(j, bytes) == BERTH_OK ? BERTH_OK : BERTH_MALFORMED)
#endif

berth_status berth__jinja_lex(berth__jinja *j, const char *text, size_t size);
berth_status berth__jinja_parse(berth__jinja *j, berth__jinja_node **out);
berth_status berth__jinja_parse_expression(berth__jinja *j, berth__jinja_node **out);
berth_status berth__jinja_parse_filters(berth__jinja *j, berth__jinja_node *on,
                                        berth__jinja_node **out); /* a | b | c, without the first | */
berth_status berth__jinja_parse_arguments(berth__jinja *j, berth__jinja_node **out); /* after the ( */
/* The tokens */
const berth__jinja_token *berth__jinja_peek(const berth__jinja *j);
bool berth__jinja_is(const berth__jinja *j, berth__jinja_token_kind kind, const char *text); /* text NULL: any */
bool berth__jinja_take(berth__jinja *j, berth__jinja_token_kind kind, const char *text);
berth_status berth__jinja_expect(berth__jinja *j, berth__jinja_token_kind kind, const char *text);
berth__jinja_node *berth__jinja_new_node(berth__jinja *j, berth__jinja_type type); /* NULL: out of memory */

berth_status berth__jinja_run(berth__jinja *j, const berth__jinja_node *body);
berth_status berth__jinja_evaluate(berth__jinja *j, const berth__jinja_node *node, berth__jinja_value *out);
berth_status berth__jinja_evaluate_arguments(berth__jinja *j, const berth__jinja_node *list,
                                             berth__jinja_arguments *out);
berth_status berth__jinja_call_macro(berth__jinja *j, const berth__jinja_node *macro,
                                     const berth__jinja_arguments *args, berth__jinja_value *out);
berth_status berth__jinja_function(berth__jinja *j, berth__jinja_string name, const berth__jinja_arguments *args,
                                   berth__jinja_value *out);
bool berth__jinja_is_function(berth__jinja_string name);
berth_status berth__jinja_method(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                 const berth__jinja_arguments *args, berth__jinja_value *out);
berth_status berth__jinja_string_method(berth__jinja *j, berth__jinja_string on, berth__jinja_string name,
                                        const berth__jinja_arguments *args, berth__jinja_value *out);
berth_status berth__jinja_filter(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                 const berth__jinja_arguments *args, berth__jinja_value *out);
berth_status berth__jinja_list_filter(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                      const berth__jinja_arguments *args, berth__jinja_value *out, bool *known);
berth_status berth__jinja_test(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                               const berth__jinja_arguments *args, bool *out);
berth_status berth__jinja_binary(berth__jinja *j, berth__jinja_op op, berth__jinja_value a, berth__jinja_value b,
                                 berth__jinja_value *out);

berth_status berth__jinja_set(berth__jinja *j, berth__jinja_scope *scope, berth__jinja_string name,
                              berth__jinja_value value);
berth_status berth__jinja_attribute(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                    berth__jinja_value *out);
berth_status berth__jinja_item(berth__jinja *j, berth__jinja_value on, berth__jinja_value key, berth__jinja_value *out);
berth_status berth__jinja_slice(berth__jinja *j, berth__jinja_value on, const berth__jinja_value bounds[3],
                                berth__jinja_value *out);

/* ---- Values ---- */

#define BERTH__JINJA_STRING_OF(literal) ((berth__jinja_string){(literal), sizeof(literal) - 1})
static inline berth__jinja_value berth__jinja_make_bool(bool b) {
  return (berth__jinja_value){BERTH__JINJA_BOOL, {.boolean = b}};
}
static inline berth__jinja_value berth__jinja_make_int(int64_t i) {
  return (berth__jinja_value){BERTH__JINJA_INT, {.integer = i}};
}
static inline berth__jinja_value berth__jinja_make_float(double d) {
  return (berth__jinja_value){BERTH__JINJA_FLOAT, {.number = d}};
}
static inline berth__jinja_value berth__jinja_make_string(berth__jinja_string s) {
  return (berth__jinja_value){BERTH__JINJA_STRING, {.string = s}};
}
static inline berth__jinja_value berth__jinja_make_undefined(berth__jinja_string name) {
  return (berth__jinja_value){BERTH__JINJA_UNDEFINED, {.string = name}};
}
#define BERTH__JINJA_NO_VALUE ((berth__jinja_value){BERTH__JINJA_NONE, {.integer = 0}})

bool berth__jinja_string_is(berth__jinja_string a, const char *text);
bool berth__jinja_same(berth__jinja_string a, berth__jinja_string b);
/* The same for texts of any length, counted as work. */
berth_status berth__jinja_match(berth__jinja *j, berth__jinja_string a, berth__jinja_string b, bool *out);
const char *berth__jinja_kind_name(berth__jinja_kind kind);
bool berth__jinja_truth(berth__jinja_value value);
berth_status berth__jinja_equal(berth__jinja *j, berth__jinja_value a, berth__jinja_value b, bool *out);
berth_status berth__jinja_compare(berth__jinja *j, berth__jinja_value a, berth__jinja_value b,
                                  int *out); /* numbers, strings, lists */
berth_status berth__jinja_contains(berth__jinja *j, berth__jinja_value in, berth__jinja_value what, bool *out);
/* Linear in the size of `in`; the caller counts the work. */
bool berth__jinja_find(berth__jinja_string in, berth__jinja_string what, size_t from, size_t *at);
size_t berth__jinja_characters(berth__jinja_string text);
/* The bytes of characters [first, last) of a text. */
berth__jinja_string berth__jinja_substring(berth__jinja_string text, size_t first, size_t last);

berth_status berth__jinja_new_list(berth__jinja *j, berth__jinja_value *out);
berth_status berth__jinja_append(berth__jinja *j, berth__jinja_list *list, berth__jinja_value value);
berth_status berth__jinja_new_dict(berth__jinja *j, berth__jinja_value *out);
berth_status berth__jinja_put(berth__jinja *j, berth__jinja_dict *dict, berth__jinja_value key,
                              berth__jinja_value value);
berth_status berth__jinja_get(berth__jinja *j, const berth__jinja_dict *dict, berth__jinja_string key,
                              berth__jinja_value *out); /* *out is unchanged if there is none */
/* What a for loop iterates over, as a list: lists, the keys of dicts, the characters of strings. */
berth_status berth__jinja_items(berth__jinja *j, berth__jinja_value value, berth__jinja_value *out);

berth_status berth__jinja_add(berth__jinja *j, berth__jinja_buffer *buffer, const char *bytes, size_t size);
berth_status berth__jinja_add_value(berth__jinja *j, berth__jinja_buffer *buffer,
                                    berth__jinja_value value); /* like Python's str() */
berth_status berth__jinja_text_of(berth__jinja *j, berth__jinja_value value, berth__jinja_string *out);
berth_status berth__jinja_join(berth__jinja *j, const berth__jinja_string *parts, size_t count,
                               berth__jinja_value *out);

/* indent < 0: one line */
berth_status berth__jinja_to_json(berth__jinja *j, berth__jinja_value value, int64_t indent, berth__jinja_buffer *out);
berth_status berth__jinja_from_json(berth__jinja *j, berth__jinja_string text, berth__jinja_value *out);
berth_status berth__jinja_time(berth__jinja *j, berth__jinja_string format, berth__jinja_value *out);

/* An argument by position or name; UNDEFINED if it is not given. */
berth__jinja_value berth__jinja_argument(const berth__jinja_arguments *args, size_t at, const char *name);

#endif
