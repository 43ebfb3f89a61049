/* Two kernels as one: the first workgroups do what the first does, the others what the second does. Arrays are shared
 * by both, since a workgroup is one or the other. */
#include <stdio.h>

#include "kernel/kernel.h"

#define MERGE_DEPTH 200u /* blocks that may stand in each other */

/* Which array of `held` each of `more` becomes: the first of its type that is not taken, or a new one. */
static bool merge_arrays(berth__kernel_array *held, uint32_t *n, const berth__kernel_array *more, uint32_t n_more,
                         uint32_t *becomes) {
  bool is_taken[BERTH__KERNEL_ARRAYS] = {false};
  for (uint32_t i = 0; i < n_more; i++) {
    uint32_t at = 0;
    while (at < *n && (is_taken[at] || held[at].type != more[i].type)) at++;
    if (at == BERTH__KERNEL_ARRAYS) return false;
    if (at == *n) held[(*n)++] = more[i];
    if (held[at].count < more[i].count) held[at].count = more[i].count;
    is_taken[at] = true;
    becomes[i] = at;
  }
  return true;
}

/* What the numbers of a part become. */
typedef struct merge_part {
  const berth__kernel *of;
  const uint32_t *buffer; /* NULL: as they are */
  uint32_t shared[BERTH__KERNEL_ARRAYS], local[BERTH__KERNEL_ARRAYS];
  berth__x group;
  berth__x *number; /* of each instruction, in the new kernel */
} merge_part;

static void merge_count_arrays(merge_part *part) {
  for (uint32_t i = 0; i < BERTH__KERNEL_ARRAYS; i++) part->shared[i] = part->local[i] = i;
}

static berth__x merge_put(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t depth, uint32_t bits,
                          berth__x a, berth__x b) {
  berth__inst *inst = &k->insts[k->n_insts];
  *inst = (berth__inst){.code = (uint8_t)code,
                        .type = (uint8_t)type,
                        .depth = (uint16_t)depth,
                        .bits = bits,
                        .in = {a, b, BERTH__X_NONE}};
  return (berth__x)k->n_insts++;
}

static berth__x merge_put_number(berth__kernel *k, uint32_t depth, int64_t value) {
  const berth__x x =
      merge_put(k, BERTH__INST_constant, BERTH__NUM_I32, depth, (uint32_t)(int32_t)value, BERTH__X_NONE, BERTH__X_NONE);
  k->insts[x].low = k->insts[x].high = value;
  return x;
}

/* Which buffer or array an instruction names. */
static uint32_t merge_bits(const merge_part *part, const berth__inst *inst) {
  switch (inst->code) {
    case BERTH__INST_load:
    case BERTH__INST_quad:
    case BERTH__INST_part:
    case BERTH__INST_store:
    case BERTH__INST_store_max: return part->buffer != NULL ? part->buffer[inst->bits] : inst->bits;
    case BERTH__INST_shared_load:
    case BERTH__INST_shared_store: return part->shared[inst->bits];
    case BERTH__INST_local_load:
    case BERTH__INST_local_store: return part->local[inst->bits];
    default: return inst->bits;
  }
}

static void merge_copy(berth__kernel *k, const merge_part *part) {
  for (size_t i = 0; i < part->of->n_insts; i++) {
    berth__inst inst = part->of->insts[i];
    if (inst.code == BERTH__INST_group) {
      part->number[i] = part->group;
      continue;
    }
    inst.bits = merge_bits(part, &inst);
    inst.depth++;
    for (int n = 0; n < 3; n++)
      if (inst.in[n] != BERTH__X_NONE) inst.in[n] = part->number[inst.in[n]];
    part->number[i] = (berth__x)k->n_insts;
    k->insts[k->n_insts++] = inst;
  }
}

static void merge_write(berth__kernel *k, merge_part *a, merge_part *b) {
  const int64_t first = (int64_t)a->of->n_groups, second = (int64_t)b->of->n_groups;
  a->group = merge_put(k, BERTH__INST_group, BERTH__NUM_I32, 0, 0, BERTH__X_NONE, BERTH__X_NONE);
  k->insts[a->group].high = first + second - 1;
  const berth__x count = merge_put_number(k, 0, first);
  const berth__x is_first = merge_put(k, BERTH__INST_lt, BERTH__NUM_BOOL, 0, 0, a->group, count);
  k->insts[is_first].high = 1;
  merge_put(k, BERTH__INST_if, BERTH__NUM_I32, 0, 0, is_first, BERTH__X_NONE);
  merge_copy(k, a);
  merge_put(k, BERTH__INST_else, BERTH__NUM_I32, 0, 0, BERTH__X_NONE, BERTH__X_NONE);
  const berth__x less = merge_put_number(k, 1, -first);
  b->group = merge_put(k, BERTH__INST_add, BERTH__NUM_I32, 1, 0, a->group, less);
  k->insts[b->group].high = second - 1;
  merge_copy(k, b);
  merge_put(k, BERTH__INST_end, BERTH__NUM_I32, 0, 0, BERTH__X_NONE, BERTH__X_NONE);
}

static bool merge_fits(const berth__kernel *kernel) {
  for (size_t i = 0; i < kernel->n_insts; i++)
    if (kernel->insts[i].depth + 1u >= MERGE_DEPTH) return false;
  return kernel->n_groups > 0 && kernel->n_groups <= INT32_MAX / 2;
}

static berth_status merge_build(berth__kernel *k, merge_part *a, merge_part *b, berth_error *err) {
  const size_t most = a->of->n_insts + b->of->n_insts + 8;
  k->insts = berth__alloc_array(k->ctx, most, sizeof *k->insts);
  a->number = berth__alloc_array(k->ctx, a->of->n_insts, sizeof *a->number);
  b->number = berth__alloc_array(k->ctx, b->of->n_insts, sizeof *b->number);
  k->capacity = most;
  if (k->insts == NULL || a->number == NULL || b->number == NULL) return berth__fail_nomem(err, "a kernel");
  merge_write(k, a, b);
  return BERTH_OK;
}

static void merge_name(berth__kernel *k, const berth__kernel *a, const berth__kernel *b) {
  const size_t half = sizeof k->name / 2 - 1;
  if (strcmp(a->name, b->name) == 0)
    snprintf(k->name, sizeof k->name, "%s", a->name);
  else
    snprintf(k->name, sizeof k->name, "%.*s|%.*s", (int)half, a->name, (int)half, b->name);
}

/* What both read and write, and the arrays of both. */
static bool merge_memory(berth__kernel *k, const berth__kernel *a, merge_part *b) {
  k->n_buffers = a->n_buffers;
  k->n_shared = a->n_shared;
  k->n_local = a->n_local;
  memcpy(k->buffers, a->buffers, sizeof k->buffers);
  memcpy(k->shared, a->shared, sizeof k->shared);
  memcpy(k->local, a->local, sizeof k->local);
  for (uint32_t i = 0; i < b->of->n_buffers; i++) {
    const berth__kernel_buffer *more = &b->of->buffers[i];
    berth__kernel_buffer *held = &k->buffers[b->buffer[i]];
    if (b->buffer[i] >= k->n_buffers) {
      *held = *more;
      k->n_buffers = b->buffer[i] + 1;
    }
    held->is_read = held->is_read || more->is_read;
    held->is_written = held->is_written || more->is_written;
    held->is_contended = held->is_contended || more->is_contended;
  }
  return merge_arrays(k->shared, &k->n_shared, b->of->shared, b->of->n_shared, b->shared) &&
         merge_arrays(k->local, &k->n_local, b->of->local, b->of->n_local, b->local);
}

berth_status berth__kernel_merge(const berth__kernel *a, const berth__kernel *b, const uint32_t *buffer_of_b,
                                 berth__kernel **out, berth_error *err) {
  *out = NULL;
  if (a->group_size != b->group_size || !merge_fits(a) || !merge_fits(b)) return BERTH_OK;
  berth__kernel *k = berth__alloc_zero(a->ctx, sizeof *k);
  if (k == NULL) return berth__fail_nomem(err, "a kernel");
  k->ctx = a->ctx;
  k->group_size = a->group_size;
  k->n_groups = a->n_groups + b->n_groups;
  k->flops = a->flops + b->flops;
  k->bytes = a->bytes + b->bytes;
  merge_name(k, a, b);
  merge_part first = {.of = a}, second = {.of = b, .buffer = buffer_of_b};
  merge_count_arrays(&first);
  const bool fits = merge_memory(k, a, &second);
  const berth_status status = fits ? merge_build(k, &first, &second, err) : BERTH_OK;
  berth__free(k->ctx, first.number);
  berth__free(k->ctx, second.number);
  if (status != BERTH_OK || !fits) {
    berth__kernel_destroy(k);
    return status;
  }
  *out = k;
  return BERTH_OK;
}
