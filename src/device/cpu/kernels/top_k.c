/* top_k of elements of up to four bytes. An element and its index form one 64-bit number, larger for what comes first:
 * a strict order. Candidates for the best k are collected until there are about twice as many, of which the best k
 * stay; later elements must be better than the worst of those. In the end they are sorted. */
#include "device/cpu/kernels/chain_steps.h"
#include "ops/copy.h"
#include "ops/elementwise.h"

#define TOP_K_BLOCK 256
#define MORE 64   /* capacity beyond twice k */
#define SHORT 16  /* numbers sorted by insertion */
#define LEVELS 64 /* of partitioning, at most; then heapsort is used */

/* ---- Keys ---- */

/* The bits of a float are ordered for positive numbers and reversed for negative ones; -0 equals 0, and NaN is larger
 * than every number. */
static void top_k_float_keys(const float *x, int64_t n, uint32_t *key) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits = x[i] == 0 ? 0 : bits;
    bits = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    key[i] = x[i] != x[i] ? UINT32_MAX : bits;
  }
}

#define KEYS(c_type, flip)                                                                        \
  {                                                                                               \
    for (int64_t i = 0; i < n; i++) key[i] = (uint32_t)((const c_type *)from)[i * step] ^ (flip); \
    break;                                                                                        \
  }
static void top_k_keys(berth_type type, const void *from, int64_t step, int64_t n, uint32_t *key) {
  float floats[TOP_K_BLOCK];
  switch (type) {
    case BERTH_I8: KEYS(int8_t, 0x80000000u)
    case BERTH_I16: KEYS(int16_t, 0x80000000u)
    case BERTH_I32: KEYS(int32_t, 0x80000000u)
    case BERTH_U8: KEYS(uint8_t, 0u)
    case BERTH_U16: KEYS(uint16_t, 0u)
    case BERTH_U32: KEYS(uint32_t, 0u)
    default:
      if (type == BERTH_F32 && step == 1) {
        top_k_float_keys(from, n, key);
        break;
      }
      chain_load(floats, type, from, step, n);
      top_k_float_keys(floats, n, key);
  }
}

/* ---- Order ---- */

static void top_k_sift(uint64_t *heap, int64_t size, int64_t at, uint64_t x) {
  for (int64_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && heap[child + 1] < heap[child]) child++;
    if (x <= heap[child]) break;
    heap[at] = heap[child];
  }
  heap[at] = x;
}

/* Largest first. */
static void top_k_sort_heap(uint64_t *x, int64_t n) {
  for (int64_t i = n / 2; i-- > 0;) top_k_sift(x, n, i, x[i]);
  for (int64_t left = n; left > 1; left--) {
    const uint64_t least = x[0];
    top_k_sift(x, left - 1, 0, x[left - 1]);
    x[left - 1] = least;
  }
}

static void top_k_insert(uint64_t *x, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const uint64_t next = x[i];
    int64_t at = i;
    for (; at > 0 && x[at - 1] < next; at--) x[at] = x[at - 1];
    x[at] = next;
  }
}

static uint64_t top_k_middle(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t high = a > b ? a : b, low = a > b ? b : a;
  return c > high ? high : c < low ? low : c;
}

/* Moves larger ones to the front; returns how many, at least 1 and less than n. */
static int64_t top_k_part(uint64_t *x, int64_t n) {
  const uint64_t pivot = top_k_middle(x[0], x[n / 2], x[n - 1]);
  int64_t i = 0, j = n - 1;
  for (;;) {
    while (x[i] > pivot) i++;
    while (x[j] < pivot) j--;
    if (i >= j) return j + 1 < n ? j + 1 : n - 1;
    const uint64_t swapped = x[i];
    x[i++] = x[j];
    x[j--] = swapped;
  }
}

/* Recurses into the smaller part, so that the depth is limited. */
static void top_k_sort(uint64_t *x, int64_t n, int levels) {
  while (n > SHORT) {
    if (levels-- == 0) {
      top_k_sort_heap(x, n);
      return;
    }
    const int64_t front = top_k_part(x, n);
    if (front < n - front) {
      top_k_sort(x, front, levels);
      x += front;
      n -= front;
    } else {
      top_k_sort(x + front, n - front, levels);
      n = front;
    }
  }
  top_k_insert(x, n);
}

/* Moves the k largest of n to the front. */
static void top_k_select(uint64_t *x, int64_t n, int64_t k) {
  for (int levels = LEVELS; n > SHORT && k > 0 && k < n;) {
    if (levels-- == 0) break;
    const int64_t front = top_k_part(x, n);
    if (k <= front) {
      n = front;
    } else {
      x += front;
      n -= front;
      k -= front;
    }
  }
  if (k > 0 && k < n) top_k_sort_heap(x, n);
}

/* ---- Lines ---- */

typedef struct search {
  const berth_tensor *x;
  berth__lines lines;
  int64_t k, room;
  uint32_t flip; /* reverses the order, if the smallest are wanted */
  uint64_t *some;
} search;

static uint64_t top_k_least(const uint64_t *x, int64_t n) {
  uint64_t least = UINT64_MAX;
  for (int64_t i = 0; i < n; i++) least = x[i] < least ? x[i] : least;
  return least;
}

/* The best k of a line, best first. */
static void top_k_line(const search *s, int64_t start) {
  const size_t size = berth_type_size(s->x->type);
  uint64_t least = 0, *some = s->some; /* no key is 0 */
  int64_t count = 0;
  for (int64_t at = 0; at < s->lines.length; at += TOP_K_BLOCK) {
    uint32_t key[TOP_K_BLOCK];
    const int64_t n = s->lines.length - at < TOP_K_BLOCK ? s->lines.length - at : TOP_K_BLOCK;
    top_k_keys(s->x->type, (const char *)s->x->data + (size_t)(start + at * s->lines.inner) * size, s->lines.inner, n,
               key);
    for (int64_t i = 0; i < n; i++) {
      const uint64_t number = (uint64_t)(key[i] ^ s->flip) << 32 | (uint32_t)(UINT32_MAX - (uint32_t)(at + i));
      if (number <= least) continue;
      some[count++] = number;
      if (count < s->room) continue;
      top_k_select(some, count, s->k);
      count = s->k;
      least = top_k_least(some, count);
    }
  }
  top_k_select(some, count, s->k);
  top_k_sort(some, s->k, LEVELS);
}

/* ---- The call ---- */

static bool top_k_takes(const berth_op_call *call) {
  const size_t size = berth_type_size(call->in[BERTH__TOP_K_X].type);
  const int64_t length = berth__lines_of(&call->in[BERTH__TOP_K_X], call->attrs[BERTH__TOP_K_AXIS].i).length;
  return size >= 1 && size <= 4 && call->in[BERTH__TOP_K_X].type != BERTH_BOOL && length < UINT32_MAX &&
         berth__is_contiguous(&call->in[BERTH__TOP_K_X]) && berth__count(&call->out[0]) > 0;
}

static int64_t top_k_kernel_items(const berth_op_call *call) {
  const berth__lines lines = berth__lines_of(&call->out[0], call->attrs[BERTH__TOP_K_AXIS].i);
  return lines.outer * lines.inner;
}

/* Twice k and some more, or the length of the line if that is less. */
static int64_t top_k_room(const berth_op_call *call) {
  const int64_t k = berth__lines_of(&call->out[0], call->attrs[BERTH__TOP_K_AXIS].i).length;
  const int64_t length = berth__lines_of(&call->in[BERTH__TOP_K_X], call->attrs[BERTH__TOP_K_AXIS].i).length;
  return 2 * k + MORE < length + 1 ? 2 * k + MORE : length + 1;
}

static uint64_t top_k_kernel_scratch(const berth_op_call *call) {
  return (uint64_t)top_k_room(call) * sizeof(uint64_t);
}

static berth_status top_k_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__TOP_K_X], *values = &call->out[0];
  const berth__lines to = berth__lines_of(values, call->attrs[BERTH__TOP_K_AXIS].i);
  const search s = {.x = x,
                    .lines = berth__lines_of(x, call->attrs[BERTH__TOP_K_AXIS].i),
                    .k = to.length,
                    .room = top_k_room(call),
                    .flip = call->attrs[BERTH__TOP_K_LARGEST].i == 0 ? UINT32_MAX : 0,
                    .some = call->scratch};
  const size_t size = berth_type_size(x->type);
  int64_t *indices = call->out[1].data;
  (void)err;
  for (int64_t line = call->begin; line < call->end; line++) {
    const int64_t start = berth__line_start(&s.lines, line), out = berth__line_start(&to, line);
    top_k_line(&s, start);
    for (int64_t i = 0; i < to.length; i++) {
      const int64_t index = (int64_t)(UINT32_MAX - (uint32_t)s.some[i]);
      indices[out + i * to.inner] = index;
      memcpy((char *)values->data + (size_t)(out + i * to.inner) * size,
             (const char *)x->data + (size_t)(start + index * s.lines.inner) * size, size);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_top_k)[] = {
    {.name = "top_k",
     .code = BERTH__OP_top_k,
     .takes = top_k_takes,
     .items = top_k_kernel_items,
     .scratch = top_k_kernel_scratch,
     .run = top_k_run},
    {0},
};
