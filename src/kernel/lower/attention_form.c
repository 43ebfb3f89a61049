/* Chooses how attention is tiled and split on a real GPU. */
#include "kernel/lower/attention.h"

#define MOST_QUERIES 16u /* per block: four rows of the result per thread, with 128 threads */
#define ROW_GROUPS 4u
#define ENOUGH_GROUPS 256 /* workgroups that keep the larger GPUs busy */
#define LEAST_CHUNK 128   /* fewest keys that are worth a workgroup */

static uint32_t shared_of(const berth__attention_form *f, const berth__attention *a) {
  const uint32_t size = (uint32_t)a->q.size, parts = BERTH__ATTENTION_PARTS;
  return 4 * (f->queries * size + f->keys * (size + 1) + f->queries * (f->keys + 1) + f->queries * (parts + 1));
}

/* With few queries (a decoding step) there would be few workgroups, so several share the keys of a block. */
static void choose_chunks(const berth__attention *a, int64_t least, berth__attention_form *f) {
  const int64_t groups = a->q.batch * f->heads * f->blocks, length = a->k.length;
  f->chunks = (ENOUGH_GROUPS + groups - 1) / groups;
  if (f->chunks > length / least) f->chunks = length / least;
  if (f->chunks > BERTH__ATTENTION_CHUNKS) f->chunks = BERTH__ATTENTION_CHUNKS;
  if (f->chunks < 1 || groups >= ENOUGH_GROUPS / 2) f->chunks = 1;
  const int64_t each = (length + f->chunks - 1) / f->chunks;
  f->chunk_keys = (each + f->keys - 1) / f->keys * f->keys;
  f->chunks = (length + f->chunk_keys - 1) / f->chunk_keys;
}

/* ---- Matrix units ---- */

#define ROWS_A_WARP 16u /* the shape of mma */
#define MOST_WARPS 4u
#define MOST_KEYS 64u
#define LEAST_ROWS 9     /* fewer leave most of the units idle */
#define MOST_COLUMNS 128 /* most columns of the result that fit in registers */
#define MATRIX_GROUPS 48 /* fewest blocks of this many rows for which larger blocks pay off */

/* Queries, keys and values that are all bf16, or all f16, are multiplied in that type, and f32 as the plan allows. */
berth_compute berth__attention_kind(const berth__attention *a, const berth__kernel_limits *limits) {
  const berth_tensor *in = a->call->in;
  const berth_type q = in[BERTH__ATTENTION_Q].type, k = in[BERTH__ATTENTION_K].type, v = in[BERTH__ATTENTION_V].type;
  berth_compute kind = limits->compute;
  if (q == BERTH_BF16 && k == BERTH_BF16 && v == BERTH_BF16) kind = BERTH_COMPUTE_BF16;
  if (q == BERTH_F16 && k == BERTH_F16 && v == BERTH_F16) kind = BERTH_COMPUTE_F16;
  if (!BERTH__NATIVE_GPUS || limits->is_cooperative) return BERTH_COMPUTE_F32; /* it folds rows where sums are */
  return (limits->multiplies >> kind & 1u) != 0 ? kind : BERTH_COMPUTE_F32;
}

berth__tile_desc berth__attention_tile_desc(const berth__attention *a, const berth__attention_form *f,
                                            berth__attention_tile which, berth__storage storage, uint32_t slots) {
  berth__tile_desc desc = {.type = BERTH__NUM_F32, .kind = f->kind, .storage = storage, .slots = slots};
  const uint32_t size = berth__attention_padded(a->q.size), columns = berth__attention_padded(a->v.size);
  const bool is_values = which == BERTH__ATTENTION_VALUES;
  desc.lines = is_values ? columns : which == BERTH__ATTENTION_KEYS ? f->keys : f->queries;
  desc.depth = is_values || which == BERTH__ATTENTION_WEIGHTS ? f->keys : size;
  desc.is_deep = !is_values;
  return desc;
}

/* An upper bound: f32 may be held as f32. */
static uint32_t tile_bytes(const berth__attention *a, const berth__attention_form *f) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < BERTH__ATTENTION_TILES; i++) {
    const bool is_wide = i < BERTH__ATTENTION_WEIGHTS && a->call->in[BERTH__ATTENTION_Q + i].type == BERTH_F32;
    const uint32_t slots = i == BERTH__ATTENTION_KEYS || i == BERTH__ATTENTION_VALUES ? 2 : 1;
    const berth__storage storage = is_wide ? BERTH_F32 : berth__compute_storage(f->kind);
    const berth__tile_desc desc = berth__attention_tile_desc(a, f, (berth__attention_tile)i, storage, slots);
    bytes += slots * berth__tile_slot_bytes(&desc);
  }
  return bytes;
}

static void count_rows(const berth__attention *a, berth__attention_form *f, uint32_t most) {
  const int64_t sharing = a->q.heads / a->k.heads;
  f->folds_heads = a->q.length < most && sharing > 1;
  f->rows = a->q.length * (f->folds_heads ? sharing : 1);
  f->heads = f->folds_heads ? a->k.heads : a->q.heads;
}

/* A warp has 16 rows. As many warps share keys and values as leave enough workgroups. */
static bool choose_matrix(const berth__attention *a, const berth__kernel_limits *limits, berth__attention_form *out) {
  berth__attention_form f = {.keys = MOST_KEYS, .kind = berth__attention_kind(a, limits)};
  if (f.kind == BERTH_COMPUTE_F32 || a->v.size > MOST_COLUMNS) return false;
  count_rows(a, &f, ROWS_A_WARP);
  if (f.rows < LEAST_ROWS) return false;
  uint32_t warps = MOST_WARPS;
  while (warps > 1 && (f.rows <= (int64_t)ROWS_A_WARP * warps / 2 ||
                       a->q.batch * f.heads * f.rows < (int64_t)MATRIX_GROUPS * ROWS_A_WARP * warps))
    warps /= 2;
  f.queries = ROWS_A_WARP * warps;
  f.threads = 32 * warps;
  f.row_groups = f.threads / BERTH__ROW_THREADS;
  while (f.keys > ROWS_A_WARP && (f.keys / 2 >= a->k.length || tile_bytes(a, &f) > limits->tile_bytes)) f.keys /= 2;
  f.blocks = (f.rows + f.queries - 1) / f.queries;
  choose_chunks(a, LEAST_CHUNK, &f);
  *out = f;
  return f.threads <= limits->group_size && tile_bytes(a, &f) <= limits->tile_bytes;
}

/* ---- Few queries ---- */

static bool choose_few(const berth__attention *a, const berth__kernel_limits *limits, berth__attention_form *out) {
  const uint32_t lanes = BERTH__ATTENTION_LANES, warps = BERTH__ATTENTION_WARPS;
  berth__attention_form f = {.threads = warps * lanes};
  if (!BERTH__NATIVE_GPUS || !limits->exchanges || limits->lanes % lanes != 0 || f.threads > limits->group_size)
    return false;
  count_rows(a, &f, BERTH__ATTENTION_FEW);
  if (!berth__attention_few_of(a, f.rows, &f.few)) return false;
  f.queries = (uint32_t)f.rows;
  f.blocks = 1;
  f.keys = warps * f.few.keys;
  choose_chunks(a, f.keys, &f);
  *out = f;
  return 4 * warps * f.queries * (2 * f.few.keys + 2 + (uint32_t)a->v.size) <= limits->shared_bytes;
}

/* ---- Without ---- */

/* A block has 32 keys: one per thread of a row of 32. It has as many queries as fit in registers, fewer if there are no
 * more or shared memory is too small. */
bool berth__attention_form_of(const berth__attention *a, const berth__kernel_limits *limits,
                              berth__attention_form *out) {
  const int64_t most = (int64_t)BERTH__ATTENTION_SPANS * BERTH__ATTENTION_LANES;
  if (!limits->shares_well || a->k.length == 0 || a->k.heads == 0 || a->q.batch * a->q.heads * a->q.length == 0 ||
      a->q.size == 0 || a->q.size > most || a->v.size == 0 || a->v.size > most)
    return false;
  if (choose_matrix(a, limits, out) || choose_few(a, limits, out)) return true;
  berth__attention_form f = {.queries = MOST_QUERIES, .keys = BERTH__ATTENTION_LANES};
  count_rows(a, &f, f.queries);
  while (f.queries > 1 && (int64_t)f.queries / 2 >= f.rows) f.queries /= 2;
  while (f.queries > 4 && shared_of(&f, a) > limits->shared_bytes) f.queries /= 2;
  f.row_groups = f.queries < ROW_GROUPS ? f.queries : ROW_GROUPS;
  f.threads = f.row_groups * BERTH__ATTENTION_LANES;
  f.blocks = (f.rows + f.queries - 1) / f.queries;
  choose_chunks(a, LEAST_CHUNK, &f);
  *out = f;
  return f.threads <= limits->group_size && shared_of(&f, a) <= limits->shared_bytes;
}

uint64_t berth__scratch_of_attention(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__attention a;
  berth__attention_form f;
  berth__attention_of(call, &a);
  if (!berth__attention_form_of(&a, limits, &f) || f.chunks == 1) return 0;
  return 4 * (uint64_t)(a.q.batch * a.q.heads * a.q.length * f.chunks * (a.v.size + BERTH__ATTENTION_SUMS));
}
