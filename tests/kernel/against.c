#include "against.h"

#include <math.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "run.h"

const berth__kernel_limits limits_large = {.group_size = 256, .lanes = 32, .shared_bytes = 32768, .shares_well = true};
const berth__kernel_limits limits_small = {.group_size = 64, .lanes = 8, .shared_bytes = 4096, .shares_well = true};
const berth__kernel_limits limits_least = {.group_size = 32, .lanes = 32, .shared_bytes = 0, .shares_well = true};
const berth__kernel_limits limits_plain = {.group_size = 1024, .lanes = 8, .shared_bytes = 32768, .shares_well = false};
/* Lanes that exchange values. */
const berth__kernel_limits limits_lanes = {
    .group_size = 256, .lanes = 32, .exchanges = true, .shared_bytes = 32768, .shares_well = true};
const berth__kernel_limits limits_quads = {
    .group_size = 64, .lanes = 4, .exchanges = true, .shared_bytes = 4096, .shares_well = true};

/* ---- One call of one op ---- */

#define MAX_TENSORS 12

typedef struct call {
  berth_context *ctx;
  berth_graph *graph;
  const berth__node *node;
  berth_op_call op;
  berth_tensor tensors[MAX_TENSORS];
  uint32_t *words[MAX_TENSORS]; /* stored with 32 bits per element, or in each type's own width */
  bool is_narrow;
  berth__storage storage[MAX_TENSORS];
} call;

static berth_tensor tensor_of(const berth__value *value) {
  berth_tensor tensor = {.type = value->type, .rank = value->shape.rank};
  memcpy(tensor.dim, value->shape.dim, sizeof tensor.dim);
  berth__contiguous_strides(tensor.rank, tensor.dim, tensor.stride);
  tensor.data = calloc((size_t)berth__count(&tensor) + 1, 8);
  assert_non_null(tensor.data);
  return tensor;
}

/* Small integers for integer types; valid values for lengths. */
static void fill(const berth_tensor *tensor, uint32_t *words, uint64_t *seed) {
  const bool is_float = berth__l_number(tensor->type) == BERTH__NUM_F32;
  for (int64_t i = 0; i < berth__count(tensor); i++) {
    const float value = test_random_f32(seed);
    const int64_t whole = (int64_t)(test_random(seed) % 5);
    if (is_float)
      berth__store_f64(tensor, i, value);
    else
      berth__store_i64(tensor, i, tensor->type == BERTH_BOOL ? whole > 1 : whole);
    const int32_t number = (int32_t)berth__load_i64(tensor, i);
    memcpy(&words[i], is_float ? (const void *)&value : (const void *)&number, 4);
  }
}

/* Operands that the graph defines itself: lengths and positions, which must be valid. */
static void fill_constant(const berth_tensor *tensor, uint32_t *words, const void *data) {
  memcpy(tensor->data, data, (size_t)berth__count(tensor) * berth_type_size(tensor->type));
  for (int64_t i = 0; i < berth__count(tensor); i++) words[i] = (uint32_t)berth__load_i64(tensor, i);
}

static void open_call(call *c, const char *text) {
  berth_error err;
  uint64_t seed = 7;
  *c = (call){.ctx = test_context()};
  TEST_OK(berth_graph_parse(c->ctx, text, strlen(text), &c->graph, &err));
  assert_int_equal(c->graph->n_nodes, 1);
  c->node = &c->graph->nodes[0];
  const uint32_t count = c->node->n_in + c->node->n_out;
  assert_true(count <= MAX_TENSORS);
  for (uint32_t i = 0; i < count; i++) {
    const berth_value value = i < c->node->n_in ? c->node->in[i] : c->node->out[i - c->node->n_in];
    if (value == BERTH_VALUE_NONE) continue;
    c->tensors[i] = tensor_of(&c->graph->values[value]);
    c->words[i] = calloc((size_t)berth__count(&c->tensors[i]) + 1, 4);
    assert_non_null(c->words[i]);
    const berth__value *v = &c->graph->values[value];
    if (i < c->node->n_in && v->kind == BERTH_VALUE_CONSTANT && berth__type_is_int(v->type))
      fill_constant(&c->tensors[i], c->words[i], v->data);
    else if (i < c->node->n_in)
      fill(&c->tensors[i], c->words[i], &seed);
  }
  c->op = (berth_op_call){.in = c->tensors,
                          .out = c->tensors + c->node->n_in,
                          .n_in = c->node->n_in,
                          .n_out = c->node->n_out,
                          .attrs = c->node->attrs,
                          .n_attrs = c->node->op->family->n_attrs,
                          .user = berth__op_user(c->node->op)};
}

static void close_call(call *c) {
  for (uint32_t i = 0; i < MAX_TENSORS; i++) {
    free(c->tensors[i].data);
    free(c->words[i]);
  }
  berth_graph_destroy(c->graph);
  berth_context_destroy(c->ctx);
}

static void run_reference(call *c) {
  const berth__family *family = c->node->op->family;
  berth_error err;
  c->op.end = berth__op_items(c->node->op, &c->op);
  c->op.scratch = family->scratch != NULL ? aligned_alloc(64, (family->scratch(&c->op) / 64 + 1) * 64) : NULL;
  if (c->op.end > 0) TEST_OK(family->kernel(&c->op, &err));
  free(c->op.scratch);
  c->op.scratch = NULL;
}

/* ---- Its kernels ---- */

/* Elements may be accessed as words. */
static uint64_t elements_of(const call *c, uint32_t operand, berth__storage seen_as) {
  const uint64_t count = (uint64_t)berth__count(&c->tensors[operand]);
  const size_t size = berth_type_size(c->storage[operand]);
  return berth_type_size(seen_as) == size ? count : (count * size + 3) / 4;
}

static void run_kernels(call *c, const berth__lowering *l, uint32_t *scratch, uint64_t scratch_count) {
  berth_error err;
  for (size_t n = 0; n < l->n_kernels; n++) {
    const berth__kernel *k = l->kernels[n];
    uint32_t *words[BERTH__KERNEL_BUFFERS];
    uint64_t counts[BERTH__KERNEL_BUFFERS];
    for (uint32_t i = 0; i < k->n_buffers; i++) {
      const uint32_t operand = k->buffers[i].operand;
      const bool is_scratch = operand == BERTH__OPERAND_SCRATCH;
      words[i] = is_scratch ? scratch : c->words[operand];
      counts[i] = is_scratch ? scratch_count : elements_of(c, operand, k->buffers[i].storage);
    }
    TEST_OK(run_kernel(k, words, counts, &err));
    assert_true(k->bytes > 0);
  }
}

static void compare(const call *c, double tolerance) {
  for (uint32_t o = 0; o < c->op.n_out; o++) {
    const berth_tensor *out = &c->op.out[o];
    const bool is_float = berth__l_number(out->type) == BERTH__NUM_F32;
    for (int64_t i = 0; i < berth__count(out); i++) {
      float number;
      int32_t whole;
      const berth_tensor there = {.type = out->type, .rank = out->rank, .data = c->words[c->op.n_in + o]};
      memcpy(&number, &c->words[c->op.n_in + o][i], 4);
      memcpy(&whole, &number, 4);
      const double want = berth__load_f64(out, i);
      const double got = c->is_narrow ? berth__load_f64(&there, i) : is_float ? (double)number : (double)whole;
      if (!(fabs(want - got) <= tolerance * (1 + fabs(want)))) /* NaN is no match either */
        fail_msg("result %u, element %lld: %g, expected %g", o, (long long)i, got, want);
    }
  }
}

static uint64_t shared_bytes_of(const berth__kernel *k) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < k->n_shared; i++) bytes += 4 * (uint64_t)k->shared[i].count;
  return bytes;
}

/* One word per element. */
static berth__storage word_type(berth_type type) {
  const berth__number number = berth__l_number(type);
  return number == BERTH__NUM_F32 ? BERTH_F32 : number == BERTH__NUM_I32 ? BERTH_I32 : BERTH_U32;
}

/* Each type in its own width. */
static void make_narrow(call *c) {
  c->is_narrow = true;
  for (uint32_t i = 0; i < c->op.n_in + c->op.n_out; i++) {
    if (c->tensors[i].type == BERTH_TYPE_NONE) continue;
    const size_t size = berth_type_size(c->tensors[i].type);
    assert_true(size <= 4);
    c->storage[i] = c->tensors[i].type;
    if (i < c->op.n_in) memcpy(c->words[i], c->tensors[i].data, (size_t)berth__count(&c->tensors[i]) * size);
  }
}

static void check_whole_words(const berth__lowering *l, const char *text) {
  for (size_t i = 0; i < l->n_kernels; i++)
    for (uint32_t b = 0; b < l->kernels[i]->n_buffers; b++) {
      const berth__kernel_buffer *buffer = &l->kernels[i]->buffers[b];
      if (buffer->is_written && berth__storage_per_word(buffer->storage) > 1)
        fail_msg("the kernel %s stores parts of words, for %s", l->kernels[i]->name, text);
    }
}

static void check_call(call *c, const char *text, const berth__kernel_limits *limits, const char *form,
                       double tolerance, bool has_words) {
  berth_error err;
  bool found = form == NULL;
  run_reference(c);
  berth__lowering l = {.ctx = c->ctx, .limits = limits, .op = c->node->op, .call = &c->op, .storage = c->storage};
  TEST_OK(berth__lower_call(&l, &err));
  const uint64_t scratch_count = berth__lower_scratch(c->node->op, &c->op, limits) / 4;
  uint32_t *scratch = calloc((size_t)scratch_count + 1, 4);
  assert_non_null(scratch);
  run_kernels(c, &l, scratch, scratch_count);
  for (size_t i = 0; i < l.n_kernels; i++) {
    found = found || strstr(l.kernels[i]->name, form) != NULL;
    assert_true(l.kernels[i]->group_size <= limits->group_size);
    assert_true(shared_bytes_of(l.kernels[i]) <= limits->shared_bytes);
  }
  if (has_words) check_whole_words(&l, text);
  if (!found) fail_msg("no kernel '%s' for %s", form, text);
  compare(c, tolerance);
  free(scratch);
  berth__lowering_free(&l);
}

void check_against(const char *text, const berth__kernel_limits *limits, const char *form, double tolerance) {
  call c;
  open_call(&c, text);
  for (uint32_t i = 0; i < c.op.n_in + c.op.n_out; i++) c.storage[i] = word_type(c.tensors[i].type);
  check_call(&c, text, limits, form, tolerance, false);
  close_call(&c);
}

static void check_own_width(const char *text, const berth__kernel_limits *limits, const char *form, double tolerance,
                            bool has_words) {
  call c;
  open_call(&c, text);
  make_narrow(&c);
  check_call(&c, text, limits, form, tolerance, has_words);
  close_call(&c);
}

void check_narrow(const char *text, const berth__kernel_limits *limits, const char *form, double tolerance) {
  check_own_width(text, limits, form, tolerance, false);
}

void check_words(const char *text, const berth__kernel_limits *limits, const char *form, double tolerance) {
  check_own_width(text, limits, form, tolerance, true);
}

/* ---- Tiles ---- */

static size_t bytes_of_result(const call *c, uint32_t o) { return 4 * (size_t)berth__count(&c->op.out[o]); }

static void keep_results(call *c, uint32_t **first) {
  for (uint32_t o = 0; o < c->op.n_out; o++) {
    first[o] = malloc(bytes_of_result(c, o) + 1);
    assert_non_null(first[o]);
    memcpy(first[o], c->words[c->op.n_in + o], bytes_of_result(c, o));
    memset(c->words[c->op.n_in + o], 0, bytes_of_result(c, o));
  }
}

static void compare_results(const call *c, uint32_t **first) {
  for (uint32_t o = 0; o < c->op.n_out; o++) {
    assert_memory_equal(first[o], c->words[c->op.n_in + o], bytes_of_result(c, o));
    free(first[o]);
  }
}

/* With matrix units, and expanded: the same bits. */
static void check_both_forms(call *c, const char *text, const berth__kernel_limits *limits, berth__inst_code code,
                             double tolerance) {
  berth_error err;
  bool found = false;
  uint32_t *first[MAX_TENSORS];
  run_reference(c);
  berth__lowering l = {.ctx = c->ctx, .limits = limits, .op = c->node->op, .call = &c->op, .storage = c->storage};
  TEST_OK(berth__lower_call(&l, &err));
  const uint64_t scratch_count = berth__lower_scratch(c->node->op, &c->op, limits) / 4;
  uint32_t *scratch = calloc((size_t)scratch_count + 1, 4);
  assert_non_null(scratch);
  run_kernels(c, &l, scratch, scratch_count);
  compare(c, tolerance);
  keep_results(c, first);
  for (size_t i = 0; i < l.n_kernels; i++) {
    found = found || berth__kernel_uses(l.kernels[i], code);
    TEST_OK(berth__kernel_expand(&l.kernels[i], &err));
    assert_int_equal(l.kernels[i]->n_sums, 0);
    assert_int_equal(count_of(l.kernels[i], BERTH__INST_multiply), 0);
    assert_int_equal(count_of(l.kernels[i], BERTH__INST_exchange), 0);
  }
  if (!found) fail_msg("no kernel has `%s` for %s", berth__inst_name(code), text);
  run_kernels(c, &l, scratch, scratch_count);
  compare_results(c, first);
  free(scratch);
  berth__lowering_free(&l);
}

static void check_units(const char *text, const berth__kernel_limits *units, berth_compute compute, bool is_narrow,
                        berth__inst_code code, double tolerance) {
  berth__kernel_limits limits = *units;
  call c;
  limits.compute = compute;
  open_call(&c, text);
  for (uint32_t i = 0; i < c.op.n_in + c.op.n_out; i++) c.storage[i] = word_type(c.tensors[i].type);
  if (is_narrow) make_narrow(&c);
  check_both_forms(&c, text, &limits, code, tolerance);
  close_call(&c);
}

static const berth__kernel_limits limits_units = {.group_size = 256,
                                                  .lanes = 32,
                                                  .shared_bytes = 32768,
                                                  .shares_well = true,
                                                  .multiplies = BERTH__MATRIX_UNITS,
                                                  .tile_bytes = 114688};
/* Cooperative matrices. */
static const berth__kernel_limits limits_apart = {.group_size = 256,
                                                  .lanes = 32,
                                                  .shared_bytes = 49152,
                                                  .shares_well = true,
                                                  .multiplies = 1u << BERTH_COMPUTE_F16 | 1u << BERTH_COMPUTE_BF16,
                                                  .tile_bytes = 49152,
                                                  .is_cooperative = true};

void check_matrix(const char *text, berth_compute compute, bool is_narrow, double tolerance) {
  check_units(text, &limits_units, compute, is_narrow, BERTH__INST_multiply, tolerance);
}

void check_apart(const char *text, berth_compute compute, bool is_narrow, double tolerance) {
  check_units(text, &limits_apart, compute, is_narrow, BERTH__INST_multiply, tolerance);
}

void check_staged(const char *text, berth_compute compute, bool is_narrow, double tolerance) {
  check_units(text, &limits_units, compute, is_narrow, BERTH__INST_quad_store, tolerance);
}

void check_exchanges(const char *text, const berth__kernel_limits *limits, double tolerance) {
  call c;
  open_call(&c, text);
  for (uint32_t i = 0; i < c.op.n_in + c.op.n_out; i++) c.storage[i] = word_type(c.tensors[i].type);
  check_both_forms(&c, text, limits, BERTH__INST_exchange, tolerance);
  close_call(&c);
}

void check_all_limits(const char *text, const char *form_on_large, double tolerance) {
  check_against(text, &limits_large, form_on_large, tolerance);
  check_against(text, &limits_small, NULL, tolerance);
  check_against(text, &limits_least, NULL, tolerance);
  check_against(text, &limits_plain, NULL, tolerance);
  check_against(text, &limits_lanes, NULL, tolerance);
  check_against(text, &limits_quads, NULL, tolerance);
}
