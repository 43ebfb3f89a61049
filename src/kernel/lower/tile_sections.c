/* Long sums with few results. The depth is cut into sections, which become another axis of the batch, so any form can
 * compute them, and each section has its own workgroups (split-K). Their sums go to the step's scratch. A second kernel
 * adds them up, always in the same order, and makes the results. */
#include "kernel/lower/tile.h"

#include "base/blocks.h"

/* ---- Choosing ----
 *
 * A plan sizes the scratch before it knows the storage of operands, so the number of sections depends only on extents,
 * types and limits. */

#define MOST_SECTIONS 8u
#define SECTION_STEP 8       /* the length of a section is a multiple of this: 16 bytes of narrow elements */
#define SECTION_DEPTH 128    /* shortest sum that is worth a workgroup */
#define SECTION_RESULTS 4096 /* with fewer results, the threads of a workgroup share the sums instead */
#define MOST_SCRATCH (64 << 20)

#define SECTION_MERGE 1800.0 /* nanoseconds for the second kernel */
#define SECTION_BYTES 3000.0 /* bytes per nanosecond that sections store and the second kernel loads */
/* Sections must take less than this fraction of the time. */
#define SECTION_GAIN 0.75
#define SECTION_GAIN_LATE 0.85 /* of warpgroups, whose costs are known better */

/* The compute type of the products, from types alone. */
static berth_compute section_kind(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const berth_tensor *in = tile->l->call->in;
  const berth_type left = in[tile->left.operand].type, right = in[tile->right.operand].type;
  berth_compute kind = limits->compute;
  if (left == BERTH_BF16 && right == BERTH_BF16) kind = BERTH_COMPUTE_BF16;
  if (left == BERTH_F16 && right == BERTH_F16) kind = BERTH_COMPUTE_F16;
  return BERTH__NATIVE_GPUS && (limits->multiplies >> kind & 1u) != 0 ? kind : BERTH_COMPUTE_F32;
}

/* is_late: whether warpgroups take less time than other forms. */
static double section_time(const berth__tile *tile, berth_compute kind, uint32_t sections, bool *is_late) {
  const double units = berth__tile_units_cost(tile, kind, sections);
  berth__matrix_form unused;
  *is_late = false;
  if (!BERTH__NATIVE_GPUS || berth__compute_storage(kind) == BERTH_F32) return units;
  const double warpgroups = berth__tile_warpgroup_cost(tile, sections, &unused);
  *is_late = warpgroups > 0 && warpgroups < units;
  return *is_late ? warpgroups : units;
}

static bool section_is_plain(const berth__tile_side *side) {
  return side->base == NULL && side->fours == 0 && side->zero == BERTH__TILE_NONE && side->shift == 0;
}

static bool section_is_tap(const berth__tile_side *side, uint32_t axis) {
  return side->window != NULL && axis >= side->taps && axis < side->taps + BERTH__WINDOW_AXES;
}

/* The longest axis of the depth with strides on both sides; rank: there is none. */
static uint32_t section_axis(const berth__tile *tile) {
  uint32_t best = tile->depth.rank;
  for (uint32_t axis = 0; axis < tile->depth.rank; axis++) {
    if (section_is_tap(&tile->left, axis) || section_is_tap(&tile->right, axis)) continue;
    if (best == tile->depth.rank || tile->depth.dim[axis] > tile->depth.dim[best]) best = axis;
  }
  return best;
}

/* Sections consist of whole blocks. */
static int64_t section_step(const berth__tile *tile) {
  if (!berth__tile_has_blocks(tile)) return SECTION_STEP;
  const int64_t block = berth_type_storage(tile->l->call->in[tile->right.operand].type).elements;
  return tile->depth.rank == 1 ? block : INT64_MAX;
}

static int64_t section_results(const berth__tile *tile) {
  return berth__tile_count(&tile->batch) * berth__tile_count(&tile->rows) * berth__tile_count(&tile->columns);
}

static bool section_can(const berth__tile *tile) {
  const berth_op_call *call = tile->l->call;
  const int64_t rows = berth__tile_count(&tile->rows), columns = berth__tile_count(&tile->columns);
  return tile->l->limits->shares_well && tile->type == BERTH__NUM_F32 && !berth__tile_is_normed(tile) &&
         tile->second == BERTH__TILE_NONE && !tile->goes_elsewhere && call->out[0].rank < BERTH_MAX_RANK &&
         tile->batch.rank < BERTH__TILE_AXES && tile->n_views < BERTH__TILE_VIEWS && section_is_plain(&tile->left) &&
         section_is_plain(&tile->right) && rows >= BERTH__MATRIX_LINES && columns >= BERTH__MATRIX_LINES &&
         section_results(tile) >= SECTION_RESULTS && berth__tile_count(&tile->depth) >= 2 * SECTION_DEPTH;
}

uint32_t berth__tile_sections(const berth__tile *tile) {
  if (!section_can(tile)) return 1;
  const berth_compute kind = section_kind(tile);
  const int64_t depth = berth__tile_count(&tile->depth), results = section_results(tile), step = section_step(tile);
  const uint32_t axis = section_axis(tile);
  bool is_late;
  double best = section_time(tile, kind, 1, &is_late);
  best *= is_late ? SECTION_GAIN_LATE : SECTION_GAIN;
  uint32_t chosen = 1;
  for (uint32_t n = 2; n <= MOST_SECTIONS && axis < tile->depth.rank && depth / n >= SECTION_DEPTH; n++) {
    if (tile->depth.dim[axis] % n != 0 || tile->depth.dim[axis] / n % step != 0) continue;
    if (results > MOST_SCRATCH / 4 / n) break;
    const double time =
        section_time(tile, kind, n, &is_late) + SECTION_MERGE + 8.0 * (double)results * (double)n / SECTION_BYTES;
    if (time >= best) continue;
    best = time;
    chosen = n;
  }
  return chosen;
}

double berth__tile_time(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
  const int64_t results = batch * rows * columns;
  double best = berth__tile_shape_cost(batch, rows, columns, depth);
  for (uint32_t n = 2; n <= MOST_SECTIONS && depth / n >= SECTION_DEPTH && results <= MOST_SCRATCH / 4 / n; n++) {
    const double time = berth__tile_shape_cost(batch * n, rows, columns, depth / n) + SECTION_MERGE +
                        8.0 * (double)results * (double)n / SECTION_BYTES;
    if (time < best) best = time;
  }
  return best;
}

uint64_t berth__tile_scratch(const berth__tile *tile) {
  const uint32_t n = berth__tile_sections(tile);
  return n > 1 ? 4 * (uint64_t)section_results(tile) * n : 0;
}

/* ---- Lowering ---- */

/* Inserts an axis of n steps before those of the batch. */
static void section_add_batch(int64_t *strides, uint32_t rank, int64_t stride) {
  memmove(strides + 1, strides, rank * sizeof *strides);
  strides[0] = stride;
}

static void section_store(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  (void)tile;
  berth__x_store(k, berth__l_scratch(k, BERTH_F32), place[0], sum);
}

/* Scratch has the results of the sections one after the other, each contiguous. */
static void section_view(const berth_tensor *out, int64_t results, berth__tile_view *view) {
  int64_t stride = 1;
  *view = (berth__tile_view){.stride = {0}};
  for (uint32_t axis = out->rank; axis-- > 0; stride *= out->dim[axis]) view->stride[axis] = stride;
  view->stride[out->rank] = results;
}

static berth__tile section_tile(const berth__tile *whole, uint32_t n) {
  const berth_tensor *out = &whole->l->call->out[0];
  const uint32_t axis = section_axis(whole);
  berth__tile t = *whole;
  t.depth.dim[axis] /= n;
  section_add_batch(t.left.batch, whole->batch.rank, t.left.depth[axis] * t.depth.dim[axis]);
  section_add_batch(t.right.batch, whole->batch.rank, t.right.depth[axis] * t.depth.dim[axis]);
  t.batch = (berth__tile_space){.rank = 0};
  berth__tile_axis(&t.batch, n, out->rank, 1);
  for (uint32_t i = 0; i < whole->batch.rank; i++)
    berth__tile_axis(&t.batch, whole->batch.dim[i], whole->batch.of[i], whole->batch.times[i]);
  t.n_views = 1;
  section_view(out, section_results(whole), &t.views[0]);
  t.finish = section_store;
  t.goes_elsewhere = t.is_for_scratch = true;
  return t;
}

/* The epilogue of a tile whose sums belong to sections. */
typedef struct section_end {
  void (*finish)(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum);
  const void *user;
  uint32_t view; /* scratch, at the first section */
  uint32_t n;
  int64_t results;
} section_end;

static void section_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x unused) {
  const section_end *end = tile->user;
  const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
  const berth__x at = place[end->view];
  berth__tile whole = *tile;
  berth__x sum = berth__x_load(k, scratch, at);
  (void)unused;
  for (uint32_t i = 1; i < end->n; i++)
    sum = berth__x_add(k, sum, berth__x_load(k, scratch, berth__x_affine(k, at, 1, i * end->results)));
  whole.finish = end->finish;
  whole.user = end->user;
  whole.finish(&whole, k, place, sum);
}

/* One thread per result, or per word of results. */
static berth_status section_merge(const berth__tile *whole, uint32_t n, berth_error *err) {
  berth__lowering *l = whole->l;
  const int64_t results = section_results(whole);
  const uint32_t word = berth__tile_word(whole);
  const section_end end = {whole->finish, whole->user, whole->n_views, n, results};
  const int64_t dims[3] = {berth__tile_count(&whole->batch), berth__tile_count(&whole->rows),
                           berth__tile_count(&whole->columns) / word};
  berth__tile t = *whole;
  berth__kernel *k = berth__l_begin(l, "merge");
  if (k == NULL) return berth__l_end(l, k, err);
  k->flops = (double)results * n;
  k->bytes = 4.0 * (double)results * n + berth__l_bytes(l, berth__operand_out(l->call, 0));
  section_view(&l->call->out[0], results, &t.views[t.n_views++]);
  t.finish = section_finish;
  t.user = &end;
  berth__x at[3];
  berth__l_unravel(k, berth__l_each_alone(l, k, results / word), 3, dims, at);
  berth__tile_cells cells = {.rows = 1, .columns = word, .batch = at[0], .row = {at[1]}};
  for (uint32_t i = 0; i < word; i++) {
    cells.column[i] = berth__x_affine(k, at[2], word, i);
    cells.sum[0][i] = berth__x_f32(k, 0);
  }
  berth__tile_store(&t, k, &cells, word);
  return berth__l_end(l, k, err);
}

berth_status berth__tile_lower_sections(berth__tile *tile, berth_error *err) {
  const uint32_t n = berth__tile_sections(tile);
  if (n == 1) return berth__tile_lower(tile, err);
  berth__tile sections = section_tile(tile, n);
  BERTH__TRY(berth__tile_lower(&sections, err));
  return section_merge(tile, n, err);
}
