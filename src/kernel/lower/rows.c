#include "kernel/lower/rows.h"

#include "kernel/lower/words.h"

#define MOST_THREADS 256u
#define FEW_THREADS 64u     /* threads per workgroup if each row has one thread */
#define ENOUGH_THREADS 4096 /* keep a device busy: rows need not be shared for that */
#define ENOUGH_TASKS 64     /* the same if a CPU plays the device */
#define LEAST_EACH 4        /* elements that are worth a thread */
#define PIECE 64            /* elements that are added up before they are added to the rest */
#define LONG_SUM 256
#define MOST_PER_WORD 4u /* elements of the narrowest storage per word */
/* If neighbouring threads have neighbouring rows, threads are scarce, and pieces may be short, since reads of their
 * sums are contiguous. */
#define THREADS_ACROSS 65536
#define MOST_ACROSS 64
#define LEAST_ACROSS 128
/* If such rows come from memory, it takes more threads to have enough loads under way. Those that share a row are in
 * one workgroup, so that there are not more pieces. */
#define THREADS_READING 262144
#define LANES_READING 8
#define LEAST_READ 16
#define MANY_GROUPS 1024 /* workgroups that keep a device busy; beyond that, they become larger instead of more */

static uint32_t power_below(int64_t x, uint32_t most) {
  uint32_t power = 1;
  while (2 * (int64_t)power <= x && 2 * power <= most) power *= 2;
  return power;
}

/* Threads that can join: each has an entry in the shared arrays. */
static uint32_t most_threads(const berth__kernel_limits *limits) {
  const uint32_t places = limits->shared_bytes / (BERTH__FOLD_VALUES * (uint32_t)sizeof(uint32_t));
  return power_below(limits->group_size < places ? limits->group_size : places, MOST_THREADS);
}

static uint32_t choose_lanes(const berth__kernel_limits *limits, int64_t count, int64_t length, bool along_rows) {
  const uint32_t most = most_threads(limits);
  const uint32_t useful = power_below(length / LEAST_EACH, most);
  if (!limits->shares_well && count >= ENOUGH_TASKS) return 1;
  if (along_rows) return useful;
  uint32_t lanes = 1;
  while (lanes < useful && count * (int64_t)lanes < ENOUGH_THREADS) lanes *= 2;
  return lanes;
}

/* Threads that exchange values: whole subgroups, in workgroups that contain some. */
static uint32_t reach_of(const berth__kernel_limits *limits, uint32_t threads) {
  const uint32_t lanes = limits->exchanges ? limits->lanes : 1;
  return lanes > 1 && (lanes & (lanes - 1)) == 0 && threads >= lanes ? lanes : 1;
}

int64_t berth__l_pieces_across(int64_t count, int64_t length) {
  const int64_t wanted = count > 0 ? THREADS_ACROSS / count : 1, useful = length / LEAST_ACROSS;
  const int64_t pieces = wanted < useful ? wanted : useful;
  return pieces > MOST_ACROSS ? MOST_ACROSS : pieces > 1 ? pieces : 1;
}

/* Assigns rows to the threads of workgroups. */
static void place_rows(berth__kernel *k, berth__l_rows *rows, uint32_t threads, bool along_rows) {
  k->group_size = rows->lanes > 1 ? rows->lanes * rows->per_group : threads;
  if (rows->lanes == 1) rows->per_group = threads;
  k->n_groups = ((uint64_t)rows->count + rows->per_group - 1) / rows->per_group;
  const berth__x thread = berth__x_thread(k);
  const berth__x by = berth__x_i32(k, along_rows ? rows->lanes : rows->per_group);
  const berth__x high = berth__x_div(k, thread, by), low = berth__x_rem(k, thread, by);
  rows->step = along_rows ? 1 : rows->per_group;
  rows->lane = rows->lanes == 1 ? berth__x_i32(k, 0) : along_rows ? low : high;
  const berth__x of_group = rows->lanes == 1 ? thread : along_rows ? high : low;
  rows->row = berth__x_add(k, berth__x_affine(k, berth__x_group(k), rows->per_group, 0), of_group);
  rows->is_row = berth__x_lt(k, rows->row, berth__x_i32(k, rows->count));
  if (rows->lanes == 1) berth__x_if(k, rows->is_row); /* there are no barriers */
  rows->end = berth__x_select(k, rows->is_row, berth__x_i32(k, rows->length), berth__x_i32(k, 0));
}

static berth__l_rows rows_with(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length,
                               uint32_t lanes, bool along_rows) {
  berth__l_rows rows = {.count = count, .length = length, .lanes = lanes, .reach = 1};
  const uint32_t threads = lanes > 1 ? most_threads(l->limits) : power_below(l->limits->group_size, FEW_THREADS);
  rows.per_group = power_below(count, threads / lanes);
  rows.reach = reach_of(l->limits, threads);
  while (lanes > 1 && lanes * rows.per_group < rows.reach) rows.per_group *= 2; /* some have no row */
  place_rows(k, &rows, threads, along_rows);
  return rows;
}

static berth__l_rows no_rows(int64_t count, int64_t length) {
  return (berth__l_rows){.count = count, .length = length, .lanes = 1, .reach = 1};
}

berth__l_rows berth__l_rows_of(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length,
                               bool along_rows) {
  if (k == NULL) return no_rows(count, length);
  return rows_with(l, k, count, length, choose_lanes(l->limits, count, length, along_rows), along_rows);
}

berth__l_rows berth__l_rows_across(const berth__lowering *l, berth__kernel *k, int64_t count, int64_t length) {
  if (k == NULL) return no_rows(count, length);
  uint32_t lanes = choose_lanes(l->limits, count, length, false);
  while (l->limits->shares_well && lanes < LANES_READING && 2 * lanes <= most_threads(l->limits) &&
         count * (int64_t)lanes < THREADS_READING && length >= 2 * (int64_t)lanes * LEAST_READ)
    lanes *= 2;
  return rows_with(l, k, count, length, lanes, false);
}

/* ---- Held rows ---- */

/* Elements that a thread loads at once: those of a word, which never cross the end of a row. Neighbouring threads have
 * neighbouring words, so every device coalesces loads and stores. */
static uint32_t beside_of(const berth__lowering *l, uint32_t operand, int64_t length) {
  const uint32_t result = berth__operand_out(l->call, 0);
  const uint32_t of_word = berth__storage_per_word(berth__l_storage_of(l, operand)),
                 of_result = berth__storage_per_word(berth__l_storage_of(l, result));
  const uint32_t beside = length % of_word == 0 && berth__l_begins_with_word(l, operand) ? of_word : 1;
  return beside % of_result == 0 ? beside : 0; /* 0: several threads would share the result's words */
}

static uint32_t held_by(const berth__l_rows *rows, uint32_t beside) {
  const int64_t at_once = (int64_t)rows->lanes * beside, times = (rows->length + at_once - 1) / at_once;
  return times > BERTH__ROWS_HELD ? UINT32_MAX : (uint32_t)times * beside;
}

/* As few lanes as can hold a row, but whole subgroups if they exchange. */
static bool choose_held(const berth__lowering *l, berth__l_rows *rows, uint32_t operand) {
  const uint32_t most = most_threads(l->limits), beside = beside_of(l, operand, rows->length);
  if (!l->limits->shares_well || beside == 0) return false;
  rows->reach = reach_of(l->limits, most);
  while (rows->lanes < rows->reach && (int64_t)rows->lanes * beside < rows->length) rows->lanes *= 2;
  while (rows->lanes < most && held_by(rows, beside) > BERTH__ROWS_HELD) rows->lanes *= 2;
  if (rows->lanes == 1 || held_by(rows, beside) > BERTH__ROWS_HELD) return false;
  rows->held.n = held_by(rows, beside);
  rows->held.beside = beside;
  rows->per_group = rows->lanes < rows->reach ? rows->reach / rows->lanes : 1;
  while (rows->lanes * rows->per_group * 2 <= most && rows->count / (2 * (int64_t)rows->per_group) >= MANY_GROUPS)
    rows->per_group *= 2;
  return true;
}

/* Adjacent elements, which are a word of the operand, or are loaded one by one. */
static void load_beside(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place, uint32_t beside,
                        berth__x *values) {
  const berth__number number = berth__l_number(l->call->in[operand].type);
  const bool is_word = beside > 1 && beside == berth__storage_per_word(berth__l_storage_of(l, operand)) &&
                       berth__l_begins_with_word(l, operand);
  if (!is_word) {
    for (uint32_t f = 0; f < beside; f++) values[f] = berth__l_load(l, k, operand, berth__x_affine(k, place, 1, f));
    return;
  }
  const berth__x word = berth__l_load_word(l, k, operand, place);
  for (uint32_t f = 0; f < beside; f++)
    values[f] = berth__x_convert(k, number, berth__l_lane(k, berth__l_storage_of(l, operand), word, f));
}

static bool rows_are_even(const berth__l_rows *rows) {
  return rows->length % ((int64_t)rows->lanes * rows->held.beside) == 0;
}

/* Threads without a row, or past its end, load the same as others. */
void berth__l_rows_hold_beside(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows, uint32_t operand,
                               berth__x *values) {
  const berth__l_held *held = &rows->held;
  const berth__x row = berth__x_min(k, rows->row, berth__x_i32(k, rows->count - 1));
  const berth__x first = berth__x_affine(k, row, rows->length, 0);
  const berth__x last = berth__x_i32(k, rows->length - held->beside);
  for (uint32_t e = 0; e < held->n; e += held->beside) {
    const berth__x at = berth__x_affine(k, rows->lane, held->beside, (int64_t)e * rows->lanes);
    const berth__x inside = rows_are_even(rows) ? at : berth__x_min(k, at, last);
    load_beside(l, k, operand, berth__x_add(k, first, inside), held->beside, &values[e]);
  }
}

static void load_held(const berth__lowering *l, berth__kernel *k, berth__l_rows *rows, uint32_t operand) {
  berth__l_held *held = &rows->held;
  const bool is_even = rows_are_even(rows);
  const berth__x end = berth__x_i32(k, rows->length);
  berth__l_rows_hold_beside(l, k, rows, operand, held->value);
  for (uint32_t e = 0; e < held->n; e += held->beside) {
    const berth__x at = berth__x_affine(k, rows->lane, held->beside, (int64_t)e * rows->lanes);
    for (uint32_t f = 0; f < held->beside; f++) {
      held->at[e + f] = berth__x_affine(k, at, 1, f);
      held->is_in[e + f] = is_even ? BERTH__X_NONE : berth__x_lt(k, at, end);
    }
  }
}

berth__l_rows berth__l_rows_hold(const berth__lowering *l, berth__kernel *k, uint32_t operand, int64_t count,
                                 int64_t length) {
  berth__l_rows rows = {.count = count, .length = length, .lanes = 1, .reach = 1};
  if (k == NULL || !choose_held(l, &rows, operand)) return berth__l_rows_of(l, k, count, length, true);
  place_rows(k, &rows, 0, true);
  load_held(l, k, &rows, operand);
  return rows;
}

uint32_t berth__l_rows_which(const berth__l_rows *rows, berth__x i) {
  for (uint32_t e = 0; e < rows->held.n; e++)
    if (rows->held.at[e] == i) return e;
  return rows->held.n;
}

berth__x berth__l_rows_held(const berth__l_rows *rows, berth__x i) {
  const uint32_t e = berth__l_rows_which(rows, i);
  return e < rows->held.n ? rows->held.value[e] : BERTH__X_NONE;
}

/* Elements of a row that form a word of result 0; 1 if it has a word per element, or rows share words. */
static uint32_t lower_rows_word(const berth__lowering *l, const berth__l_rows *rows, bool is_dense) {
  const uint32_t result = berth__operand_out(l->call, 0);
  const uint32_t per_word = berth__storage_per_word(berth__l_storage_of(l, result));
  const bool fits = is_dense && rows->length % per_word == 0 && berth__is_contiguous(&l->call->out[0]) &&
                    berth__l_begins_with_word(l, result);
  return fits ? per_word : 1;
}

/* Writes the elements of a word of the result, or one element; with their values, if these are there already. */
static void write_word(const berth__lowering *l, berth__kernel *k, const berth__l_rows_writer *writer, uint32_t word,
                       const berth__x *at, const berth__x *values) {
  if (word > 1) berth__l_word_begin(l, k);
  for (uint32_t f = 0; f < word; f++) {
    const berth__x place = writer->place(k, writer->state, at[f]);
    if (word > 1) berth__l_word_lane(k, f, place);
    if (values != NULL)
      berth__l_store(l, k, 0, place, values[f]);
    else
      writer->write(k, writer->state, at[f], place);
  }
  if (word > 1) berth__l_word_end(l, k, writer->place(k, writer->state, at[0]));
}

static void write_held(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows,
                       const berth__l_rows_writer *writer, uint32_t word) {
  const berth__l_held *held = &rows->held;
  berth__x_if(k, rows->is_row);
  for (uint32_t e = 0; e < held->n; e += held->beside) {
    if (held->is_in[e] != BERTH__X_NONE) berth__x_if(k, held->is_in[e]);
    for (uint32_t f = 0; f < held->beside; f += word) write_word(l, k, writer, word, &held->at[e + f], NULL);
    if (held->is_in[e] != BERTH__X_NONE) berth__x_end(k);
  }
  berth__x_end(k);
}

/* Opens a loop over the elements from `from` on, BERTH__ROWS_AHEAD at a time, each `apart` from the next; `next`, a
 * variable with the value `from`, gets the first element that is left. */
static berth__x open_ahead(berth__kernel *k, berth__x from, berth__x to, int64_t apart, berth__x next) {
  const berth__x end = berth__x_affine(k, to, 1, -(int64_t)(BERTH__ROWS_AHEAD - 1) * apart);
  const berth__x i = berth__x_loop(k, from, end, BERTH__ROWS_AHEAD * apart);
  berth__x_set(k, next, berth__x_affine(k, i, 1, BERTH__ROWS_AHEAD * apart));
  return i;
}

/* `n` words, each `apart` elements from the next. */
static void write_several(const berth__lowering *l, berth__kernel *k, const berth__l_rows_writer *writer, uint32_t word,
                          berth__x first, uint32_t n, int64_t apart) {
  berth__x at[BERTH__ROWS_AHEAD * MOST_PER_WORD] = {0}, values[BERTH__ROWS_AHEAD * MOST_PER_WORD] = {0};
  for (uint32_t e = 0; e < n * word; e++) {
    at[e] = berth__x_affine(k, first, 1, e / word * apart + e % word);
    values[e] = writer->value(k, writer->state, at[e]);
  }
  for (uint32_t e = 0; e < n * word; e += word) write_word(l, k, writer, word, &at[e], &values[e]);
}

static void write_ahead(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows,
                        const berth__l_rows_writer *writer, uint32_t word) {
  const berth__x from = berth__x_affine(k, rows->lane, word, 0), next = berth__x_variable(k, from);
  const int64_t apart = (int64_t)rows->lanes * word;
  write_several(l, k, writer, word, open_ahead(k, from, rows->end, apart, next), BERTH__ROWS_AHEAD, apart);
  berth__x_end(k);
  write_several(l, k, writer, word, berth__x_loop(k, berth__x_get(k, next), rows->end, apart), 1, apart);
  berth__x_end(k);
}

void berth__l_rows_write(const berth__lowering *l, berth__kernel *k, const berth__l_rows *rows,
                         const berth__l_rows_writer *writer) {
  const uint32_t word = lower_rows_word(l, rows, writer->is_dense);
  if (rows->held.n > 0) {
    write_held(l, k, rows, writer, word);
    return;
  }
  if (writer->value != NULL) {
    write_ahead(l, k, rows, writer, word);
    return;
  }
  berth__x at[BERTH__ROWS_HELD];
  const berth__x first =
      berth__x_loop(k, berth__x_affine(k, rows->lane, word, 0), rows->end, (int64_t)rows->lanes * word);
  for (uint32_t f = 0; f < word; f++) at[f] = berth__x_affine(k, first, 1, f);
  write_word(l, k, writer, word, at, NULL);
  berth__x_end(k);
}

void berth__l_rows_once(berth__kernel *k, const berth__l_rows *rows) {
  berth__x_if(k, berth__x_and(k, rows->is_row, berth__x_eq(k, rows->lane, berth__x_i32(k, 0))));
}

void berth__l_join_sums(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out) {
  (void)state;
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++)
    if (a[v] != BERTH__X_NONE) out[v] = berth__x_add(k, a[v], b[v]);
}

/* ---- The fold of one thread ---- */

static void make_variables(berth__kernel *k, const berth__l_fold *fold, berth__x *held) {
  for (uint32_t v = 0; v < fold->n; v++) held[v] = berth__x_variable(k, fold->start[v]);
}

static void get_all(berth__kernel *k, const berth__l_fold *fold, const berth__x *held, berth__x *values) {
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++) values[v] = BERTH__X_NONE;
  for (uint32_t v = 0; v < fold->n; v++) values[v] = berth__x_get(k, held[v]);
}

static void join_into(berth__kernel *k, const berth__l_fold *fold, const berth__x *held, const berth__x *more) {
  berth__x before[BERTH__FOLD_VALUES], joined[BERTH__FOLD_VALUES];
  get_all(k, fold, held, before);
  fold->join(k, fold->state, before, more, joined);
  for (uint32_t v = 0; v < fold->n; v++) berth__x_set(k, held[v], joined[v]);
}

/* `n` elements, each a step of the lanes from the next. */
static void take_several(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x first,
                         uint32_t n, const berth__x *held) {
  berth__x at[BERTH__ROWS_AHEAD], before[BERTH__FOLD_VALUES], joined[BERTH__FOLD_VALUES] = {0};
  for (uint32_t e = 0; e < n; e++) at[e] = berth__x_affine(k, first, 1, (int64_t)e * rows->lanes);
  get_all(k, fold, held, before);
  fold->take(k, fold->state, at, n, before, joined);
  for (uint32_t v = 0; v < fold->n; v++) berth__x_set(k, held[v], joined[v]);
}

/* Elements that are all loaded before the first is joined. */
static void join_several(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x first,
                         const berth__x *held) {
  berth__x values[BERTH__ROWS_AHEAD][BERTH__FOLD_VALUES] = {{0}};
  for (uint32_t e = 0; e < BERTH__ROWS_AHEAD; e++) {
    for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++) values[e][v] = BERTH__X_NONE;
    fold->element(k, fold->state, berth__x_affine(k, first, 1, (int64_t)e * rows->lanes), values[e]);
  }
  for (uint32_t e = 0; e < BERTH__ROWS_AHEAD; e++) join_into(k, fold, held, values[e]);
}

static void fold_between(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x from,
                         berth__x to, const berth__x *held) {
  berth__x values[BERTH__FOLD_VALUES];
  if (fold->take != NULL) {
    const berth__x next = berth__x_variable(k, from);
    take_several(k, rows, fold, open_ahead(k, from, to, rows->lanes, next), BERTH__ROWS_AHEAD, held);
    berth__x_end(k);
    take_several(k, rows, fold, berth__x_loop(k, berth__x_get(k, next), to, rows->lanes), 1, held);
    berth__x_end(k);
    return;
  }
  if (fold->is_ahead) {
    const berth__x next = berth__x_variable(k, from);
    join_several(k, rows, fold, open_ahead(k, from, to, rows->lanes, next), held);
    berth__x_end(k);
    from = berth__x_get(k, next);
  }
  const berth__x i = berth__x_loop(k, from, to, rows->lanes);
  fold->element(k, fold->state, i, values);
  join_into(k, fold, held, values);
  berth__x_end(k);
}

static void fold_pieces(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, const berth__x *held) {
  const int64_t piece = PIECE * (int64_t)rows->lanes;
  berth__x part[BERTH__FOLD_VALUES] = {0}, values[BERTH__FOLD_VALUES];
  const berth__x from = berth__x_loop(k, rows->lane, rows->end, piece);
  make_variables(k, fold, part);
  fold_between(k, rows, fold, from, berth__x_min(k, berth__x_affine(k, from, 1, piece), rows->end), part);
  get_all(k, fold, part, values);
  join_into(k, fold, held, values);
  berth__x_end(k);
}

/* Unrolled over the held elements. */
static void fold_held(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x *values) {
  const berth__l_held *held = &rows->held;
  berth__x more[BERTH__FOLD_VALUES], joined[BERTH__FOLD_VALUES];
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++) values[v] = more[v] = BERTH__X_NONE;
  for (uint32_t e = 0; e < held->n; e++) {
    fold->element(k, fold->state, held->at[e], more);
    for (uint32_t v = 0; v < fold->n && held->is_in[e] != BERTH__X_NONE; v++)
      more[v] = berth__x_select(k, held->is_in[e], more[v], fold->start[v]);
    if (e == 0)
      memcpy(joined, more, sizeof joined);
    else
      fold->join(k, fold->state, values, more, joined);
    for (uint32_t v = 0; v < fold->n; v++) values[v] = joined[v];
  }
}

/* ---- The fold of all threads of a row ---- */

static void lower_rows_load_shared(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x at,
                                   berth__x *values) {
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++) values[v] = BERTH__X_NONE;
  for (uint32_t v = 0; v < fold->n; v++) values[v] = berth__x_shared_load(k, rows->array[v], at);
}

static void lower_rows_store_shared(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x at,
                                    const berth__x *values) {
  for (uint32_t v = 0; v < fold->n; v++) berth__x_shared_store(k, rows->array[v], at, values[v]);
}

/* `count`: entries per array. */
static void make_arrays(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, const berth__x *values,
                        uint32_t count) {
  if (k->status != BERTH_OK) return;
  for (uint32_t v = rows->n_joins; v < fold->n; v++) {
    const berth__number type = (berth__number)berth__x_inst(k, values[v])->type;
    rows->array[v] = berth__kernel_shared(k, type, count);
  }
  if (rows->n_joins < fold->n) rows->n_joins = fold->n;
}

/* Halves the number of lanes until one is left. */
static void join_halves(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *values) {
  const berth__x thread = berth__x_thread(k);
  berth__x mine[BERTH__FOLD_VALUES], others[BERTH__FOLD_VALUES], joined[BERTH__FOLD_VALUES];
  if (rows->n_joins > 0) berth__x_barrier(k); /* the last result has been read */
  make_arrays(k, rows, fold, values, k->group_size);
  lower_rows_store_shared(k, rows, fold, thread, values);
  berth__x_barrier(k);
  for (uint32_t half = rows->lanes / 2; half > 0; half /= 2) {
    berth__x_if(k, berth__x_lt(k, rows->lane, berth__x_i32(k, half)));
    lower_rows_load_shared(k, rows, fold, thread, mine);
    lower_rows_load_shared(k, rows, fold, berth__x_affine(k, thread, 1, (int64_t)half * rows->step), others);
    fold->join(k, fold->state, mine, others, joined);
    lower_rows_store_shared(k, rows, fold, thread, joined);
    berth__x_end(k);
    berth__x_barrier(k);
  }
  lower_rows_load_shared(k, rows, fold, berth__x_sub(k, thread, berth__x_affine(k, rows->lane, rows->step, 0)), values);
}

/* Joins with the thread at this distance; both get the same result, so the lower thread's values come first, unless the
 * order makes no difference. */
static void join_across(berth__kernel *k, const berth__l_fold *fold, uint32_t distance, berth__x *values) {
  berth__x others[BERTH__FOLD_VALUES] = {BERTH__X_NONE, BERTH__X_NONE}, before[BERTH__FOLD_VALUES],
           after[BERTH__FOLD_VALUES];
  const berth__x bit = berth__x_and(k, berth__x_thread(k), berth__x_i32(k, distance));
  const berth__x is_lower = berth__x_eq(k, bit, berth__x_i32(k, 0));
  for (uint32_t v = 0; v < fold->n; v++) others[v] = berth__x_exchange(k, values[v], distance);
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++) {
    const bool is_one = v >= fold->n || fold->join == berth__l_join_sums;
    before[v] = is_one ? values[v] : berth__x_select(k, is_lower, values[v], others[v]);
    after[v] = is_one ? others[v] : berth__x_select(k, is_lower, others[v], values[v]);
  }
  fold->join(k, fold->state, before, after, values);
}

/* First folds within subgroups; their results are exchanged through shared memory, where every thread joins those of
 * its row. */
static void join_sets(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *values) {
  const uint32_t step = rows->step, of_row = rows->lanes * step, reach = rows->reach, sets = of_row / reach;
  for (uint32_t distance = (of_row < reach ? of_row : reach) / 2; distance >= step; distance /= 2)
    join_across(k, fold, distance, values);
  if (sets <= 1) return;
  const berth__x thread = berth__x_thread(k), column = berth__x_rem(k, thread, berth__x_i32(k, step));
  const berth__x set = berth__x_div(k, thread, berth__x_i32(k, reach));
  const berth__x first = berth__x_affine(k, berth__x_div(k, thread, berth__x_i32(k, of_row)), sets, 0);
  if (rows->n_joins > 0) berth__x_barrier(k); /* the last result has been read */
  make_arrays(k, rows, fold, values, k->group_size / reach * step);
  berth__x_if(k, berth__x_lt(k, berth__x_rem(k, thread, berth__x_i32(k, reach)), berth__x_i32(k, step)));
  lower_rows_store_shared(k, rows, fold, berth__x_add(k, berth__x_affine(k, set, step, 0), column), values);
  berth__x_end(k);
  berth__x_barrier(k);
  for (uint32_t i = 0; i < sets; i++) {
    berth__x others[BERTH__FOLD_VALUES], joined[BERTH__FOLD_VALUES];
    const berth__x at = berth__x_add(k, berth__x_affine(k, first, step, (int64_t)i * step), column);
    lower_rows_load_shared(k, rows, fold, at, i == 0 ? values : others);
    if (i == 0) continue;
    fold->join(k, fold->state, values, others, joined);
    for (uint32_t v = 0; v < fold->n; v++) values[v] = joined[v];
  }
}

static void join_lanes(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *values) {
  if (rows->step < rows->reach)
    join_sets(k, rows, fold, values);
  else
    join_halves(k, rows, fold, values);
}

static void fold_own(berth__kernel *k, const berth__l_rows *rows, const berth__l_fold *fold, berth__x *values) {
  berth__x held[BERTH__FOLD_VALUES] = {0};
  if (rows->held.n > 0) {
    fold_held(k, rows, fold, values);
    return;
  }
  make_variables(k, fold, held);
  if (fold->is_sum && rows->length / rows->lanes > LONG_SUM)
    fold_pieces(k, rows, fold, held);
  else
    fold_between(k, rows, fold, rows->lane, rows->end, held);
  get_all(k, fold, held, values);
}

void berth__l_rows_fold(berth__kernel *k, berth__l_rows *rows, const berth__l_fold *fold, berth__x *out) {
  if (k == NULL) return;
  berth__x values[BERTH__FOLD_VALUES];
  fold_own(k, rows, fold, values);
  if (rows->lanes > 1) join_lanes(k, rows, fold, values);
  for (uint32_t v = 0; v < fold->n; v++) out[v] = values[v];
}

berth__x berth__l_line_start(berth__kernel *k, const berth__lines *lines, berth__x line) {
  const berth__x inner = berth__x_i32(k, lines->inner);
  return berth__x_add(k, berth__x_affine(k, berth__x_div(k, line, inner), lines->length * lines->inner, 0),
                      berth__x_rem(k, line, inner));
}
