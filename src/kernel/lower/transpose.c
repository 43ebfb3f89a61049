/* Tiled transposes: copies that read along the operand's contiguous axis and write along the result's, and transpose a
 * tile in shared memory in between. Without the tile, accesses on one of the two sides would not be coalesced. */
#include "kernel/lower/copy.h"

#define TILE 32u  /* elements of one wide load on any GPU: 128 bytes */
#define ROWS 8u   /* rows of a tile that a workgroup reads at once: 256 threads */
#define PITCH 33u /* padded by one, so that the elements of a column are in different banks */
#define LEAST 16  /* shortest axis: in narrower tiles most threads would be idle */
enum {
  OUT,
  IN
};

/* The axis along which the operand's elements are contiguous; rank if it is the last one, or there is none. */
static uint32_t axis_of_operand(const berth__l_space *space) {
  uint32_t axis = 0;
  while (axis + 1 < space->rank && space->stride[IN][axis] != 1) axis++;
  return axis + 1 < space->rank ? axis : space->rank;
}

bool berth__l_is_transposed(const berth__lowering *l, const berth__l_space *space) {
  const berth__kernel_limits *limits = l->limits;
  if (space->rank < 2 || !limits->shares_well || limits->group_size < TILE * ROWS ||
      limits->shared_bytes < TILE * PITCH * 4)
    return false;
  const uint32_t last = space->rank - 1, other = axis_of_operand(space);
  return other < last && space->stride[OUT][last] == 1 && space->stride[IN][last] != 0 && space->dim[last] >= LEAST &&
         space->dim[other] >= LEAST;
}

/* A tile: where it begins on the two axes, and the positions of its element (0, 0) in both tensors without these
 * axes. */
typedef struct tile {
  uint32_t last, other; /* axes */
  berth__x first_last, first_other;
  berth__x from, to; /* without the two axes */
} tile;

static int64_t tiles_on(const berth__l_space *space, uint32_t axis) { return (space->dim[axis] + TILE - 1) / TILE; }

static tile tile_of_group(berth__kernel *k, const berth__l_space *space, berth__x group) {
  tile t = {.last = space->rank - 1, .other = axis_of_operand(space)};
  int64_t dim[BERTH_MAX_RANK];
  berth__x at[BERTH_MAX_RANK];
  memcpy(dim, space->dim, sizeof dim);
  dim[t.last] = tiles_on(space, t.last);
  dim[t.other] = tiles_on(space, t.other);
  berth__l_unravel(k, group, space->rank, dim, at);
  t.first_last = berth__x_affine(k, at[t.last], TILE, 0);
  t.first_other = berth__x_affine(k, at[t.other], TILE, 0);
  at[t.last] = at[t.other] = berth__x_i32(k, 0);
  t.from = berth__l_space_place(k, space, IN, at);
  t.to = berth__l_space_place(k, space, OUT, at);
  return t;
}

static berth__x lower_transpose_is_inside(berth__kernel *k, const berth__l_space *space, const tile *t, berth__x last,
                                          berth__x other) {
  return berth__x_and(k, berth__x_lt(k, last, berth__x_i32(k, space->dim[t->last])),
                      berth__x_lt(k, other, berth__x_i32(k, space->dim[t->other])));
}

static berth__x lower_transpose_place(berth__kernel *k, const berth__l_space *space, const tile *t, uint32_t tensor,
                                      berth__x last, berth__x other) {
  const berth__x start = tensor == IN ? t->from : t->to;
  const berth__x along = berth__x_affine(k, last, space->stride[tensor][t->last], 0);
  return berth__x_add(k, start, berth__x_add(k, along, berth__x_affine(k, other, space->stride[tensor][t->other], 0)));
}

berth_status berth__l_transpose(berth__lowering *l, const berth__l_copy *copy, const berth__l_space *space,
                                berth_error *err) {
  berth__kernel *k = berth__l_begin(l, "tiled");
  if (k == NULL) return berth__l_end(l, k, err);
  uint64_t groups = 1;
  for (uint32_t axis = 0; axis < space->rank; axis++)
    groups *= (uint64_t)(axis == space->rank - 1 || axis == axis_of_operand(space) ? tiles_on(space, axis)
                                                                                   : space->dim[axis]);
  k->group_size = TILE * ROWS;
  k->n_groups = groups;
  const uint32_t shared = berth__kernel_shared(k, BERTH__NUM_U32, TILE * PITCH);
  const tile t = tile_of_group(k, space, berth__x_group(k));
  const berth__x width = berth__x_i32(k, TILE), thread = berth__x_thread(k);
  const berth__x column = berth__x_rem(k, thread, width), row = berth__x_div(k, thread, width);
  for (uint32_t done = 0; done < TILE; done += ROWS) {
    const berth__x line = berth__x_affine(k, row, 1, done);
    const berth__x last = berth__x_add(k, t.first_last, line), other = berth__x_add(k, t.first_other, column);
    berth__x_if(k, lower_transpose_is_inside(k, space, &t, last, other));
    const berth__x source = berth__x_affine(k, lower_transpose_place(k, space, &t, IN, last, other), 1, copy->from);
    berth__x_shared_store(k, shared, berth__x_add(k, berth__x_affine(k, line, PITCH, 0), column),
                          berth__l_load_raw(l, k, copy->operand, source));
    berth__x_end(k);
  }
  berth__x_barrier(k);
  for (uint32_t done = 0; done < TILE; done += ROWS) {
    const berth__x line = berth__x_affine(k, row, 1, done);
    const berth__x last = berth__x_add(k, t.first_last, column), other = berth__x_add(k, t.first_other, line);
    berth__x_if(k, lower_transpose_is_inside(k, space, &t, last, other));
    const berth__x target = berth__x_affine(k, lower_transpose_place(k, space, &t, OUT, last, other), 1, copy->to);
    const berth__x held = berth__x_shared_load(k, shared, berth__x_add(k, berth__x_affine(k, column, PITCH, 0), line));
    berth__l_store_raw(l, k, copy->result, target, held);
    berth__x_end(k);
  }
  return berth__l_end(l, k, err);
}
