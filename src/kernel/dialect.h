/* A language that kernels are rendered into, as a table: render.c walks the kernel and fills in the rules.
 *
 * In a rule stand
 *   $a $b $c   an operand, in parentheses where it is more than one word
 *   #a #b #c   the same without them
 *   $m         operand b, a number, with the other sign
 *   $i         operand a, which is an index, as an unsigned number
 *   $p         the place of element a of a buffer: where the buffer begins, and $i after that
 *   $w $n      the array that a buffer lies in; the number of the buffer, array or sums
 *   $l $h      of a copy: the numbers of the array and of the buffer
 *   $[ $]      around a place: the word there, read as the array wants it
 *   $q $k      the array of quads that a buffer lies in; the name of a part of a quad
 *   $o         the number of the binding that a buffer lies in, where there are windows
 *   $v $t #e   the name of this value, its type, and what it is */
#ifndef BERTH_KERNEL_DIALECT_H
#define BERTH_KERNEL_DIALECT_H

#include "kernel/render.h"

#define BERTH__NUMBERS 4 /* of berth__number */

/* Functions for what languages leave open are written once (functions.c), in words that begin with @ and stand here. */
typedef enum berth__function_shape {
  BERTH__FN_F32,
  BERTH__FN_I32,
  BERTH__FN_U32,
  BERTH__FN_PACK,
  BERTH__FN_F32_F32,
  BERTH__FN_SHAPES
} berth__function_shape;
typedef struct berth__dialect_words {
  /* The head of a function $v: of f32 x; of i32 a, b; of u32 a, b; u32 of f32 x; of f32 x, y. */
  const char *open[BERTH__FN_SHAPES];
  const char *f32, *i32, *u32;     /* @f @i @u: what a new name of this type begins with */
  const char *f32_bits, *u32_bits; /* @asf( @asu( */
  const char *select;              /* @select(no, yes, condition) */
  const char *round, *to_u32;      /* @round( to nearest even; @tou( of f32 */
} berth__dialect_words;

typedef struct berth__dialect {
  const char *type[BERTH__NUMBERS];
  void (*literal)(berth__text *out, berth__number type, uint32_t bits);
  /* What stands before the first function; and from there to the first instruction. */
  void (*head)(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
  void (*open)(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
  const char *close;
  const char *begin;          /* where buffer $n begins in its array */
  const char *arena, *window; /* the array of all buffers; the one of buffer $n alone */
  const char *value;          /* gives a name to what is read more than once */
  const char *counter;        /* what the name of a loop's counter begins with */
  const char *minus;          /* add, where operand b is a number below 0 */
  const char *unrolled;       /* stands before a loop that is to be unrolled */
  const char *together;       /* an `if` around barriers whose condition was read from memory; NULL: as any other */
  const char *loop_together;  /* a loop around barriers whose end was read from memory; NULL likewise */
  const char *both_together;  /* one whose start was read there, too */
  /* By the type of the result; comparisons by that of their operands. Divisors are not 0 or -1, and both operands of a
   * remainder are not negative: elsewhere, functions of functions.c stand. */
  const char *rule[BERTH__INST_COUNT][BERTH__NUMBERS];
  /* Where the language leaves open what becomes of an i32 that does not fit: in the place of `rule`, for results that
   * may be such. NULL: they wrap. */
  const char *wrap[BERTH__INST_COUNT];
  const char *convert[BERTH__NUMBERS][BERTH__NUMBERS], *bits[BERTH__NUMBERS][BERTH__NUMBERS]; /* from, to */
  const char *load[BERTH__STORAGES], *store[BERTH__STORAGES];
  const char *shared_store[BERTH__STORAGES]; /* where the language has shared arrays of fewer than 32 bits */
  /* Loading four words at once: what a quad is, the line that gives it a name, its parts by type, and the names of the
   * arrays of quads. quad NULL: the parts are loaded as the words that they are. */
  const char *quad, *quad_value, *part[BERTH__NUMBERS], *quad_arena, *quad_window;
  /* Where an array whose words several threads write is of another type: reading a word of it, the parts before and
   * after its place; and storing whole words. NULL: it is not. */
  const char *atomic_open, *atomic_close, *atomic_store[BERTH__STORAGES];
  berth__dialect_words words;
} berth__dialect;

/* A rule for all types of a result; for numbers; for f32; for integers, and truth. */
#define BERTH__RULE_ALL(text) \
  { text, text, text, text }
#define BERTH__RULE_NUMBERS(text) \
  { text, text, text, NULL }
#define BERTH__RULE_F32(text) \
  { text, NULL, NULL, NULL }
#define BERTH__RULE_BITS(text, truth) \
  { NULL, text, text, truth }

berth_status berth__render(const berth__kernel *kernel, const berth__dialect *dialect, const berth__render_desc *desc,
                           berth__text *out, berth_error *err);

/* ---- dialect.c: for renderers ---- */

/* Whether an f32 has a decimal form that all compilers keep; and that form, with a point or an exponent in it. */
bool berth__dialect_has_digits(uint32_t bits);
void berth__dialect_digits(berth__text *out, uint32_t bits);
/* A number as languages like C write it; as_f32: the function that makes an f32 of its bits. */
void berth__dialect_literal(berth__text *out, berth__number type, uint32_t bits, const char *as_f32);
/* Whether several threads write to one word of a binding: elements that share words with others', or store_max. */
bool berth__dialect_is_atomic(const berth__kernel *kernel, const berth__render_desc *desc, uint32_t binding);
uint32_t berth__dialect_binding(const berth__render_desc *desc, uint32_t buffer);
void berth__dialect_name(berth__text *out, const berth__kernel *kernel); /* as a comment, on a line of its own */

/* functions.c: a rule that begins with a function's name brings it in. */
typedef struct berth__function {
  const char *name;
  berth__function_shape shape;
  const char *body;
} berth__function;
extern const berth__function berth__functions[];
extern const size_t berth__n_functions;

#endif
