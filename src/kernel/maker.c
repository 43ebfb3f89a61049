/* The growing list of instructions, and the hash table for common subexpressions. */
#include "kernel/maker.h"

#include <string.h>

#define ABSENT UINT32_MAX
#define LAST (UINT32_MAX - 1)

berth__x berth__maker_mistake(berth__kernel *k, berth__inst_code code, const char *what) {
  if (k->status == BERTH_OK) {
    k->status = BERTH_INTERNAL;
    k->maker->mistake = what;
    k->maker->mistaken = code;
  }
  return BERTH__X_NONE;
}

static bool is_visible(const berth__kernel *k, berth__x x) {
  if (x >= k->n_insts) return false;
  const berth__maker_entry *entry = &k->maker->entries[x];
  return entry->level <= k->depth && k->maker->blocks[entry->level].id == entry->block;
}

static bool has_result(const berth__inst *inst) {
  berth__inst_kind kind = berth__inst_kind_of((berth__inst_code)inst->code);
  return kind == BERTH__INST_PURE || kind == BERTH__INST_READ || inst->code == BERTH__INST_loop ||
         inst->code == BERTH__INST_each;
}

bool berth__maker_accepts(berth__kernel *k, berth__inst_code code, uint32_t n, const berth__x *in) {
  if (k == NULL || k->status != BERTH_OK) return false;
  if (k->maker == NULL) {
    k->status = BERTH_INTERNAL;
    return false;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (!is_visible(k, in[i]) || !has_result(&k->insts[in[i]])) {
      berth__maker_mistake(k, code, "an operand is no result that is visible there");
      return false;
    }
    bool wants_variable = i == 0 && (code == BERTH__INST_get || code == BERTH__INST_set);
    if (wants_variable != (k->insts[in[i]].code == BERTH__INST_variable)) {
      berth__maker_mistake(k, code, "variables are for get and set alone");
      return false;
    }
  }
  return true;
}

static size_t kernel_maker_hash_of(const berth__inst *inst) {
  uint64_t hash = ((uint64_t)inst->code << 40 | (uint64_t)inst->type << 32 | inst->bits) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 31) ^ ((uint64_t)inst->in[0] << 32 | inst->in[1])) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 29) ^ inst->in[2]) * 0x94d049bb133111ebu;
  return (size_t)(hash ^ (hash >> 32));
}

static bool kernel_maker_is_equal(const berth__inst *a, const berth__inst *b) {
  return a->code == b->code && a->type == b->type && a->bits == b->bits && memcmp(a->in, b->in, sizeof a->in) == 0;
}

static uint32_t *head_of(const berth__maker *maker, const berth__inst *inst) {
  return &maker->heads[kernel_maker_hash_of(inst) & (maker->n_heads - 1)];
}

static void enter(berth__kernel *k, uint32_t x) {
  uint32_t *head = head_of(k->maker, &k->insts[x]);
  k->maker->entries[x].next = *head;
  *head = x;
}

static bool grow_table(berth__kernel *k) {
  berth__maker *maker = k->maker;
  size_t size = maker->n_heads == 0 ? 64 : 2 * maker->n_heads;
  uint32_t *heads = berth__alloc_array(k->ctx, size, sizeof *heads);
  if (heads == NULL) return false;
  for (size_t i = 0; i < size; ++i) heads[i] = LAST;
  berth__free(k->ctx, maker->heads);
  maker->heads = heads;
  maker->n_heads = size;
  for (size_t i = 0; i < k->n_insts; ++i) {
    if (maker->entries[i].next != ABSENT) enter(k, (uint32_t)i);
  }
  return true;
}

static bool kernel_maker_make_room(berth__kernel *k) {
  berth__maker *maker = k->maker;
  return BERTH__RESERVE(k->ctx, k->insts, k->capacity, k->n_insts + 1, NULL) == BERTH_OK &&
         BERTH__RESERVE(k->ctx, maker->entries, maker->entries_capacity, k->n_insts + 1, NULL) == BERTH_OK &&
         (maker->n_in_table < maker->n_heads || grow_table(k));
}

berth__x berth__maker_put(berth__kernel *k, const berth__inst *inst) {
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  berth__maker *maker = k->maker;
  bool is_shared = berth__inst_kind_of((berth__inst_code)inst->code) == BERTH__INST_PURE;
  if (is_shared && maker->n_heads > 0) {
    for (uint32_t x = *head_of(maker, inst); x != LAST; x = maker->entries[x].next) {
      if (kernel_maker_is_equal(&k->insts[x], inst)) return x;
    }
  }
  if (k->n_insts >= LAST || !kernel_maker_make_room(k)) {
    k->status = BERTH_NOMEM;
    return BERTH__X_NONE;
  }
  berth__x x = (berth__x)k->n_insts++;
  k->insts[x] = *inst;
  k->insts[x].depth = k->depth;
  maker->entries[x] = (berth__maker_entry){.next = ABSENT, .block = maker->blocks[k->depth].id, .level = k->depth};
  if (is_shared) {
    enter(k, x);
    maker->n_in_table += 1;
  }
  return x;
}

void berth__maker_forget(berth__kernel *k, size_t first) {
  berth__maker *maker = k->maker;
  for (size_t i = k->n_insts; i-- > first;) {
    if (maker->entries[i].next == ABSENT) continue;
    *head_of(maker, &k->insts[i]) = maker->entries[i].next;
    maker->entries[i].next = ABSENT;
    maker->n_in_table -= 1;
  }
}

void berth__maker_free(berth__kernel *k) {
  if (k->maker == NULL) return;
  berth__free(k->ctx, k->maker->entries);
  berth__free(k->ctx, k->maker->heads);
  berth__free(k->ctx, k->maker->refined);
  berth__free(k->ctx, k->maker);
  k->maker = NULL;
}
