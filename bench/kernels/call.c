#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *op, const char *why) {
  fprintf(stderr, "bench_kernels: %s: %s\n", op, why);
  exit(1);
}

static void *take(const char *op, uint64_t size) {
  void *block = aligned_alloc(64, ((size_t)size + 64) / 64 * 64);
  if (block == NULL) die(op, "out of memory");
  return block;
}

static uint64_t bytes_of(const berth_tensor *t) {
  return t->data == NULL ? 0 : (uint64_t)berth__count(t) * berth_type_size(t->type);
}

/* Floats in [-1, 1), arbitrary bytes. */
static void fill(const berth_tensor *t) {
  const int64_t n = berth__count(t);
  uint32_t seed = 1;
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    if (t->type == BERTH_F32)
      ((float *)t->data)[i] = (float)(int32_t)seed * 0x1p-31f;
    else
      ((uint8_t *)t->data)[i] = (uint8_t)(seed >> 24);
  }
}

void call_start(call *c, const berth__cpu_isa *isa, berth__op_code code) {
  memset(c, 0, sizeof *c);
  c->isa = isa;
  c->op = berth__op_builtin(code);
  const berth__family *family = c->op->family;
  if (family->n_attrs > CALL_ATTRS) die(c->op->name, "it has too many attributes");
  for (uint32_t i = 0; i < family->n_attrs; i++) c->attrs[i] = family->attrs[i];
}

void call_operand(call *c, uint32_t index, berth_type type, uint32_t rank, const int64_t *dim) {
  berth_tensor *t = &c->in[index];
  *t = (berth_tensor){.type = type, .rank = rank};
  memcpy(t->dim, dim, rank * sizeof *dim);
  berth__contiguous_strides(rank, t->dim, t->stride);
  t->data = take(c->op->name, (uint64_t)berth__count(t) * berth_type_size(type));
  fill(t);
  if (index >= c->args.n_in) c->args.n_in = index + 1;
}

static berth_attr *attr_of(call *c, const char *name) {
  for (uint32_t i = 0; i < c->op->family->n_attrs; i++)
    if (strcmp(c->attrs[i].name, name) == 0) return &c->attrs[i];
  die(c->op->name, "it lacks an attribute that a row sets");
  return NULL;
}

void call_int(call *c, const char *name, int64_t value) { *attr_of(c, name) = berth_attr_int(name, value); }

void call_ints(call *c, const char *name, const int64_t *values, uint32_t count) {
  if (c->n_ints + count > CALL_INTS) die(c->op->name, "its attributes are too long");
  int64_t *kept = &c->ints[c->n_ints];
  memcpy(kept, values, count * sizeof *values);
  c->n_ints += count;
  *attr_of(c, name) = berth_attr_ints(name, kept, count);
}

static void infer_results(call *c) {
  berth_type in_type[CALL_OPERANDS], out_type[CALL_OPERANDS];
  berth__shape in_shape[CALL_OPERANDS], out_shape[CALL_OPERANDS];
  const void *data[CALL_OPERANDS] = {NULL};
  berth_error err;
  for (uint32_t i = 0; i < c->args.n_in; i++) {
    in_type[i] = c->in[i].type;
    in_shape[i].rank = c->in[i].rank;
    memcpy(in_shape[i].dim, c->in[i].dim, sizeof in_shape[i].dim);
  }
  berth__infer infer = {.op = c->op,
                        .in_type = in_type,
                        .in_shape = in_shape,
                        .in_data = data,
                        .n_in = c->args.n_in,
                        .n_out = c->args.n_out,
                        .attrs = c->attrs,
                        .out_type = out_type,
                        .out_shape = out_shape};
  if (c->op->family->infer(&infer, &err) != BERTH_OK) die(c->op->name, err.message);
  for (uint32_t i = 0; i < c->args.n_out; i++) {
    berth_tensor *t = &c->out[i];
    *t = (berth_tensor){.type = out_type[i], .rank = out_shape[i].rank};
    memcpy(t->dim, out_shape[i].dim, sizeof t->dim);
    berth__contiguous_strides(t->rank, t->dim, t->stride);
    const uint64_t size = (uint64_t)berth__count(t) * berth_type_size(t->type);
    t->data = take(c->op->name, size);
    memset(t->data, 0, (size_t)size); /* touches the pages before the first run */
  }
}

void call_finish(call *c) {
  c->args.n_out = c->op->min_out;
  infer_results(c);
  c->args.in = c->in;
  c->args.out = c->out;
  c->args.attrs = c->attrs;
  c->args.n_attrs = c->op->family->n_attrs;
  c->args.user = berth__op_user(c->op);
  c->kernel = berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = c->isa}, c->op, &c->args);
  if (c->kernel == NULL) return;
  c->args.end = c->kernel->items != NULL ? c->kernel->items(&c->args) : 1;
  if (c->kernel->scratch != NULL) c->args.scratch = take(c->op->name, c->kernel->scratch(&c->args));
}

void call_run(const call *c) {
  berth_error err;
  if (c->kernel->prepare != NULL) c->kernel->prepare(&c->args);
  if (c->kernel->run(&c->args, &err) != BERTH_OK) die(c->op->name, err.message);
}

void call_free(call *c) {
  for (uint32_t i = 0; i < CALL_OPERANDS; i++) {
    free(c->in[i].data);
    free(c->out[i].data);
  }
  free(c->args.scratch);
}

uint64_t call_bytes(const call *c) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < CALL_OPERANDS; i++) bytes += bytes_of(&c->in[i]) + bytes_of(&c->out[i]);
  return bytes;
}
