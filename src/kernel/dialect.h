/* A language that kernels are rendered into, as a table: render.c walks the kernel and expands the rules.
 *
 * Placeholders in a rule:
 * $a $b $c   an operand, in parentheses if it is more than one word
 * #a #b #c   the same without parentheses
 * $m         operand b, a number, negated
 * $i         operand a, an index, as an unsigned number
 * $p         the position of element a of a buffer: the beginning of the buffer plus $i
 * $w $n      the array that contains a buffer; the number of the buffer, array or sums
 * $l $h      of a copy: the numbers of the array and of the buffer
 * $[ $]      around a position: the word there, read in the way that the array requires
 * $q $k      the array of quads that contains a buffer; the name of a component of a quad
 * $o         the number of the binding that contains a buffer, if there are binding windows
 * $v $t #e   the name of this value, its type, and its expression */
#ifndef BERTH_KERNEL_DIALECT_H
#define BERTH_KERNEL_DIALECT_H

#include "kernel/render.h"

#define BERTH__NUMBERS 4 /* as in berth__number */

/* Functions for what languages leave undefined are written once (functions.c), with words that begin with @ and are
 * defined here. */
typedef enum berth__function_shape {
  BERTH__FN_F32,
  BERTH__FN_I32,
  BERTH__FN_U32,
  BERTH__FN_PACK,
  BERTH__FN_F32_F32,
  BERTH__FN_U32_U32_U32,
  BERTH__FN_SHAPES
} berth__function_shape;
typedef struct berth__dialect_words {
  /* The head of a function $v, by signature: f32(f32 x); i32(i32 a, b); u32(u32 a, b); u32(f32 x); f32(f32 x, y);
   * u32(u32 a, b, c). */
  const char *open[BERTH__FN_SHAPES];
  const char *f32, *i32, *u32;     /* @f @i @u: declares a new name of this type */
  const char *f32_bits, *u32_bits; /* @asf( @asu( */
  const char *select;              /* @select(no, yes, condition) */
  const char *round, *to_u32;      /* @round( to nearest even; @tou( f32 to u32 */
} berth__dialect_words;

typedef struct berth__dialect {
  const char *type[BERTH__NUMBERS];
  void (*literal)(berth__text *out, berth__number type, uint32_t bits);
  /* Writes what comes before the first function; and from there to the first instruction. */
  void (*head)(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
  void (*open)(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
  const char *close;
  const char *begin;          /* the beginning of buffer $n in its array */
  const char *arena, *window; /* the array of all buffers; the array of buffer $n alone */
  const char *value;          /* names a value that is used more than once */
  const char *counter;        /* the prefix of a loop counter's name */
  const char *minus;          /* add, if operand b is a negative number */
  const char *unrolled;       /* written before a loop that is to be unrolled */
  const char *together;       /* an `if` around barriers whose condition was read from memory; NULL: like any other */
  const char *loop_together;  /* a loop around barriers whose end was read from memory; NULL: like any other */
  const char *both_together;  /* the same for a loop whose start was read from memory, too */
  /* By the type of the result; comparisons by the type of their operands. Divisors are not 0 or -1, and the operands of
   * a remainder are not negative; other cases use functions of functions.c. */
  const char *rule[BERTH__INST_COUNT][BERTH__NUMBERS];
  /* For languages that leave the overflow of i32 undefined: replaces `rule` for results that may overflow. NULL: they
   * wrap. */
  const char *wrap[BERTH__INST_COUNT];
  const char *convert[BERTH__NUMBERS][BERTH__NUMBERS], *bits[BERTH__NUMBERS][BERTH__NUMBERS]; /* from, to */
  const char *byte[2][4]; /* each of the four bytes: of a u32, and of an i32 */
  const char *load[BERTH__STORAGES], *store[BERTH__STORAGES];
  const char *shared_store[BERTH__STORAGES]; /* for languages that have shared arrays of fewer than 32 bits */
  /* Loading four words at once: the type of a quad, the line that names one, its components by type, and the names of
   * the arrays of quads. quad NULL: the four words are loaded separately. */
  const char *quad, *quad_value, *part[BERTH__NUMBERS], *quad_arena, *quad_window;
  /* For arrays whose words several threads write, if they have another type: what to write before and after a word's
   * position to read it; and how to store whole words. NULL: they do not. */
  const char *atomic_open, *atomic_close, *atomic_store[BERTH__STORAGES];
  berth__dialect_words words;
} berth__dialect;

/* A rule for all result types; for numbers; for f32; for integers and bool. */
#define BERTH__RULE_ALL(text) \
  { text, text, text, text }
#define BERTH__RULE_NUMBERS(text) \
  { text, text, text, NULL }
#define BERTH__RULE_F32(text) \
  { text, NULL, NULL, NULL }
#define BERTH__RULE_BITS(text, truth) \
  { NULL, text, text, truth }

/* The four bytes of a word for languages that cast like C; i8: the signed type of 8 bits. */
#define BERTH__CAST_BYTES(i8)                                                                                   \
  {                                                                                                             \
    {"(float)($a & 255u)", "(float)(($a >> 8) & 255u)", "(float)(($a >> 16) & 255u)", "(float)($a >> 24)"}, {   \
      "(float)(" i8 ")$a", "(float)(" i8 ")($a >> 8)", "(float)(" i8 ")($a >> 16)", "(float)(" i8 ")($a >> 24)" \
    }                                                                                                           \
  }

berth_status berth__render(const berth__kernel *kernel, const berth__dialect *dialect, const berth__render_desc *desc,
                           berth__text *out, berth_error *err);

/* ---- dialect.c: for renderers ---- */

/* Whether an f32 has a decimal form that all compilers read back exactly; and that form, with a point or an
 * exponent. */
bool berth__dialect_has_digits(uint32_t bits);
void berth__dialect_digits(berth__text *out, uint32_t bits);
/* A number as C-like languages write it; as_f32: the function that makes an f32 from its bits. */
void berth__dialect_literal(berth__text *out, berth__number type, uint32_t bits, const char *as_f32);
/* Whether several threads write to one word of a binding: elements that share words with other threads' elements, or
 * store_max. */
bool berth__dialect_is_atomic(const berth__kernel *kernel, const berth__render_desc *desc, uint32_t binding);
uint32_t berth__dialect_binding(const berth__render_desc *desc, uint32_t buffer);
void berth__dialect_name(berth__text *out, const berth__kernel *kernel); /* as a comment on its own line */

/* functions.c: a rule that contains the name of a function includes that function. */
typedef struct berth__function {
  const char *name;
  berth__function_shape shape;
  const char *body;
} berth__function;
extern const berth__function berth__functions[];
extern const size_t berth__n_functions;

#endif
