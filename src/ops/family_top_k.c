/* top_k: the k largest (or smallest) elements along an axis and their indices, best first; equal ones by lower index.
 * NaN counts as larger than every number. The result is always sorted, whatever `sorted` says. An item is one line.
 *
 * The best k so far are in a heap whose root is the worst of them; at the end the heap is emptied from the worst to the
 * best. The heap is the call's scratch. */
#include <inttypes.h>

#include "base/math.h"
#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/line.h"
#include "ops/operand.h"

static const berth_attr attrs_of_top_k[] = {
    [BERTH__TOP_K_K] = {.name = "k", .kind = BERTH_ATTR_INT, .i = -1},
    [BERTH__TOP_K_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = -1},
    [BERTH__TOP_K_LARGEST] = {.name = "largest", .kind = BERTH_ATTR_INT, .i = 1},
    [BERTH__TOP_K_SORTED] = {.name = "sorted", .kind = BERTH_ATTR_INT, .i = 1}};

/* k as an operand of one element, or as the attribute; unknown as long as the operand is. */
static berth_status infer_k(const berth__infer *infer, int64_t extent, int64_t *k, berth_error *err) {
  bool is_operand = berth__infer_has(infer, BERTH__TOP_K_K_OPERAND);
  *k = infer->attrs[BERTH__TOP_K_K].i;
  if (is_operand) {
    berth__list list;
    BERTH__TRY(berth__infer_most_list(infer, BERTH__TOP_K_K, BERTH__TOP_K_K_OPERAND, &list, err));
    if (list.count != 1) return berth__fail(err, BERTH_INVALID, "operand 1 has %u elements, expected one", list.count);
    *k = list.known ? list.at[0] : BERTH__DIM_UNKNOWN;
    if (infer->wants_bounds && berth__dim_is_fixed(extent) && (!list.known || *k > extent)) *k = extent;
    if (!list.known) return BERTH_OK;
  }
  if (*k >= 0 && (!berth__dim_is_fixed(extent) || *k <= extent)) return BERTH_OK;
  char shape[BERTH__SHAPE_TEXT];
  return berth__fail(err, BERTH_INVALID, "%s is %" PRId64 ", expected 0 to the extent of axis %" PRId64 " of %s",
                     is_operand ? "operand 1" : "attribute 'k'", *k, infer->attrs[BERTH__TOP_K_AXIS].i,
                     berth__shape_text(&infer->in_shape[BERTH__TOP_K_X], shape));
}

static berth_status infer_top_k(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[BERTH__TOP_K_X];
  int64_t k;
  uint32_t axis;
  if (infer->in_type[BERTH__TOP_K_X] != BERTH_U64) BERTH__TRY(berth__want_numeric(infer, BERTH__TOP_K_X, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__TOP_K_AXIS].i, in->rank, &axis, err));
  for (uint32_t i = BERTH__TOP_K_LARGEST; i <= BERTH__TOP_K_SORTED; i++)
    if (infer->attrs[i].i != 0 && infer->attrs[i].i != 1)
      return berth__fail(err, BERTH_INVALID, "attribute '%s' is not 0 or 1", infer->attrs[i].name);
  BERTH__TRY(infer_k(infer, in->dim[axis], &k, err));
  for (uint32_t i = 0; i < 2; i++) {
    infer->out_type[i] = i == 0 ? infer->in_type[BERTH__TOP_K_X] : BERTH_I64;
    infer->out_shape[i] = *in;
    infer->out_shape[i].dim[axis] = k;
  }
  return BERTH_OK;
}

/* ---- The heap ------------------------------------------------------------------------------------------------- */

typedef struct entry {
  int64_t key; /* larger is better: an element mapped to an integer in the same order */
  int64_t index;
} entry;

/* The bits of a double, as an integer, are in ascending order for positive numbers and in descending order for negative
 * ones. */
static int64_t top_k_float_key(double x) {
  int64_t bits;
  if (x != x) return INT64_MAX;
  if (x == 0) x = 0; /* -0 equals 0 */
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

static bool top_k_better(entry a, entry b) { return a.key != b.key ? a.key > b.key : a.index < b.index; }

/* Replaces the root by e and restores the heap: no parent is better than its children. */
static void top_k_sift_down(entry *heap, int64_t size, entry e) {
  int64_t at = 0;
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && top_k_better(heap[child], heap[child + 1])) child++;
    if (!top_k_better(e, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = e;
}

static void sift_up(entry *heap, int64_t at, entry e) {
  while (at > 0 && top_k_better(heap[(at - 1) / 2], e)) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = e;
}

static void sort_best_first(entry *heap, int64_t size) {
  for (int64_t left = size; left > 1; left--) {
    entry worst = heap[0];
    top_k_sift_down(heap, left - 1, heap[left - 1]);
    heap[left - 1] = worst;
  }
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

typedef struct keys {
  const berth_tensor *in;
  bool is_float, smallest;
} keys;

static void load_keys(const keys *k, int64_t index, int64_t step, int64_t count, int64_t *key) {
  double values[BERTH__BLOCK];
  if (k->is_float) {
    berth__gather_f64(values, k->in->type, k->in->data, index, step, count);
    for (int64_t i = 0; i < count; i++) key[i] = top_k_float_key(values[i]);
  } else {
    berth__gather(BERTH__CLASS_I64, key, k->in->type, k->in->data, index, step, count);
  }
  if (k->in->type == BERTH_U64) /* the top bit inverts the order */
    for (int64_t i = 0; i < count; i++) key[i] ^= INT64_MIN;
  if (k->smallest)
    for (int64_t i = 0; i < count; i++) key[i] = ~key[i];
}

static void best_of_line(const keys *k, int64_t start, const berth__lines *lines, int64_t want, entry *heap) {
  int64_t key[BERTH__BLOCK], size = 0;
  for (int64_t at = 0; at < lines->length && want > 0; at += BERTH__BLOCK) {
    int64_t n = lines->length - at < BERTH__BLOCK ? lines->length - at : BERTH__BLOCK;
    load_keys(k, start + at * lines->inner, lines->inner, n, key);
    for (int64_t i = 0; i < n; i++) {
      entry e = {key[i], at + i};
      if (size < want)
        sift_up(heap, size++, e);
      else if (top_k_better(e, heap[0]))
        top_k_sift_down(heap, size, e);
    }
  }
  sort_best_first(heap, size);
}

static berth_status top_k_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[0], *values = &call->out[0];
  int64_t *indices = call->out[1].data;
  berth__lines from = berth__lines_of(in, call->attrs[BERTH__TOP_K_AXIS].i);
  berth__lines to = berth__lines_of(values, call->attrs[BERTH__TOP_K_AXIS].i);
  keys k = {in, berth__type_is_float(in->type), call->attrs[BERTH__TOP_K_LARGEST].i == 0};
  size_t size = berth_type_size(in->type);
  entry *heap = call->scratch;
  (void)err;
  for (int64_t line = call->begin; line < call->end; line++) {
    int64_t start = berth__line_start(&from, line), out = berth__line_start(&to, line);
    best_of_line(&k, start, &from, to.length, heap);
    for (int64_t i = 0; i < to.length; i++) {
      indices[out + i * to.inner] = heap[i].index;
      berth__copy_line(berth__element(values->data, out + i * to.inner, size), 1,
                       berth__element(in->data, start + heap[i].index * from.inner, size), 1, 1, size);
    }
  }
  return BERTH_OK;
}

static int64_t top_k_items(const berth_op_call *call) {
  berth__lines lines = berth__lines_of(&call->out[0], call->attrs[BERTH__TOP_K_AXIS].i);
  return lines.outer * lines.inner;
}

static uint64_t top_k_scratch(const berth_op_call *call) {
  uint64_t bytes = UINT64_MAX; /* k elements exist, and each has at least a byte: this cannot overflow in practice */
  int64_t k = berth__lines_of(&call->out[0], call->attrs[BERTH__TOP_K_AXIS].i).length;
  (void)berth__mul_u64((uint64_t)k, sizeof(entry), &bytes);
  return bytes;
}

const berth__family berth__family_top_k = {.attrs = attrs_of_top_k,
                                           .n_attrs = 4,
                                           .infer = infer_top_k,
                                           .items = top_k_items,
                                           .scratch = top_k_scratch,
                                           .kernel = top_k_kernel,
                                           .valued = 1u << BERTH__TOP_K_K_OPERAND,
                                           .bounded = 1u << BERTH__TOP_K_K_OPERAND,
                                           .attr_of = {[BERTH__TOP_K_K_OPERAND] = BERTH__TOP_K_K + 1}};
