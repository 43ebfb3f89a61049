/* The inside of templates: values, the tree, and what the files of it share. All memory is one arena, which goes when
 * rendering ends; nothing is freed before. */
#ifndef BERTH_TEXT_JINJA_H
#define BERTH_TEXT_JINJA_H

#include "text/template.h"

typedef struct jinja_string {
  const char *data;
  size_t size;
} jinja_string;

typedef enum jinja_kind {
  JINJA_UNDEFINED,
  JINJA_NONE,
  JINJA_BOOL,
  JINJA_INT,
  JINJA_FLOAT,
  JINJA_STRING,
  JINJA_LIST,
  JINJA_DICT,
  JINJA_NAMESPACE, /* a dict whose members templates may set */
  JINJA_MACRO,
  JINJA_FUNCTION, /* one of the names that are always there */
  JINJA_LOOP
} jinja_kind;

typedef struct jinja_value {
  jinja_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double number;
    jinja_string string; /* of an undefined value: its name */
    struct jinja_list *list;
    struct jinja_dict *dict;
    const struct jinja_node *macro;
    struct jinja_loop *loop;
  } as;
} jinja_value;

typedef struct jinja_list {
  jinja_value *items;
  size_t count, capacity;
} jinja_list;

typedef struct jinja_member {
  jinja_value key, value;
} jinja_member;

typedef struct jinja_dict { /* in the order in which they were added */
  jinja_member *members;
  size_t count, capacity;
} jinja_dict;

typedef struct jinja_loop {
  const jinja_list *items;
  size_t at;
} jinja_loop;

/* ---- The tree ---- */

typedef enum jinja_type {
  /* expressions */
  JINJA_LITERAL,
  JINJA_NAME,
  JINJA_MAKE_LIST,
  JINJA_MAKE_DICT, /* list: pairs a, b */
  JINJA_ATTRIBUTE, /* a.name */
  JINJA_INDEX,     /* a[b] */
  JINJA_SLICE,     /* a[b:c:d] */
  JINJA_CALL,      /* a(list) */
  JINJA_FILTER,    /* a | name(list) */
  JINJA_TEST,      /* a is name(list); negated: op */
  JINJA_NOT,
  JINJA_NEGATE,
  JINJA_BINARY, /* a op b */
  JINJA_AND,
  JINJA_OR,
  JINJA_COMPARE, /* a, list: op a */
  JINJA_IF_ELSE, /* b if a else c */
  JINJA_PAIR,
  JINJA_ARGUMENT, /* name=a, in a call; name is empty where there is none */
  /* statements */
  JINJA_TEXT,
  JINJA_OUTPUT,
  JINJA_FOR,          /* list: targets; in a; if b: c; else d */
  JINJA_IF,           /* a: b; else c */
  JINJA_SET,          /* list: targets = a */
  JINJA_SET_BLOCK,    /* list: target; b: body, c: filters or NULL */
  JINJA_DEFINE,       /* macro name(list) b */
  JINJA_FILTER_BLOCK, /* b: body, c: filters */
  JINJA_DO,
  JINJA_BLOCK, /* b */
  JINJA_BREAK,
  JINJA_CONTINUE
} jinja_type;

typedef enum jinja_op {
  JINJA_ADD,
  JINJA_SUBTRACT,
  JINJA_MULTIPLY,
  JINJA_DIVIDE,
  JINJA_FLOOR_DIVIDE,
  JINJA_MODULO,
  JINJA_POWER,
  JINJA_CONCAT,
  JINJA_EQUAL,
  JINJA_NOT_EQUAL,
  JINJA_LESS,
  JINJA_LESS_EQUAL,
  JINJA_GREATER,
  JINJA_GREATER_EQUAL,
  JINJA_IN,
  JINJA_NOT_IN
} jinja_op;

typedef struct jinja_node {
  jinja_type type;
  jinja_op op;
  uint32_t line;
  jinja_string name;
  jinja_value value;
  struct jinja_node *a, *b, *c, *d;
  struct jinja_node *list; /* the first of its children */
  struct jinja_node *next; /* in the list that it is in */
} jinja_node;

/* ---- Tokens ---- */

typedef enum jinja_token_kind {
  JINJA_T_TEXT,
  JINJA_T_OUTPUT_BEGIN, /* {{ */
  JINJA_T_OUTPUT_END,
  JINJA_T_TAG_BEGIN, /* {% */
  JINJA_T_TAG_END,
  JINJA_T_NAME,
  JINJA_T_STRING,
  JINJA_T_NUMBER,
  JINJA_T_SIGN,
  JINJA_T_END
} jinja_token_kind;

typedef struct jinja_token {
  jinja_token_kind kind;
  uint32_t line;
  jinja_string text;
  jinja_value value; /* numbers */
} jinja_token;

/* ---- Rendering ---- */

typedef struct jinja_variable {
  jinja_string name;
  jinja_value value;
  struct jinja_variable *next;
} jinja_variable;

typedef struct jinja_scope {
  jinja_variable *variables;
  struct jinja_scope *outer;
} jinja_scope;

typedef struct jinja_buffer { /* text that grows */
  char *data;
  size_t size, capacity;
} jinja_buffer;

typedef struct jinja {
  berth_context *ctx;
  berth_error *err;
  struct jinja_block *blocks; /* the arena */
  size_t used;
  uint32_t steps, depth, line;
  int64_t now;
  jinja_token *tokens;
  size_t n_tokens, at; /* of the parser */
  jinja_scope *scope, *global;
  jinja_buffer *out;
  enum {
    JINJA_GO,
    JINJA_STOP,
    JINJA_SKIP
  } loop_state; /* break and continue */
} jinja;

/* Arguments of a call, a filter or a test. */
#define JINJA_MAX_ARGUMENTS 16
typedef struct jinja_arguments {
  jinja_value values[JINJA_MAX_ARGUMENTS];
  jinja_string names[JINJA_MAX_ARGUMENTS]; /* size 0: by position */
  size_t count;
} jinja_arguments;

void *berth__jinja_alloc(jinja *j, size_t size); /* NULL: out of memory, and the error says so */
void berth__jinja_free(jinja *j);
berth_status berth__jinja_fail(jinja *j, const char *fmt, ...) BERTH__PRINTF(2, 3); /* MALFORMED, with the line */
berth_status berth__jinja_nomem(const jinja *j);        /* what berth__jinja_alloc has failed with */
berth_status berth__jinja_step(jinja *j, size_t bytes); /* counts, and fails when there were too many */

#ifdef __clang_analyzer__ /* as in base/status.h: what fails is never OK */
#define berth__jinja_fail(j, ...) (berth__jinja_fail(j, __VA_ARGS__), BERTH_MALFORMED)
#define berth__jinja_nomem(j) (berth__jinja_nomem(j), BERTH_NOMEM)
#define berth__jinja_step(j, bytes) (berth__jinja_step(j, bytes) == BERTH_OK ? BERTH_OK : BERTH_MALFORMED)
#endif

berth_status berth__jinja_lex(jinja *j, const char *text, size_t size);
berth_status berth__jinja_parse(jinja *j, jinja_node **out);
berth_status berth__jinja_parse_expression(jinja *j, jinja_node **out);
berth_status berth__jinja_parse_filters(jinja *j, jinja_node *on,
                                        jinja_node **out);             /* a | b | c, without the first | */
berth_status berth__jinja_parse_arguments(jinja *j, jinja_node **out); /* after the ( */
/* The tokens */
const jinja_token *berth__jinja_peek(const jinja *j);
bool berth__jinja_is(const jinja *j, jinja_token_kind kind, const char *text); /* text NULL: any */
bool berth__jinja_take(jinja *j, jinja_token_kind kind, const char *text);
berth_status berth__jinja_expect(jinja *j, jinja_token_kind kind, const char *text);
jinja_node *berth__jinja_node(jinja *j, jinja_type type); /* NULL: out of memory */

berth_status berth__jinja_run(jinja *j, const jinja_node *body);
berth_status berth__jinja_evaluate(jinja *j, const jinja_node *node, jinja_value *out);
berth_status berth__jinja_arguments(jinja *j, const jinja_node *list, jinja_arguments *out);
berth_status berth__jinja_call_macro(jinja *j, const jinja_node *macro, const jinja_arguments *args, jinja_value *out);
berth_status berth__jinja_function(jinja *j, jinja_string name, const jinja_arguments *args, jinja_value *out);
bool berth__jinja_is_function(jinja_string name);
berth_status berth__jinja_method(jinja *j, jinja_value on, jinja_string name, const jinja_arguments *args,
                                 jinja_value *out);
berth_status berth__jinja_string_method(jinja *j, jinja_string on, jinja_string name, const jinja_arguments *args,
                                        jinja_value *out);
berth_status berth__jinja_filter(jinja *j, jinja_value on, jinja_string name, const jinja_arguments *args,
                                 jinja_value *out);
berth_status berth__jinja_list_filter(jinja *j, jinja_value on, jinja_string name, const jinja_arguments *args,
                                      jinja_value *out, bool *known);
berth_status berth__jinja_test(jinja *j, jinja_value on, jinja_string name, const jinja_arguments *args, bool *out);
berth_status berth__jinja_binary(jinja *j, jinja_op op, jinja_value a, jinja_value b, jinja_value *out);

berth_status berth__jinja_set(jinja *j, jinja_scope *scope, jinja_string name, jinja_value value);
berth_status berth__jinja_attribute(jinja *j, jinja_value on, jinja_string name, jinja_value *out);
berth_status berth__jinja_item(jinja *j, jinja_value on, jinja_value key, jinja_value *out);
berth_status berth__jinja_slice(jinja *j, jinja_value on, const jinja_value bounds[3], jinja_value *out);

/* ---- Values ---- */

#define JINJA_STRING_OF(literal) ((jinja_string){(literal), sizeof(literal) - 1})
static inline jinja_value jinja_make_bool(bool b) { return (jinja_value){JINJA_BOOL, {.boolean = b}}; }
static inline jinja_value jinja_make_int(int64_t i) { return (jinja_value){JINJA_INT, {.integer = i}}; }
static inline jinja_value jinja_make_float(double d) { return (jinja_value){JINJA_FLOAT, {.number = d}}; }
static inline jinja_value jinja_make_string(jinja_string s) { return (jinja_value){JINJA_STRING, {.string = s}}; }
static inline jinja_value jinja_make_undefined(jinja_string name) {
  return (jinja_value){JINJA_UNDEFINED, {.string = name}};
}
#define JINJA_NO_VALUE ((jinja_value){JINJA_NONE, {.integer = 0}})

bool berth__jinja_string_is(jinja_string a, const char *text);
bool berth__jinja_same(jinja_string a, jinja_string b);
const char *berth__jinja_kind_name(jinja_kind kind);
bool berth__jinja_truth(jinja_value value);
berth_status berth__jinja_equal(jinja *j, jinja_value a, jinja_value b, bool *out);
berth_status berth__jinja_compare(jinja *j, jinja_value a, jinja_value b, int *out); /* numbers, strings, lists */
berth_status berth__jinja_contains(jinja *j, jinja_value in, jinja_value what, bool *out);
bool berth__jinja_find(jinja_string in, jinja_string what, size_t from, size_t *at);
size_t berth__jinja_characters(jinja_string text);
/* The bytes of characters from first to last of a text. */
jinja_string berth__jinja_substring(jinja_string text, size_t first, size_t last);

berth_status berth__jinja_new_list(jinja *j, jinja_value *out);
berth_status berth__jinja_append(jinja *j, jinja_list *list, jinja_value value);
berth_status berth__jinja_new_dict(jinja *j, jinja_value *out);
berth_status berth__jinja_put(jinja *j, jinja_dict *dict, jinja_value key, jinja_value value);
bool berth__jinja_get(const jinja_dict *dict, jinja_string key, jinja_value *out);
/* What a for loop goes through, as a list: lists, the keys of dicts, the characters of strings. */
berth_status berth__jinja_items(jinja *j, jinja_value value, jinja_value *out);

berth_status berth__jinja_add(jinja *j, jinja_buffer *buffer, const char *bytes, size_t size);
berth_status berth__jinja_add_value(jinja *j, jinja_buffer *buffer, jinja_value value); /* as Python's str() */
berth_status berth__jinja_text_of(jinja *j, jinja_value value, jinja_string *out);
berth_status berth__jinja_join(jinja *j, const jinja_string *parts, size_t count, jinja_value *out);

/* indent < 0: one line */
berth_status berth__jinja_to_json(jinja *j, jinja_value value, int64_t indent, jinja_buffer *out);
berth_status berth__jinja_from_json(jinja *j, jinja_string text, jinja_value *out);
berth_status berth__jinja_time(jinja *j, jinja_string format, jinja_value *out);

/* An argument by position or name; UNDEFINED where there is none. */
jinja_value berth__jinja_argument(const jinja_arguments *args, size_t at, const char *name);

#endif
