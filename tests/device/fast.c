#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/blocks.h"
#include "device/cpu/team.h"
#include "plan/limits.h"

typedef struct state {
  const fast_case *c;
  const berth__op *op;
  berth_attr attrs[FAST_MAX];
  uint32_t n_in;
  berth_tensor in[FAST_MAX], out[FAST_MAX], want[FAST_MAX];
  void *in_block[FAST_MAX];
  size_t in_size[FAST_MAX], out_size[FAST_MAX];
  uint32_t n_out;
} state;

static void *take(size_t size) {
  void *block = NULL;
  assert_int_equal(posix_memalign(&block, 64, size ? size : 1), 0);
  memset(block, 0xa5, size ? size : 1);
  return block;
}

/* The k-th axis from the innermost one on. */
static uint32_t axis_at(uint32_t rank, uint32_t k, fast_layout how) {
  if (how == FAST_REVERSED) return k;
  if (how == FAST_TURNED && k + 1 < rank) return k + 2 < rank ? rank - 2 - k : rank - 1;
  return rank - 1 - k;
}

static int64_t lay_out(berth_tensor *t, fast_layout how) {
  int64_t next = how == FAST_STEPPED ? 3 : 1;
  for (uint32_t k = 0; k < t->rank; k++) {
    const uint32_t axis = axis_at(t->rank, k, how);
    t->stride[axis] = next;
    next *= t->dim[axis];
    if (how == FAST_PADDED && k == 0) next += 5;
    if (how == FAST_REPEATED && k == 1) t->stride[axis] = 0;
  }
  return next;
}

static double next_number(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 40) / (double)(1 << 24);
}

static void fill(const fast_operand *o, berth_tensor *t, int64_t count, uint64_t seed) {
  if (berth__type_is_block(t->type)) {
    test_random_blocks(t->type, t->data, berth_storage_bytes(berth_type_storage(t->type), (uint64_t)count), &seed);
    return;
  }
  const int is_range = o->low != 0 || o->high != 0;
  const double low = is_range ? o->low : t->type == BERTH_BOOL ? 0 : -3, high = is_range ? o->high : 3;
  for (int64_t i = 0; i < count; i++) {
    const double x = o->values ? o->values[i % o->n_values] : low + (high - low) * next_number(&seed);
    if (t->type == BERTH_BOOL)
      ((uint8_t *)t->data)[i] = (int)floor(x) & 1;
    else
      berth__store_f64(t, i, berth__type_is_float(t->type) ? x : floor(x));
  }
}

static void make_attrs(state *s) {
  const berth__family *family = s->op->family;
  for (uint32_t i = 0; i < family->n_attrs; i++) {
    s->attrs[i] = family->attrs[i];
    for (uint32_t k = 0; s->c->attrs[k].name; k++)
      if (strcmp(s->c->attrs[k].name, family->attrs[i].name) == 0) s->attrs[i] = s->c->attrs[k];
  }
}

static void infer_out(state *s) {
  berth_type in_type[FAST_MAX], out_type[FAST_MAX];
  berth__shape in_shape[FAST_MAX], out_shape[FAST_MAX];
  const void *data[FAST_MAX] = {NULL};
  berth_error err;
  for (uint32_t i = 0; i < s->n_in; i++) {
    in_type[i] = s->in[i].type;
    in_shape[i].rank = s->in[i].rank;
    memcpy(in_shape[i].dim, s->in[i].dim, sizeof s->in[i].dim);
    if (s->op->family->valued >> i & 1u) data[i] = s->in[i].data;
  }
  berth__infer infer = {.op = s->op,
                        .in_type = in_type,
                        .in_shape = in_shape,
                        .in_data = data,
                        .n_in = s->n_in,
                        .n_out = s->n_out,
                        .attrs = s->attrs,
                        .out_type = out_type,
                        .out_shape = out_shape};
  TEST_OK(s->op->family->infer(&infer, &err));
  for (uint32_t i = 0; i < s->n_out; i++) {
    berth_tensor t = {.type = out_type[i], .rank = out_shape[i].rank};
    memcpy(t.dim, out_shape[i].dim, sizeof t.dim);
    s->out_size[i] = (size_t)berth_storage_bytes(berth_type_storage(t.type), (uint64_t)lay_out(&t, FAST_PLAIN));
    s->out[i] = s->want[i] = t;
    s->out[i].data = take(s->out_size[i]);
    s->want[i].data = take(s->out_size[i]);
  }
}

/* Elements cost more than all the rest: without has_all, there are those alone that shapes follow from. */
static void start_with(state *s, const fast_case *c, bool has_all) {
  memset(s, 0, sizeof *s);
  s->c = c;
  s->op = berth__op_find(NULL, c->op);
  assert_non_null(s->op);
  s->n_out = c->n_out > 0 ? c->n_out : s->op->min_out;
  for (uint32_t i = 0; i < FAST_MAX; i++) {
    const fast_operand *o = &c->in[i];
    if (o->type == BERTH_TYPE_NONE) continue;
    s->n_in = i + 1;
    s->in[i] = (berth_tensor){.type = o->type, .rank = o->rank};
    memcpy(s->in[i].dim, o->dim, sizeof o->dim);
    const int64_t count = lay_out(&s->in[i], o->layout);
    s->in_size[i] = (size_t)berth_storage_bytes(berth_type_storage(o->type), (uint64_t)count);
    const size_t offset = o->layout == FAST_OFFSET ? berth_type_size(o->type) : 0;
    s->in_block[i] = take(s->in_size[i] + offset);
    s->in[i].data = (char *)s->in_block[i] + offset;
    if (has_all || (s->op->family->valued >> i & 1u) != 0) fill(o, &s->in[i], count, i + 1);
  }
  make_attrs(s);
  infer_out(s);
}

static void start(state *s, const fast_case *c) { start_with(s, c, true); }

static void finish(state *s) {
  for (uint32_t i = 0; i < s->n_in; i++) free(s->in_block[i]);
  for (uint32_t i = 0; i < s->n_out; i++) {
    free(s->out[i].data);
    free(s->want[i].data);
  }
}

static berth_op_call call_of(const state *s, const berth_tensor *out) {
  return (berth_op_call){.in = s->in,
                         .out = out,
                         .n_in = s->n_in,
                         .n_out = s->n_out,
                         .attrs = s->attrs,
                         .n_attrs = s->op->family->n_attrs,
                         .user = berth__op_user(s->op)};
}

typedef struct range {
  int64_t begin, end;
} range;

/* A kernel that prepares its scratch does so once for all ranges, as a worker does; others get a new one for each. */
static void run_ranges(const state *s, const berth__cpu_kernel *kernel, berth_op_call call, const range *ranges,
                       size_t n) {
  uint64_t (*scratch)(const berth_op_call *) = kernel ? kernel->scratch : s->op->family->scratch;
  berth_status (*run)(const berth_op_call *, berth_error *) = kernel ? kernel->run : s->op->family->kernel;
  const bool prepares = kernel && kernel->prepare;
  berth_error err;
  call.scratch = NULL;
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || !prepares) call.scratch = take(scratch ? (size_t)scratch(&call) : 0);
    if (i == 0 && prepares) kernel->prepare(&call);
    call.begin = ranges[i].begin;
    call.end = ranges[i].end;
    TEST_OK(run(&call, &err));
    if (i + 1 == n || !prepares) free(call.scratch);
  }
}

static int64_t items_of(const state *s, const berth__cpu_kernel *kernel, const berth_op_call *call) {
  if (!kernel) return berth__op_items(s->op, call);
  return kernel->items ? kernel->items(call) : 1;
}

static void run_whole(const state *s, const berth__cpu_kernel *kernel, berth_op_call call) {
  run_ranges(s, kernel, call, &(range){0, items_of(s, kernel, &call)}, 1);
}

/* The last range first: an item may not lean on one before it. */
static void run_in_three(const state *s, const berth__cpu_kernel *kernel, berth_op_call call) {
  const int64_t n = items_of(s, kernel, &call), a = n / 3, b = a + (n - a) / 2;
  run_ranges(s, kernel, call, (range[]){{b, n}, {0, a}, {a, b}}, 3);
}

static int is_close(const fast_case *c, double got, double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
  if (got == want) return 1;
  return fabs(got - want) <= c->absolute + c->relative * fabs(want);
}

static void compare(const state *s, const char *isa) {
  for (uint32_t i = 0; i < s->n_out; i++) {
    if (memcmp(s->out[i].data, s->want[i].data, s->out_size[i]) == 0) continue;
    if (berth__type_is_block(s->want[i].type)) fail_msg("%s (%s): output %u has other blocks", s->c->op, isa, i);
    const int64_t count = berth__count(&s->want[i]);
    for (int64_t e = 0; e < count; e++) {
      const double got = berth__load_f64(&s->out[i], e), want = berth__load_f64(&s->want[i], e);
      if (is_close(s->c, got, want)) continue;
      fail_msg("%s (%s): output %u, element %lld: got %.9g, expected %.9g", s->c->op, isa, i, (long long)e, got, want);
    }
  }
}

static void check_in_place(state *s, const berth__cpu_kernel *kernel, const char *isa) {
  for (uint32_t k = 0; k < s->n_in && k < 32; k++) {
    const berth_tensor *in = &s->in[k];
    if (!(berth__op_in_place(s->op, s->attrs) >> k & 1u) || in->type == BERTH_TYPE_NONE || in->rank != s->out[0].rank ||
        memcmp(in->dim, s->out[0].dim, in->rank * sizeof *in->dim) != 0 || !berth__is_contiguous(in) ||
        berth_type_size(in->type) != berth_type_size(s->out[0].type))
      continue;
    void *saved = take(s->in_size[k]);
    berth_tensor over[FAST_MAX];
    memcpy(over, s->out, sizeof over); /* the other results lie where they did */
    over[0].data = in->data;
    memcpy(saved, in->data, s->in_size[k]);
    run_in_three(s, kernel, call_of(s, over));
    if (memcmp(over[0].data, s->out[0].data, s->out_size[0]) != 0)
      fail_msg("%s (%s): another result in place of operand %u", s->c->op, isa, k);
    memcpy(in->data, saved, s->in_size[k]);
    free(saved);
  }
}

const berth__cpu_kernel *fast_backend;

static const berth__cpu_kernel *find(const berth__cpu_isa *isa, const berth__op *op, const berth_op_call *call) {
  const berth__cpu_kernel *found =
      berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = isa, .backend = fast_backend}, op, call);
  const size_t length =
      found != NULL ? strlen(found->name) : 0; /* the op's own kernel is no other than the reference */
  return length > 6 && strcmp(found->name + length - 6, " plain") == 0 ? NULL : found;
}

static void check_isa(state *s, const berth__cpu_isa *isa) {
  berth_op_call call = call_of(s, s->out);
  const berth__cpu_kernel *kernel = find(isa, s->op, &call);
  if (!kernel) fail_msg("%s: %s has no kernel for the call", s->c->op, isa->name);
  run_whole(s, kernel, call);
  compare(s, isa->name);
  for (uint32_t i = 0; i < s->n_out; i++) {
    void *whole = take(s->out_size[i]);
    memcpy(whole, s->out[i].data, s->out_size[i]);
    memset(s->out[i].data, 0x5a, s->out_size[i]);
    run_in_three(s, kernel, call);
    if (memcmp(whole, s->out[i].data, s->out_size[i]) != 0)
      fail_msg("%s (%s): another result in three ranges", s->c->op, isa->name);
    free(whole);
  }
  check_in_place(s, kernel, isa->name);
}

void fast_check(const fast_case *c) {
  state s;
  start(&s, c);
  run_whole(&s, NULL, call_of(&s, s.want));
  for (uint32_t i = 0; berth__cpu_isa_at(i); i++) check_isa(&s, berth__cpu_isa_at(i));
  finish(&s);
}

void fast_check_on(const fast_case *c, const berth__cpu_isa *isa) {
  state s;
  start(&s, c);
  run_whole(&s, NULL, call_of(&s, s.want));
  check_isa(&s, isa);
  finish(&s);
}

void fast_check_declined(const fast_case *c) {
  state s;
  start(&s, c);
  const berth_op_call call = call_of(&s, s.out);
  for (uint32_t i = 0; berth__cpu_isa_at(i); i++)
    if (find(berth__cpu_isa_at(i), s.op, &call))
      fail_msg("%s: %s takes a call that it should not", c->op, berth__cpu_isa_at(i)->name);
  finish(&s);
}

int fast_is_taken(const fast_case *c) {
  state s;
  start(&s, c);
  const berth_op_call call = call_of(&s, s.out);
  const int is_taken = find(berth__cpu_isa_at(0), s.op, &call) != NULL;
  finish(&s);
  return is_taken;
}

uint64_t fast_scratch(const fast_case *c) {
  state s;
  start(&s, c);
  const berth_op_call call = call_of(&s, s.out);
  const berth__cpu_kernel *kernel = find(berth__cpu_isa_at(0), s.op, &call);
  assert_non_null(kernel);
  const uint64_t size = kernel->scratch ? kernel->scratch(&call) : 0;
  finish(&s);
  return size;
}

int64_t fast_grain(const fast_case *c) {
  state s;
  start(&s, c);
  const berth_op_call call = call_of(&s, s.out);
  const berth__cpu_kernel *kernel = find(berth__cpu_isa_at(0), s.op, &call);
  assert_non_null(kernel);
  assert_non_null(kernel->grain);
  const int64_t grain = kernel->grain(&call);
  finish(&s);
  return grain;
}

static berth__cpu_choice choice_of(const fast_case *c, const berth__cpu_isa *isa, uint32_t flags) {
  state s;
  start_with(&s, c, false);
  const berth_op_call call = call_of(&s, s.out);
  const berth__cpu_choice choice = berth__cpu_choose(&(berth__cpu_kernels){.isa = isa}, s.op, &call, flags);
  finish(&s);
  return choice;
}

static void check_bounds_on(const fast_case *c, uint32_t operand, uint32_t axis, int64_t least,
                            const berth__cpu_isa *isa) {
  const berth__cpu_choice planned = choice_of(c, isa, BERTH__CALL_HAS_BOUNDS);
  fast_case smaller = *c;
  if (planned.name == NULL) fail_msg("%s: %s has no kernel for the call", c->op, isa->name);
  for (int64_t n = c->in[operand].dim[axis]; n >= least; n--) {
    smaller.in[operand].dim[axis] = n;
    const uint64_t fast = choice_of(&smaller, isa, 0).scratch_each;
    const uint64_t reference = choice_of(&smaller, isa, BERTH_PLAN_REFERENCE).scratch_each;
    if (fast > planned.scratch_each || reference > planned.scratch_each)
      fail_msg(
          "%s (%s): with an extent of %lld scratch is %llu bytes, of the reference kernel %llu; %llu for the bound",
          c->op, isa->name, (long long)n, (unsigned long long)fast, (unsigned long long)reference,
          (unsigned long long)planned.scratch_each);
  }
}

void fast_check_bounds(const fast_case *c, uint32_t operand, uint32_t axis, int64_t least, const berth__cpu_isa *isa) {
  for (uint32_t i = 0; berth__cpu_isa_at(i) && !isa; i++)
    check_bounds_on(c, operand, axis, least, berth__cpu_isa_at(i));
  if (isa) check_bounds_on(c, operand, axis, least, isa);
}
