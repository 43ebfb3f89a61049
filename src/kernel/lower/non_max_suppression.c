/* non_max_suppression, in two kernels. A workgroup for each class of an image selects the best remaining box, round by
 * round, and removes those that overlap it; each thread has some of the boxes. Then a thread for each row of the result
 * finds its box. The number of rounds is fixed, because threads that meet at a barrier cannot leave early. */
#include <math.h>

#include "kernel/lower/math.h"
#include "kernel/lower/sample.h"
#include "ops/operand.h"

#define GROUP 64u

/* Scratch, in words: how many boxes each class has selected, which ones, and a flag for every removed box. */
typedef struct sizes {
  int64_t classes, boxes; /* classes of all images */
  int64_t most;           /* boxes that a class keeps */
  int64_t taken, gone;    /* offsets of the selected boxes and of the flags */
} sizes;

typedef struct selecting {
  berth__lowering *l;
  berth__kernel *k;
  sizes size;
  uint32_t threads;
  berth__x class, thread, image;
  berth__x overlap, score; /* the thresholds */
  uint32_t scratch;
  uint32_t shared_score, shared_box;
  berth__x best, best_score; /* variables */
} selecting;

static sizes sizes_of(const berth_op_call *call) {
  const berth_attr *most = &call->attrs[BERTH__NMS_MOST];
  const berth_tensor *scores = &call->in[BERTH__NMS_SCORES];
  sizes s = {.classes = scores->dim[0] * scores->dim[1], .boxes = scores->dim[2]};
  s.most = most->count != 0 ? most->ints[0] : 0;
  if (s.most > s.boxes) s.most = s.boxes;
  if (s.most < 0) s.most = 0;
  s.taken = s.classes;
  s.gone = s.taken + s.classes * s.most;
  return s;
}

uint64_t berth__scratch_of_non_max_suppression(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  const sizes s = sizes_of(call);
  return (uint64_t)(s.gone + s.classes * s.boxes) * 4;
}

/* ---- Boxes ---- */

typedef struct box {
  berth__x low[2], high[2], area;
} box;

static berth__x number_of_box(const selecting *s, berth__x i, int64_t number) {
  const berth__x at[3] = {s->image, i, berth__x_i32(s->k, number)};
  return berth__l_load(s->l, s->k, BERTH__NMS_BOXES, berth__l_place(s->k, &s->l->call->in[BERTH__NMS_BOXES], at));
}

static box read_box(const selecting *s, berth__x i) {
  berth__kernel *k = s->k;
  const bool is_center = s->l->call->attrs[BERTH__NMS_CENTER].i != 0;
  box b;
  for (int axis = 0; axis < 2; axis++) {
    berth__x first = number_of_box(s, i, axis), second = number_of_box(s, i, axis + 2);
    if (is_center) {
      const berth__x half = berth__m_scale(k, second, 0.5f), middle = first;
      first = berth__x_sub(k, middle, half);
      second = berth__x_add(k, middle, half);
    }
    b.low[axis] = berth__x_min(k, first, second);
    b.high[axis] = berth__x_max(k, first, second);
  }
  b.area = berth__x_mul(k, berth__x_sub(k, b.high[0], b.low[0]), berth__x_sub(k, b.high[1], b.low[1]));
  return b;
}

static berth__x lower_non_max_suppression_overlaps(const selecting *s, const box *a, const box *b) {
  berth__kernel *k = s->k;
  const berth__x zero = berth__x_f32(k, 0.0f);
  berth__x shared = berth__x_f32(k, 1.0f);
  for (int axis = 0; axis < 2; axis++) {
    const berth__x low = berth__x_max(k, a->low[axis], b->low[axis]);
    const berth__x high = berth__x_min(k, a->high[axis], b->high[axis]);
    shared = berth__x_mul(k, shared, berth__x_max(k, berth__x_sub(k, high, low), zero));
  }
  const berth__x all = berth__x_sub(k, berth__x_add(k, a->area, b->area), shared);
  berth__x is_real = berth__x_and(k, berth__x_lt(k, zero, a->area), berth__x_lt(k, zero, b->area));
  is_real = berth__x_and(k, is_real, berth__x_lt(k, zero, all));
  return berth__x_and(k, is_real, berth__x_lt(k, s->overlap, berth__x_div(k, shared, all)));
}

/* ---- A round ---- */

static berth__x gone_place(const selecting *s, berth__x i) {
  const berth__x first = berth__x_affine(s->k, s->class, s->size.boxes, s->size.gone);
  return berth__x_add(s->k, first, i);
}

static berth__x score_of(const selecting *s, berth__x i) {
  const int64_t classes = s->l->call->in[BERTH__NMS_SCORES].dim[1];
  const berth__x at[3] = {s->image, berth__x_rem(s->k, s->class, berth__x_i32(s->k, classes)), i};
  return berth__l_load(s->l, s->k, BERTH__NMS_SCORES, berth__l_place(s->k, &s->l->call->in[BERTH__NMS_SCORES], at));
}

/* Opens a loop over the thread's own boxes. */
static berth__x own_boxes(const selecting *s) {
  return berth__x_loop(s->k, s->thread, berth__x_i32(s->k, s->size.boxes), s->threads);
}

static void mark_unfit(const selecting *s) {
  berth__kernel *k = s->k;
  const berth__x i = own_boxes(s);
  const berth__x is_fit = berth__x_lt(k, s->score, score_of(s, i)), zero = berth__x_u32(k, 0), one = berth__x_u32(k, 1);
  berth__x_store(k, s->scratch, gone_place(s, i), berth__x_select(k, is_fit, zero, one));
  berth__x_end(k);
}

static void take_if(const selecting *s, berth__x is_better, berth__x i, berth__x score) {
  berth__kernel *k = s->k;
  berth__x_set(k, s->best, berth__x_select(k, is_better, i, berth__x_get(k, s->best)));
  berth__x_set(k, s->best_score, berth__x_select(k, is_better, score, berth__x_get(k, s->best_score)));
}

static berth__x has_none(const selecting *s) {
  return berth__x_lt(s->k, berth__x_get(s->k, s->best), berth__x_i32(s->k, 0));
}

/* The best of the thread's own boxes; of equal ones the first. */
static void find_own_best(const selecting *s) {
  berth__kernel *k = s->k;
  berth__x_set(k, s->best, berth__x_i32(k, -1));
  berth__x_set(k, s->best_score, berth__x_f32(k, 0.0f));
  const berth__x i = own_boxes(s);
  berth__x_if(k, berth__x_eq(k, berth__x_load(k, s->scratch, gone_place(s, i)), berth__x_u32(k, 0)));
  const berth__x score = score_of(s, i);
  take_if(s, berth__x_or(k, has_none(s), berth__x_lt(k, berth__x_get(k, s->best_score), score)), i, score);
  berth__x_end(k);
  berth__x_end(k);
}

/* The best box of all threads; every thread computes it. */
static void find_best(const selecting *s) {
  berth__kernel *k = s->k;
  berth__x_shared_store(k, s->shared_score, s->thread, berth__x_get(k, s->best_score));
  berth__x_shared_store(k, s->shared_box, s->thread, berth__x_get(k, s->best));
  berth__x_barrier(k);
  const berth__x t = berth__x_loop_n(k, s->threads);
  const berth__x score = berth__x_shared_load(k, s->shared_score, t), i = berth__x_shared_load(k, s->shared_box, t);
  const berth__x best = berth__x_get(k, s->best), best_score = berth__x_get(k, s->best_score);
  const berth__x is_before = berth__x_and(k, berth__x_eq(k, score, best_score), berth__x_lt(k, i, best));
  const berth__x is_better = berth__x_or(k, berth__x_lt(k, best_score, score), is_before);
  const berth__x is_box = berth__x_le(k, berth__x_i32(k, 0), i);
  take_if(s, berth__x_and(k, is_box, berth__x_or(k, has_none(s), is_better)), i, score);
  berth__x_end(k);
  berth__x_barrier(k); /* before the next round overwrites it */
}

static void strike_out(const selecting *s, berth__x taken) {
  berth__kernel *k = s->k;
  const box best = read_box(s, taken);
  const berth__x i = own_boxes(s), place = gone_place(s, i), one = berth__x_u32(k, 1);
  const box other = read_box(s, i);
  const berth__x goes = berth__x_or(k, berth__x_eq(k, i, taken), lower_non_max_suppression_overlaps(s, &best, &other));
  berth__x_store(k, s->scratch, place, berth__x_select(k, goes, one, berth__x_load(k, s->scratch, place)));
  berth__x_end(k);
}

static void play_round(const selecting *s, berth__x round, berth__x count) {
  berth__kernel *k = s->k;
  find_own_best(s);
  find_best(s);
  const berth__x taken = berth__x_get(k, s->best);
  const berth__x last = berth__x_i32(k, s->size.boxes - 1);
  berth__x_if(k, berth__x_le(k, berth__x_i32(k, 0), taken));
  strike_out(s, berth__x_max(k, berth__x_min(k, taken, last), berth__x_i32(k, 0)));
  berth__x_set(k, count, berth__x_affine(k, round, 1, 1));
  berth__x_if(k, berth__x_eq(k, s->thread, berth__x_i32(k, 0)));
  const berth__x row = berth__x_add(k, berth__x_affine(k, s->class, s->size.most, s->size.taken), round);
  berth__x_store(k, s->scratch, row, berth__x_bits(k, BERTH__NUM_U32, taken));
  berth__x_end(k);
  berth__x_end(k);
}

static berth__x lower_non_max_suppression_limit(const selecting *s, uint32_t operand, float otherwise) {
  if (!berth__l_has(s->l, operand)) return berth__x_f32(s->k, otherwise);
  return berth__l_load(s->l, s->k, operand, berth__x_i32(s->k, 0));
}

static void lower_non_max_suppression_start(selecting *s) {
  berth__kernel *k = s->k;
  if (k != NULL) {
    k->group_size = s->threads;
    k->n_groups = (uint64_t)s->size.classes;
  }
  s->class = berth__x_group(k);
  s->thread = berth__x_thread(k);
  s->image = berth__x_div(k, s->class, berth__x_i32(k, s->l->call->in[BERTH__NMS_SCORES].dim[1]));
  s->overlap = lower_non_max_suppression_limit(s, BERTH__NMS_OVERLAP, 0.0f);
  s->score = lower_non_max_suppression_limit(s, BERTH__NMS_SCORE, -INFINITY);
  s->scratch = berth__l_scratch(k, BERTH_U32);
  s->shared_score = berth__kernel_shared(k, BERTH__NUM_F32, s->threads);
  s->shared_box = berth__kernel_shared(k, BERTH__NUM_I32, s->threads);
}

static berth_status select_boxes(berth__lowering *l, berth_error *err) {
  selecting s = {.l = l, .size = sizes_of(l->call)};
  s.threads = l->limits->group_size < GROUP ? l->limits->group_size : GROUP;
  berth__kernel *k = s.k = berth__l_begin(l, "select");
  lower_non_max_suppression_start(&s);
  mark_unfit(&s);
  s.best = berth__x_variable(k, berth__x_i32(k, -1));
  s.best_score = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth__x count = berth__x_variable(k, berth__x_i32(k, 0));
  if (s.size.most > 0) {
    play_round(&s, berth__x_loop_n(k, s.size.most), count);
    berth__x_end(k);
  }
  berth__x_if(k, berth__x_eq(k, s.thread, berth__x_i32(k, 0)));
  berth__x_store(k, s.scratch, s.class, berth__x_bits(k, BERTH__NUM_U32, berth__x_get(k, count)));
  return berth__l_end(l, k, err);
}

/* ---- Rows of the result ---- */

static void lower_non_max_suppression_store_row(berth__lowering *l, berth__kernel *k, berth__x row,
                                                const berth__x *numbers) {
  const berth_tensor *out = &l->call->out[0];
  berth__x_if(k, berth__x_lt(k, row, berth__x_i32(k, out->dim[0])));
  for (int64_t i = 0; i < 3; i++) {
    const berth__x at[2] = {row, berth__x_i32(k, i)};
    berth__l_store(l, k, 0, berth__l_place(k, out, at), numbers[i]);
  }
  berth__x_end(k);
}

/* Finds the class of the row, and which of its boxes it is: in three variables. */
static berth__x find_row(berth__lowering *l, berth__kernel *k, berth__x row, const berth__x *numbers) {
  const sizes size = sizes_of(l->call);
  const uint32_t scratch = berth__l_scratch(k, BERTH_U32);
  const berth__x before = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x classes = berth__x_i32(k, l->call->in[BERTH__NMS_SCORES].dim[1]);
  const berth__x class = berth__x_loop_n(k, size.classes);
  const berth__x count = berth__x_bits(k, BERTH__NUM_I32, berth__x_load(k, scratch, class));
  const berth__x inside = berth__x_sub(k, row, berth__x_get(k, before));
  const berth__x is_here = berth__x_and(k, berth__x_le(k, berth__x_i32(k, 0), inside), berth__x_lt(k, inside, count));
  berth__x_if(k, is_here);
  const berth__x taken = berth__x_add(k, berth__x_affine(k, class, size.most, size.taken), inside);
  berth__x_set(k, numbers[0], berth__x_div(k, class, classes));
  berth__x_set(k, numbers[1], berth__x_rem(k, class, classes));
  berth__x_set(k, numbers[2], berth__x_bits(k, BERTH__NUM_I32, berth__x_load(k, scratch, taken)));
  berth__x_end(k);
  berth__x_set(k, before, berth__x_add(k, berth__x_get(k, before), count));
  berth__x_end(k);
  return berth__x_get(k, before);
}

static berth_status gather_rows(berth__lowering *l, berth_error *err) {
  const int64_t rows = l->call->out[0].dim[0];
  berth__kernel *k = berth__l_begin(l, "rows");
  const berth__x row = berth__l_each(l, k, rows > 0 ? rows : 1);
  berth__x numbers[3];
  for (int i = 0; i < 3; i++) numbers[i] = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x total = find_row(l, k, row, numbers);
  for (int i = 0; i < 3; i++) numbers[i] = berth__x_get(k, numbers[i]);
  if (rows > 0) lower_non_max_suppression_store_row(l, k, row, numbers);
  berth__x_if(k, berth__x_eq(k, row, berth__x_i32(k, 0)));
  berth__l_store(l, k, 1, berth__x_i32(k, 0), total);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_non_max_suppression(berth__lowering *l, berth_error *err) {
  const sizes size = sizes_of(l->call);
  if (berth__l_has(l, BERTH__NMS_MOST_OPERAND))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "only a run knows how many boxes it keeps, but GPU kernels are compiled before it");
  if (size.gone + size.classes * size.boxes > INT32_MAX)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has more boxes and classes than the 2^31 that kernels count");
  if (size.classes > 0) BERTH__TRY(select_boxes(l, err));
  return gather_rows(l, err);
}
