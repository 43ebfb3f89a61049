/* Kernels: creating, querying and comparing them. */
#include "kernel/kernel.h"

#include <stdio.h>

#include "kernel/maker.h"

static const struct {
  const char *name;
  uint8_t operands;
  berth__inst_kind kind;
} codes[] = {
#define BERTH__INST(name, operands, kind) {#name, operands, BERTH__INST_##kind},
#include "kernel/kernel.def"
#undef BERTH__INST
};

const char *berth__inst_name(berth__inst_code code) { return codes[code].name; }
uint32_t berth__inst_operands(berth__inst_code code) { return codes[code].operands; }
berth__inst_kind berth__inst_kind_of(berth__inst_code code) { return codes[code].kind; }

berth_status berth__kernel_create(berth_context *ctx, const char *name, berth__kernel **out, berth_error *err) {
  berth__kernel *k = berth__alloc_zero(ctx, sizeof *k);
  berth__maker *maker = berth__alloc_zero(ctx, sizeof *maker);
  if (k == NULL || maker == NULL) {
    berth__free(ctx, k);
    berth__free(ctx, maker);
    return berth__fail_nomem(err, "a kernel");
  }
  k->ctx = ctx;
  snprintf(k->name, sizeof k->name, "%s", name);
  k->group_size = 1;
  k->n_groups = 1;
  maker->blocks[0].opener = BERTH__X_NONE;
  maker->n_ids = 1;
  k->maker = maker;
  *out = k;
  return BERTH_OK;
}

void berth__kernel_destroy(berth__kernel *kernel) {
  if (kernel == NULL) return;
  berth__maker_free(kernel);
  berth__free(kernel->ctx, kernel->insts);
  berth__free(kernel->ctx, kernel);
}

uint32_t berth__kernel_buffer_of(berth__kernel *k, uint32_t operand, berth__storage storage) {
  if (k == NULL || k->status != BERTH_OK) return 0;
  for (uint32_t i = 0; i < k->n_buffers; ++i) {
    if (k->buffers[i].operand == operand && k->buffers[i].storage == storage) return i;
  }
  if (k->n_buffers == BERTH__KERNEL_BUFFERS) {
    k->status = BERTH_UNSUPPORTED;
    k->maker->mistake = "it has more buffers than a kernel may have";
    return 0;
  }
  k->buffers[k->n_buffers] = (berth__kernel_buffer){.storage = storage, .operand = operand};
  return k->n_buffers++;
}

static uint32_t add_array(berth__kernel *k, berth__kernel_array *arrays, uint32_t *n, berth__number type,
                          uint32_t count) {
  if (*n == BERTH__KERNEL_ARRAYS || count == 0) {
    berth__maker_mistake(k, BERTH__INST_load, "it has too many arrays, or an array without elements");
    return 0;
  }
  arrays[*n] = (berth__kernel_array){.type = type, .count = count, .storage = BERTH_F32}; /* any type of four bytes */
  return (*n)++;
}

uint32_t berth__kernel_shared(berth__kernel *k, berth__number type, uint32_t count) {
  return k == NULL || k->status != BERTH_OK ? 0 : add_array(k, k->shared, &k->n_shared, type, count);
}

uint32_t berth__kernel_local(berth__kernel *k, berth__number type, uint32_t count) {
  return k == NULL || k->status != BERTH_OK ? 0 : add_array(k, k->local, &k->n_local, type, count);
}

bool berth__x_is_constant(const berth__kernel *k, berth__x x, uint32_t *bits) {
  if (k == NULL || x >= k->n_insts || k->insts[x].code != BERTH__INST_constant) return false;
  if (bits != NULL) *bits = k->insts[x].bits;
  return true;
}

bool berth__kernel_uses(const berth__kernel *kernel, berth__inst_code code) {
  for (size_t i = 0; i < kernel->n_insts; ++i)
    if (kernel->insts[i].code == code) return true;
  return false;
}

static bool arrays_equal(const berth__kernel_array *a, const berth__kernel_array *b, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    if (a[i].type != b[i].type || a[i].count != b[i].count || a[i].storage != b[i].storage || a[i].over != b[i].over)
      return false;
  }
  return true;
}

static bool buffers_equal(const berth__kernel *a, const berth__kernel *b) {
  for (uint32_t i = 0; i < a->n_buffers; ++i) {
    const berth__kernel_buffer *x = &a->buffers[i], *y = &b->buffers[i];
    if (x->storage != y->storage || x->is_read != y->is_read || x->is_written != y->is_written) return false;
  }
  return true;
}

static bool tiles_equal(const berth__kernel_tile *a, const berth__kernel_tile *b) {
  return a->array == b->array && a->lines == b->lines && a->depth == b->depth && a->slots == b->slots &&
         a->is_deep == b->is_deep && a->pitch == b->pitch && a->row == b->row;
}

static bool sums_equal(const berth__kernel *a, const berth__kernel *b) {
  for (uint32_t i = 0; i < a->n_sums; ++i) {
    const berth__kernel_sums *x = &a->sums[i], *y = &b->sums[i];
    if (x->type != y->type || !tiles_equal(&x->left, &y->left) || !tiles_equal(&x->right, &y->right) ||
        x->kind != y->kind || x->together != y->together || x->group_rows != y->group_rows ||
        x->has_rows != y->has_rows || x->parts != y->parts || x->is_late != y->is_late || x->by_fours != y->by_fours ||
        x->stage != y->stage)
      return false;
  }
  return true;
}

static bool insts_equal(const berth__inst *a, const berth__inst *b) {
  return a->code == b->code && a->type == b->type && a->bits == b->bits && a->in[0] == b->in[0] &&
         a->in[1] == b->in[1] && a->in[2] == b->in[2];
}

bool berth__kernel_equal(const berth__kernel *a, const berth__kernel *b) {
  if (a->n_insts != b->n_insts || a->n_buffers != b->n_buffers || a->n_shared != b->n_shared ||
      a->n_local != b->n_local || a->n_sums != b->n_sums || a->group_size != b->group_size ||
      a->n_groups != b->n_groups || a->resident != b->resident)
    return false;
  if (!buffers_equal(a, b) || !sums_equal(a, b) || !arrays_equal(a->shared, b->shared, a->n_shared) ||
      !arrays_equal(a->local, b->local, a->n_local))
    return false;
  for (size_t i = 0; i < a->n_insts; ++i) {
    if (!insts_equal(&a->insts[i], &b->insts[i])) return false;
  }
  return true;
}

static uint64_t kernel_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

uint64_t berth__kernel_hash(const berth__kernel *kernel) {
  uint64_t hash = kernel_mix(kernel_mix(kernel->n_groups, kernel->group_size), kernel->n_buffers);
  for (uint32_t i = 0; i < kernel->n_buffers; ++i) hash = kernel_mix(hash, kernel->buffers[i].storage);
  for (uint32_t i = 0; i < kernel->n_shared; ++i) hash = kernel_mix(hash, kernel->shared[i].count);
  for (uint32_t i = 0; i < kernel->n_local; ++i) hash = kernel_mix(hash, kernel->local[i].count);
  for (uint32_t i = 0; i < kernel->n_sums; ++i) hash = kernel_mix(hash, kernel->sums[i].kind);
  for (size_t i = 0; i < kernel->n_insts; ++i) {
    const berth__inst *inst = &kernel->insts[i];
    hash = kernel_mix(hash, (uint64_t)inst->code << 40 | (uint64_t)inst->type << 32 | inst->bits);
    hash = kernel_mix(hash, (uint64_t)inst->in[0] << 32 | inst->in[1]);
    hash = kernel_mix(hash, inst->in[2]);
  }
  return hash;
}
