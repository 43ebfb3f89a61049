/* Merges two kernels into one: the first workgroups run the first kernel, the others the second. They share only the
 * launch, so they must be independent. */
#include <stdio.h>

#include "kernel/kernel.h"

/* Appends one kernel to the instructions that are already there. */
typedef struct joining {
  berth__kernel *to;
  const berth__kernel *from;
  berth__x group, before; /* the workgroup; minus the first kernel's workgroups; NONE: in the first kernel */
  uint32_t buffers, shared, local;
} joining;

static bool beside_is_of_buffer(berth__inst_code code) {
  return code == BERTH__INST_load || code == BERTH__INST_quad || code == BERTH__INST_part ||
         code == BERTH__INST_store || code == BERTH__INST_store_max;
}

static bool beside_has_await(const berth__kernel *k) { return berth__kernel_uses(k, BERTH__INST_await); }

bool berth__kernel_fits_beside(const berth__kernel *a, const berth__kernel *b, uint32_t shared_bytes) {
  const berth__kernel *const both[] = {a, b};
  for (int i = 0; i < 2; i++)
    if (both[i]->n_sums != 0 || berth__kernel_uses(both[i], BERTH__INST_shared_copy)) return false;
  return a->group_size == b->group_size && a->n_buffers + b->n_buffers <= BERTH__KERNEL_BUFFERS &&
         a->n_shared + b->n_shared <= BERTH__KERNEL_ARRAYS && a->n_local + b->n_local <= BERTH__KERNEL_ARRAYS &&
         berth__kernel_shared_bytes(a) + berth__kernel_shared_bytes(b) <= shared_bytes &&
         a->n_groups + b->n_groups <= INT32_MAX;
}

static berth__x beside_put(berth__kernel *k, berth__inst inst) {
  k->insts[k->n_insts] = inst;
  return (berth__x)k->n_insts++;
}

static berth__x beside_put_plain(berth__kernel *k, berth__inst_code code, uint16_t depth, berth__x a, berth__x b) {
  return beside_put(
      k, (berth__inst){.code = (uint8_t)code, .type = BERTH__NUM_I32, .depth = depth, .in = {a, b, BERTH__X_NONE}});
}

/* Copies the instructions of one kernel to the other, renumbered by `shift`. */
static void beside_add(const joining *j) {
  berth__kernel *k = j->to;
  if (!beside_has_await(j->from)) {
    beside_put_plain(k, BERTH__INST_await, 1, BERTH__X_NONE, BERTH__X_NONE);
    beside_put_plain(k, BERTH__INST_release, 1, BERTH__X_NONE, BERTH__X_NONE);
  }
  const berth__x shift = (berth__x)k->n_insts;
  for (size_t i = 0; i < j->from->n_insts; i++) {
    berth__inst inst = j->from->insts[i];
    const berth__inst_code code = (berth__inst_code)inst.code;
    inst.depth++;
    for (int a = 0; a < 3; a++)
      if (inst.in[a] != BERTH__X_NONE) inst.in[a] += shift;
    if (beside_is_of_buffer(code)) inst.bits += j->buffers;
    if (code == BERTH__INST_shared_load || code == BERTH__INST_shared_store) inst.bits += j->shared;
    if (code == BERTH__INST_quad_store) inst.bits += j->buffers + (j->local << 8);
    if (code == BERTH__INST_local_load || code == BERTH__INST_local_store) inst.bits += j->local;
    if (code == BERTH__INST_group && j->before != BERTH__X_NONE) {
      inst.code = BERTH__INST_add;
      inst.in[0] = j->group;
      inst.in[1] = j->before;
    }
    beside_put(k, inst);
  }
}

static void beside_copy_parts(berth__kernel *k, const berth__kernel *from) {
  memcpy(k->buffers + k->n_buffers, from->buffers, from->n_buffers * sizeof *from->buffers);
  memcpy(k->shared + k->n_shared, from->shared, from->n_shared * sizeof *from->shared);
  memcpy(k->local + k->n_local, from->local, from->n_local * sizeof *from->local);
  k->n_buffers += from->n_buffers;
  k->n_shared += from->n_shared;
  k->n_local += from->n_local;
  k->n_groups += from->n_groups;
  k->flops += from->flops;
  k->bytes += from->bytes;
}

static void beside_fill(berth__kernel *k, const berth__kernel *a, const berth__kernel *b) {
  const int64_t first = (int64_t)a->n_groups;
  const berth__inst number = {
      .code = BERTH__INST_constant, .type = BERTH__NUM_I32, .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}};
  berth__inst group = number, least = number, minus = number;
  group.code = BERTH__INST_group;
  group.high = first + (int64_t)b->n_groups - 1;
  least.bits = (uint32_t)first;
  least.low = least.high = first;
  minus.bits = 0u - (uint32_t)first;
  minus.low = minus.high = -first;
  joining j = {.to = k, .from = a, .before = BERTH__X_NONE};
  j.group = beside_put(k, group);
  const berth__x end = beside_put(k, least), before = beside_put(k, minus);
  const berth__x is_first = beside_put_plain(k, BERTH__INST_lt, 0, j.group, end);
  k->insts[is_first].type = BERTH__NUM_BOOL;
  k->insts[is_first].high = 1;
  beside_put_plain(k, BERTH__INST_if, 0, is_first, BERTH__X_NONE);
  beside_add(&j);
  beside_put_plain(k, BERTH__INST_else, 0, BERTH__X_NONE, BERTH__X_NONE);
  beside_add(&(joining){.to = k,
                        .from = b,
                        .group = j.group,
                        .before = before,
                        .buffers = a->n_buffers,
                        .shared = a->n_shared,
                        .local = a->n_local});
  beside_put_plain(k, BERTH__INST_end, 0, BERTH__X_NONE, BERTH__X_NONE);
}

#define MORE 12u /* extra instructions around both */

berth_status berth__kernel_beside(const berth__kernel *a, const berth__kernel *b, berth__kernel **out,
                                  berth_error *err) {
  *out = NULL;
  berth__kernel *k = berth__alloc_zero(a->ctx, sizeof *k);
  if (k == NULL) return berth__fail_nomem(err, "a kernel");
  k->ctx = a->ctx;
  k->capacity = a->n_insts + b->n_insts + MORE;
  k->insts = berth__alloc_array_zero(a->ctx, k->capacity, sizeof *k->insts);
  if (k->insts == NULL) {
    berth__free(a->ctx, k);
    return berth__fail_nomem(err, "a kernel");
  }
  snprintf(k->name, sizeof k->name, "%.22s, %.22s", a->name, b->name);
  k->group_size = a->group_size;
  k->resident = a->resident < b->resident ? a->resident : b->resident;
  beside_copy_parts(k, a);
  beside_copy_parts(k, b);
  beside_fill(k, a, b);
  *out = k;
  return BERTH_OK;
}
