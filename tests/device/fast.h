/* Fast kernels of the CPU against the reference kernels, for every instruction set of this machine. */
#ifndef BERTH_TESTS_DEVICE_FAST_H
#define BERTH_TESTS_DEVICE_FAST_H

#include "device/cpu/kernel.h"
#include "support.h"

#define FAST_MAX 16

/* How an operand lies in memory. */
typedef enum fast_layout {
  FAST_PLAIN,
  FAST_PADDED,   /* gaps after every row of the last axis */
  FAST_REVERSED, /* the first axis is the innermost one */
  FAST_REPEATED, /* every row of the last axis is the same one: a stride of 0, as expand makes it */
  FAST_TURNED,   /* the last axis is the outermost one but for the first: channels first */
  FAST_STEPPED,  /* every third element along the last axis, so that there are no neighbours */
  FAST_OFFSET    /* one element further on than any wider type may begin */
} fast_layout;

typedef struct fast_operand {
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  fast_layout layout;
  double low, high;     /* range of its random elements; both 0: -3 to 3, or what the type has of that */
  const double *values; /* instead: these, repeated */
  uint32_t n_values;
} fast_operand;

typedef struct fast_case {
  const char *op;
  fast_operand in[FAST_MAX];
  berth_attr attrs[FAST_MAX]; /* by name, up to one without */
  double absolute, relative;  /* both 0: to the last bit */
  uint32_t n_out;             /* 0: as few as the op may have */
} fast_case;

/* Every instruction set's kernel must take the call, and agree with the reference kernel: whole, in three ranges of
 * items (to the last bit as whole), and in place wherever the op allows that. Fails the test otherwise. */
void fast_check(const fast_case *c);
/* Kernels that come before those of the instruction sets, for the tests of a backend; NULL: none. */
extern const berth__cpu_kernel *fast_backend;
/* The same for one instruction set, where the call depends on it: the panels of packed weights. */
void fast_check_on(const fast_case *c, const berth__cpu_isa *isa);
/* Whether the first instruction set's kernel takes the call. */
int fast_is_taken(const fast_case *c);
/* Bytes of scratch that the first instruction set's kernel asks for. */
uint64_t fast_scratch(const fast_case *c);
/* The items of the first instruction set's kernel that are worth a thread. */
int64_t fast_grain(const fast_case *c);
/* Scratch that was planned for the case as an upper bound is enough where an axis of an operand is shorter, down to
 * `least`, so that no smaller run falls back on the reference kernel. isa NULL: for every instruction set. */
void fast_check_bounds(const fast_case *c, uint32_t operand, uint32_t axis, int64_t least, const berth__cpu_isa *isa);
/* No instruction set's kernel takes the call. */
void fast_check_declined(const fast_case *c);

#define FAST_INTS(key, ...)                                                                              \
  {                                                                                                      \
    .name = (key), .kind = BERTH_ATTR_INTS, .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
    .ints = (const int64_t[]) {                                                                          \
      __VA_ARGS__                                                                                        \
    }                                                                                                    \
  }
#define FAST_FLOATS(key, ...)                                                                            \
  {                                                                                                      \
    .name = (key), .kind = BERTH_ATTR_FLOATS, .count = sizeof((double[]){__VA_ARGS__}) / sizeof(double), \
    .floats = (const double[]) {                                                                         \
      __VA_ARGS__                                                                                        \
    }                                                                                                    \
  }
#define FAST_INT(key, value) \
  { .name = (key), .kind = BERTH_ATTR_INT, .i = (value) }
#define FAST_FLOAT(key, value) \
  { .name = (key), .kind = BERTH_ATTR_FLOAT, .f = (value) }
#define FAST_STRING(key, value) \
  { .name = (key), .kind = BERTH_ATTR_STRING, .s = (value) }

#endif
