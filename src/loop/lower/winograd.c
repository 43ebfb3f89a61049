/* pack_winograd and conv_winograd, which the CPU makes of convolutions: kept simple. One thread has all transformed
 * values of a channel of a weight, or a whole tile of one output channel. */
#include "loop/lower/tile.h"
#include "ops/conv_last.h"

#define SIZE 6 /* of the larger transform */

typedef struct square {
  berth__x at[SIZE][SIZE];
} square;

/* out[n][n] = m x m', with m [n][in]. */
static square transform(berth__kernel *k, const double *m, int64_t pitch, int64_t n, int64_t in, const square *x) {
  square half, out;
  for (int64_t row = 0; row < n; row++)
    for (int64_t column = 0; column < in; column++) {
      half.at[row][column] = berth__x_f32(k, 0);
      for (int64_t i = 0; i < in; i++)
        if (m[row * pitch + i] != 0)
          half.at[row][column] = berth__x3(k, BERTH__INST_fma, berth__x_f32(k, (float)m[row * pitch + i]),
                                           x->at[i][column], half.at[row][column]);
    }
  for (int64_t row = 0; row < n; row++)
    for (int64_t column = 0; column < n; column++) {
      out.at[row][column] = berth__x_f32(k, 0);
      for (int64_t i = 0; i < in; i++)
        if (m[column * pitch + i] != 0)
          out.at[row][column] = berth__x3(k, BERTH__INST_fma, berth__x_f32(k, (float)m[column * pitch + i]),
                                          half.at[row][i], out.at[row][column]);
    }
  return out;
}

static int64_t ceil_of(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* ---- Weights ---- */

static square load_weights(const berth__lowering *l, berth__kernel *k, berth__x channel, berth__x output) {
  const berth_tensor *w = &l->call->in[0];
  const berth__x first =
      berth__x_add(k, berth__x_affine(k, channel, w->stride[2], 0), berth__x_affine(k, output, w->stride[3], 0));
  square x;
  for (int64_t i = 0; i < 3; i++)
    for (int64_t j = 0; j < 3; j++)
      x.at[i][j] = berth__l_load(l, k, 0, berth__x_affine(k, first, 1, i * w->stride[0] + j * w->stride[1]));
  return x;
}

berth_status berth__lower_pack_winograd(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t outputs = l->call->in[0].dim[3], threads[3] = {out->dim[1], out->dim[2], out->dim[3]};
  berth__winograd m;
  if (berth__count(out) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[3], to[4];
  berth__winograd_matrices(l->call->attrs[1].i, &m);
  k->bytes = 4.0 * (double)(berth__count(out) + berth__count(&l->call->in[0]));
  berth__l_unravel(k, berth__l_each(l, k, threads[0] * threads[1] * threads[2]), 3, threads, at);
  const berth__x output = berth__x_add(k, berth__x_affine(k, at[0], out->dim[3], 0), at[2]);
  const berth__x is_there = berth__x_lt(k, output, berth__x_i32(k, outputs));
  const berth__x inside = berth__tile_clamp(k, output, outputs);
  const square x = load_weights(l, k, at[1], inside);
  const square values = transform(k, m.kernel_side[0], 3, m.size, 3, &x);
  const berth__x scale = berth__l_has(l, 1)
                             ? berth__l_load(l, k, 1, berth__x_affine(k, inside, l->call->in[1].stride[0], 0))
                             : berth__x_f32(k, 1);
  memcpy(to + 1, at, sizeof at);
  for (int64_t v = 0; v < m.size * m.size; v++) {
    to[0] = berth__x_i32(k, v);
    const berth__x value = berth__x_mul(k, values.at[v / m.size][v % m.size], scale);
    berth__l_store(l, k, 0, berth__l_place(k, out, to), berth__x_select(k, is_there, value, berth__x_f32(k, 0)));
  }
  return berth__l_end(l, k, err);
}

/* ---- Convolutions ---- */

typedef struct work {
  berth__tile tile; /* for its views and tail */
  berth__tile_tail tail;
  berth__last last;
  berth__winograd m;
  berth__kernel *k;
  berth__x image, row, column, output; /* the tile's first pixel */
  berth__x sums[SIZE][SIZE];           /* variables */
} work;

static square load_tile(const work *w, berth__x channel) {
  berth__kernel *k = w->k;
  const berth__window_axis *axis = w->last.window.axis;
  const berth__x zero = berth__x_i32(k, 0);
  const berth__x first = berth__x_add(k, berth__x_affine(k, w->image, w->last.image_stride, 0),
                                      berth__x_affine(k, channel, w->last.channel_stride, 0));
  square x;
  for (int64_t i = 0; i < w->m.size; i++)
    for (int64_t j = 0; j < w->m.size; j++) {
      const berth__x row = berth__x_affine(k, w->row, 1, i - axis[1].begin);
      const berth__x column = berth__x_affine(k, w->column, 1, j - axis[2].begin);
      berth__x inside = berth__x_and(k, berth__x_le(k, zero, row), berth__x_lt(k, row, berth__x_i32(k, axis[1].in)));
      inside = berth__x_and(k, inside, berth__x_le(k, zero, column));
      inside = berth__x_and(k, inside, berth__x_lt(k, column, berth__x_i32(k, axis[2].in)));
      berth__x at = berth__x_add(k, first, berth__x_affine(k, row, w->last.axis_stride[1], 0));
      at = berth__x_add(k, at, berth__x_affine(k, column, w->last.axis_stride[2], 0));
      const berth__x value = berth__l_load(w->tile.l, k, 0, berth__x_select(k, inside, at, zero));
      x.at[i][j] = berth__x_select(k, inside, value, berth__x_f32(k, 0));
    }
  return x;
}

static void add_channel(const work *w, berth__x channel) {
  berth__kernel *k = w->k;
  const berth_tensor *weight = &w->tile.l->call->in[1];
  const square x = load_tile(w, channel);
  const square values = transform(k, w->m.input_side[0], SIZE, w->m.size, w->m.size, &x);
  const berth__x panel = berth__x_i32(k, weight->dim[3]);
  const berth__x at[4] = {berth__x_i32(k, 0), berth__x_div(k, w->output, panel), channel,
                          berth__x_rem(k, w->output, panel)};
  const berth__x first = berth__l_place(k, weight, at);
  for (int64_t v = 0; v < w->m.size * w->m.size; v++) {
    const berth__x sum = w->sums[v / w->m.size][v % w->m.size];
    const berth__x factor = berth__l_load(w->tile.l, k, 1, berth__x_affine(k, first, 1, v * weight->stride[0]));
    berth__x_set(k, sum,
                 berth__x3(k, BERTH__INST_fma, values.at[v / w->m.size][v % w->m.size], factor, berth__x_get(k, sum)));
  }
}

static void store_tile(const work *w) {
  berth__kernel *k = w->k;
  const berth__window_axis *axis = w->last.window.axis;
  square sums;
  berth__x place[BERTH__TILE_VIEWS];
  for (int64_t i = 0; i < w->m.size; i++)
    for (int64_t j = 0; j < w->m.size; j++) sums.at[i][j] = berth__x_get(k, w->sums[i][j]);
  const square results = transform(k, w->m.output_side[0], SIZE, w->m.tile, w->m.size, &sums);
  for (int64_t i = 0; i < w->m.tile; i++)
    for (int64_t j = 0; j < w->m.tile; j++) {
      const berth__x at[4] = {w->image, berth__x_affine(k, w->row, 1, i), berth__x_affine(k, w->column, 1, j),
                              w->output};
      berth__x_if(k, berth__x_and(k, berth__x_lt(k, at[1], berth__x_i32(k, axis[1].out)),
                                  berth__x_lt(k, at[2], berth__x_i32(k, axis[2].out))));
      berth__tile_views(&w->tile, k, at, place);
      berth__tile_finish(&w->tile, k, place, results.at[i][j]);
      berth__x_end(k);
    }
}

static berth_status start(work *w, berth__lowering *l, berth_error *err) {
  const berth_attr *attr = l->call->attrs;
  berth__winograd_read(l->call, &w->last);
  berth__winograd_matrices(attr[BERTH__WINOGRAD_TILE].i, &w->m);
  berth__tile_init(&w->tile, l, BERTH__NUM_F32);
  return berth__tile_tail_read(&w->tile, &w->tail, BERTH__LAST_BIAS, 3, &attr[BERTH__WINOGRAD_ADDS],
                               berth__tail_first(&attr[BERTH__WINOGRAD_ADDS]), &attr[BERTH__WINOGRAD_CODE],
                               &attr[BERTH__WINOGRAD_NUMBERS], err);
}

berth_status berth__lower_conv_winograd(berth__lowering *l, berth_error *err) {
  work w;
  BERTH__TRY(start(&w, l, err));
  const berth__window_axis *axis = w.last.window.axis;
  const int64_t dims[4] = {w.last.images, ceil_of(axis[1].out, w.m.tile), ceil_of(axis[2].out, w.m.tile),
                           w.last.outputs};
  const int64_t count = dims[0] * dims[1] * dims[2] * dims[3];
  if (count == 0) return BERTH_OK;
  berth__kernel *k = w.k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[4];
  k->flops = 2.0 * (double)count * (double)(w.m.size * w.m.size * w.last.channels);
  k->bytes =
      4.0 * (double)(berth__count(&l->call->in[0]) + berth__count(&l->call->in[1]) + berth__count(&l->call->out[0]));
  berth__l_unravel(k, berth__l_each(l, k, count), 4, dims, at);
  w.image = at[0];
  w.row = berth__x_affine(k, at[1], w.m.tile, 0);
  w.column = berth__x_affine(k, at[2], w.m.tile, 0);
  w.output = at[3];
  for (int64_t i = 0; i < w.m.size; i++)
    for (int64_t j = 0; j < w.m.size; j++) w.sums[i][j] = berth__x_variable(k, berth__x_f32(k, 0));
  if (w.last.channels > 0) {
    add_channel(&w, berth__x_loop_n(k, w.last.channels));
    berth__x_end(k);
  }
  store_tile(&w);
  return berth__l_end(l, k, err);
}
