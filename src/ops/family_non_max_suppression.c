/* non_max_suppression: keeps those of overlapping boxes with the best scores, class by class.
 *   boxes   [N, S, 4]   two opposite corners as y, x, y, x; with `center` = 1: the centre's x and y, width, height
 *   scores  [N, C, S]
 * most?   most boxes kept per class (i64, one element; none: 0)
 * overlap?, score?    boxes that overlap a better one by more (intersection over union), and boxes whose score is not
 * above the limit, are dropped
 * Results: rows of batch, class and box, best first, with as many rows as possible boxes; and the number of valid rows.
 * The others are zeros. */
#include <inttypes.h>
#include <math.h>

#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__NMS_CENTER] = {.name = "center", .kind = BERTH_ATTR_INT},
                                   [BERTH__NMS_MOST] = {.name = "most", .kind = BERTH_ATTR_INTS}};

static berth_status check_limit(const berth__infer *infer, uint32_t operand, berth_error *err) {
  int64_t count;
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_float(infer, operand, err));
  if (berth__shape_count(&infer->in_shape[operand], &count) && count != 1)
    return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has %" PRId64 " elements, expected one", operand,
                       count);
  return BERTH_OK;
}

static berth_status check_boxes(const berth__infer *infer, berth_error *err) {
  const berth__shape *boxes = &infer->in_shape[BERTH__NMS_BOXES], *scores = &infer->in_shape[BERTH__NMS_SCORES];
  int64_t same;
  BERTH__TRY(berth__want_float(infer, BERTH__NMS_BOXES, err));
  BERTH__TRY(berth__want_same_type(infer, BERTH__NMS_BOXES, BERTH__NMS_SCORES, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__NMS_BOXES, 3, 3, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__NMS_SCORES, 3, 3, err));
  BERTH__TRY(berth__same_dim(boxes->dim[0], scores->dim[0], "batch of boxes and scores", &same, err));
  BERTH__TRY(berth__same_dim(boxes->dim[1], scores->dim[2], "number of boxes and scores", &same, err));
  return berth__same_dim(boxes->dim[2], 4, "numbers of a box", &same, err);
}

static berth_status non_max_suppression_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *scores = &infer->in_shape[BERTH__NMS_SCORES];
  berth__list most;
  BERTH__TRY(check_boxes(infer, err));
  BERTH__TRY(check_limit(infer, BERTH__NMS_OVERLAP, err));
  BERTH__TRY(check_limit(infer, BERTH__NMS_SCORE, err));
  BERTH__TRY(berth__infer_list(infer, BERTH__NMS_MOST, BERTH__NMS_MOST_OPERAND, &most, err));
  if (most.given && most.count != 1) return berth__fail(err, BERTH_INVALID, "`most` is a list, expected one number");
  infer->out_type[0] = infer->out_type[1] = BERTH_I64;
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {BERTH__DIM_UNKNOWN, 3}};
  infer->out_shape[1] = (berth__shape){.rank = 1, .dim = {1}};
  const bool is_open = most.given && !most.known;
  int64_t rows = !most.given ? 0 : is_open ? INT64_MAX : most.at[0], *out = &infer->out_shape[0].dim[0];
  if ((is_open && !infer->wants_bounds) || !berth__dim_is_fixed(scores->dim[2])) return BERTH_OK;
  if (rows > scores->dim[2]) rows = scores->dim[2];
  if (rows < 0) rows = 0;
  BERTH__TRY(berth__dim_mul(rows, scores->dim[0], out, err));
  return berth__dim_mul(*out, scores->dim[1], out, err);
}

typedef struct job {
  const berth_op_call *call;
  int64_t boxes, most;
  double overlap, score;
  bool is_center;
  unsigned char *gone; /* in scratch: one flag per box */
} job;

static uint64_t non_max_suppression_scratch(const berth_op_call *call) {
  return (uint64_t)call->in[BERTH__NMS_BOXES].dim[1];
}

static double non_max_suppression_limit(const berth_op_call *call, uint32_t operand, double otherwise) {
  return berth__call_has(call, operand) ? berth__load_f64(&call->in[operand], 0) : otherwise;
}

/* low and high on both axes */
static void corners(const job *j, int64_t box, double low[2], double high[2]) {
  double v[4];
  for (int i = 0; i < 4; i++) v[i] = berth__load_f64(&j->call->in[BERTH__NMS_BOXES], box * 4 + i);
  for (int i = 0; i < 2; i++) {
    const double a = j->is_center ? v[i] - v[i + 2] / 2 : v[i], b = j->is_center ? v[i] + v[i + 2] / 2 : v[i + 2];
    low[i] = fmin(a, b);
    high[i] = fmax(a, b);
  }
}

static bool non_max_suppression_overlaps(const job *j, int64_t a, int64_t b) {
  double low_a[2], high_a[2], low_b[2], high_b[2], shared = 1, area_a = 1, area_b = 1;
  corners(j, a, low_a, high_a);
  corners(j, b, low_b, high_b);
  for (int i = 0; i < 2; i++) {
    shared *= fmax(fmin(high_a[i], high_b[i]) - fmax(low_a[i], low_b[i]), 0);
    area_a *= high_a[i] - low_a[i];
    area_b *= high_b[i] - low_b[i];
  }
  const double all = area_a + area_b - shared;
  return area_a > 0 && area_b > 0 && all > 0 && shared / all > j->overlap;
}

/* The best remaining box, or -1. The first of equal ones. */
static int64_t best_left(const job *j, int64_t scores) {
  int64_t best = -1;
  double best_score = 0;
  for (int64_t i = 0; i < j->boxes; i++) {
    const double score = berth__load_f64(&j->call->in[BERTH__NMS_SCORES], scores + i);
    if (j->gone[i] || !(score > j->score) || (best >= 0 && score <= best_score)) continue;
    best = i;
    best_score = score;
  }
  return best;
}

static int64_t select_class(const job *j, int64_t batch, int64_t class, int64_t row) {
  const int64_t classes = j->call->in[BERTH__NMS_SCORES].dim[1], first = batch * j->boxes;
  int64_t *out = j->call->out[0].data, best;
  memset(j->gone, 0, (size_t)j->boxes);
  for (int64_t n = 0; n < j->most && (best = best_left(j, (batch * classes + class) * j->boxes)) >= 0; n++, row++) {
    out[row * 3] = batch;
    out[row * 3 + 1] = class;
    out[row * 3 + 2] = best;
    j->gone[best] = 1;
    for (int64_t i = 0; i < j->boxes; i++)
      j->gone[i] = j->gone[i] || non_max_suppression_overlaps(j, first + best, first + i);
  }
  return row;
}

static berth_status non_max_suppression_kernel(const berth_op_call *call, berth_error *err) {
  berth__list most;
  (void)err;
  berth__call_list(call, BERTH__NMS_MOST, BERTH__NMS_MOST_OPERAND, &most);
  job j = {.call = call,
           .boxes = call->in[BERTH__NMS_BOXES].dim[1],
           .most = most.given ? most.at[0] : 0,
           .overlap = non_max_suppression_limit(call, BERTH__NMS_OVERLAP, 0),
           .score = non_max_suppression_limit(call, BERTH__NMS_SCORE, -(double)INFINITY),
           .is_center = call->attrs[BERTH__NMS_CENTER].i != 0,
           .gone = call->scratch};
  int64_t rows = 0, *out = call->out[0].data;
  for (int64_t batch = 0; batch < call->in[BERTH__NMS_SCORES].dim[0] && j.boxes > 0; batch++)
    for (int64_t class = 0; class < call->in[BERTH__NMS_SCORES].dim[1]; class ++)
      rows = select_class(&j, batch, class, rows);
  for (int64_t i = rows * 3; i < call->out[0].dim[0] * 3; i++) out[i] = 0;
  *(int64_t *)call->out[1].data = rows;
  return BERTH_OK;
}

const berth__family berth__family_non_max_suppression = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = non_max_suppression_infer,
    .scratch = non_max_suppression_scratch,
    .kernel = non_max_suppression_kernel,
    .valued = 1u << BERTH__NMS_MOST_OPERAND,
    .bounded = 1u << BERTH__NMS_MOST_OPERAND,
    .attr_of = {[BERTH__NMS_MOST_OPERAND] = BERTH__NMS_MOST + 1},
};
