/* Counts the operations of a kernel's run, from its instructions, and finds rounds that load and store. */
#include "kernel/maker.h"

static bool kernel_work_is_computed(const berth__kernel *k, const berth__inst *inst) {
  if (berth__inst_kind_of((berth__inst_code)inst->code) != BERTH__INST_PURE ||
      berth__inst_operands((berth__inst_code)inst->code) == 0)
    return false;
  const bool moves = inst->code == BERTH__INST_select || inst->code == BERTH__INST_bits ||
                     inst->code == BERTH__INST_convert || inst->code == BERTH__INST_rounded;
  return !moves && k->insts[inst->in[0]].type == BERTH__NUM_F32;
}

/* An upper bound on a loop's iterations; 1 if its bounds are unknown. */
static double rounds_of(const berth__kernel *k, const berth__inst *loop) {
  const berth__inst *from = &k->insts[loop->in[0]], *to = &k->insts[loop->in[1]], *step = &k->insts[loop->in[2]];
  if (to->high >= INT32_MAX || from->low <= INT32_MIN || step->low <= 0 || to->high <= from->low) return 1;
  const int64_t rounds = (to->high - from->low + step->low - 1) / step->low;
  return (double)rounds;
}

double berth__kernel_flops(const berth__kernel *kernel) {
  double rounds[BERTH__MAKER_BLOCKS] = {(double)kernel->n_groups * kernel->group_size}, flops = 0;
  for (size_t i = 0; i < kernel->n_insts; i++) {
    const berth__inst *inst = &kernel->insts[i];
    const double times = rounds[inst->depth];
    if (inst->code == BERTH__INST_loop) rounds[inst->depth + 1] = times * rounds_of(kernel, inst);
    if (inst->code == BERTH__INST_if || inst->code == BERTH__INST_else) rounds[inst->depth + 1] = times;
    if (inst->code == BERTH__INST_each) rounds[inst->depth + 1] = times * (double)(inst->high + 1);
    if (inst->code == BERTH__INST_multiply) {
      const berth__kernel_sums *sums = &kernel->sums[inst->bits];
      flops += 2 * times * sums->left.lines * sums->right.lines / kernel->group_size * sums->left.depth;
    }
    if (kernel_work_is_computed(kernel, inst)) flops += inst->code == BERTH__INST_fma ? 2 * times : times;
  }
  return flops;
}

/* From the loop at `first` on, to its end. */
static bool loop_streams(const berth__kernel *k, size_t first) {
  bool loads = false, stores = false;
  for (size_t i = first + 1; i < k->n_insts && k->insts[i].depth > k->insts[first].depth; i++) {
    const uint8_t code = k->insts[i].code;
    loads = loads || code == BERTH__INST_load || code == BERTH__INST_quad;
    stores = stores || code == BERTH__INST_store || code == BERTH__INST_quad_store;
  }
  return loads && stores;
}

bool berth__kernel_has_rounds(const berth__kernel *kernel) {
  for (size_t i = 0; i < kernel->n_insts; i++) {
    const berth__inst *inst = &kernel->insts[i];
    if (inst->code == BERTH__INST_loop && (inst->bits & BERTH__LOOP_UNROLLED) != 0 && loop_streams(kernel, i))
      return true;
  }
  return false;
}
