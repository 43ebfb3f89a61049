/* Blocks of a kernel under construction: what is visible inside them, and which value ranges their conditions imply. */
#include "kernel/maker.h"

static berth__x kernel_block_put(berth__kernel *k, berth__inst_code code, uint32_t bits, const berth__inst *of) {
  berth__inst inst = {
      .code = (uint8_t)code, .type = BERTH__NUM_I32, .bits = bits, .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}};
  if (of != NULL) {
    for (int i = 0; i < 3; ++i) inst.in[i] = of->in[i];
    inst.low = of->low;
    inst.high = of->high;
  }
  return berth__maker_put(k, &inst);
}

static void open_block(berth__kernel *k, berth__x opener, bool is_loop) {
  if (opener == BERTH__X_NONE) return;
  if (k->depth + 1u >= BERTH__MAKER_BLOCKS) {
    berth__maker_mistake(k, BERTH__INST_if, "its blocks are nested too deep");
    return;
  }
  k->depth += 1;
  k->maker->blocks[k->depth] = (berth__maker_block){.id = k->maker->n_ids++,
                                                    .opener = opener,
                                                    .is_loop = is_loop,
                                                    .first = k->n_insts,
                                                    .n_refined = k->maker->n_refined};
}

/* Inside the block just opened, x is also between low and high. Contradictory ranges are in code that never runs, and
 * are ignored. */
static void refine(berth__kernel *k, berth__x x, int64_t low, int64_t high) {
  berth__maker *maker = k->maker;
  berth__inst *inst = &k->insts[x];
  if (inst->code == BERTH__INST_constant) return;
  if (low < inst->low) low = inst->low;
  if (high > inst->high) high = inst->high;
  if (low > high || (low == inst->low && high == inst->high)) return;
  if (BERTH__RESERVE(k->ctx, maker->refined, maker->refined_capacity, maker->n_refined + 1, NULL) != BERTH_OK) {
    k->status = BERTH_NOMEM;
    return;
  }
  maker->refined[maker->n_refined++] = (berth__maker_refined){.x = x, .low = inst->low, .high = inst->high};
  inst->low = low;
  inst->high = high;
}

void berth__maker_unrefine(berth__kernel *k, size_t n_refined) {
  berth__maker *maker = k->maker;
  while (maker->n_refined > n_refined) {
    berth__maker_refined *was = &maker->refined[--maker->n_refined];
    k->insts[was->x].low = was->low;
    k->insts[was->x].high = was->high;
  }
}

/* a < b, or a <= b. */
static void refine_order(berth__kernel *k, berth__x a, berth__x b, bool is_strict) {
  int64_t gap = is_strict ? 1 : 0;
  refine(k, a, INT64_MIN, k->insts[b].high - gap);
  refine(k, b, k->insts[a].low + gap, INT64_MAX);
}

static void refine_by(berth__kernel *k, berth__x condition, bool truth) {
  const berth__inst inst = k->insts[condition];
  refine(k, condition, truth, truth);
  if (inst.code == BERTH__INST_not) {
    refine_by(k, inst.in[0], !truth);
  } else if (inst.code == (truth ? BERTH__INST_and : BERTH__INST_or)) {
    refine_by(k, inst.in[0], truth);
    refine_by(k, inst.in[1], truth);
  } else if (inst.code == BERTH__INST_lt || inst.code == BERTH__INST_le) {
    if (k->insts[inst.in[0]].type == BERTH__NUM_F32) return;
    bool is_strict = (inst.code == BERTH__INST_lt) == truth;
    refine_order(k, inst.in[truth ? 0 : 1], inst.in[truth ? 1 : 0], is_strict);
  } else if (inst.code == (truth ? BERTH__INST_eq : BERTH__INST_ne)) {
    if (k->insts[inst.in[0]].type == BERTH__NUM_F32) return;
    refine(k, inst.in[0], k->insts[inst.in[1]].low, k->insts[inst.in[1]].high);
    refine(k, inst.in[1], k->insts[inst.in[0]].low, k->insts[inst.in[0]].high);
  }
}

static void open_if(berth__kernel *k, berth__x condition, bool is_loop) {
  berth__x x = kernel_block_put(k, BERTH__INST_if, 0, &(berth__inst){.in = {condition, BERTH__X_NONE, BERTH__X_NONE}});
  open_block(k, x, is_loop);
  if (k->status == BERTH_OK) refine_by(k, condition, true);
}

void berth__x_if(berth__kernel *k, berth__x condition) {
  uint32_t known;
  if (!berth__maker_accepts(k, BERTH__INST_if, 1, &condition)) return;
  if (k->insts[condition].type != BERTH__NUM_BOOL) {
    berth__maker_mistake(k, BERTH__INST_if, "its condition must be a bool");
    return;
  }
  if (berth__maker_known(k, condition, &known)) condition = berth__x_bool(k, known != 0);
  if (k->status == BERTH_OK) open_if(k, condition, false);
}

static void kernel_block_leave(berth__kernel *k) {
  berth__maker_forget(k, k->maker->blocks[k->depth].first);
  berth__maker_unrefine(k, k->maker->blocks[k->depth].n_refined);
  k->depth -= 1;
}

void berth__x_else(berth__kernel *k) {
  if (!berth__maker_accepts(k, BERTH__INST_else, 0, NULL)) return;
  berth__maker_block *block = &k->maker->blocks[k->depth];
  if (k->depth == 0 || block->is_loop || block->has_else || k->insts[block->opener].code != BERTH__INST_if) {
    berth__maker_mistake(k, BERTH__INST_else, "there is no if for it");
    return;
  }
  berth__x opener = block->opener;
  kernel_block_leave(k);
  if (kernel_block_put(k, BERTH__INST_else, 0, NULL) == BERTH__X_NONE) return;
  open_block(k, opener, false);
  k->maker->blocks[k->depth].has_else = true;
  refine_by(k, k->insts[opener].in[0], false);
}

void berth__x_end(berth__kernel *k) {
  if (!berth__maker_accepts(k, BERTH__INST_end, 0, NULL)) return;
  if (k->depth == 0) {
    berth__maker_mistake(k, BERTH__INST_end, "there is no block that it closes");
    return;
  }
  kernel_block_leave(k);
  kernel_block_put(k, BERTH__INST_end, 0, NULL);
}

/* An upper bound of a loop's last index. */
static int64_t last_index(const berth__inst *from, const berth__inst *to, int64_t step) {
  int64_t last = to->high - 1;
  return from->low == from->high ? last - (last - from->low) % step : last;
}

/* The result of an opener is visible in its block only. */
static berth__x name_inside(berth__kernel *k, berth__x x) {
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  k->maker->entries[x].block = k->maker->blocks[k->depth].id;
  k->maker->entries[x].level = k->depth;
  return x;
}

static berth__x open_loop(berth__kernel *k, berth__x from, berth__x to, int64_t step, uint32_t bits) {
  berth__x in[2] = {from, to};
  if (!berth__maker_accepts(k, BERTH__INST_loop, 2, in)) return BERTH__X_NONE;
  if (k->insts[from].type != BERTH__NUM_I32 || k->insts[to].type != BERTH__NUM_I32 || step <= 0) {
    return berth__maker_mistake(k, BERTH__INST_loop, "its ends must be i32, and its step more than 0");
  }
  berth__x by = berth__x_i32(k, step), length = berth__x_sub(k, to, from);
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  const berth__inst a = k->insts[from], b = k->insts[to];
  int64_t least = k->insts[length].low, most = k->insts[length].high;
  if (b.high <= a.low || most <= 0) {
    berth__x never = berth__x_bool(k, false);
    if (k->status == BERTH_OK) open_if(k, never, true);
    return from;
  }
  bool is_once = (a.high < b.low || least > 0) && (a.low + step >= b.high || most <= step);
  berth__inst of = {.in = {from, to, by}, .low = a.low, .high = last_index(&a, &b, step)};
  berth__x x = kernel_block_put(k, BERTH__INST_loop, is_once ? bits | BERTH__LOOP_ONCE : bits, &of);
  open_block(k, x, true);
  if (name_inside(k, x) == BERTH__X_NONE) return BERTH__X_NONE;
  return is_once ? from : x;
}

berth__x berth__x_each(berth__kernel *k, uint32_t sums) {
  if (!berth__maker_accepts(k, BERTH__INST_each, 0, NULL)) return BERTH__X_NONE;
  if (sums >= k->n_sums) return berth__maker_mistake(k, BERTH__INST_each, "there are no such sums");
  const uint64_t count =
      (uint64_t)k->sums[sums].left.lines * k->sums[sums].right.lines / k->group_size / k->sums[sums].together;
  const berth__inst of = {.in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}, .high = (int64_t)count - 1};
  const berth__x x = kernel_block_put(k, BERTH__INST_each, sums, &of);
  open_block(k, x, false);
  return name_inside(k, x);
}

berth__x berth__x_loop(berth__kernel *k, berth__x from, berth__x to, int64_t step) {
  return open_loop(k, from, to, step, 0);
}

berth__x berth__x_loop_unrolled(berth__kernel *k, berth__x from, berth__x to, int64_t step) {
  return open_loop(k, from, to, step, BERTH__LOOP_UNROLLED);
}

berth__x berth__x_loop_n(berth__kernel *k, int64_t n) {
  return open_loop(k, berth__x_i32(k, 0), berth__x_i32(k, n), 1, 0);
}

void berth__x_break(berth__kernel *k) {
  if (!berth__maker_accepts(k, BERTH__INST_break, 0, NULL)) return;
  uint32_t level = k->depth;
  while (level > 0 && !k->maker->blocks[level].is_loop) level -= 1;
  if (level == 0) {
    berth__maker_mistake(k, BERTH__INST_break, "there is no loop that it leaves");
    return;
  }
  berth__inst *opener = &k->insts[k->maker->blocks[level].opener];
  if (opener->code == BERTH__INST_loop) opener->bits &= ~BERTH__LOOP_ONCE;
  kernel_block_put(k, BERTH__INST_break, 0, NULL);
}

/* What a kernel must not do before it waits for the previous kernels; NULL: it is fine. */
static const char *mistake_before_await(const berth__kernel *k) {
  if (k->depth > 0) return "it stands in a block";
  for (size_t i = 0; i < k->n_insts; i++) {
    if (k->insts[i].code == BERTH__INST_await) return "it waits already";
    if (k->insts[i].code == BERTH__INST_store || k->insts[i].code == BERTH__INST_store_max ||
        k->insts[i].code == BERTH__INST_quad_store)
      return "something is stored before it";
  }
  return NULL;
}

void berth__x_await(berth__kernel *k) {
  if (!berth__maker_accepts(k, BERTH__INST_await, 0, NULL)) return;
  const char *mistake = mistake_before_await(k);
  if (mistake != NULL)
    berth__maker_mistake(k, BERTH__INST_await, mistake);
  else
    kernel_block_put(k, BERTH__INST_await, 0, NULL);
}

void berth__x_release(berth__kernel *k) {
  if (berth__maker_accepts(k, BERTH__INST_release, 0, NULL)) kernel_block_put(k, BERTH__INST_release, 0, NULL);
}

void berth__x_barrier(berth__kernel *k) {
  if (berth__maker_accepts(k, BERTH__INST_barrier, 0, NULL)) kernel_block_put(k, BERTH__INST_barrier, 0, NULL);
}
