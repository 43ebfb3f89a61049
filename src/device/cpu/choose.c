/* Chooses what runs a call: a fast kernel or the reference kernel, in how many pieces, with how much scratch. The
 * planner and the program get the same answer. */
#include "base/math.h"
#include "device/cpu/cpu.h"

/* Smaller pieces are not worth waking a thread for. Products compute more per byte, so they count differently. */
#define PIECE_BYTES (64 << 10)

static bool is_heavy(berth__op_code code) {
  return code == BERTH__OP_matmul || code == BERTH__OP_conv || code == BERTH__OP_conv_transpose ||
         code == BERTH__OP_attention || code == BERTH__OP_CUSTOM;
}

static uint64_t cpu_choose_bytes(const berth_tensor *tensors, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < n; i++) bytes += berth__tensor_bytes(&tensors[i]);
  return bytes;
}

static int64_t grain_by_bytes(const berth__op *op, const berth_op_call *call, int64_t items) {
  if (items <= 1) return 1;
  const uint64_t bytes = cpu_choose_bytes(call->in, call->n_in) + cpu_choose_bytes(call->out, call->n_out);
  uint64_t each = bytes / (uint64_t)items + 1, wanted = is_heavy(op->code) ? PIECE_BYTES / 16 : PIECE_BYTES;
  return (int64_t)(wanted / each) + 1;
}

static bool cpu_choose_is_empty(const berth_op_call *call) {
  for (uint32_t i = 0; i < call->n_out; i++)
    if (berth__count(&call->out[i]) != 0) return false;
  return true;
}

static int64_t items_of(const berth__op *op, const berth__cpu_kernel *fast, const berth_op_call *call) {
  if (fast == NULL) return berth__op_items(op, call);
  if (cpu_choose_is_empty(call)) return 0;
  return fast->items != NULL ? fast->items(call) : 1;
}

bool berth__cpu_settle_pieces(berth__cpu_choice *choice, uint32_t n_threads) {
  uint64_t scratch;
  if (choice->items >= 2 && choice->items / (choice->grain > 0 ? choice->grain : 1) >= 2) return false;
  const bool is_little =
      berth__mul_u64(choice->scratch_each, n_threads, &scratch) && scratch <= choice->few_bytes && n_threads > 1;
  if (!is_little || choice->awake_grain == 0 || choice->items / choice->awake_grain < 2) choice->awake_grain = 0;
  return choice->awake_grain == 0;
}

/* A thread that is already awake takes smaller pieces: a quarter of a kernel's grain, and half of the bytes, which come
 * from a cache when there are so few. */
#define AWAKE_PIECES 4
#define AWAKE_PIECES_BY_BYTES 2

/* How much scratch of all workers counts as little: this much, plus a share of the results' bytes. */
#define FEW_BYTES 1024
#define FEW_OF_BYTES 4

static void cpu_choose_grains(berth__cpu_choice *choice, const berth__op *op, const berth__cpu_kernel *fast,
                              const berth_op_call *call) {
  const bool knows = fast != NULL && fast->grain != NULL;
  choice->grain = knows ? fast->grain(call) : grain_by_bytes(op, call, choice->items);
  choice->awake_grain = choice->grain / (knows ? AWAKE_PIECES : AWAKE_PIECES_BY_BYTES);
  if (choice->awake_grain < 1) choice->awake_grain = 1;
  choice->few_bytes = FEW_BYTES + cpu_choose_bytes(call->out, call->n_out) / FEW_OF_BYTES;
}

/* If a run may have smaller extents, it may also reach the reference kernel, since other kernels take some shapes
 * only. */
static uint64_t cpu_choose_scratch(const berth__op *op, const berth__cpu_kernel *fast, const berth_op_call *call,
                                   bool has_bounds) {
  const uint64_t reference =
      (fast == NULL || has_bounds) && op->family->scratch != NULL ? op->family->scratch(call) : 0;
  if (fast == NULL) return reference;
  uint64_t (*const scratch)(const berth_op_call *) =
      has_bounds && fast->scratch_most != NULL ? fast->scratch_most : fast->scratch;
  const uint64_t own = scratch != NULL ? scratch(call) : 0;
  return own > reference ? own : reference;
}

berth__cpu_choice berth__cpu_choose(const berth__cpu_kernels *from, const berth__op *op, const berth_op_call *call,
                                    uint32_t plan_flags) {
  const bool only_reference = (plan_flags & BERTH_PLAN_REFERENCE) != 0;
  const berth__cpu_kernel *fast = only_reference ? NULL : berth__cpu_kernel_find(from, op, call);
  berth__cpu_choice choice = {.name = fast != NULL ? fast->name : NULL,
                              .run = fast != NULL ? fast->run : op->family->kernel,
                              .prepare = fast != NULL ? fast->prepare : NULL,
                              .has_parts = fast != NULL && fast->has_parts,
                              .items = items_of(op, fast, call)};
  const uint64_t each = cpu_choose_scratch(op, fast, call, (plan_flags & BERTH__CALL_HAS_BOUNDS) != 0);
  if (!berth__align_up(each, 64, &choice.scratch_each)) choice.scratch_each = UINT64_MAX;
  cpu_choose_grains(&choice, op, fast, call);
  return choice;
}
