/* pairwise_coupling: every step waits for the one before, so rows are all that can go side by side, and threads have
 * those. */
#include "ops/coupling.h"
#include "device/cpu/kernels/vec.h"

static int64_t coupling_kernel_items(const berth_op_call *call) { return call->in[0].dim[0]; }

/* A row takes some rounds over the matrix of its classes. */
static int64_t coupling_kernel_grain(const berth_op_call *call) {
  const int64_t classes = call->attrs[BERTH__COUPLING_CLASSES].i;
  return classes * classes >= 1024 ? 1 : 1024 / (classes * classes);
}

static uint64_t coupling_kernel_scratch(const berth_op_call *call) {
  return (uint64_t)berth__coupling_room(call->attrs[BERTH__COUPLING_CLASSES].i) * sizeof(float);
}

static berth_status coupling_kernel_run(const berth_op_call *call, berth_error *err) {
  const int64_t classes = call->attrs[BERTH__COUPLING_CLASSES].i, pairs = berth__coupling_pairs(classes);
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++)
    berth__couple((const float *)call->in[0].data + row * pairs, classes, (float *)call->out[0].data + row * classes,
                  call->scratch);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_coupling)[] = {
    {.name = "pairwise_coupling",
     .code = BERTH__OP_pairwise_coupling,
     .items = coupling_kernel_items,
     .grain = coupling_kernel_grain,
     .scratch = coupling_kernel_scratch,
     .run = coupling_kernel_run},
    {0},
};
