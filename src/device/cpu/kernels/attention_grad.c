/* attention_grad of f32. As in attention.c, queries lie side by side in the lanes of vectors, in tiles of WIDTH, and
 * keys one below the other. A work item is a head of k and v: it goes over the tiles of all heads of q that read it,
 * and adds their gradients to those of its keys and values in place. Only the weights of one tile and the gradients of
 * its scores exist at a time. If the gradients of a head are not finite, the head is computed again query by query:
 * masked keys must not count, and 0 times a value that is not finite would. */
#include <float.h>

#include "device/cpu/kernels/vec_math.h"
#include "ops/attention.h"
#include "ops/operand.h"

#define WIDTH VF_PANEL
#if VF_LANES == 16
#define ROWS 8 /* sums of a product tile that stay in registers: ROWS x WIDTH */
#elif VF_LANES == 8
#define ROWS 6
#else
#define ROWS 4
#endif
#define UNROLL _Pragma("GCC unroll 16")
#define INLINED static inline __attribute__((always_inline))

typedef struct job {
  berth__attention_grad g;
  const float *q, *k, *v, *dy;
  float *dq, *dk, *dv;
  float *query, *dout; /* [D][WIDTH], scaled; [Dv][WIDTH] */
  float *turned;       /* [D][WIDTH]: the gradients of the queries */
  float *weight;       /* [T][WIDTH] */
  float *slope;        /* [T][WIDTH]: the gradients of the weights, then of the scores */
  float *bent;         /* [T][WIDTH], with a soft cap: its derivative */
} job;

/* Queries [row, row + n) of a head, and the keys [first, last) that at least one of them sees. */
typedef struct tile {
  int64_t batch, head, kv_head, row, n, first, last;
  float begin[WIDTH], end[WIDTH]; /* the keys that each query sees, counted from `first` */
} tile;

/* ---- Products ---- */

/* out[r] (+)= sum over i < n of a[r * a_row + i * a_step] * b[i], rows of `columns` <= WIDTH. */
INLINED void attention_grad_kernel_tile(const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_row,
                                        int64_t n, float *out, int64_t out_row, bool adds, int64_t columns,
                                        const int rows, const bool is_whole) {
  vf sum[ROWS][2];
  const int64_t left[2] = {vf_tail(columns), columns > VF_LANES ? columns - VF_LANES : 0};
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++) {
    const float *at = out + r * out_row + v * VF_LANES;
    sum[r][v] = !adds ? vf_zero() : is_whole ? vf_load(at) : vf_load_n(at, left[v]);
  }
  for (int64_t i = 0; i < n; i++, b += b_row) {
    vf lane[2];
    UNROLL for (int v = 0; v < 2; v++) lane[v] =
        is_whole ? vf_load(b + v * VF_LANES) : vf_load_n(b + (left[v] > 0 ? v * VF_LANES : 0), left[v]);
    UNROLL for (int r = 0; r < rows; r++) {
      const vf factor = vf_set1(a[r * a_row + i * a_step]);
      UNROLL for (int v = 0; v < 2; v++) sum[r][v] = vf_fma(factor, lane[v], sum[r][v]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++) {
    float *at = out + r * out_row + (is_whole || left[v] > 0 ? v * VF_LANES : 0);
    if (is_whole)
      vf_store(at, sum[r][v]);
    else
      vf_store_n(at, sum[r][v], left[v]);
  }
}

typedef struct factors {
  const float *a, *b;
  int64_t a_row, a_step, b_row, n;
} factors;

/* Any number of rows of `columns`. */
static void attention_grad_kernel_multiply(const factors *f, float *out, int64_t out_row, int64_t n_rows,
                                           int64_t columns, bool adds) {
  for (int64_t c = 0; c < columns; c += WIDTH) {
    const int64_t width = columns - c < WIDTH ? columns - c : WIDTH;
    int64_t r = 0;
    for (; r + ROWS <= n_rows && width == WIDTH; r += ROWS)
      attention_grad_kernel_tile(f->a + r * f->a_row, f->a_row, f->a_step, f->b + c, f->b_row, f->n,
                                 out + r * out_row + c, out_row, adds, WIDTH, ROWS, true);
    for (; r < n_rows; r++)
      attention_grad_kernel_tile(f->a + r * f->a_row, f->a_row, f->a_step, f->b + c, f->b_row, f->n,
                                 out + r * out_row + c, out_row, adds, width, 1, false);
  }
}

/* ---- A tile ---- */

/* Rows as columns, times a factor; unused lanes are 0. */
static void attention_grad_kernel_turn(float *to, const float *from, const berth__heads *h, int64_t n, float factor) {
  for (int64_t lane = 0; lane < WIDTH; lane++)
    for (int64_t d = 0; d < h->size; d++)
      to[d * WIDTH + lane] = lane < n ? from[lane * h->row_stride + d] * factor : 0.0f;
}

static float attention_grad_kernel_beside(const berth__attention *a, const tile *t, int64_t lane, int64_t key) {
  const int64_t *m = a->mask_stride, *s = a->bias_stride, row = t->row + lane;
  if (a->mask != NULL && !berth__load_i64(a->mask, t->batch * m[0] + t->head * m[1] + row * m[2] + key * m[3]))
    return -INFINITY;
  if (a->bias == NULL) return 0;
  return (float)berth__load_f64(a->bias, t->batch * s[0] + t->head * s[1] + row * s[2] + key * s[3]);
}

/* Applies the soft cap, bias and mask to the scores: -infinity for keys that a query does not see. */
static void attention_grad_kernel_mend(const job *j, const tile *t) {
  const berth__attention *a = &j->g.a;
  const bool has_beside = a->mask != NULL || a->bias != NULL;
  const vf hidden = vf_set1(-INFINITY), one = vf_set1(1.0f);
  for (int64_t key = t->first; key < t->last; key++) {
    const vf number = vf_set1((float)(key - t->first));
    for (int64_t lane = 0; lane < WIDTH; lane += VF_LANES) {
      float *at = j->weight + (key - t->first) * WIDTH + lane;
      vf x = vf_load(at);
      if (a->cap != 0) {
        const vf share = vf_tanh(x * vf_set1((float)(1 / a->cap)));
        x = share * vf_set1((float)a->cap);
        vf_store(j->bent + (key - t->first) * WIDTH + lane, one - share * share);
      }
      if (has_beside) {
        float beside[VF_LANES];
        for (int64_t i = 0; i < VF_LANES; i++)
          beside[i] = lane + i < t->n ? attention_grad_kernel_beside(a, t, lane + i, key) : 0.0f;
        x = vf_pick_eq(vf_load(beside), hidden, hidden, x + vf_load(beside));
      }
      x = vf_pick_lt(number, vf_load(t->begin + lane), hidden, vf_pick_lt(number, vf_load(t->end + lane), x, hidden));
      vf_store(at, x);
    }
  }
}

static vf attention_grad_kernel_sink(const berth__attention *a, const tile *t, vf most) {
  if (a->sinks == NULL) return vf_zero();
  const float sink = (float)berth__load_f64(a->sinks, t->head * a->sinks->stride[0]);
  return vf_exp(vf_set1(sink) - most);
}

/* Turns scores into weights that add up to 1, or to less with a sink. */
static void attention_grad_kernel_weigh(const job *j, const tile *t) {
  const int64_t n = t->last - t->first;
  for (int64_t lane = 0; lane < WIDTH; lane += VF_LANES) {
    float *at = j->weight + lane;
    vf most = vf_set1(-FLT_MAX), total = vf_zero();
    for (int64_t i = 0; i < n; i++) most = vf_max(vf_load(at + i * WIDTH), most);
    for (int64_t i = 0; i < n; i++) {
      const vf weight = vf_exp_negative(vf_load(at + i * WIDTH) - most);
      vf_store(at + i * WIDTH, weight);
      total = total + weight;
    }
    const vf all = total + attention_grad_kernel_sink(&j->g.a, t, most);
    const vf factor = vf_pick_eq(total, vf_zero(), vf_zero(), vf_set1(1.0f) / all);
    for (int64_t i = 0; i < n; i++) vf_store(at + i * WIDTH, vf_load(at + i * WIDTH) * factor);
  }
}

/* Turns the gradients of the weights into those of the scores, scaled. */
static void attention_grad_kernel_slope(const job *j, const tile *t) {
  const int64_t n = t->last - t->first;
  const vf scale = vf_set1((float)j->g.a.scale);
  for (int64_t lane = 0; lane < WIDTH; lane += VF_LANES) {
    const float *weight = j->weight + lane;
    float *slope = j->slope + lane;
    vf sum = vf_zero();
    for (int64_t i = 0; i < n; i++) sum = vf_fma(vf_load(weight + i * WIDTH), vf_load(slope + i * WIDTH), sum);
    for (int64_t i = 0; i < n; i++) {
      const vf p = vf_load(weight + i * WIDTH);
      vf ds = p * (vf_load(slope + i * WIDTH) - sum) * scale;
      if (j->g.a.cap != 0) ds = ds * vf_load(j->bent + i * WIDTH + lane);
      vf_store(slope + i * WIDTH, vf_pick_eq(p, vf_zero(), vf_zero(), ds));
    }
  }
}

static void attention_grad_kernel_find(const job *j, tile *t) {
  const berth__attention *a = &j->g.a;
  const int64_t keys = berth__attention_keys(a, t->batch);
  int64_t first[WIDTH] = {0}, last[WIDTH] = {0};
  t->first = a->k.length;
  t->last = 0;
  for (int64_t i = 0; i < t->n; i++) {
    berth__attention_range(a, keys, t->row + i, &first[i], &last[i]);
    if (first[i] >= last[i])
      first[i] = last[i] = 0;
    else if (first[i] < t->first)
      t->first = first[i];
    if (last[i] > t->last) t->last = last[i];
  }
  if (t->last < t->first) t->first = t->last = 0;
  for (int64_t i = 0; i < WIDTH; i++) {
    t->begin[i] = i < t->n ? (float)(first[i] - t->first) : 0.0f;
    t->end[i] = i < t->n ? (float)(last[i] - t->first) : 0.0f;
  }
}

static void attention_grad_kernel_run_tile(const job *j, tile *t) {
  const berth__attention *a = &j->g.a;
  attention_grad_kernel_find(j, t);
  const int64_t n = t->last - t->first, row = t->first;
  const float *q = j->q + berth__heads_at(&a->q, t->batch, t->head, t->row);
  const float *dy = j->dy + berth__heads_at(&j->g.dy, t->batch, t->head, t->row);
  const float *k = j->k + berth__heads_at(&a->k, t->batch, t->kv_head, row);
  const float *v = j->v + berth__heads_at(&a->v, t->batch, t->kv_head, row);
  float *dk = j->dk + berth__heads_at(&j->g.dk, t->batch, t->kv_head, row);
  float *dv = j->dv + berth__heads_at(&j->g.dv, t->batch, t->kv_head, row);
  float *dq = j->dq + berth__heads_at(&a->out, t->batch, t->head, t->row);
  attention_grad_kernel_turn(j->query, q, &a->q, t->n, (float)a->scale);
  attention_grad_kernel_turn(j->dout, dy, &j->g.dy, t->n, 1.0f);
  const factors scores = {k, j->query, a->k.row_stride, 1, WIDTH, a->q.size};
  const factors slopes = {v, j->dout, a->v.row_stride, 1, WIDTH, a->v.size};
  attention_grad_kernel_multiply(&scores, j->weight, WIDTH, n, WIDTH, false);
  attention_grad_kernel_multiply(&slopes, j->slope, WIDTH, n, WIDTH, false);
  attention_grad_kernel_mend(j, t);
  attention_grad_kernel_weigh(j, t);
  attention_grad_kernel_slope(j, t);
  const factors values = {j->weight, dy, WIDTH, 1, j->g.dy.row_stride, t->n};
  const factors keys = {j->slope, q, WIDTH, 1, a->q.row_stride, t->n};
  const factors queries = {k, j->slope, 1, a->k.row_stride, WIDTH, n};
  attention_grad_kernel_multiply(&values, dv, j->g.dv.row_stride, n, a->v.size, true);
  attention_grad_kernel_multiply(&keys, dk, j->g.dk.row_stride, n, a->q.size, true);
  attention_grad_kernel_multiply(&queries, j->turned, WIDTH, a->q.size, WIDTH, false);
  for (int64_t lane = 0; lane < t->n; lane++)
    for (int64_t d = 0; d < a->q.size; d++) dq[lane * a->out.row_stride + d] = j->turned[d * WIDTH + lane];
}

/* ---- Query by query ---- */

/* The gradients of the keys and values that one query sees, and its own gradient. Its weights are in the first lane. */
static void attention_grad_kernel_add_query(const job *j, const tile *t, const float *q, const float *dy) {
  const berth__attention *a = &j->g.a;
  const int64_t n = t->last - t->first;
  float sum = 0, *dq = j->dq + berth__heads_at(&a->out, t->batch, t->head, t->row);
  for (int64_t i = 0; i < n; i++) {
    const float *v = j->v + berth__heads_at(&a->v, t->batch, t->kv_head, t->first + i), p = j->weight[i * WIDTH];
    float *dv = j->dv + berth__heads_at(&j->g.dv, t->batch, t->kv_head, t->first + i), slope = 0;
    for (int64_t d = 0; d < a->v.size && p != 0; d++) {
      slope += dy[d] * v[d];
      dv[d] += p * dy[d];
    }
    j->slope[i * WIDTH] = slope;
    if (p != 0) sum += p * slope;
  }
  for (int64_t d = 0; d < a->q.size; d++) dq[d] = 0;
  for (int64_t i = 0; i < n; i++) {
    const float *k = j->k + berth__heads_at(&a->k, t->batch, t->kv_head, t->first + i), p = j->weight[i * WIDTH];
    float *dk = j->dk + berth__heads_at(&j->g.dk, t->batch, t->kv_head, t->first + i);
    const float bent = a->cap != 0 ? j->bent[i * WIDTH] : 1.0f;
    const float ds = p * (j->slope[i * WIDTH] - sum) * (float)a->scale * bent;
    for (int64_t d = 0; d < a->q.size && p != 0; d++) {
      dq[d] += ds * k[d];
      dk[d] += ds * q[d];
    }
  }
}

static void attention_grad_kernel_run_query(const job *j, tile *t) {
  const berth__attention *a = &j->g.a;
  t->n = 1;
  attention_grad_kernel_find(j, t);
  const float *q = j->q + berth__heads_at(&a->q, t->batch, t->head, t->row);
  const float *dy = j->dy + berth__heads_at(&j->g.dy, t->batch, t->head, t->row);
  const float *k = j->k + berth__heads_at(&a->k, t->batch, t->kv_head, t->first);
  const factors scores = {k, j->query, a->k.row_stride, 1, WIDTH, a->q.size};
  attention_grad_kernel_turn(j->query, q, &a->q, 1, (float)a->scale);
  attention_grad_kernel_multiply(&scores, j->weight, WIDTH, t->last - t->first, WIDTH, false);
  attention_grad_kernel_mend(j, t);
  attention_grad_kernel_weigh(j, t);
  attention_grad_kernel_add_query(j, t, q, dy);
}

static bool attention_grad_kernel_are_finite(const float *x, const berth__heads *h, int64_t batch, int64_t head) {
  vf sum = vf_zero();
  for (int64_t row = 0; row < h->length; row++) {
    const float *at = x + berth__heads_at(h, batch, head, row);
    for (int64_t d = 0; d < h->size; d += VF_LANES)
      sum = vf_fma(vf_load_n(at + d, vf_tail(h->size - d)), vf_zero(), sum);
  }
  return vf_sum(sum) == 0;
}

static bool attention_grad_kernel_is_finite(const job *j, const tile *t) {
  const berth__attention *a = &j->g.a;
  const int64_t sharing = a->q.heads / a->k.heads;
  bool is_finite = attention_grad_kernel_are_finite(j->dk, &j->g.dk, t->batch, t->kv_head) &&
                   attention_grad_kernel_are_finite(j->dv, &j->g.dv, t->batch, t->kv_head);
  for (int64_t head = t->kv_head * sharing; head < (t->kv_head + 1) * sharing && is_finite; head++)
    is_finite = attention_grad_kernel_are_finite(j->dq, &a->out, t->batch, head);
  return is_finite;
}

/* ---- The calls ---- */

static bool attention_grad_kernel_takes(const berth_op_call *call) {
  berth__attention_grad g;
  if (call->out[0].type != BERTH_F32 || call->in[BERTH__ATTENTION_K].type != BERTH_F32) return false;
  berth__attention_grad_of(call, &g);
  const bool is_run = g.a.q.stride == 1 && g.a.k.stride == 1 && g.a.v.stride == 1 && g.dy.stride == 1;
  return is_run && g.a.q.size > 0 && g.a.v.size > 0 && g.a.k.length < 1 << 24;
}

static int64_t attention_grad_kernel_items(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  return a.k.batch * a.k.heads;
}

static uint64_t attention_grad_kernel_scratch(const berth_op_call *call) {
  berth__attention a;
  berth__attention_of(call, &a);
  const int64_t rows = 2 * a.q.size + a.v.size + (a.cap != 0 ? 3 : 2) * a.k.length;
  return (uint64_t)(rows * WIDTH) * sizeof(float);
}

static void attention_grad_kernel_describe(const berth_op_call *call, job *j) {
  const berth__attention *a = &j->g.a;
  berth__attention_grad_of(call, &j->g);
  j->q = call->in[BERTH__ATTENTION_Q].data;
  j->k = call->in[BERTH__ATTENTION_K].data;
  j->v = call->in[BERTH__ATTENTION_V].data;
  j->dy = call->in[BERTH__ATTENTION_DY].data;
  j->dq = call->out[0].data;
  j->dk = call->out[1].data;
  j->dv = call->out[2].data;
  j->query = call->scratch;
  j->dout = j->query + a->q.size * WIDTH;
  j->turned = j->dout + a->v.size * WIDTH;
  j->weight = j->turned + a->q.size * WIDTH;
  j->slope = j->weight + a->k.length * WIDTH;
  j->bent = j->slope + a->k.length * WIDTH;
}

static void attention_grad_kernel_clear(const job *j, const tile *t) {
  const berth__attention *a = &j->g.a;
  for (int64_t key = 0; key < a->k.length; key++) {
    memset(j->dk + berth__heads_at(&j->g.dk, t->batch, t->kv_head, key), 0, (size_t)a->q.size * sizeof(float));
    memset(j->dv + berth__heads_at(&j->g.dv, t->batch, t->kv_head, key), 0, (size_t)a->v.size * sizeof(float));
  }
}

static void attention_grad_kernel_run_item(const job *j, int64_t item) {
  const berth__attention *a = &j->g.a;
  const int64_t sharing = a->q.heads / a->k.heads;
  tile t = {.batch = item / a->k.heads, .kv_head = item % a->k.heads};
  attention_grad_kernel_clear(j, &t);
  for (t.head = t.kv_head * sharing; t.head < (t.kv_head + 1) * sharing; t.head++)
    for (t.row = 0; t.row < a->q.length; t.row += WIDTH) {
      t.n = a->q.length - t.row < WIDTH ? a->q.length - t.row : WIDTH;
      attention_grad_kernel_run_tile(j, &t);
    }
  if (attention_grad_kernel_is_finite(j, &t)) return;
  attention_grad_kernel_clear(j, &t);
  for (t.head = t.kv_head * sharing; t.head < (t.kv_head + 1) * sharing; t.head++)
    for (t.row = 0; t.row < a->q.length; t.row++) attention_grad_kernel_run_query(j, &t);
}

static berth_status attention_grad_kernel_run(const berth_op_call *call, berth_error *err) {
  job j = {0};
  attention_grad_kernel_describe(call, &j);
  BERTH__TRY(berth__attention_check(&j.g.a, err));
  for (int64_t item = call->begin; item < call->end; item++) attention_grad_kernel_run_item(&j, item);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_attention_grad)[] = {
    {"attention_grad blocked", BERTH__OP_attention_grad, attention_grad_kernel_takes, attention_grad_kernel_items, NULL,
     attention_grad_kernel_scratch, attention_grad_kernel_run, NULL, false, NULL},
    {0},
};
