/* random_uniform and random_normal without a seed: every item draws from the counter-based generator with a key of its
 * own. With a seed, the numbers are those of a sequential generator (plain.c). */
#include "ops/draws.h"

#include "device/cpu/kernels/chain_steps.h"
#include "device/cpu/kernels/vec_math.h"

#define ITEM 4096            /* elements */
#define COUNTERS 64          /* computed together */
#define BLOCK (4 * COUNTERS) /* words */
#define PI_TWICE 6.28318530717958647692

typedef struct words {
  uint32_t of[4][COUNTERS];
} words;

/* The words of COUNTERS counters, a multiple of COUNTERS on. */
static void random_kernel_words(words *w, uint64_t key, uint32_t first) {
  for (uint32_t i = 0; i < COUNTERS; i++) {
    uint32_t counter[4] = {first + i, 0, 0, 0};
    berth__draws_words(counter, (uint32_t)key, (uint32_t)(key >> 32));
    for (int k = 0; k < 4; k++) w->of[k][i] = counter[k];
  }
}

/* 53 bits in [0, 1). */
static inline double random_kernel_f64(uint32_t high, uint32_t low) {
  return ((double)(high >> 5) * 67108864.0 + (double)(low >> 6)) * 0x1p-53;
}

/* BLOCK numbers of 24 bits in [0, 1). */
static void random_kernel_uniform_f32(float *to, const words *w) {
  const uint32_t *word = &w->of[0][0];
  for (int i = 0; i < BLOCK; i++) to[i] = (float)(int32_t)(word[i] >> 8) * 0x1p-24f;
}

/* Box and Muller: a distance and an angle make two numbers. All 32 bits decide the distance, which is never infinite
 * then; the last of them matter only far out. */
static void random_kernel_normal_f32(float *to, const words *w) {
  for (int pair = 0; pair < 4; pair += 2) {
    float *first = to + pair * COUNTERS, *second = first + COUNTERS;
    for (int i = 0; i < COUNTERS; i++) {
      first[i] = ((float)(int32_t)(w->of[pair][i] >> 1) + 0.5f) * 0x1p-31f;
      second[i] = (float)(int32_t)(w->of[pair + 1][i] >> 8) * (float)(PI_TWICE * 0x1p-24);
    }
    for (int i = 0; i < COUNTERS; i += VF_LANES) {
      const vf distance = vf_sqrt(vf_log(vf_load(first + i)) * vf_set1(-2.0f)), angle = vf_load(second + i);
      vf_store(first + i, distance * vf_cos(angle));
      vf_store(second + i, distance * vf_sin(angle));
    }
  }
}

/* BLOCK / 2 numbers: two words each. */
static void random_kernel_fill_f64(double *to, const words *w, bool is_normal) {
  for (int i = 0; i < COUNTERS; i++) {
    const double x = random_kernel_f64(w->of[0][i], w->of[1][i]), y = random_kernel_f64(w->of[2][i], w->of[3][i]);
    const double distance = is_normal ? sqrt(-2 * log(1 - x)) : x;
    to[2 * i] = is_normal ? distance * cos(PI_TWICE * y) : x;
    to[2 * i + 1] = is_normal ? distance * sin(PI_TWICE * y) : y;
  }
}

/* ---- The call ---- */

static bool random_kernel_takes(const berth_op_call *call) { return call->attrs[BERTH__RANDOM_SEED].i < 0; }

static int64_t random_kernel_items(const berth_op_call *call) {
  const int64_t count = berth__count(&call->out[0]);
  return count / ITEM + (count % ITEM != 0);
}

static int64_t random_kernel_grain(const berth_op_call *call) {
  (void)call;
  return 2;
}

static void random_kernel_run_item(const berth_op_call *call, int64_t item) {
  const berth_tensor *out = &call->out[0];
  const bool is_normal = berth__call_code(call) == BERTH__OP_random_normal, is_f64 = out->type == BERTH_F64;
  const size_t size = berth_type_size(out->type);
  const int64_t begin = item * ITEM, left = berth__count(out) - begin, count = left < ITEM ? left : ITEM;
  const int64_t each = is_f64 ? BLOCK / 2 : BLOCK;
  const uint64_t key = berth__draws_key(call, item);
  union {
    _Alignas(64) float f32[BLOCK];
    double f64[BLOCK / 2];
  } block;
  words w;
  for (int64_t at = 0; at < count; at += each) {
    const int64_t n = count - at < each ? count - at : each;
    char *to = (char *)out->data + (size_t)(begin + at) * size;
    random_kernel_words(&w, key, (uint32_t)(at / each) * COUNTERS);
    if (is_f64)
      random_kernel_fill_f64(block.f64, &w, is_normal);
    else
      (is_normal ? random_kernel_normal_f32 : random_kernel_uniform_f32)(block.f32, &w);
    if (out->type == BERTH_F16 || out->type == BERTH_BF16)
      chain_store(to, out->type, block.f32, n);
    else
      memcpy(to, &block, (size_t)n * size);
  }
}

static berth_status random_kernel_run(const berth_op_call *call, berth_error *err) {
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) random_kernel_run_item(call, item);
  return BERTH_OK;
}

#define ROW(op)                                                                                      \
  {                                                                                                  \
    .name = #op, .code = BERTH__OP_##op, .takes = random_kernel_takes, .items = random_kernel_items, \
    .grain = random_kernel_grain, .run = random_kernel_run                                           \
  }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_random)[] = {
    ROW(random_uniform),
    ROW(random_normal),
    {0},
};
