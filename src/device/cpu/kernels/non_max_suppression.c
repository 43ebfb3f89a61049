/* non_max_suppression of f32. The boxes of a class with a sufficient score form a heap, best first, so that only as
 * many are sorted as are needed. A box taken from it is compared only with those that were kept. Both are in scratch:
 * kept boxes go where the heap has shrunk. The arithmetic is that of the reference kernel, in f64 and in the same
 * order, so that both keep the same boxes. */
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

#define SKIP 64 /* scores tested together: most boxes of most classes are below the limit */

typedef struct candidate {
  float score;
  int32_t box;
} candidate;

typedef struct boxes {
  const float *boxes;
  double overlap, score;
  int64_t count, most;
  bool is_center;
  candidate *heap; /* in scratch; one per box */
} boxes;

static bool nms_kernel_takes(const berth_op_call *call) {
  const berth_tensor *in = &call->in[BERTH__NMS_BOXES], *scores = &call->in[BERTH__NMS_SCORES];
  return in->type == BERTH_F32 && scores->type == BERTH_F32 && in->dim[1] <= INT32_MAX && berth__is_contiguous(in) &&
         berth__is_contiguous(scores);
}

static uint64_t nms_kernel_scratch(const berth_op_call *call) {
  return (uint64_t)call->in[BERTH__NMS_BOXES].dim[1] * sizeof(candidate);
}

/* ---- The heap ---- */

/* Among equals the first box is better. */
static inline bool nms_kernel_is_better(candidate a, candidate b) {
  return a.score > b.score || (a.score == b.score && a.box < b.box);
}

static void nms_kernel_sink(candidate *heap, int64_t count, int64_t at) {
  const candidate moved = heap[at];
  for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && nms_kernel_is_better(heap[child + 1], heap[child])) child++;
    if (!nms_kernel_is_better(heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

static bool nms_kernel_any(const float *scores, int64_t n, double limit) {
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= (double)scores[i] > limit;
  return any;
}

/* Collects boxes with scores above the limit; NaN is not. */
static int64_t nms_kernel_gather(const boxes *b, const float *scores) {
  int64_t count = 0;
  for (int64_t first = 0; first < b->count; first += SKIP) {
    const int64_t n = b->count - first < SKIP ? b->count - first : SKIP;
    if (!nms_kernel_any(scores + first, n, b->score)) continue;
    for (int64_t i = first; i < first + n; i++)
      if ((double)scores[i] > b->score) b->heap[count++] = (candidate){scores[i], (int32_t)i};
  }
  for (int64_t at = count / 2; at-- > 0;) nms_kernel_sink(b->heap, count, at);
  return count;
}

/* ---- Boxes ---- */

typedef struct rectangle {
  double low[2], high[2], area;
} rectangle;

/* Like fmin and fmax, without a call. */
static inline double nms_kernel_less(double a, double b) { return a < b || b != b ? a : b; }
static inline double nms_kernel_more(double a, double b) { return a > b || b != b ? a : b; }

static inline rectangle nms_kernel_rectangle(const boxes *b, int64_t box) {
  const float *v = b->boxes + box * 4;
  rectangle r = {.area = 1};
  for (int i = 0; i < 2; i++) {
    const double begin = (double)v[i], end = (double)v[i + 2];
    const double a = b->is_center ? begin - end / 2 : begin, z = b->is_center ? begin + end / 2 : end;
    r.low[i] = nms_kernel_less(a, z);
    r.high[i] = nms_kernel_more(a, z);
    r.area *= r.high[i] - r.low[i];
  }
  return r;
}

static inline bool nms_kernel_overlap(const boxes *b, const rectangle *one, const rectangle *other) {
  double shared = 1;
  for (int i = 0; i < 2; i++)
    shared *=
        nms_kernel_more(nms_kernel_less(one->high[i], other->high[i]) - nms_kernel_more(one->low[i], other->low[i]), 0);
  const double all = one->area + other->area - shared;
  return one->area > 0 && other->area > 0 && all > 0 && shared / all > b->overlap;
}

/* Kept boxes are stored from the end of the heap's memory backwards. */
static bool nms_kernel_stays(const boxes *b, const candidate *end, int64_t kept, const rectangle *it) {
  for (int64_t k = 1; k <= kept; k++) {
    const rectangle other = nms_kernel_rectangle(b, end[-k].box);
    if (nms_kernel_overlap(b, &other, it)) return false;
  }
  return true;
}

/* The boxes of a class, written to rows of `out`; returns how many there are. */
static int64_t nms_kernel_class(const boxes *b, const float *scores, int64_t batch, int64_t class, int64_t *out) {
  const candidate *end;
  int64_t kept = 0, count = nms_kernel_gather(b, scores);
  end = b->heap + count;
  while (kept < b->most && count > 0) {
    const candidate best = b->heap[0];
    const rectangle it = nms_kernel_rectangle(b, best.box);
    b->heap[0] = b->heap[--count];
    nms_kernel_sink(b->heap, count, 0);
    if (!nms_kernel_stays(b, end, kept, &it)) continue;
    out[kept * 3] = batch;
    out[kept * 3 + 1] = class;
    out[kept * 3 + 2] = best.box;
    b->heap[end - b->heap - ++kept] = best;
  }
  return kept;
}

static double nms_kernel_limit(const berth_op_call *call, uint32_t operand, double otherwise) {
  return berth__call_has(call, operand) ? berth__load_f64(&call->in[operand], 0) : otherwise;
}

static berth_status nms_kernel_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[BERTH__NMS_BOXES], *scores = &call->in[BERTH__NMS_SCORES];
  const int64_t classes = scores->dim[1];
  int64_t *out = call->out[0].data, rows = 0;
  berth__list most;
  (void)err;
  berth__call_list(call, BERTH__NMS_MOST, BERTH__NMS_MOST_OPERAND, &most);
  boxes b = {.count = in->dim[1],
             .most = most.given ? most.at[0] : 0,
             .overlap = nms_kernel_limit(call, BERTH__NMS_OVERLAP, 0),
             .score = nms_kernel_limit(call, BERTH__NMS_SCORE, -(double)INFINITY),
             .is_center = call->attrs[BERTH__NMS_CENTER].i != 0,
             .heap = call->scratch};
  for (int64_t k = 0; k < in->dim[0] * classes && b.count > 0; k++) {
    b.boxes = (const float *)in->data + k / classes * b.count * 4;
    rows += nms_kernel_class(&b, (const float *)scores->data + k * b.count, k / classes, k % classes, out + rows * 3);
  }
  memset(out + rows * 3, 0, (size_t)(call->out[0].dim[0] - rows) * 3 * sizeof *out);
  *(int64_t *)call->out[1].data = rows;
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_non_max_suppression)[] = {
    {.name = "non_max_suppression",
     .code = BERTH__OP_non_max_suppression,
     .takes = nms_kernel_takes,
     .scratch = nms_kernel_scratch,
     .run = nms_kernel_run},
    {0},
};
