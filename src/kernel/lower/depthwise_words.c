/* Depthwise int8 convolutions by words: a thread has a position of the result and the four channels of a word, so the
 * bytes of x and of the weights are one word each at every tap. */
#include "kernel/lower/bytes.h"
#include "kernel/lower/words.h"

#define LANES 4u

static bool lower_depthwise_words_is_byte(const berth__lowering *l, uint32_t operand) {
  const berth__storage storage = berth__l_storage_of(l, operand);
  return (storage == BERTH_I8 || storage == BERTH_U8) && berth__l_begins_with_word(l, operand);
}

/* The batch is the channels, which must be contiguous in x, in the weights and in the result. */
bool berth__tile_has_channel_words(const berth__tile *tile) {
  const berth__tile_side *x = &tile->left, *w = &tile->right;
  const berth_tensor *out = &tile->l->call->out[0];
  if (tile->batch.rank != 1 || tile->batch.dim[0] % LANES != 0 || x->batch[0] != 1 || w->batch[0] != 1) return false;
  if (!lower_depthwise_words_is_byte(tile->l, x->operand) || !lower_depthwise_words_is_byte(tile->l, w->operand) ||
      !lower_depthwise_words_is_byte(tile->l, tile->l->call->n_in))
    return false;
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++)
    if (x->window_stride[i] % LANES != 0 || w->depth[i] % LANES != 0) return false;
  return x->line[0] % LANES == 0 && berth__is_contiguous(out) && tile->columns.rank == 1 && tile->columns.dim[0] == 1;
}

typedef struct work {
  const berth__tile *tile;
  berth__kernel *k;
  berth__tile_at x, w;
  berth__x zero[LANES]; /* of the weights; BERTH__X_NONE: nothing to subtract */
  berth__x sum[LANES];  /* variables */
} work;

static void multiply_tap(const work *w, const berth__tile_at *x, const berth__tile_at *weight) {
  const berth__tile *t = w->tile;
  berth__kernel *k = w->k;
  const berth__storage x_storage = berth__l_storage_of(t->l, t->left.operand);
  const berth__storage w_storage = berth__l_storage_of(t->l, t->right.operand);
  berth__x index = x->index;
  if (x->inside != BERTH__X_NONE) index = berth__x_select(k, x->inside, index, berth__x_i32(k, 0));
  const berth__x x_word = berth__l_load_word(t->l, k, t->left.operand, index);
  const berth__x w_word = berth__l_load_word(t->l, k, t->right.operand, weight->index);
  for (uint32_t i = 0; i < LANES; i++) {
    berth__x value = berth__x_convert(k, BERTH__NUM_I32, berth__l_lane(k, x_storage, x_word, i));
    berth__x factor = berth__x_convert(k, BERTH__NUM_I32, berth__l_lane(k, w_storage, w_word, i));
    if (x->zero != BERTH__X_NONE) value = berth__x_sub(k, value, x->zero);
    if (w->zero[i] != BERTH__X_NONE) factor = berth__x_sub(k, factor, w->zero[i]);
    if (x->inside != BERTH__X_NONE) value = berth__x_select(k, x->inside, value, berth__x_i32(k, 0));
    const berth__x sum = berth__x_get(k, w->sum[i]);
    berth__x_set(k, w->sum[i], berth__tile_add_product(t, k, value, factor, sum));
  }
}

/* Short axes are unrolled, which simplifies their conditions. */
static void lower_depthwise_words_descend(const work *w, berth__tile_at x, berth__tile_at weight, uint32_t axis) {
  const berth__tile *t = w->tile;
  if (axis == t->depth.rank) {
    multiply_tap(w, &x, &weight);
    return;
  }
  const bool is_last = axis + 1 == t->depth.rank;
  const int64_t n = t->depth.dim[axis], rounds = is_last && n <= 8 ? n : 1;
  const berth__x counted = rounds == 1 ? berth__x_loop_n(w->k, n) : BERTH__X_NONE;
  for (int64_t i = 0; i < rounds; i++) {
    const berth__x tap = rounds == 1 ? counted : berth__x_i32(w->k, i);
    lower_depthwise_words_descend(w, berth__tile_step(w->k, &t->left, x, axis, tap),
                                  berth__tile_step(w->k, &t->right, weight, axis, tap), axis + 1);
  }
  if (rounds == 1) berth__x_end(w->k);
}

/* The position of a lane's channel in every view. */
static void place_lane(const berth__tile *tile, berth__kernel *k, berth__x pixel, berth__x channel, berth__x *place) {
  berth__x at[BERTH_MAX_RANK], in_rows[BERTH__TILE_AXES];
  for (uint32_t axis = 0; axis < BERTH_MAX_RANK; axis++) at[axis] = berth__x_i32(k, 0);
  berth__l_unravel(k, pixel, tile->rows.rank, tile->rows.dim, in_rows);
  for (uint32_t axis = 0; axis < tile->rows.rank; axis++)
    if (tile->rows.times[axis] != 0) at[tile->rows.of[axis]] = in_rows[axis];
  at[tile->batch.of[0]] = channel;
  berth__tile_views(tile, k, at, place);
}

static void finish_lanes(const work *w, berth__x pixel, berth__x channel) {
  const berth__tile *t = w->tile;
  berth__x place[BERTH__TILE_VIEWS], first = BERTH__X_NONE;
  berth__l_word_begin(t->l, w->k);
  for (uint32_t i = 0; i < LANES; i++) {
    place_lane(t, w->k, pixel, berth__x_affine(w->k, channel, 1, i), place);
    if (i == 0) first = place[0];
    berth__l_word_lane(w->k, i, place[0]);
    t->finish(t, w->k, place, berth__x_get(w->k, w->sum[i]));
  }
  berth__l_word_end(t->l, w->k, first);
}

berth_status berth__tile_channel_words(berth__tile *tile, berth_error *err) {
  const int64_t words = tile->batch.dim[0] / LANES, pixels = berth__tile_count(&tile->rows);
  berth__kernel *k = berth__tile_begin(tile, "words", 1, 1);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  berth__x at[2];
  berth__l_unravel(k, berth__l_each_alone(tile->l, k, pixels * words), 2, (const int64_t[]){pixels, words}, at);
  const berth__x channel = berth__x_affine(k, at[1], LANES, 0), zero = berth__x_i32(k, 0);
  work w = {.tile = tile, .k = k};
  w.x = berth__tile_start(tile, k, &tile->left, &tile->rows, channel, at[0]);
  w.w = berth__tile_start(tile, k, &tile->right, &tile->columns, channel, zero);
  for (uint32_t i = 0; i < LANES; i++) {
    const berth__x other = berth__x_affine(k, channel, 1, i);
    w.zero[i] = berth__tile_start(tile, k, &tile->right, &tile->columns, other, zero).zero;
    w.sum[i] = berth__x_variable(k, berth__tile_zero(tile, k));
  }
  lower_depthwise_words_descend(&w, w.x, w.w, 0);
  finish_lanes(&w, at[0], channel);
  return berth__l_end(tile->l, k, err);
}
