/* Replaces tiles, for devices without matrix units. The kernel is rebuilt: where it multiplies tiles, each thread loads
 * what its own sums need; the block of an `each` is repeated for every sum; copies become loads and stores. Sums become
 * variables, and factors are rounded as matrix units would round them. Subgroup exchange goes through shared memory. */
#include "kernel/maker.h"

typedef struct expansion {
  const berth__kernel *from;
  berth__kernel *k;
  berth__x *map;                                                /* per instruction: its replacement */
  berth__x sums[BERTH__KERNEL_SUMS][BERTH__THREAD_SUMS];        /* variables */
  berth__x row[BERTH__KERNEL_SUMS], column[BERTH__KERNEL_SUMS]; /* position of the thread's first sum */
  berth__x part[BERTH__KERNEL_SUMS];                            /* the part that the thread belongs to */
  uint32_t joins;                                               /* shared: sums of all parts */
  uint32_t cell;                                                /* the current cell of the `each` being expanded */
  uint32_t folds;                                               /* shared: each thread's partial results of its rows */
  uint32_t exchanged[BERTH__NUM_BOOL];                          /* shared, by type: the values to exchange */
} expansion;

/* ---- Positions of a thread's sums ---- */

static uint32_t column_offset(const berth__kernel_sums *sums, const berth__sums_spread *s, uint32_t j) {
  return (j - j % sums->together) * s->group_columns + j % sums->together;
}

static void open_sums(expansion *e) {
  berth__kernel *k = e->k;
  for (uint32_t n = 0; n < k->n_sums; n++) {
    const berth__sums_spread s = berth__sums_spread_of(k, &k->sums[n]);
    const berth__x across = berth__x_i32(k, s.group_columns), threads = berth__x_i32(k, s.threads);
    const berth__x thread = berth__x_rem(k, berth__x_thread(k), threads);
    e->part[n] = berth__x_div(k, berth__x_thread(k), threads);
    e->row[n] = berth__x_div(k, thread, across);
    e->column[n] = berth__x_affine(k, berth__x_rem(k, thread, across), k->sums[n].together, 0);
    for (uint32_t i = 0; i < s.thread_rows * s.thread_columns; i++)
      e->sums[n][i] = berth__x_variable(k, k->sums[n].type == BERTH__NUM_F32 ? berth__x_f32(k, 0) : berth__x_i32(k, 0));
  }
}

/* ---- Rounding ---- */

/* The nearest bf16, as f32. */
static berth__x near_bf16(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x2(k, BERTH__INST_shl, berth__x_pack(k, BERTH_BF16, x), berth__x_u32(k, 16));
  return berth__x_bits(k, BERTH__NUM_F32, bits);
}

/* 11 bits of precision, ties away from 0. NaN and infinity stay. */
static berth__x near_tf32(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, x);
  const berth__x raised = berth__x_and(k, berth__x_add(k, bits, berth__x_u32(k, 0x1000)), berth__x_u32(k, 0xffffe000u));
  const berth__x exponent = berth__x_and(k, bits, berth__x_u32(k, 0x7f800000u));
  const berth__x is_number = berth__x_lt(k, exponent, berth__x_u32(k, 0x7f800000u));
  return berth__x_bits(k, BERTH__NUM_F32, berth__x_select(k, is_number, raised, bits));
}

static berth__x near(berth__kernel *k, berth__storage storage, berth__x x) {
  if (storage == BERTH_BF16) return near_bf16(k, x);
  return storage == BERTH_F16 ? berth__x1(k, BERTH__INST_to_half, x) : x;
}

/* ---- Instructions ---- */

static void expand_copy(expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const uint32_t array = inst->bits & 255u, buffer = inst->bits >> 8;
  const uint32_t n = 16 / berth_type_storage(k->buffers[buffer].storage).bytes;
  const berth__x to = e->map[inst->in[0]], from = e->map[inst->in[1]], is_there = e->map[inst->in[2]];
  const berth__x zero = berth__x_f32(k, 0);
  berth__x_if(k, is_there);
  for (uint32_t i = 0; i < n; i++)
    berth__x_shared_store(k, array, berth__x_affine(k, to, 1, i),
                          berth__x_load(k, buffer, berth__x_affine(k, from, 1, i)));
  berth__x_else(k);
  for (uint32_t i = 0; i < n; i++) berth__x_shared_store(k, array, berth__x_affine(k, to, 1, i), zero);
  berth__x_end(k);
}

/* A factor as it is multiplied; only tf32x3 has a second part. */
typedef struct factor {
  berth__x large, small;
} factor;

static factor load_factor(expansion *e, const berth__kernel_sums *sums, const berth__kernel_tile *tile, berth__x slot,
                          berth__x line, berth__x depth) {
  berth__kernel *k = e->k;
  const berth__x x = berth__x_shared_load(k, tile->array, berth__x_tile_at(k, tile, slot, line, depth));
  factor f = {x, BERTH__X_NONE};
  if (sums->kind == BERTH_COMPUTE_TF32 || sums->kind == BERTH_COMPUTE_TF32X3) f.large = near_tf32(k, x);
  if (e->from->shared[tile->array].storage == BERTH_F32) f.large = near(k, berth__compute_storage(sums->kind), f.large);
  if (sums->kind == BERTH_COMPUTE_TF32X3) f.small = near_tf32(k, berth__x_sub(k, x, f.large));
  return f;
}

static void add_product(berth__kernel *k, berth__x variable, factor a, factor b) {
  berth__x sum = berth__x_get(k, variable);
  if (berth__maker_type(k, a.large) != BERTH__NUM_F32) {
    berth__x_set(k, variable, berth__x_add(k, berth__x_mul(k, a.large, b.large), sum));
    return;
  }
  if (a.small != BERTH__X_NONE) {
    sum = berth__x3(k, BERTH__INST_fma, a.small, b.large, sum);
    sum = berth__x3(k, BERTH__INST_fma, a.large, b.small, sum);
  }
  berth__x_set(k, variable, berth__x3(k, BERTH__INST_fma, a.large, b.large, sum));
}

static void expand_multiply(expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const berth__kernel_sums *sums = &k->sums[inst->bits];
  const berth__sums_spread s = berth__sums_spread_of(k, sums);
  const berth__x slot = e->map[inst->in[0]];
  factor left[BERTH__THREAD_SUMS], right[BERTH__THREAD_SUMS];
  const uint32_t deep = sums->left.depth / s.parts;
  const berth__x own = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, deep), 1);
  const berth__x depth = berth__x_add(k, berth__x_affine(k, e->part[inst->bits], deep, 0), own);
  for (uint32_t i = 0; i < s.thread_rows; i++)
    left[i] = load_factor(e, sums, &sums->left, slot,
                          berth__x_affine(k, e->row[inst->bits], 1, (int64_t)i * s.group_rows), depth);
  for (uint32_t j = 0; j < s.thread_columns; j++)
    right[j] = load_factor(e, sums, &sums->right, slot,
                           berth__x_affine(k, e->column[inst->bits], 1, column_offset(sums, &s, j)), depth);
  for (uint32_t i = 0; i < s.thread_rows; i++)
    for (uint32_t j = 0; j < s.thread_columns; j++)
      add_product(k, e->sums[inst->bits][i * s.thread_columns + j], left[i], right[j]);
  berth__x_end(k);
}

/* The cells of a part begin at an offset. */
static berth__x place_of_part(const expansion *e, const berth__inst *inst, const berth__sums_spread *s) {
  berth__kernel *k = e->k;
  const uint32_t n = inst->bits, together = k->sums[n].together;
  const berth__x columns = berth__x_i32(k, s->thread_columns), beside = berth__x_i32(k, together);
  const berth__x cell =
      berth__x_affine(k, e->part[n], s->thread_rows * s->thread_columns / s->parts, (int64_t)e->cell * together);
  if (inst->code == BERTH__INST_sum_row)
    return berth__x_add(k, e->row[n], berth__x_affine(k, berth__x_div(k, cell, columns), s->group_rows, 0));
  const berth__x word = berth__x_div(k, berth__x_rem(k, cell, columns), beside);
  return berth__x_add(k, e->column[n], berth__x_affine(k, word, (int64_t)together * s->group_columns, 0));
}

/* Cell c of an `each` is in row c / columns. */
static berth__x expand_place(const expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const berth__kernel_sums *sums = &k->sums[inst->bits];
  const berth__sums_spread s = berth__sums_spread_of(k, sums);
  const uint32_t first = e->cell * sums->together;
  if (s.parts > 1) return place_of_part(e, inst, &s);
  if (inst->code == BERTH__INST_sum_line) return berth__x_i32(k, first / s.thread_columns);
  if (inst->code == BERTH__INST_sum_row)
    return berth__x_affine(k, e->row[inst->bits], 1, (int64_t)(first / s.thread_columns) * s.group_rows);
  return berth__x_affine(k, e->column[inst->bits], 1, column_offset(sums, &s, first % s.thread_columns));
}

static berth__x expand_sum(const expansion *e, const berth__inst *inst) {
  const uint32_t which = e->from->insts[inst->in[1]].bits;
  return berth__x_get(e->k, e->sums[inst->bits][e->cell * e->k->sums[inst->bits].together + which]);
}

static void expand_sum_set(const expansion *e, const berth__inst *inst) {
  const uint32_t which = e->from->insts[inst->in[1]].bits;
  berth__x_set(e->k, e->sums[inst->bits][e->cell * e->k->sums[inst->bits].together + which], e->map[inst->in[2]]);
}

/* Sums of all parts lie in shared memory as [cell][part][thread of the part]; each part takes its share. */
static void expand_join(expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const uint32_t n = inst->bits;
  const berth__sums_spread s = berth__sums_spread_of(k, &k->sums[n]);
  const uint32_t cells = s.thread_rows * s.thread_columns, of_part = cells / s.parts;
  const berth__x thread = berth__x_thread(k), own = berth__x_rem(k, thread, berth__x_i32(k, s.threads));
  for (uint32_t i = 0; i < cells; i++)
    berth__x_shared_store(k, e->joins, berth__x_affine(k, thread, 1, (int64_t)i * k->group_size),
                          berth__x_get(k, e->sums[n][i]));
  berth__x_barrier(k);
  for (uint32_t i = 0; i < of_part; i++) {
    const berth__x cell = berth__x_affine(k, e->part[n], of_part, i);
    const berth__x first = berth__x_add(k, berth__x_affine(k, cell, k->group_size, 0), own);
    berth__x total = berth__x_shared_load(k, e->joins, first);
    for (uint32_t part = 1; part < s.parts; part++)
      total = berth__x_add(k, total,
                           berth__x_shared_load(k, e->joins, berth__x_affine(k, first, 1, (int64_t)part * s.threads)));
    berth__x_set(k, e->sums[n][i], total);
  }
  berth__x_barrier(k);
}

static void open_joins(expansion *e) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < e->from->n_sums; i++) {
    const berth__kernel_sums *sums = &e->from->sums[i];
    const uint32_t count = sums->parts > 1 ? sums->left.lines * sums->right.lines * sums->parts : 0;
    if (count > most) most = count;
  }
  if (most > 0) e->joins = berth__kernel_shared(e->k, e->from->sums[0].type, most);
}

/* ---- Rows ---- */

static berth__x fold_two(berth__kernel *k, bool is_total, berth__x a, berth__x b) {
  if (is_total) return berth__x_add(k, a, b);
  return berth__x_select(k, berth__x_or(k, berth__x_lt(k, a, b), berth__x_is_nan(k, b)), b, a);
}

/* The threads of a row write their partial results to shared memory, and each combines all four. */
static void expand_fold(expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const uint32_t n = inst->bits & 255u, lines = k->local[inst->bits >> 8].count;
  const uint32_t columns = berth__sums_spread_of(k, &k->sums[n]).thread_columns;
  const bool is_total = inst->code == BERTH__INST_row_total;
  const berth__x thread = berth__x_thread(k);
  const berth__x four =
      berth__x_affine(k, berth__x_div(k, thread, berth__x_i32(k, BERTH__ROW_THREADS)), BERTH__ROW_THREADS, 0);
  for (uint32_t line = 0; line < lines; line++) {
    berth__x own = berth__x_get(k, e->sums[n][line * columns]);
    for (uint32_t j = 1; j < columns; j++)
      own = fold_two(k, is_total, own, berth__x_get(k, e->sums[n][line * columns + j]));
    berth__x_shared_store(k, e->folds, berth__x_affine(k, thread, 1, (int64_t)line * k->group_size), own);
  }
  berth__x_barrier(k);
  for (uint32_t line = 0; line < lines; line++) {
    berth__x own[BERTH__ROW_THREADS];
    for (uint32_t i = 0; i < BERTH__ROW_THREADS; i++)
      own[i] = berth__x_shared_load(k, e->folds, berth__x_affine(k, four, 1, (int64_t)line * k->group_size + i));
    berth__x_local_store(
        k, inst->bits >> 8, berth__x_i32(k, line),
        fold_two(k, is_total, fold_two(k, is_total, own[0], own[1]), fold_two(k, is_total, own[2], own[3])));
  }
  berth__x_barrier(k);
}

static void open_folds(expansion *e) {
  uint32_t most = 0;
  for (size_t i = 0; i < e->from->n_insts; i++) {
    const berth__inst *inst = &e->from->insts[i];
    if (inst->code != BERTH__INST_row_largest && inst->code != BERTH__INST_row_total) continue;
    const uint32_t lines = e->from->local[inst->bits >> 8].count;
    if (lines > most) most = lines;
  }
  if (most > 0) e->folds = berth__kernel_shared(e->k, BERTH__NUM_F32, most * e->k->group_size);
}

/* ---- Exchanges ---- */

static berth__x expand_exchange(const expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const uint32_t array = e->exchanged[inst->type];
  const berth__x thread = berth__x_thread(k),
                 other = berth__x2(k, BERTH__INST_xor, thread, berth__x_i32(k, inst->bits));
  berth__x_shared_store(k, array, thread, e->map[inst->in[0]]);
  berth__x_barrier(k);
  const berth__x value = berth__x_shared_load(k, array, other);
  berth__x_barrier(k);
  return value;
}

static void open_exchanges(expansion *e) {
  bool is_used[BERTH__NUM_BOOL] = {false};
  for (size_t i = 0; i < e->from->n_insts; i++)
    if (e->from->insts[i].code == BERTH__INST_exchange) is_used[e->from->insts[i].type] = true;
  for (uint32_t type = 0; type < BERTH__NUM_BOOL; type++)
    if (is_used[type]) e->exchanged[type] = berth__kernel_shared(e->k, (berth__number)type, e->k->group_size);
}

/* ---- Words ---- */

static berth__x expand_pair(const expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  const berth__x first = berth__x_pack(k, BERTH_BF16, e->map[inst->in[0]]);
  const berth__x second = berth__x_pack(k, BERTH_BF16, e->map[inst->in[1]]);
  return berth__x_or(k, first, berth__x2(k, BERTH__INST_shl, second, berth__x_u32(k, 16)));
}

static void expand_quad_store(const expansion *e, const berth__inst *inst) {
  berth__kernel *k = e->k;
  for (uint32_t i = 0; i < 4; i++)
    berth__x_store(k, inst->bits & 255u, berth__x_affine(k, e->map[inst->in[0]], 4, i),
                   berth__x_local_load(k, inst->bits >> 8, berth__x_i32(k, i)));
}

/* Copies an instruction unchanged. The ranges of loaded values are those of their type. */
static berth__x put_again(expansion *e, const berth__inst *inst) {
  berth__inst same = *inst;
  for (int i = 0; i < 3; i++)
    if (same.in[i] != BERTH__X_NONE) same.in[i] = e->map[same.in[i]];
  switch ((berth__inst_code)inst->code) {
    case BERTH__INST_constant: return berth__maker_constant(e->k, (berth__number)inst->type, inst->bits);
    case BERTH__INST_group: return berth__x_group(e->k);
    case BERTH__INST_thread: return berth__x_thread(e->k);
    case BERTH__INST_loop: {
      const int64_t step = (int32_t)e->from->insts[inst->in[2]].bits;
      return (inst->bits & BERTH__LOOP_UNROLLED) != 0 ? berth__x_loop_unrolled(e->k, same.in[0], same.in[1], step)
                                                      : berth__x_loop(e->k, same.in[0], same.in[1], step);
    }
    case BERTH__INST_if: berth__x_if(e->k, same.in[0]); return BERTH__X_NONE;
    case BERTH__INST_else: berth__x_else(e->k); return BERTH__X_NONE;
    case BERTH__INST_end: berth__x_end(e->k); return BERTH__X_NONE;
    case BERTH__INST_break: berth__x_break(e->k); return BERTH__X_NONE;
    default: break;
  }
  if (berth__inst_kind_of((berth__inst_code)inst->code) != BERTH__INST_PURE) return berth__maker_put(e->k, &same);
  return berth__simplify(e->k, (berth__inst_code)inst->code, (berth__number)inst->type,
                         berth__inst_operands((berth__inst_code)inst->code), same.in);
}

static void expand_one(expansion *e, berth__x x) {
  const berth__inst *inst = &e->from->insts[x];
  berth__kernel *k = e->k;
  switch ((berth__inst_code)inst->code) {
    case BERTH__INST_commit:
    case BERTH__INST_ahead:
    case BERTH__INST_settle:
    case BERTH__INST_wait: return;
    case BERTH__INST_pack_pair: e->map[x] = expand_pair(e, inst); return;
    case BERTH__INST_quad_store: expand_quad_store(e, inst); return;
    case BERTH__INST_shared_copy: expand_copy(e, inst); return;
    case BERTH__INST_multiply: expand_multiply(e, inst); return;
    case BERTH__INST_sum_row:
    case BERTH__INST_sum_line:
    case BERTH__INST_sum_column: e->map[x] = expand_place(e, inst); return;
    case BERTH__INST_sum: e->map[x] = expand_sum(e, inst); return;
    case BERTH__INST_sum_set: expand_sum_set(e, inst); return;
    case BERTH__INST_join: expand_join(e, inst); return;
    case BERTH__INST_row_largest:
    case BERTH__INST_row_total: expand_fold(e, inst); return;
    case BERTH__INST_exchange: e->map[x] = expand_exchange(e, inst); return;
    case BERTH__INST_shared_store:
      berth__x_shared_store(k, inst->bits, e->map[inst->in[0]],
                            near(k, e->from->shared[inst->bits].storage, e->map[inst->in[1]]));
      return;
    default: e->map[x] = put_again(e, inst); return;
  }
}

static berth__x end_of(const berth__kernel *k, berth__x opener) {
  berth__x x = opener + 1;
  while (k->insts[x].code != BERTH__INST_end || k->insts[x].depth != k->insts[opener].depth) x++;
  return x;
}

/* The instructions of [from, to); the block of an `each` once per cell. */
static void expand_range(expansion *e, berth__x from, berth__x to) {
  for (berth__x x = from; x < to && e->k->status == BERTH_OK; x++) {
    const berth__inst *inst = &e->from->insts[x];
    if (inst->code != BERTH__INST_each) {
      expand_one(e, x);
      continue;
    }
    const berth__kernel_sums *sums = &e->k->sums[inst->bits];
    const berth__sums_spread s = berth__sums_spread_of(e->k, sums);
    const berth__x end = end_of(e->from, x);
    for (e->cell = 0; e->cell < s.thread_rows * s.thread_columns / s.parts / sums->together; e->cell++) {
      e->map[x] = berth__x_i32(e->k, e->cell);
      for (berth__x y = x + 1; y < end; y++) expand_one(e, y);
    }
    x = end;
  }
}

static berth_status make_expanded(expansion *e, berth_error *err) {
  const berth__kernel *from = e->from;
  berth__kernel *k = e->k;
  for (uint32_t i = 0; i < from->n_buffers; i++) {
    k->buffers[i] = from->buffers[i];
    k->buffers[i].skip = 0; /* already contained in the indices */
  }
  memcpy(k->shared, from->shared, sizeof k->shared);
  memcpy(k->local, from->local, sizeof k->local);
  memcpy(k->sums, from->sums, sizeof k->sums);
  k->n_buffers = from->n_buffers;
  k->n_shared = from->n_shared;
  k->n_local = from->n_local;
  k->n_sums = from->n_sums;
  k->group_size = from->group_size;
  k->n_groups = from->n_groups;
  k->resident = from->resident;
  k->flops = from->flops;
  k->bytes = from->bytes;
  for (uint32_t i = 0; i < k->n_shared; i++) {
    k->shared[i].storage = BERTH_F32;
    k->shared[i].over = 0; /* f32 needs more room than what it lies over might have */
  }
  open_exchanges(e);
  open_folds(e);
  open_joins(e);
  open_sums(e);
  expand_range(e, 0, (berth__x)from->n_insts);
  k->n_sums = 0;
  return berth__kernel_finish(k, err);
}

berth_status berth__kernel_expand(berth__kernel **kernel, berth_error *err) {
  berth_context *ctx = (*kernel)->ctx;
  if ((*kernel)->n_sums == 0 && !berth__kernel_uses(*kernel, BERTH__INST_exchange)) return BERTH_OK;
  expansion e = {.from = *kernel, .map = berth__alloc_array(ctx, (*kernel)->n_insts, sizeof *e.map)};
  if (e.map == NULL) return berth__fail_nomem(err, "a kernel");
  berth_status status = berth__kernel_create(ctx, (*kernel)->name, &e.k, err);
  if (status == BERTH_OK) status = make_expanded(&e, err);
  berth__free(ctx, e.map);
  if (status != BERTH_OK) {
    berth__kernel_destroy(e.k);
    return status;
  }
  berth__kernel_destroy(*kernel);
  *kernel = e.k;
  return BERTH_OK;
}
