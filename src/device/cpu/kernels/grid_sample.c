/* grid_sample: the neighbours of some points are found once, for all channels. Sums are those of the reference kernel,
 * in f64 and in its order. */
#include "ops/grid_sample.h"

#include "base/half.h"
#include "device/cpu/kernels/half.h"
#include "device/cpu/kernels/vec.h"

#define POINTS 64  /* of an item, at most */
#define TAPS 1024  /* of an item, at most */
#define WORTH 4096 /* taps times channels that are worth a thread */

/* What the points of an item are made of: those neighbours that are inside and count. */
typedef struct grid_points {
  int64_t n_taps[POINTS];
  int64_t from[TAPS]; /* within a channel */
  double weight[TAPS];
} grid_points;

static int64_t grid_kernel_most(const berth__grid_sampling *s) {
  const int64_t each = s->mode == BERTH__RESAMPLE_CUBIC ? 4 : s->mode == BERTH__RESAMPLE_NEAREST ? 1 : 2;
  int64_t most = 1;
  for (uint32_t k = 0; k < s->spatial; k++) most *= each;
  return most;
}

static int64_t grid_kernel_each(const berth__grid_sampling *s) {
  const int64_t points = TAPS / grid_kernel_most(s);
  return points < POINTS ? points : POINTS;
}

static bool grid_kernel_takes(const berth_op_call *call) {
  const berth_type type = call->in[0].type;
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16 || type == BERTH_F64;
}

static int64_t grid_kernel_items(const berth_op_call *call) {
  berth__grid_sampling s;
  berth__grid_sample_read(call, &s);
  return call->out[0].dim[0] * ((s.points + grid_kernel_each(&s) - 1) / grid_kernel_each(&s));
}

static int64_t grid_kernel_grain(const berth_op_call *call) {
  berth__grid_sampling s;
  berth__grid_sample_read(call, &s);
  return WORTH / (grid_kernel_each(&s) * grid_kernel_most(&s) * (call->in[0].dim[1] + 4)) + 1;
}

/* Appends the taps of a point to the list. */
static int64_t grid_kernel_add(const berth_op_call *call, const berth__grid_sampling *s,
                               const berth__grid_neighbours *near, grid_points *p, int64_t used) {
  int64_t combinations = 1;
  for (uint32_t k = 0; k < s->spatial; k++) combinations *= near[k].count;
  for (int64_t c = 0; c < combinations; c++) {
    int64_t from = 0, rest = c;
    double weight = 1;
    bool inside = true;
    for (uint32_t k = s->spatial; k-- > 0; rest /= near[k].count) {
      const int64_t tap = rest % near[k].count;
      inside = inside && near[k].place[tap] >= 0;
      from += near[k].place[tap] * call->in[0].stride[2 + k];
      weight *= near[k].weight[tap];
    }
    if (!inside || weight == 0) continue;
    p->from[used] = from;
    p->weight[used++] = weight;
  }
  return used;
}

#define SUM(c_type, as_f64, as_element)                         \
  {                                                             \
    const c_type *x = (const c_type *)call->in[0].data + plane; \
    c_type *out = (c_type *)call->out[0].data + to;             \
    const int64_t *from = p->from;                              \
    const double *weight = p->weight;                           \
    for (int64_t i = 0; i < n; i++) {                           \
      double sum = 0;                                           \
      for (int64_t t = 0; t < p->n_taps[i]; t++) {              \
        const c_type element = x[from[t]];                      \
        sum += weight[t] * (as_f64);                            \
      }                                                         \
      out[i] = (as_element);                                    \
      from += p->n_taps[i];                                     \
      weight += p->n_taps[i];                                   \
    }                                                           \
    break;                                                      \
  }
/* n points of one channel, which begins at `plane`. */
static void grid_kernel_sum(const berth_op_call *call, const grid_points *p, int64_t plane, int64_t to, int64_t n) {
  switch (call->in[0].type) {
    case BERTH_F32: SUM(float, (double)element, (float)sum)
    case BERTH_F16: SUM(uint16_t, (double)half_to_float(element), berth__f64_to_f16(sum))
    case BERTH_BF16: SUM(uint16_t, (double)half_from_bits((uint32_t)element << 16), berth__f64_to_bf16(sum))
    default: SUM(double, element, sum)
  }
}

static berth_status grid_kernel_run(const berth_op_call *call, berth_error *err) {
  const int64_t channels = call->in[0].dim[1];
  berth__grid_sampling s;
  grid_points p;
  (void)err;
  berth__grid_sample_read(call, &s);
  const int64_t each = grid_kernel_each(&s), pieces = (s.points + each - 1) / each;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t image = item / pieces, first = item % pieces * each;
    const int64_t n = s.points - first < each ? s.points - first : each;
    for (int64_t i = 0, used = 0; i < n; i++) {
      berth__grid_neighbours near[BERTH__WINDOW_AXES];
      berth__grid_sample_near(call, &s, image * s.points + first + i, near);
      const int64_t end = grid_kernel_add(call, &s, near, &p, used);
      p.n_taps[i] = end - used;
      used = end;
    }
    for (int64_t c = image * channels; c < (image + 1) * channels; c++)
      grid_kernel_sum(call, &p, c * s.area, c * s.points + first, n);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_grid_sample)[] = {
    {.name = "grid_sample",
     .code = BERTH__OP_grid_sample,
     .takes = grid_kernel_takes,
     .items = grid_kernel_items,
     .grain = grid_kernel_grain,
     .run = grid_kernel_run},
    {0},
};
