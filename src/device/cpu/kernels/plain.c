/* Ops whose reference kernel in src/ops is also the fast one: it moves whole lines, runs once, has few elements, or
 * cannot be done in another way. bench/ops measures them like all others. An op without a kernel here or elsewhere also
 * runs on its reference kernel, and plans say so. This table is searched last (cmake/Kernels.cmake). */
#include "device/cpu/kernels/vec.h"

static int64_t plain_items(const berth_op_call *call) { return berth__op_items(call->user, call); }

static uint64_t plain_scratch(const berth_op_call *call) {
  const berth__family *family = ((const berth__op *)call->user)->family;
  return family->scratch != NULL ? family->scratch(call) : 0;
}

static berth_status plain_run(const berth_op_call *call, berth_error *err) {
  return ((const berth__op *)call->user)->family->kernel(call, err);
}

/* Slices that are known only during a run; others have a kernel of their own. */
static bool plain_takes_narrow(const berth_op_call *call) { return call->n_in > 1; }

#define PLAIN(op) \
  { .name = #op " plain", .code = BERTH__OP_##op, .items = plain_items, .scratch = plain_scratch, .run = plain_run }

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_plain)[] = {
    /* lines, by memcpy */
    PLAIN(gather),
    PLAIN(embedding),
    PLAIN(tile),
    PLAIN(pad),
    PLAIN(choose),
    PLAIN(bitcast),
    {.name = "narrow plain",
     .code = BERTH__OP_narrow,
     .takes = plain_takes_narrow,
     .items = plain_items,
     .scratch = plain_scratch,
     .run = plain_run},
    /* bytes into panels, once, in the prelude */
    PLAIN(pack_weights_i8),
    /* iterations over a few classes that depend on each other: threads share the rows, and nothing else can be
     * shared */
    PLAIN(pairwise_coupling),
    /* along lines: every element depends on the one before it */
    PLAIN(cumsum),
    PLAIN(cumprod),
    /* with a seed: every number depends on the ones before it */
    PLAIN(random_uniform),
    PLAIN(random_normal),
    /* a few elements */
    PLAIN(shape),
    PLAIN(size),
    PLAIN(range),
    PLAIN(loop_begin),
    PLAIN(loop_end),
    {0},
};
