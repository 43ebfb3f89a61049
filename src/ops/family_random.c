/* random_uniform, random_normal: draws in [0, 1), and with mean 0 and deviation 1. A seed gives the numbers of numpy's
 * RandomState(seed), in every run. That generator is sequential, so a call is one item. Without a seed the clock is the
 * seed; the CPU's fast kernel draws from a counter-based generator then (draws.h), so that threads share the work. */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "ops/draws.h"
#include "ops/elementwise.h"
#include "ops/operand.h"

static const berth_attr attrs_of_random[] = {
    [BERTH__RANDOM_SHAPE] = {.name = "shape", .kind = BERTH_ATTR_DIMS},
    [BERTH__RANDOM_TYPE] = {.name = "type", .kind = BERTH_ATTR_STRING, .s = ""},
    [BERTH__RANDOM_SEED] = {.name = "seed", .kind = BERTH_ATTR_INT, .i = -1}};

/* ---- Inference ------------------------------------------------------------------------------------------------ */

static berth_status infer_type(berth__infer *infer, berth_error *err) {
  const char *name = infer->attrs[BERTH__RANDOM_TYPE].s;
  berth_type type = berth__infer_has(infer, 0) ? infer->in_type[0] : BERTH_F32;
  if (name != NULL && name[0] != '\0') type = berth_type_from_name(name);
  if (!berth__type_is_float(type))
    return berth__fail(err, BERTH_INVALID, "the result's type is %s, expected a float type",
                       type != BERTH_TYPE_NONE ? berth_type_name(type) : name);
  infer->out_type[0] = type;
  return BERTH_OK;
}

static berth_status shape_of_attr(const berth__infer *infer, berth__shape *out, berth_error *err) {
  const berth_attr *attr = &infer->attrs[BERTH__RANDOM_SHAPE];
  if (attr->count > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID, "attribute 'shape' has %" PRIu32 " dimensions, at most %d are supported",
                       attr->count, BERTH_MAX_RANK);
  out->rank = attr->count;
  for (uint32_t i = 0; i < attr->count; i++) {
    if (attr->dims[i].name == NULL && attr->dims[i].extent < 0)
      return berth__fail(err, BERTH_INVALID,
                         "dimension %" PRIu32 " of 'shape' is %" PRId64 ", and extents are 0 or more", i,
                         attr->dims[i].extent);
    out->dim[i] = attr->dims[i].name != NULL ? infer->resolve(infer, &attr->dims[i]) : attr->dims[i].extent;
  }
  return BERTH_OK;
}

static berth_status infer_random(berth__infer *infer, berth_error *err) {
  int64_t seed = infer->attrs[BERTH__RANDOM_SEED].i;
  if (seed < -1 || seed > UINT32_MAX)
    return berth__fail(err, BERTH_INVALID, "attribute 'seed' is %" PRId64 ", expected 0 to 4294967295, or -1 for none",
                       seed);
  BERTH__TRY(infer_type(infer, err));
  if (!berth__infer_has(infer, 0)) return shape_of_attr(infer, &infer->out_shape[0], err);
  if (infer->attrs[BERTH__RANDOM_SHAPE].count != 0)
    return berth__fail(err, BERTH_INVALID, "the shape is given twice, by operand 0 and by attribute 'shape'");
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

/* ---- The generator: Matsumoto and Nishimura's MT19937 --------------------------------------------------------- */

#define WORDS 624
#define MIDDLE 397

typedef struct generator {
  uint32_t word[WORDS], drawn[WORDS];
  uint32_t at;
  double spare; /* normal draws come in pairs */
  bool has_spare;
} generator;

static void random_plant(generator *g, uint32_t seed) {
  for (uint32_t i = 0; i < WORDS; i++) {
    g->word[i] = seed;
    seed = UINT32_C(1812433253) * (seed ^ (seed >> 30)) + i + 1;
  }
  g->at = WORDS;
  g->has_spare = false;
}

static inline uint32_t random_twist(uint32_t x, uint32_t y) {
  const uint32_t joined = (x & UINT32_C(0x80000000)) | (y & UINT32_C(0x7fffffff));
  return (joined >> 1) ^ ((0 - (joined & 1)) & UINT32_C(0x9908b0df));
}

static inline uint32_t random_temper(uint32_t x) {
  x ^= x >> 11;
  x ^= (x << 7) & UINT32_C(0x9d2c5680);
  x ^= (x << 15) & UINT32_C(0xefc60000);
  return x ^ (x >> 18);
}

static void random_refill(generator *g) {
  uint32_t *word = g->word;
  for (uint32_t i = 0; i < WORDS - MIDDLE; i++) word[i] = word[i + MIDDLE] ^ random_twist(word[i], word[i + 1]);
  for (uint32_t i = WORDS - MIDDLE; i < WORDS - 1; i++)
    word[i] = word[i - (WORDS - MIDDLE)] ^ random_twist(word[i], word[i + 1]);
  word[WORDS - 1] = word[MIDDLE - 1] ^ random_twist(word[WORDS - 1], word[0]);
  for (uint32_t i = 0; i < WORDS; i++) g->drawn[i] = random_temper(word[i]);
  g->at = 0;
}

static inline uint32_t next_word(generator *g) {
  if (g->at == WORDS) random_refill(g);
  return g->drawn[g->at++];
}

/* 53 bits of two words. */
static double next_uniform(generator *g) {
  uint32_t high = next_word(g) >> 5, low = next_word(g) >> 6;
  return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

/* Marsaglia's polar method: a point in the unit disc gives two draws. */
static double next_normal(generator *g) {
  double x, y, square;
  g->has_spare = !g->has_spare;
  if (!g->has_spare) return g->spare;
  do {
    x = 2.0 * next_uniform(g) - 1.0;
    y = 2.0 * next_uniform(g) - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  double factor = sqrt(-2.0 * log(square) / square);
  g->spare = factor * x;
  return factor * y;
}

/* Calls in the same tick of the clock still differ by the addresses they write to. */
uint64_t berth__draws_key(const berth_op_call *call, int64_t item) {
  struct timespec now = {0};
  (void)timespec_get(&now, TIME_UTC);
  uint64_t mixed = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
  mixed = (mixed ^ (uint64_t)(uintptr_t)call->out[0].data) * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ mixed >> 32 ^ (uint64_t)item) * UINT64_C(0xbf58476d1ce4e5b9);
  return mixed ^ mixed >> 32;
}

static berth_status random_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *out = &call->out[0];
  int64_t seed = call->attrs[BERTH__RANDOM_SEED].i, count = berth__count(out);
  bool is_normal = berth__call_code(call) == BERTH__OP_random_normal;
  double block[BERTH__BLOCK];
  generator g;
  (void)err;
  random_plant(&g, seed < 0 ? (uint32_t)(berth__draws_key(call, 0) >> 32) : (uint32_t)seed);
  for (int64_t at = 0; at < count; at += BERTH__BLOCK) {
    int64_t n = count - at < BERTH__BLOCK ? count - at : BERTH__BLOCK;
    for (int64_t i = 0; i < n; i++) block[i] = is_normal ? next_normal(&g) : next_uniform(&g);
    berth__scatter(BERTH__CLASS_F64, block, out->type, out->data, at, 1, n);
  }
  return BERTH_OK;
}

const berth__family berth__family_random = {
    .attrs = attrs_of_random, .n_attrs = 3, .infer = infer_random, .kernel = random_kernel, .is_random = true};
