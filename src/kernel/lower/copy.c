#include "kernel/lower/copy.h"
#include "kernel/lower/words.h"

#include "base/storage.h"

/* Integers as wide as the elements of a storage. */
static berth__storage lower_copy_bits_of(berth__storage storage) {
  static const berth__storage bits[] = {[1] = BERTH_U32, [2] = BERTH_U16, [4] = BERTH_U8};
  return bits[berth__storage_per_word(storage)];
}

/* f32 stored in 16 bits is read as its value, unless the result is stored alike. */
berth__x berth__l_load_raw(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place) {
  const berth__storage storage = berth__l_storage_of(l, i);
  const bool is_kept = l->call->n_out > 0 && storage == berth__l_storage_of(l, l->call->n_in);
  if (l->call->in[i].type == BERTH_F32 && berth__storage_per_word(storage) > 1 && !is_kept)
    return berth__x_bits(k, BERTH__NUM_U32, berth__x_load(k, berth__l_in(l, k, i), place));
  return berth__x_load(k, berth__l_buffer(l, k, berth__operand_in(i), lower_copy_bits_of(storage)), place);
}

void berth__l_store_raw(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place, berth__x value) {
  const uint32_t operand = berth__operand_out(l->call, i);
  berth__l_store_bits(l, k, operand, lower_copy_bits_of(berth__l_storage_of(l, operand)), place, value);
}

/* Elements per word of an operand (results are numbered after the operands) whose words hold nothing but elements that
 * are next to each other along the last axis; 1 if there are none. */
static uint32_t lower_copy_per_word(const berth__lowering *l, uint32_t operand, const int64_t *dim,
                                    const int64_t *stride, uint32_t rank) {
  const uint32_t n = berth__storage_per_word(berth__l_storage_of(l, operand));
  if (rank == 0 || stride[rank - 1] != 1 || dim[rank - 1] % n != 0 || !berth__l_begins_with_word(l, operand)) return 1;
  for (uint32_t axis = 0; axis + 1 < rank; axis++)
    if (dim[axis] > 1 && stride[axis] % n != 0) return 1;
  return n;
}

/* Moves a word, which has elements of the same storage on both sides. */
static void lower_copy_move_word(const berth__lowering *l, berth__kernel *k, uint32_t from, berth__x source,
                                 uint32_t to, berth__x target) {
  const berth__x word = berth__x_load(k, berth__l_buffer(l, k, from, BERTH_U32), source);
  berth__x_store(k, berth__l_buffer(l, k, to, BERTH_U32), target, word);
}

bool berth__l_is_placed(const berth__lowering *l, uint32_t operand, int64_t first) {
  const berth_tensor *in = &l->call->in[operand], *out = &l->call->out[0];
  if (l->at == NULL || in->rank != out->rank) return false;
  const berth_storage storage = berth_type_storage(berth__l_storage_of(l, operand));
  if (l->at[operand] != l->at[l->call->n_in] + berth__storage_size(storage, (uint64_t)first)) return false;
  for (uint32_t axis = 0; axis < in->rank; axis++)
    if (in->dim[axis] > 1 && in->stride[axis] != out->stride[axis]) return false;
  return true;
}

static bool is_done(const berth__lowering *l, const berth__l_copy *copy) {
  if (copy->result != 0 || copy->from != copy->to || !berth__l_is_placed(l, copy->operand, 0)) return false;
  for (uint32_t axis = 0; axis < copy->rank; axis++)
    if (copy->dim[axis] > 1 && copy->from_stride[axis] != copy->to_stride[axis]) return false;
  return true;
}

/* Elements that are moved at once: those of a word, where both sides have the same ones in each. */
static uint32_t lower_copy_width(const berth__lowering *l, const berth__l_copy *copy, const berth__l_space *space,
                                 uint32_t from, uint32_t to) {
  const uint32_t result = berth__operand_out(l->call, copy->result);
  const uint32_t n = lower_copy_per_word(l, copy->operand, space->dim, space->stride[from], space->rank);
  const bool is_same = berth__l_storage_of(l, copy->operand) == berth__l_storage_of(l, result) &&
                       lower_copy_per_word(l, result, space->dim, space->stride[to], space->rank) == n;
  return is_same && copy->from % n == 0 && copy->to % n == 0 ? n : 1;
}

static void lower_copy_to_words(berth__l_space *space, uint32_t tensor, uint32_t n) {
  for (uint32_t axis = 0; axis + 1 < space->rank; axis++) space->stride[tensor][axis] /= n;
}

berth_status berth__l_copy_all(berth__lowering *l, const berth__l_copy *copy, berth_error *err) {
  berth__l_space space;
  berth__x at[BERTH_MAX_RANK];
  if (is_done(l, copy)) return BERTH_OK;
  berth__l_space_of(&space, copy->rank, copy->dim);
  const uint32_t to = berth__l_space_add(&space, copy->to_stride), from = berth__l_space_add(&space, copy->from_stride);
  berth__l_space_join(&space);
  const int64_t count = berth__l_space_count(&space);
  if (count == 0) return BERTH_OK;
  if (berth__l_is_transposed(l, &space)) return berth__l_transpose(l, copy, &space, err);
  const uint32_t n = lower_copy_width(l, copy, &space, from, to);
  lower_copy_to_words(&space, from, n);
  lower_copy_to_words(&space, to, n);
  if (n > 1) space.dim[space.rank - 1] /= n;
  berth__kernel *k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, count / n), space.rank, space.dim, at);
  const berth__x source = berth__x_affine(k, berth__l_space_place(k, &space, from, at), 1, copy->from / n);
  const berth__x target = berth__x_affine(k, berth__l_space_place(k, &space, to, at), 1, copy->to / n);
  if (n > 1)
    lower_copy_move_word(l, k, copy->operand, source, berth__operand_out(l->call, copy->result), target);
  else
    berth__l_store_raw(l, k, copy->result, target, berth__l_load_raw(l, k, copy->operand, source));
  return berth__l_end(l, k, err);
}

/* ---- Results that could be views of operand 0 ---- */

/* identity, transpose, diagonal, expand: the family's view function says which element of the operand each element of
 * the result is. */
berth_status berth__lower_view(berth__lowering *l, berth_error *err) {
  const berth_tensor *in = &l->call->in[0], *out = &l->call->out[0];
  berth__shape shape = {.rank = out->rank};
  int64_t offset = 0, stride[BERTH_MAX_RANK] = {0};
  memcpy(shape.dim, out->dim, sizeof shape.dim);
  /* The strides are valid even if the function says that kernels elsewhere could not use the view (narrow,
   * reversed). */
  (void)l->op->family->view(in, l->call->attrs, &shape, in->type, 0, &offset, stride);
  const berth__l_copy copy = {
      .rank = out->rank, .dim = out->dim, .from_stride = stride, .from = offset, .to_stride = out->stride};
  return berth__l_copy_all(l, &copy, err);
}

berth_status berth__lower_narrow(berth__lowering *l, berth_error *err) {
  for (uint32_t i = 1; i < l->call->n_in; i++)
    if (berth__l_has(l, i))
      return berth__fail(
          err, BERTH_UNSUPPORTED,
          "the slices follow from operand %u, which only a run knows, but GPU kernels are compiled before it", i);
  return berth__lower_view(l, err);
}

/* reshape, flatten, squeeze, unsqueeze: the same order with another shape. If one side is contiguous, the strides of
 * the other suffice. */
berth_status berth__lower_reshape(berth__lowering *l, berth_error *err) {
  const berth_tensor *in = &l->call->in[0], *out = &l->call->out[0];
  const bool by_operand = berth__is_contiguous(out);
  const berth_tensor *by = by_operand ? in : out;
  int64_t stride[BERTH_MAX_RANK];
  berth__contiguous_strides(by->rank, by->dim, stride);
  if (by_operand || berth__is_contiguous(in)) {
    const berth__l_copy copy = {.rank = by->rank,
                                .dim = by->dim,
                                .from_stride = by_operand ? in->stride : stride,
                                .to_stride = by_operand ? stride : out->stride};
    return berth__l_copy_all(l, &copy, err);
  }
  if (berth__count(out) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, berth__count(out));
  const berth__x value = berth__l_load_raw(l, k, 0, berth__l_place_flat(k, in, index));
  berth__l_store_raw(l, k, 0, berth__l_place_flat(k, out, index), value);
  return berth__l_end(l, k, err);
}

/* ---- Repeating ---- */

berth_status berth__lower_tile(berth__lowering *l, berth_error *err) {
  const berth_tensor *in = &l->call->in[0], *out = &l->call->out[0];
  berth__x at[BERTH_MAX_RANK];
  if (berth__count(out) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  const berth__x target = berth__l_place(k, out, at);
  for (uint32_t axis = 0; axis < out->rank; axis++)
    at[axis] = berth__x_rem(k, at[axis], berth__x_i32(k, in->dim[axis]));
  berth__l_store_raw(l, k, 0, target, berth__l_load_raw(l, k, 0, berth__l_place(k, in, at)));
  return berth__l_end(l, k, err);
}

/* ---- Parts of an axis ---- */

#define PARTS_AT_ONCE 12u /* per kernel: their buffers must fit in addition to those of the conditions */

/* concat and split: several tensors that follow each other along an axis, and one that contains them all. */
typedef struct parts {
  const berth_tensor *whole, *part;
  uint32_t n, axis;
  bool joins; /* concat */
} parts;

/* Numbered as operands and results of the call. */
static uint32_t lower_copy_whole(const berth__lowering *l, const parts *p) {
  return p->joins ? berth__operand_out(l->call, 0) : berth__operand_in(0);
}

static uint32_t lower_copy_part(const berth__lowering *l, const parts *p, uint32_t part) {
  return p->joins ? berth__operand_in(part) : berth__operand_out(l->call, part);
}

/* Elements of these parts that are moved at once. */
static uint32_t lower_copy_width_of_parts(const berth__lowering *l, const parts *p, uint32_t first, uint32_t last,
                                          int64_t start) {
  const uint32_t whole = lower_copy_whole(l, p);
  const uint32_t n = lower_copy_per_word(l, whole, p->whole->dim, p->whole->stride, p->whole->rank);
  for (uint32_t i = first; i < last; i++) {
    const berth_tensor *part = &p->part[i];
    const uint32_t operand = lower_copy_part(l, p, i);
    if (berth__l_storage_of(l, operand) != berth__l_storage_of(l, whole) ||
        lower_copy_per_word(l, operand, part->dim, part->stride, part->rank) != n)
      return 1;
  }
  return start * p->whole->stride[p->axis] % n == 0 ? n : 1;
}

/* The tensor with its words as elements. */
static berth_tensor lower_copy_by_words(const berth_tensor *tensor, uint32_t n) {
  berth_tensor words = *tensor;
  for (uint32_t axis = 0; axis + 1 < words.rank && n > 1; axis++) words.stride[axis] /= n;
  if (n > 1) words.dim[words.rank - 1] /= n;
  return words;
}

/* An element, or a word of `n`. */
static void move_element(const berth__lowering *l, berth__kernel *k, const parts *p, uint32_t part, uint32_t n,
                         berth__x whole, const berth__x *at) {
  const berth_tensor words = lower_copy_by_words(&p->part[part], n);
  const berth__x place = berth__l_place(k, &words, at);
  const uint32_t of_part = lower_copy_part(l, p, part), of_whole = lower_copy_whole(l, p);
  if (n > 1)
    lower_copy_move_word(l, k, p->joins ? of_part : of_whole, p->joins ? place : whole, p->joins ? of_whole : of_part,
                         p->joins ? whole : place);
  else if (p->joins)
    berth__l_store_raw(l, k, 0, whole, berth__l_load_raw(l, k, part, place));
  else
    berth__l_store_raw(l, k, part, place, berth__l_load_raw(l, k, 0, whole));
}

/* Copies the parts `first` .. `last` - 1, the first of which begins at `start`: one thread per element, which tests
 * part after part whether it contains the element. */
static berth_status lower_copy_move_parts(berth__lowering *l, const parts *p, uint32_t first, uint32_t last,
                                          int64_t start, berth_error *err) {
  const uint32_t n = lower_copy_width_of_parts(l, p, first, last, start);
  berth_tensor all = lower_copy_by_words(p->whole, n); /* of these parts */
  const int64_t skipped = start * p->whole->stride[p->axis] / n, by = p->axis + 1 == all.rank ? n : 1;
  berth__x at[BERTH_MAX_RANK];
  all.dim[p->axis] = 0;
  for (uint32_t i = first; i < last; i++) all.dim[p->axis] += p->part[i].dim[p->axis] / by;
  if (berth__count(&all) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  berth__l_unravel(k, berth__l_each(l, k, berth__count(&all)), all.rank, all.dim, at);
  const berth__x on_axis = at[p->axis];
  const berth__x whole = berth__x_affine(k, berth__l_place(k, &all, at), 1, skipped);
  uint32_t open = 0;
  for (uint32_t i = first, before = 0; i < last; i++) {
    const int64_t end = before + p->part[i].dim[p->axis] / by;
    if (p->part[i].dim[p->axis] == 0) continue;
    if (end < all.dim[p->axis]) {
      berth__x_if(k, berth__x_lt(k, on_axis, berth__x_i32(k, end)));
      open++;
    }
    at[p->axis] = berth__x_affine(k, on_axis, 1, -(int64_t)before);
    move_element(l, k, p, i, n, whole, at);
    if (end < all.dim[p->axis]) berth__x_else(k);
    before = (uint32_t)end;
  }
  while (open-- > 0) berth__x_end(k);
  return berth__l_end(l, k, err);
}

/* Parts that are already in place are skipped. */
static bool is_passed(const berth__lowering *l, const parts *p, uint32_t part, int64_t start) {
  return p->joins && berth__l_is_placed(l, part, start * p->whole->stride[p->axis]);
}

static berth_status move_all(berth__lowering *l, const parts *p, berth_error *err) {
  int64_t start = 0, next = 0; /* offsets on the axis of part `first`, and of part `last` */
  for (uint32_t first = 0, last = 0; first < p->n; first = last, start = next) {
    while (last < p->n && last - first < PARTS_AT_ONCE && !is_passed(l, p, last, next))
      next += p->part[last++].dim[p->axis];
    if (last == first)
      next += p->part[last++].dim[p->axis];
    else
      BERTH__TRY(lower_copy_move_parts(l, p, first, last, start, err));
  }
  return BERTH_OK;
}

static uint32_t lower_copy_axis_of(const berth_attr *attr, uint32_t rank) {
  return (uint32_t)(attr->i < 0 ? attr->i + rank : attr->i);
}

berth_status berth__lower_concat(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const parts p = {.whole = &call->out[0],
                   .part = call->in,
                   .n = call->n_in,
                   .axis = lower_copy_axis_of(&call->attrs[BERTH__CONCAT_AXIS], call->out[0].rank),
                   .joins = true};
  return move_all(l, &p, err);
}

berth_status berth__lower_split(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const parts p = {.whole = &call->in[0],
                   .part = call->out,
                   .n = call->n_out,
                   .axis = lower_copy_axis_of(&call->attrs[BERTH__SPLIT_AXIS], call->in[0].rank)};
  return move_all(l, &p, err);
}
