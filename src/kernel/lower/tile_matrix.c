/* Sums on matrix units (tensor cores). A workgroup goes along the depth piece by piece, with several pieces in shared
 * memory: while it multiplies one, others are being copied. A side whose elements are stored as the units need them, 16
 * contiguous bytes at a time, is copied asynchronously; any other side goes through registers, where it is unpacked and
 * rounded. */
#include "kernel/lower/tile.h"

#define MOST_ELEMENTS 16u /* of a piece, per thread */

typedef struct piece {
  const berth__tile_side *side;
  const berth__tile_space *lines;
  berth__kernel_tile tile;
  berth__x first; /* line of the workgroup */
  bool is_copied;
  uint32_t chunk;                   /* elements per copy */
  uint32_t n_fetched;               /* elements per thread: every `threads`-th */
  uint32_t beside;                  /* adjacent elements that a word or a block yields at once */
  berth__x elements[MOST_ELEMENTS]; /* variables */
} piece;

typedef struct work {
  const berth__tile *tile;
  const berth__matrix_form *form;
  berth_compute kind;
  berth__kernel *k;
  piece sides[2];
  uint32_t sums;
  uint32_t run; /* elements of the runs in which results are stored; 0: they are not staged */
  berth__x thread, batch;
} work;

/* ---- Choosing ---- */

static berth_type type_of(const berth__tile *tile, const berth__tile_side *side) {
  return berth__l_storage_of(tile->l, side->operand);
}

/* Operands that are both bf16, or both f16, lose nothing when multiplied in that type; f32 uses what the plan allows.
 * If one side has a block type, the type of the other side decides. */
berth_compute berth__tile_kind(const berth__tile *tile) {
  const berth__kernel_limits *limits = tile->l->limits;
  const berth_type left = type_of(tile, &tile->left), right = type_of(tile, &tile->right);
  berth_compute kind = limits->compute;
  if (!BERTH__NATIVE_GPUS || tile->type != BERTH__NUM_F32) return BERTH_COMPUTE_F32;
  if (left == BERTH_BF16 && right == BERTH_BF16) kind = BERTH_COMPUTE_BF16;
  if (left == BERTH_F16 && right == BERTH_F16) kind = BERTH_COMPUTE_F16;
  return (limits->multiplies >> kind & 1u) != 0 ? kind : BERTH_COMPUTE_F32;
}

/* From large to small; `groups` of them keep a large GPU busy. The largest leaves no registers for sides that are
 * loaded through them. depth: of 2-byte numbers, half as much of 4-byte ones. is_narrow: only for 2-byte numbers. */
static const struct choice {
  uint32_t rows, columns, threads, depth;
  int64_t groups;
  bool is_copied, is_narrow;
} matrix_forms[] = {{128, 256, 256, 32, 120, true, false}, {128, 128, 256, 32, 128, false, false},
                    {64, 64, 256, 64, 96, false, true},    {64, 64, 128, 32, 96, false, false},
                    {32, 64, 128, 32, 96, false, false},   {32, 32, 128, 64, 0, false, false}};

/* If there would be too few workgroups, and sums are long: parts of a workgroup share the depth of each piece. */
static const struct choice long_forms[] = {
    {32, 32, 256, 256, 96, false, false}, {32, 16, 256, 256, 72, false, false}, {16, 16, 256, 256, 0, false, false}};
#define LONG_PARTS 8u
#define LONG_DEPTH 256 /* shortest depth that is worth splitting */
#define LONG_GROUPS 96 /* workgroups of 64 x 64 that keep a device busy without splitting */

/* For f32, multiplied by threads. Depth and parts are limited by registers and shared memory; `share` is the fraction
 * of the core's peak rate, measured with all cores busy. */
static const struct four_choice {
  uint32_t rows, columns, threads, depth, parts;
  double share;
} four_forms[] = {
    {128, 128, 256, 16, 1, 0.75}, {64, 64, 128, 32, 1, 0.6}, {32, 32, 256, 128, 8, 0.55}, {32, 16, 256, 128, 8, 0.4}};
#define FOUR_DEPTH 32      /* shortest depth that is worth staging in shared memory */
#define FOUR_CORES 132     /* of a large GPU */
#define FOUR_START 60000.0 /* multiplications that a core could do in the time to start and end a workgroup */

static bool begins_aligned(const berth__tile *tile, const berth__tile_side *side) {
  return tile->l->at == NULL || tile->l->at[side->operand] % 16 == 0;
}

/* How a side is loaded into its tile: its storage there, and its orientation. */
typedef struct coming {
  berth__storage storage;
  bool is_deep, is_copied;
} coming;

/* Elements whose layout in memory suits a tile, with 16 contiguous bytes, are copied. f32 is then rounded when it is
 * multiplied. */
static coming find_coming(const berth__tile *tile, berth_compute kind, const berth__tile_side *side,
                          const berth__tile_space *lines) {
  const berth__storage wanted = berth__compute_storage(kind), storage = type_of(tile, side);
  const bool is_block = side == &tile->right && berth__tile_has_blocks(tile);
  coming c = {.storage = wanted, .is_deep = is_block || berth__tile_is_deep(tile, side, lines)};
  const bool is_rounded = storage == BERTH_F32 && !tile->l->limits->is_cooperative;
  if (is_block || (storage != wanted && !is_rounded) || !begins_aligned(tile, side)) return c;
  const berth__tile_words chunks = berth__tile_chunks_of(tile, side, lines, 16 / berth_type_storage(storage).bytes);
  if (chunks.depth * chunks.lines == 1) return c;
  return (coming){.storage = storage, .is_deep = chunks.depth > 1, .is_copied = true};
}

static berth__tile_desc describe_tile(const berth__tile *tile, berth_compute kind, const berth__matrix_form *form,
                                      bool is_left) {
  const coming c = is_left ? find_coming(tile, kind, &tile->left, &tile->rows)
                           : find_coming(tile, kind, &tile->right, &tile->columns);
  return (berth__tile_desc){.type = BERTH__NUM_F32,
                            .kind = kind,
                            .storage = c.storage,
                            .lines = is_left ? form->rows : form->columns,
                            .depth = form->depth,
                            .slots = form->slots,
                            .is_deep = c.is_deep,
                            .is_for_warpgroup = form->is_late,
                            .is_for_fours = form->by_fours};
}

static uint32_t slot_bytes(const berth__tile *tile, berth_compute kind, const berth__matrix_form *form) {
  const berth__tile_desc left = describe_tile(tile, kind, form, true), right = describe_tile(tile, kind, form, false);
  return berth__tile_slot_bytes(&left) + berth__tile_slot_bytes(&right);
}

static bool can_copy_both(const berth__tile *tile, berth_compute kind) {
  return find_coming(tile, kind, &tile->left, &tile->rows).is_copied &&
         find_coming(tile, kind, &tile->right, &tile->columns).is_copied && kind != BERTH_COMPUTE_TF32X3;
}

/* Adjacent sums that a thread has: two where it stores words, or runs. */
static uint32_t sums_together(const berth__tile *tile, const berth__matrix_form *form, bool has_runs) {
  const bool has_two = form->rows * form->columns / form->threads >= 2;
  return (has_runs || berth__tile_word(tile) == 2) && has_two ? 2 : 1;
}

/* Cooperative matrices: sums that reach the threads at a time, which are whole pieces of 16 x 16 of every subgroup, and
 * at least as many as a thread stores together. 0: subgroups cannot have whole pieces. */
static uint32_t stage_count(const berth__tile *tile, const berth__matrix_form *form) {
  const uint32_t lanes = tile->l->limits->lanes, of_piece = 16 * 16;
  if (!tile->l->limits->is_cooperative || lanes == 0 || form->threads / form->parts % lanes != 0) return 0;
  const uint32_t n = form->threads / lanes;
  const berth__warps w = berth__warps_of(n / form->parts, form->rows, form->columns, false);
  if (w.across == 0) return 0;
  const uint32_t needed = sums_together(tile, form, false) * form->parts * lanes;
  const uint32_t pieces = needed > of_piece ? needed / of_piece : 1;
  return w.rows * w.columns / of_piece % pieces == 0 ? n * pieces * of_piece : 0;
}

/* Copies are asynchronous, or go through registers while the previous piece is multiplied: two slots suffice then. */
static uint32_t wanted_slots(const berth__tile *tile) { return tile->l->limits->is_cooperative ? 2 : 4; }

/* Bytes for the slots of both sides. */
static uint32_t slot_room(const berth__tile *tile, const berth__matrix_form *form) {
  const uint32_t stage = 4 * stage_count(tile, form), room = tile->l->limits->tile_bytes;
  return room > stage ? room - stage : 0;
}

/* Prefers pieces of half the depth to having fewer than three pieces, or more elements than a thread can load. */
static void choose_slots(const berth__tile *tile, berth_compute kind, berth__matrix_form *form) {
  const uint32_t room = slot_room(tile, form), lines = form->rows > form->columns ? form->rows : form->columns;
  const uint32_t most = wanted_slots(tile), enough = most < 3 ? most : 3;
  if (form->parts > 1 && lines * form->depth / form->threads > MOST_ELEMENTS && !can_copy_both(tile, kind))
    form->depth /= 2;
  else if (room / slot_bytes(tile, kind, form) < enough && form->depth > 16)
    form->depth /= 2;
  form->slots = room / slot_bytes(tile, kind, form);
  if (form->slots > most) form->slots = most;
}

/* Cooperative matrices: whether subgroups have whole pieces, of the sums and of the depth. */
static bool suits_units(const berth__tile *tile, const berth__matrix_form *form) {
  return !tile->l->limits->is_cooperative || (stage_count(tile, form) != 0 && form->depth / form->parts % 16 == 0);
}

/* The first form with enough workgroups, or the last one that fits. */
static bool choose_of(const berth__tile *tile, berth_compute kind, const struct choice *choices, size_t n,
                      uint32_t parts, berth__matrix_form *out) {
  bool found = false;
  for (size_t i = 0; i < n; i++) {
    const struct choice *c = &choices[i];
    berth__matrix_form form = {
        .rows = c->rows, .columns = c->columns, .threads = c->threads, .depth = c->depth, .parts = parts};
    if (c->is_narrow && berth__compute_storage(kind) == BERTH_F32) continue;
    if (berth__compute_storage(kind) == BERTH_F32) form.depth /= 2;
    choose_slots(tile, kind, &form);
    if (form.threads > tile->l->limits->group_size || form.slots < 2 || !suits_units(tile, &form)) continue;
    if (c->is_copied && (!can_copy_both(tile, kind) || tile->l->limits->is_cooperative)) continue;
    *out = form;
    found = true;
    if (berth__tile_groups(tile, form.rows, form.columns) >= c->groups) break;
  }
  return found;
}

/* Requires sides stored in the type in which they are multiplied, and that it costs less than other forms. */
static bool choose_warpgroup(const berth__tile *tile, berth_compute kind, berth__matrix_form *out) {
  const berth__storage wanted = berth__compute_storage(kind);
  if (!tile->l->limits->has_warpgroups || wanted == BERTH_F32 || !can_copy_both(tile, kind)) return false;
  if (type_of(tile, &tile->left) != wanted || type_of(tile, &tile->right) != wanted) return false;
  const double cost = berth__tile_warpgroup_cost(tile, 1, out);
  return cost > 0 && cost < berth__tile_units_cost(tile, kind, 1);
}

/* Both sides are copied, or weights of fewer bits are unpacked on their way. */
static bool can_fill_fours(const berth__tile *tile) {
  const berth__storage right = type_of(tile, &tile->right);
  return find_coming(tile, BERTH_COMPUTE_F32, &tile->left, &tile->rows).is_copied &&
         (berth__tile_has_blocks(tile) || right == BERTH_F16 || right == BERTH_BF16 ||
          find_coming(tile, BERTH_COMPUTE_F32, &tile->right, &tile->columns).is_copied);
}

/* The multiplications of the busiest core, divided by the form's rate. */
static double four_cost(const berth__tile *tile, const struct four_choice *c) {
  const int64_t groups = berth__tile_groups(tile, c->rows, c->columns);
  const int64_t rounds = (groups + FOUR_CORES - 1) / FOUR_CORES;
  return (double)rounds * (c->rows * c->columns / c->share * (double)berth__tile_count(&tile->depth) + FOUR_START);
}

bool berth__tile_fours_form(const berth__tile *tile, berth__matrix_form *out) {
  const berth__kernel_limits *limits = tile->l->limits;
  double best = 0;
  bool found = false;
  if ((limits->multiplies >> BERTH_COMPUTE_F32 & 1u) == 0 || tile->type != BERTH__NUM_F32 ||
      berth__tile_count(&tile->depth) < FOUR_DEPTH || berth__tile_count(&tile->rows) < BERTH__MATRIX_LINES ||
      berth__tile_count(&tile->columns) < BERTH__MATRIX_LINES || !can_fill_fours(tile))
    return false;
  for (size_t i = 0; i < sizeof four_forms / sizeof *four_forms; i++) {
    const struct four_choice *c = &four_forms[i];
    berth__matrix_form form = {.rows = c->rows,
                               .columns = c->columns,
                               .threads = c->threads,
                               .depth = c->depth,
                               .parts = c->parts,
                               .by_fours = true};
    form.slots = limits->tile_bytes / slot_bytes(tile, BERTH_COMPUTE_F32, &form);
    if (form.slots > 4) form.slots = 4;
    if (form.slots < 2 || form.threads > limits->group_size) continue;
    const double cost = four_cost(tile, c);
    if (found && cost >= best) continue;
    *out = form;
    best = cost;
    found = true;
  }
  return found;
}

bool berth__tile_matrix_form(const berth__tile *tile, berth_compute kind, berth__matrix_form *out) {
  if (berth__tile_count(&tile->depth) < BERTH__MATRIX_DEPTH || berth__tile_count(&tile->rows) < BERTH__MATRIX_LINES ||
      berth__tile_count(&tile->columns) < BERTH__MATRIX_LINES)
    return false;
  if (choose_warpgroup(tile, kind, out)) return true;
  if (berth__tile_count(&tile->depth) >= LONG_DEPTH && berth__tile_groups(tile, 64, 64) < LONG_GROUPS &&
      choose_of(tile, kind, long_forms, sizeof long_forms / sizeof *long_forms, LONG_PARTS, out))
    return true;
  return choose_of(tile, kind, matrix_forms, sizeof matrix_forms / sizeof *matrix_forms, 1, out);
}

/* ---- The sides ---- */

static void open_piece(const work *w, piece *p, bool is_left) {
  const berth__tile *t = w->tile;
  const berth__tile_desc desc = describe_tile(t, w->kind, w->form, is_left);
  p->tile = berth__kernel_tile_of(w->k, &desc);
  p->is_copied = find_coming(t, w->kind, p->side, p->lines).is_copied;
  p->chunk = 16 / berth_type_storage(desc.storage).bytes;
  if (p->is_copied) return;
  const bool takes_words = !is_left && (berth__tile_has_blocks(t) || w->form->by_fours);
  const berth__tile_words words = berth__tile_words_of(t, p->side, p->lines);
  p->beside = !takes_words ? 1 : desc.is_deep ? words.depth : words.lines;
  p->n_fetched = desc.lines * desc.depth / w->form->threads;
  for (uint32_t i = 0; i < p->n_fetched; i++) p->elements[i] = berth__x_variable(w->k, berth__tile_zero(t, w->k));
}

/* The line and depth of group n of `wide` elements of a tile: neighbours are contiguous in memory. */
static void place_of(const work *w, const piece *p, berth__x n, uint32_t wide, berth__x *line, berth__x *depth) {
  berth__kernel *k = w->k;
  const uint32_t along = p->tile.is_deep ? p->tile.depth : p->tile.lines;
  const berth__x inner = berth__x_i32(k, along / wide);
  const berth__x low = berth__x_affine(k, berth__x_rem(k, n, inner), wide, 0), high = berth__x_div(k, n, inner);
  *line = p->tile.is_deep ? high : low;
  *depth = p->tile.is_deep ? low : high;
}

/* The element of the side at a line of the tile and a depth; and whether it exists. */
static berth__tile_at find_element(const work *w, const piece *p, berth__x line, berth__x depth, uint32_t wide,
                                   berth__x *is_there) {
  berth__kernel *k = w->k;
  const berth__tile *t = w->tile;
  const int64_t lines = berth__tile_count(p->lines), whole = berth__tile_count(&t->depth);
  const uint32_t along_depth = p->tile.is_deep ? wide : 1, along_lines = p->tile.is_deep ? 1 : wide;
  const berth__x at_line = berth__x_add(k, p->first, line);
  const bool is_even = whole % w->form->depth == 0; /* no partial piece at the end */
  *is_there = berth__x_lt(k, at_line, berth__x_i32(k, lines));
  if (!is_even) *is_there = berth__x_and(k, *is_there, berth__x_lt(k, depth, berth__x_i32(k, whole)));
  const berth__x inside_line = berth__x_min(k, at_line, berth__x_i32(k, lines - along_lines));
  const berth__x inside_depth = is_even ? depth : berth__x_min(k, depth, berth__x_i32(k, whole - along_depth));
  const berth__tile_at at = berth__tile_start(t, k, p->side, p->lines, w->batch, inside_line);
  return berth__tile_dive(t, k, p->side, at, inside_depth);
}

/* If chunks are no multiple of the threads, some threads have one more than others. */
static void copy_piece(const work *w, const piece *p, berth__x slot, berth__x from) {
  berth__kernel *k = w->k;
  const uint32_t n = p->tile.lines * p->tile.depth / p->chunk, threads = w->form->threads;
  const uint32_t buffer = berth__l_in(w->tile->l, k, p->side->operand);
  for (uint32_t i = 0; i * threads < n; i++) {
    const bool is_partial = (i + 1) * threads > n;
    berth__x line, depth, is_there;
    if (is_partial) berth__x_if(k, berth__x_lt(k, w->thread, berth__x_i32(k, n - i * threads)));
    place_of(w, p, berth__x_affine(k, w->thread, 1, (int64_t)i * w->form->threads), p->chunk, &line, &depth);
    const berth__tile_at at = find_element(w, p, line, berth__x_add(k, from, depth), p->chunk, &is_there);
    if (at.inside != BERTH__X_NONE) is_there = berth__x_and(k, is_there, at.inside);
    const berth__x index =
        at.inside != BERTH__X_NONE ? berth__x_select(k, at.inside, at.index, berth__x_i32(k, 0)) : at.index;
    berth__x_shared_copy(k, p->tile.array, berth__x_tile_at(k, &p->tile, slot, line, depth), buffer, index, is_there);
    if (is_partial) berth__x_end(k);
  }
}

/* Loads from memory into the thread's variables. Lines outside the result are never used, so their values are
 * arbitrary. */
static void fetch_piece(const work *w, const piece *p, berth__x from) {
  berth__kernel *k = w->k;
  const bool is_even = berth__tile_count(&w->tile->depth) % w->form->depth == 0;
  for (uint32_t i = 0; i < p->n_fetched; i += p->beside) {
    berth__x line, depth, unused, values[BERTH__TILE_WORD];
    place_of(w, p, berth__x_affine(k, w->thread, 1, (int64_t)(i / p->beside) * w->form->threads), p->beside, &line,
             &depth);
    depth = berth__x_add(k, from, depth);
    const berth__tile_at at = find_element(w, p, line, depth, p->beside, &unused);
    if (p->beside > 1)
      berth__tile_load_word(w->tile, k, p->side, &at, values);
    else
      values[0] = berth__tile_load(w->tile, k, p->side, &at);
    const berth__x is_in = berth__x_lt(k, depth, berth__x_i32(k, berth__tile_count(&w->tile->depth)));
    for (uint32_t f = 0; f < p->beside; f++)
      berth__x_set(k, p->elements[i + f],
                   is_even ? values[f] : berth__x_select(k, is_in, values[f], berth__tile_zero(w->tile, k)));
  }
}

static void put_piece(const work *w, const piece *p, berth__x slot) {
  berth__kernel *k = w->k;
  for (uint32_t i = 0; i < p->n_fetched; i++) {
    berth__x line, depth;
    place_of(w, p, berth__x_affine(k, w->thread, 1, (int64_t)(i / p->beside) * w->form->threads), p->beside, &line,
             &depth);
    const berth__x at_line = p->tile.is_deep ? line : berth__x_affine(k, line, 1, i % p->beside);
    const berth__x at_depth = p->tile.is_deep ? berth__x_affine(k, depth, 1, i % p->beside) : depth;
    berth__x_shared_store(k, p->tile.array, berth__x_tile_at(k, &p->tile, slot, at_line, at_depth),
                          berth__x_get(k, p->elements[i]));
  }
}

/* ---- All of it ---- */

static bool copies(const work *w) { return w->sides[0].is_copied || w->sides[1].is_copied; }

static void copy_both(const work *w, berth__x slot, berth__x from) {
  for (int i = 0; i < 2; i++)
    if (w->sides[i].is_copied) copy_piece(w, &w->sides[i], slot, from);
}

static void fetch_both(const work *w, berth__x from) {
  for (int i = 0; i < 2; i++)
    if (!w->sides[i].is_copied) fetch_piece(w, &w->sides[i], from);
}

static void put_both(const work *w, berth__x slot) {
  for (int i = 0; i < 2; i++)
    if (!w->sides[i].is_copied) put_piece(w, &w->sides[i], slot);
}

static berth__x slot_of(const work *w, berth__x number) {
  return berth__x_rem(w->k, number, berth__x_i32(w->k, w->form->slots));
}

/* Whether units start on a piece while they finish the previous one, which costs registers: worth it if the units are
 * the bottleneck, and not the memory latency that small tiles wait for. */
static bool looks_ahead(const work *w) {
  return w->sides[0].is_copied && w->sides[1].is_copied && w->form->threads == 256 && w->form->parts == 1 &&
         !w->form->is_late && !w->form->by_fours;
}

/* Pieces being copied while one is multiplied. With is_late, a slot becomes free one piece later. */
static uint32_t pieces_ahead(const work *w) { return w->form->slots - 1 - (w->form->is_late ? 1 : 0); }

/* If kernels begin early, copies of weights start before the results of the previous kernels are awaited. */
static bool begins_early(const work *w) {
  const berth__lowering *l = w->tile->l;
  return l->limits->begins_early && w->tile->has_weight && w->sides[1].is_copied && l->n_conditions == 0;
}

static void begin_pieces(const work *w, int64_t n_pieces) {
  berth__kernel *k = w->k;
  const uint32_t n = n_pieces < pieces_ahead(w) ? (uint32_t)n_pieces : pieces_ahead(w);
  for (uint32_t i = 0; i < n && begins_early(w); i++)
    copy_piece(w, &w->sides[1], berth__x_i32(k, i), berth__x_i32(k, (int64_t)i * w->form->depth));
  if (begins_early(w)) berth__x_await(k);
  for (uint32_t i = 0; i < pieces_ahead(w) && copies(w); i++) {
    const berth__x slot = berth__x_i32(k, i), from = berth__x_i32(k, (int64_t)i * w->form->depth);
    if (i < n && begins_early(w)) {
      if (w->sides[0].is_copied) copy_piece(w, &w->sides[0], slot, from);
    } else if (i < n) {
      copy_both(w, slot, from);
    }
    berth__x_commit(k);
  }
  fetch_both(w, berth__x_i32(k, 0));
  put_both(w, berth__x_i32(k, 0));
}

/* Waits until the next piece has arrived, and all threads have loaded what they need of the previous one. */
static void wait_for_piece(const work *w) {
  if (copies(w)) berth__x_wait(w->k, pieces_ahead(w) - 1);
  berth__x_barrier(w->k);
}

/* A kernel that begins early occupies cores, unevenly, while it waits: it is best released shortly before it is needed.
 * Pieces of 2-byte numbers take so little time that the first weights should be requested a few pieces before the end
 * (measured: ResNet-50 and MiniLM-L6). */
#define RELEASE_PIECES 3
static bool releases_in_time(const work *w) { return berth__compute_storage(w->kind) != BERTH_F32; }

static void release_in_time(const work *w, berth__x number, int64_t n_pieces) {
  if (!begins_early(w) || !releases_in_time(w)) return;
  const int64_t at = n_pieces > RELEASE_PIECES ? n_pieces - RELEASE_PIECES : 0;
  berth__x_if(w->k, berth__x_eq(w->k, number, berth__x_i32(w->k, at)));
  berth__x_release(w->k);
  berth__x_end(w->k);
}

/* One barrier per piece: copies go to the slot of the previous piece, which all threads have finished with; loads
 * through registers go to the slot that is multiplied next. Warpgroups are still multiplying the previous piece while
 * their threads copy, so theirs go to the slot before it. */
static void sum_pieces(const work *w) {
  berth__kernel *k = w->k;
  const int64_t depth = w->form->depth, n = (berth__tile_count(&w->tile->depth) + depth - 1) / depth;
  begin_pieces(w, n);
  wait_for_piece(w);
  if (looks_ahead(w)) berth__x_ahead(k, w->sums, berth__x_i32(k, 0));
  const berth__x number = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, n), 1), count = berth__x_i32(k, n);
  const berth__x next = berth__x_affine(k, number, 1, 1), far = berth__x_affine(k, number, 1, pieces_ahead(w));
  release_in_time(w, number, n);
  if (copies(w)) {
    berth__x_if(k, berth__x_lt(k, far, count));
    copy_both(w, slot_of(w, far), berth__x_affine(k, far, depth, 0));
    berth__x_end(k);
    berth__x_commit(k);
  }
  berth__x_if(k, berth__x_lt(k, next, count));
  fetch_both(w, berth__x_affine(k, next, depth, 0));
  berth__x_end(k);
  berth__x_multiply(k, w->sums, slot_of(w, number));
  berth__x_if(k, berth__x_lt(k, next, count));
  put_both(w, slot_of(w, next));
  wait_for_piece(w);
  if (looks_ahead(w)) berth__x_ahead(k, w->sums, slot_of(w, next));
  berth__x_end(k);
  berth__x_end(k);
  if (begins_early(w) && !releases_in_time(w)) berth__x_release(k);
}

/* Row and column of number `at` in a band of so many rows of tiles. */
static void place_in_band(berth__kernel *k, berth__x at, int64_t rows, berth__x *row, berth__x *column) {
  *row = berth__x_rem(k, at, berth__x_i32(k, rows));
  *column = berth__x_div(k, at, berth__x_i32(k, rows));
}

/* Bands of rows of tiles one after the other; in a band, column by column. The last band may have fewer rows. */
static void place_group(const berth__tile *tile, const berth__matrix_form *form, berth__kernel *k, const int64_t *dims,
                        berth__x *group) {
  const int64_t band = berth__tile_band(tile, form->rows, form->columns), n = dims[1] / band, rest = dims[1] % band;
  const berth__x of_batch = berth__x_i32(k, dims[1] * dims[2]), of_band = berth__x_i32(k, band * dims[2]);
  group[0] = berth__x_div(k, berth__x_group(k), of_batch);
  const berth__x tile_at = berth__x_rem(k, berth__x_group(k), of_batch);
  const berth__x number = berth__x_div(k, tile_at, of_band), at = berth__x_rem(k, tile_at, of_band);
  place_in_band(k, at, band, &group[1], &group[2]);
  if (rest != 0) {
    const berth__x is_last = berth__x_eq(k, number, berth__x_i32(k, n));
    berth__x row, column;
    place_in_band(k, at, rest, &row, &column);
    group[1] = berth__x_select(k, is_last, row, group[1]);
    group[2] = berth__x_select(k, is_last, column, group[2]);
  }
  group[1] = berth__x_min(k, berth__x_add(k, berth__x_affine(k, number, band, 0), group[1]),
                          berth__x_i32(k, dims[1] - 1)); /* always inside: so ranges say it, too */
  group[2] = berth__x_min(k, group[2], berth__x_i32(k, dims[2] - 1));
}

/* The elements of a run if the results go through shared memory, in which they take no more room than the operands did;
 * otherwise 0. */
static uint32_t run_of(const work *w) {
  const berth__matrix_form *f = w->form;
  const uint64_t room = (uint64_t)f->slots * slot_bytes(w->tile, w->kind, f);
  const bool is_apart = f->parts > 1 || f->by_fours || w->tile->l->limits->is_cooperative;
  const uint32_t width = is_apart ? 0 : berth__tile_staged_width(w->tile);
  const bool fits = width != 0 && f->columns % width == 0 && f->rows * f->columns / width % f->threads == 0 &&
                    berth__tile_staged_bytes(f->rows, f->columns) <= room;
  return fits ? width : 0;
}

static void store_results(const work *w) {
  const berth__x row = w->sides[0].first, column = w->sides[1].first;
  const berth__tile_staging staging = {.sums = w->sums,
                                       .rows = w->form->rows,
                                       .columns = w->form->columns,
                                       .width = w->run,
                                       .first_array = w->sides[0].tile.array,
                                       .batch = w->batch,
                                       .row = row,
                                       .column = column};
  if (w->run != 0 || looks_ahead(w)) berth__x_settle(w->k, w->sums);
  if (w->run != 0)
    berth__tile_store_staged(w->tile, w->k, &staging);
  else
    berth__tile_store_sums(w->tile, w->k, w->sums, w->batch, row, column);
}

berth_status berth__tile_matrix(berth__tile *tile, berth_compute kind, const berth__matrix_form *form,
                                berth_error *err) {
  const int64_t dims[3] = {berth__tile_count(&tile->batch),
                           (berth__tile_count(&tile->rows) + form->rows - 1) / form->rows,
                           (berth__tile_count(&tile->columns) + form->columns - 1) / form->columns};
  berth__kernel *k = berth__tile_begin(tile, form->by_fours ? "fours" : "matrix",
                                       (uint64_t)(dims[0] * dims[1] * dims[2]), form->threads);
  if (k == NULL) return berth__l_end(tile->l, k, err);
  if (berth__tile_has_blocks(tile))
    tile->table = berth__l_blocks_table(k, tile->l->call->in[tile->right.operand].type, BERTH__TABLE_SHARED);
  berth__x group[3];
  place_group(tile, form, k, dims, group);
  work w = {.tile = tile, .form = form, .kind = kind, .k = k, .thread = berth__x_thread(k), .batch = group[0]};
  w.sides[0] = (piece){.side = &tile->left, .lines = &tile->rows, .first = berth__x_affine(k, group[1], form->rows, 0)};
  w.sides[1] =
      (piece){.side = &tile->right, .lines = &tile->columns, .first = berth__x_affine(k, group[2], form->columns, 0)};
  open_piece(&w, &w.sides[0], true);
  open_piece(&w, &w.sides[1], false);
  w.run = run_of(&w);
  const uint32_t together = sums_together(tile, form, w.run != 0);
  const uint32_t stage = stage_count(tile, form);
  w.sums = berth__kernel_sums_of(
      k,
      &(berth__kernel_sums){.left = w.sides[0].tile,
                            .right = w.sides[1].tile,
                            .type = BERTH__NUM_F32,
                            .kind = kind,
                            .together = together,
                            .parts = form->parts,
                            .is_late = form->is_late,
                            .by_fours = form->by_fours,
                            .stage = stage != 0 ? 1 + berth__kernel_shared(k, BERTH__NUM_F32, stage) : 0,
                            .group_rows = form->threads / form->parts >= 256 ? form->threads / form->parts / 16 : 8});
  sum_pieces(&w);
  if (form->parts > 1) berth__x_join(k, w.sums);
  store_results(&w);
  return berth__l_end(tile->l, k, err);
}
