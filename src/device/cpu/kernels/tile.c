/* tile of short lines: the part inside an axis is made once, and then copied after itself as often as needed. Computing
 * for every short line where it comes from would take longer than the copy. */
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

#define SHORT_LINE 512       /* bytes of the result; longer lines are copied one by one */
#define MOST_BYTES (4 << 20) /* of the result; larger ones are not made by a single thread */

static bool tile_takes(const berth_op_call *call) {
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  const uint64_t size = berth_type_size(in->type);
  return size != 0 && in->rank > 1 && berth__count(in) > 0 && berth__count(out) > 0 && berth__is_contiguous(in) &&
         (uint64_t)out->dim[out->rank - 1] * size <= SHORT_LINE && berth__tensor_bytes(out) <= MOST_BYTES;
}

/* Repeats the bytes made so far until there are n. */
static void tile_repeat(char *to, size_t made, size_t n) {
  for (size_t more; made < n; made += more) {
    more = made < n - made ? made : n - made;
    memcpy(to + made, to, more);
  }
}

/* Fills the result from `axis` on; returns its bytes. */
static size_t tile_fill(const berth_op_call *call, uint32_t axis, const char *from, char *to) {
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  const size_t size = berth_type_size(in->type);
  size_t made = 0;
  if (axis + 1 == in->rank) {
    made = (size_t)in->dim[axis] * size;
    memcpy(to, from, made);
  } else {
    for (int64_t i = 0; i < in->dim[axis]; i++)
      made += tile_fill(call, axis + 1, from + (size_t)(i * in->stride[axis]) * size, to + made);
  }
  const size_t all = made * (size_t)(out->dim[axis] / in->dim[axis]);
  tile_repeat(to, made, all);
  return all;
}

static berth_status tile_run(const berth_op_call *call, berth_error *err) {
  (void)err;
  (void)tile_fill(call, 0, call->in[0].data, call->out[0].data);
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_tile)[] = {
    {.name = "tile", .code = BERTH__OP_tile, .takes = tile_takes, .run = tile_run},
    {0},
};
