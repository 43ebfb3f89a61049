#include "lowered.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "direct.h"
#include "support.h"

#define POISON 0xa5 /* in every byte that has not been written */
#define PLAIN UINT32_MAX

typedef enum layout {
  PADDED,   /* gaps after every element and line */
  REVERSED, /* the first axis is the innermost one */
  WIDER,    /* lines are parts of longer ones, like in a part of a concat */
  LAYOUTS
} layout;
static const char *const layout_names[] = {"padded", "reversed", "part of something wider"};

/* A tensor in a device's form. */
typedef struct held {
  berth_tensor tensor;
  berth_type stored;
  uint32_t *words;
  uint64_t count; /* elements, from the first to the last */
  uint32_t skip;  /* elements that precede them in their first word */
} held;

/* How tensors are stored: four bytes per element, each type in its own width, or the latter starting inside a word. */
typedef enum width {
  UNIFORM,
  OWN,
  SHIFTED,
  WIDTHS
} width;
static const char *const width_names[] = {"", ", in their own width", ", from inside a word on"};

typedef struct state {
  berth_context *ctx;
  const op_case *c;
  const berth__op *op;
  berth_attr attrs[OP_CASE_MAX];
  op_attrs given;
  const berth__kernel_limits *limits;
  const lowered_player *player; /* NULL: kernels are interpreted */
  held in[OP_CASE_MAX], out[OP_CASE_MAX];
  uint32_t *scratch;
  uint64_t scratch_count;
  bool knows_places; /* the lowering is told all offsets */
  width as;
  berth__storage storage[2 * OP_CASE_MAX];
  uint64_t at[2 * OP_CASE_MAX];
} state;

static bool fill_attrs(state *s) {
  const berth__family *family = s->op->family;
  if (!op_case_attrs(s->c, s->op, &s->given)) return false;
  for (uint32_t i = 0; i < family->n_attrs; i++) {
    s->attrs[i] = family->attrs[i];
    for (uint32_t g = 0; g < s->c->n_attrs; g++)
      if (strcmp(s->given.attrs[g].name, family->attrs[i].name) == 0) s->attrs[i] = s->given.attrs[g];
  }
  return true;
}

/* ---- Elements as words ---- */

/* An f64 must be representable in f32; for sums and functions, its leading digits suffice. */
static bool fits_f32(double x, bool exactly) {
  const double magnitude = fabs(x), rounded = (double)(float)x;
  if (isnan(x) || isinf(x) || x == 0) return true;
  return exactly ? rounded == x : magnitude <= 0x1.fffffep127 && magnitude >= 0x1p-126;
}

static bool fits(const op_tensor *t, bool exactly) {
  if (berth_type_storage(t->type).elements > 1) return true;
  const berth_tensor whole = {.data = t->data, .type = t->type};
  for (int64_t i = 0; i < t->count; i++) {
    const int64_t value = berth__load_i64(&whole, i);
    if (t->type == BERTH_F64 && !fits_f32(berth__load_f64(&whole, i), exactly)) return false;
    if (t->type == BERTH_I64 && (value < INT32_MIN || value > INT32_MAX)) return false;
    if (t->type == BERTH_U64 && (value < 0 || value > UINT32_MAX)) return false;
  }
  return true;
}

static bool all_fit(const op_case *c) {
  bool exactly = false, fit = true;
  for (uint32_t i = 0; i < c->n_out; i++) exactly = exactly || c->out[i].type != BERTH_F64;
  for (uint32_t i = 0; i < c->n_in; i++) fit = fit && (c->in[i].type == BERTH_TYPE_NONE || fits(&c->in[i], exactly));
  for (uint32_t i = 0; i < c->n_out; i++) fit = fit && fits(&c->out[i], false);
  return fit;
}

static uint32_t word_of(const op_tensor *t, int64_t i) {
  const berth_tensor whole = {.data = t->data, .type = t->type};
  const float f = berth__type_is_float(t->type) ? (float)berth__load_f64(&whole, i) : 0;
  uint32_t word = (uint32_t)(berth__type_is_float(t->type) ? 0 : berth__load_i64(&whole, i));
  if (berth__type_is_float(t->type)) memcpy(&word, &f, sizeof word);
  return word;
}

static void element_of(const op_tensor *t, void *data, int64_t i, uint32_t word) {
  const berth_tensor whole = {.data = data, .type = t->type};
  float f;
  memcpy(&f, &word, sizeof f);
  if (berth__type_is_float(t->type))
    berth__store_f64(&whole, i, (double)f);
  else if (berth__l_number(t->type) == BERTH__NUM_I32)
    berth__store_i64(&whole, i, (int32_t)word);
  else
    berth__store_i64(&whole, i, word);
}

static uint8_t *bytes_at(const held *h, int64_t index) {
  return (uint8_t *)h->words + ((uint64_t)index + h->skip) * berth_type_size(h->stored);
}

static uint64_t bytes_of(const held *h) {
  return berth_storage_bytes(berth_type_storage(h->stored), h->count + h->skip);
}

static uint64_t words_of(const held *h) { return (bytes_of(h) + 3) / 4; }

static bool is_block(berth_type type) { return berth_type_storage(type).elements > 1; }

static void put_element(const held *h, const op_tensor *t, int64_t i, int64_t index) {
  const uint32_t word = word_of(t, i);
  const void *own = (const uint8_t *)t->data + (size_t)i * berth_type_size(t->type);
  memcpy(bytes_at(h, index), h->stored == t->type ? own : &word, berth_type_size(h->stored));
}

static void get_element(const held *h, const op_tensor *t, int64_t i, int64_t index, void *to) {
  uint32_t word = 0;
  if (h->stored == t->type) {
    memcpy((uint8_t *)to + (size_t)i * berth_type_size(t->type), bytes_at(h, index), berth_type_size(t->type));
    return;
  }
  memcpy(&word, bytes_at(h, index), sizeof word);
  element_of(t, to, i, word);
}

static berth_type stored_as(berth_type type, width how) {
  static const berth_type words[] = {[BERTH__NUM_F32] = BERTH_F32,
                                     [BERTH__NUM_I32] = BERTH_I32,
                                     [BERTH__NUM_U32] = BERTH_U32,
                                     [BERTH__NUM_BOOL] = BERTH_U32};
  if (is_block(type)) return type;
  return how == UNIFORM ? words[berth__l_number(type)] : berth__l_storage(type);
}

/* ---- Layouts ---- */

static int64_t lay_out(layout how, berth_tensor *t) {
  int64_t next = how == PADDED ? 2 : 1;
  for (uint32_t k = 0; k < t->rank; k++) {
    const uint32_t axis = how == REVERSED ? k : t->rank - 1 - k;
    t->stride[axis] = next;
    next *= t->dim[axis];
    if (how == PADDED || (how == WIDER && k == 0)) next += 3;
  }
  return next;
}

static int64_t index_in(const berth_tensor *t, int64_t element) {
  int64_t index = 0;
  for (uint32_t axis = t->rank; axis-- > 0; element /= t->dim[axis]) index += element % t->dim[axis] * t->stride[axis];
  return index;
}

static void hold(held *h, const op_tensor *t, layout how, width as, bool with_data) {
  h->stored = stored_as(t->type, as);
  h->skip = as == SHIFTED && !is_block(h->stored) ? 4 / (uint32_t)berth_type_size(h->stored) - 1 : 0;
  h->tensor = (berth_tensor){.type = t->type, .rank = t->rank};
  memcpy(h->tensor.dim, t->dim, sizeof t->dim);
  berth__contiguous_strides(t->rank, t->dim, h->tensor.stride);
  if (is_block(h->stored)) how = LAYOUTS; /* blocks are never cut */
  h->count = (uint64_t)(how == LAYOUTS ? t->count : lay_out(how, &h->tensor));
  h->words = malloc((words_of(h) + 1) * sizeof *h->words);
  memset(h->words, POISON, words_of(h) * sizeof *h->words);
  if (is_block(h->stored)) {
    if (with_data) memcpy(h->words, t->data, t->size);
    return;
  }
  for (int64_t i = 0; i < t->count && with_data; i++) put_element(h, t, i, index_in(&h->tensor, i));
}

static void start(state *s, uint32_t operand, layout how_operand, layout how_result) {
  for (uint32_t i = 0; i < s->c->n_in; i++)
    if (s->c->in[i].type != BERTH_TYPE_NONE)
      hold(&s->in[i], &s->c->in[i], i == operand ? how_operand : LAYOUTS, s->as, true);
  for (uint32_t i = 0; i < s->c->n_out; i++) hold(&s->out[i], &s->c->out[i], how_result, s->as, false);
}

static void end(state *s) {
  for (uint32_t i = 0; i < s->c->n_in; i++) free(s->in[i].words);
  for (uint32_t i = 0; i < s->c->n_out; i++) free(s->out[i].words);
  memset(s->in, 0, sizeof s->in);
  memset(s->out, 0, sizeof s->out);
}

/* ---- Runs ---- */

static berth__kernel_memory memory_of(const state *s, const berth__kernel_buffer *buffer, uint32_t over) {
  const uint32_t operand = buffer->operand;
  if (operand == BERTH__OPERAND_SCRATCH) return (berth__kernel_memory){.words = s->scratch, .count = s->scratch_count};
  const held *h = operand < s->c->n_in ? &s->in[operand] : &s->out[operand - s->c->n_in];
  if (operand == s->c->n_in && over != PLAIN) h = &s->in[over];
  const uint64_t size = berth_type_size(buffer->storage);
  if (size == 4) return (berth__kernel_memory){.words = h->words, .count = words_of(h)};
  if (is_block(h->stored)) return (berth__kernel_memory){.words = h->words, .count = bytes_of(h) / size};
  return (berth__kernel_memory){.words = h->words, .count = h->skip + h->count, .first = h->skip};
}

static berth_status run_kernels(const state *s, const berth__lowering *l, uint32_t over, berth_error *err) {
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < l->n_kernels && status == BERTH_OK; i++) {
    const berth__kernel *k = l->kernels[i];
    berth__kernel_memory memory[BERTH__KERNEL_BUFFERS];
    for (uint32_t b = 0; b < k->n_buffers; b++) memory[b] = memory_of(s, &k->buffers[b], over);
    if (s->player != NULL) {
      status = s->player->play(k, memory, s->player->user, err);
      continue;
    }
    void *room = malloc(berth__kernel_room(k) + 1);
    status = berth__kernel_interpret(k, memory, room, err);
    free(room);
  }
  return status;
}

/* A call in the form of a recipe: without data. */
typedef struct call_of_case {
  berth_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  berth_op_call call;
  berth__lowering lowering;
} call_of_case;

static void describe(state *s, call_of_case *c) {
  memset(c, 0, sizeof *c);
  for (uint32_t i = 0; i < s->c->n_in; i++) c->in[i] = s->in[i].tensor;
  for (uint32_t i = 0; i < s->c->n_out; i++) c->out[i] = s->out[i].tensor;
  for (uint32_t i = 0; i < s->c->n_in; i++) s->storage[i] = s->in[i].stored;
  for (uint32_t i = 0; i < s->c->n_out; i++) s->storage[s->c->n_in + i] = s->out[i].stored;
  c->call = (berth_op_call){.in = c->in,
                            .out = c->out,
                            .n_in = s->c->n_in,
                            .n_out = s->c->n_out,
                            .attrs = s->attrs,
                            .n_attrs = s->op->family->n_attrs,
                            .user = berth__op_user(s->op)};
  c->lowering = (berth__lowering){.ctx = s->ctx,
                                  .limits = s->limits,
                                  .op = s->op,
                                  .call = &c->call,
                                  .storage = s->storage,
                                  .at = s->knows_places || s->as == SHIFTED ? s->at : NULL};
}

/* Reported bytes of a kernel: at most all elements, each with its stored bytes. */
static berth_status check_bytes(const state *s, const berth__lowering *l, berth_error *err) {
  double most = 4.0 * (double)s->scratch_count;
  for (uint32_t i = 0; i < s->c->n_in + s->c->n_out; i++) {
    const op_tensor *t = i < s->c->n_in ? &s->c->in[i] : &s->c->out[i - s->c->n_in];
    if (t->type == BERTH_TYPE_NONE) continue;
    const berth_storage storage = berth_type_storage(s->storage[i]);
    most += (double)(t->count + storage.elements - 1) / storage.elements * storage.bytes;
  }
  for (size_t i = 0; i < l->n_kernels; i++)
    if (l->kernels[i]->bytes > most)
      return berth__fail(err, BERTH_INTERNAL, "the kernel %s counts %g bytes, where there are %g", l->kernels[i]->name,
                         l->kernels[i]->bytes, most);
  return BERTH_OK;
}

/* over: the operand that output 0 overwrites. */
static berth_status lower_and_run(state *s, uint32_t over, berth_error *err) {
  call_of_case c;
  describe(s, &c);
  s->scratch_count = (berth__lower_scratch(s->op, &c.call, s->limits) + 3) / 4;
  s->scratch = calloc(s->scratch_count + 1, sizeof *s->scratch);
  berth_status status = berth__lower_call(&c.lowering, err);
  if (status == BERTH_OK) status = check_bytes(s, &c.lowering, err);
  if (status == BERTH_OK) status = run_kernels(s, &c.lowering, over, err);
  berth__lowering_free(&c.lowering);
  free(s->scratch);
  return status;
}

/* Sums and functions are in f32, but the case was computed in f64. */
static op_case loosened(const op_case *c) {
  op_case loose = *c;
  bool is_float = false;
  for (uint32_t i = 0; i < c->n_out; i++) is_float = is_float || berth__type_is_float(c->out[i].type);
  if (is_float && loose.relative < 2e-5) loose.relative = 2e-5;
  if (is_float && loose.absolute < 2e-6) loose.absolute = 2e-6;
  return loose;
}

static bool is_right(const state *s, uint32_t i, uint32_t over, const char *how) {
  const op_tensor *want = &s->c->out[i];
  const held *h = &s->out[i];
  const op_case loose = loosened(s->c);
  const size_t size = berth_type_size(h->stored);
  const uint64_t n_bytes = words_of(h) * sizeof *h->words;
  held there = *h;
  if (i == 0 && over != PLAIN) there.words = s->in[over].words;
  uint8_t *got = malloc(want->size + 8), *is_inside = calloc(n_bytes + 1, 1);
  int64_t at = 0;
  if (is_block(h->stored)) {
    memcpy(got, there.words, want->size);
    memset(is_inside, 1, want->size);
  }
  for (int64_t e = 0; e < want->count && !is_block(h->stored); e++) {
    const int64_t index = index_in(&h->tensor, e);
    get_element(&there, want, e, index, got);
    memset(is_inside + (bytes_at(h, index) - (uint8_t *)h->words), 1, size);
  }
  bool good = op_case_matches(&loose, want, got, &at);
  if (!good)
    fprintf(stderr, "%s:%d: %s, %s%s: output %u, element %lld: got %.9g, expected %.9g\n", s->c->file, s->c->line,
            s->c->name, how, width_names[s->as], i, (long long)at, op_element(want->type, got, at),
            op_element(want->type, want->data, at));
  for (uint64_t b = 0; b < n_bytes && over == PLAIN; b++) {
    if (is_inside[b] || ((const uint8_t *)h->words)[b] == POISON) continue;
    fprintf(stderr, "%s:%d: %s, %s%s: output %u is written outside its elements\n", s->c->file, s->c->line, s->c->name,
            how, width_names[s->as], i);
    good = false;
    break;
  }
  free(got);
  free(is_inside);
  return good;
}

/* Operands and results far apart, except the operand that output 0 overwrites. */
static void place_all(state *s, uint32_t over) {
  const uint64_t apart = (uint64_t)1 << 32;
  for (uint32_t i = 0; i < s->c->n_in + s->c->n_out; i++) {
    const held *h = i < s->c->n_in ? &s->in[i] : &s->out[i - s->c->n_in];
    s->at[i] = i * apart + (h->words != NULL ? h->skip * berth_type_size(h->stored) : 0);
  }
  if (over != PLAIN) s->at[over] = s->at[s->c->n_in];
}

static lowered run_one(state *s, uint32_t operand, layout how_operand, layout how_result, uint32_t over,
                       const char *how) {
  berth_error err = {.message = ""};
  start(s, operand, how_operand, how_result);
  place_all(s, over);
  const berth_status status = lower_and_run(s, over, &err);
  bool good = status == BERTH_OK;
  const bool ran = s->player == NULL || !s->player->only_looks;
  for (uint32_t i = 0; i < s->c->n_out && good && ran; i++) good = is_right(s, i, over, how);
  end(s);
  if (status == BERTH_UNSUPPORTED) return LOWERED_UNABLE;
  if (status != BERTH_OK) fprintf(stderr, "%s:%d: %s, %s: %s\n", s->c->file, s->c->line, s->c->name, how, err.message);
  return good ? LOWERED_HOLDS : LOWERED_FAILS;
}

static bool can_be_over(const state *s, uint32_t k) {
  const op_tensor *in = &s->c->in[k], *out = &s->c->out[0];
  return k < 32 && (berth__op_in_place(s->op, s->attrs) >> k & 1u) && in->type != BERTH_TYPE_NONE &&
         in->rank == out->rank && memcmp(in->dim, out->dim, sizeof in->dim) == 0 &&
         berth_type_size(stored_as(in->type, s->as)) == berth_type_size(stored_as(out->type, s->as));
}

/* A concat whose part `k` was made in place. */
static lowered run_with_part(state *s, uint32_t k) {
  const int64_t given = s->attrs[0].i;
  held *part = &s->in[k], *whole = &s->out[0];
  berth_error err = {.message = ""};
  start(s, PLAIN, LAYOUTS, LAYOUTS);
  const uint32_t axis = (uint32_t)(given < 0 ? given + part->tensor.rank : given);
  uint64_t first = 0;
  for (uint32_t i = 0; i < k; i++) first += (uint64_t)(s->c->in[i].dim[axis] * whole->tensor.stride[axis]);
  memcpy(part->tensor.stride, whole->tensor.stride, sizeof part->tensor.stride);
  free(part->words);
  const uint64_t per_word = 4 / berth_type_size(whole->stored), from = first + whole->skip;
  part->words = whole->words + from / per_word;
  part->skip = (uint32_t)(from % per_word);
  part->count = whole->count - first;
  for (int64_t i = 0; i < s->c->in[k].count; i++) put_element(part, &s->c->in[k], i, index_in(&part->tensor, i));
  place_all(s, PLAIN);
  s->at[k] = s->at[s->c->n_in] + first * berth_type_size(whole->stored);
  s->knows_places = true;
  const berth_status status = lower_and_run(s, PLAIN, &err);
  s->knows_places = false;
  const bool good = status == BERTH_OK && is_right(s, 0, PLAIN, "with a part in its place");
  part->words = NULL;
  end(s);
  return good ? LOWERED_HOLDS : LOWERED_FAILS;
}

static lowered run_others(state *s) {
  lowered result = run_one(s, PLAIN, LAYOUTS, WIDER, PLAIN, layout_names[WIDER]);
  for (uint32_t k = 0; k < s->c->n_in && result == LOWERED_HOLDS; k++) {
    if (s->c->in[k].type == BERTH_TYPE_NONE) continue;
    const bool takes = berth__op_takes_strided(s->op, k) && !is_block(s->c->in[k].type),
               only_unit = s->op->family->unit_last >> k & 1u;
    for (layout how = PADDED; takes && !only_unit && how <= REVERSED && result == LOWERED_HOLDS; how++)
      result = run_one(s, k, how, LAYOUTS, PLAIN, layout_names[how]);
    for (int knows = 0; knows < 2 && can_be_over(s, k) && result == LOWERED_HOLDS; knows++) {
      s->knows_places = knows != 0;
      result = run_one(s, PLAIN, LAYOUTS, LAYOUTS, k, knows ? "in place, and knowing it" : "in place");
      s->knows_places = false;
    }
  }
  return result;
}

static lowered run_parts(state *s) {
  lowered result = LOWERED_HOLDS;
  for (uint32_t k = 0; k < s->c->n_in && result == LOWERED_HOLDS; k++) result = run_with_part(s, k);
  return result;
}

static bool is_narrow(const op_tensor *t) {
  return t->type != BERTH_TYPE_NONE && !is_block(t->type) && berth_type_size(stored_as(t->type, OWN)) < 4;
}

/* Whether a tensor has elements of less than four bytes. */
static bool has_narrow(const op_case *c) {
  bool found = false;
  for (uint32_t i = 0; i < c->n_in; i++) found = found || is_narrow(&c->in[i]);
  for (uint32_t i = 0; i < c->n_out; i++) found = found || is_narrow(&c->out[i]);
  return found;
}

static lowered run_widths(state *s) {
  if (!all_fit(s->c)) return LOWERED_WIDE;
  if (s->op == NULL || !fill_attrs(s)) return LOWERED_FAILS;
  lowered result = LOWERED_HOLDS;
  for (; s->as < WIDTHS && result == LOWERED_HOLDS; s->as++) {
    if (s->as != UNIFORM && !has_narrow(s->c)) break;
    result = run_one(s, PLAIN, LAYOUTS, LAYOUTS, PLAIN, "plain");
    if (s->player != NULL) continue;
    if (result == LOWERED_HOLDS) result = run_others(s);
    if (result == LOWERED_HOLDS && s->op->code == BERTH__OP_concat) result = run_parts(s);
  }
  return result;
}

lowered lowered_run(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits) {
  state s = {.ctx = ctx, .c = c, .op = berth__op_find(ctx, c->op), .limits = limits};
  return run_widths(&s);
}

lowered lowered_run_plain(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits,
                          const lowered_player *player) {
  state s = {.ctx = ctx, .c = c, .op = berth__op_find(ctx, c->op), .limits = limits, .player = player};
  return run_widths(&s);
}

berth_status lowered_make(berth_context *ctx, const op_case *c, const berth__kernel_limits *limits, berth_error *err) {
  state s = {.ctx = ctx, .c = c, .op = berth__op_find(ctx, c->op), .limits = limits};
  call_of_case call;
  if (!fill_attrs(&s)) return BERTH_INTERNAL;
  start(&s, PLAIN, LAYOUTS, LAYOUTS);
  describe(&s, &call);
  const berth_status status = berth__lower_call(&call.lowering, err);
  berth__lowering_free(&call.lowering);
  end(&s);
  return status;
}
