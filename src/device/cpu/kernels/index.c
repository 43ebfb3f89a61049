/* gather_elements, scatter, gather_nd and scatter_nd: indices are read in place, and elements are moved by their
 * size. */
#include "device/cpu/kernels/chain_steps.h"
#include "ops/gather.h"
#include "ops/line.h"
#include "ops/scatter.h"

/* An index; negative ones count from the end. Reports an index out of range. */
static inline berth_status index_read(const berth_tensor *indices, int64_t position, int64_t extent, uint32_t axis,
                                      int64_t *out, berth_error *err) {
  int64_t index = indices->type == BERTH_I64 ? ((const int64_t *)indices->data)[position]
                                             : (int64_t)((const int32_t *)indices->data)[position];
  if (index < 0) index += extent;
  if ((uint64_t)index >= (uint64_t)extent) return berth__read_index(indices, position, extent, axis, out, err);
  *out = index;
  return BERTH_OK;
}

static inline void index_copy(char *to, const char *from, size_t size) {
  switch (size) { /* with a constant size, a copy is a load and a store */
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, size); break;
  }
}

static int64_t index_product(const int64_t *dim, uint32_t first, uint32_t end) {
  int64_t product = 1;
  for (uint32_t k = first; k < end; k++) product *= dim[k];
  return product;
}

static uint32_t index_axis(int64_t axis, uint32_t rank) { return (uint32_t)(axis < 0 ? axis + rank : axis); }

/* ---- gather and embedding ------------------------------------------------------------------------------------- */

#define PICKS 1024     /* per item */
#define SHORT_SLICE 64 /* bytes: longer slices are lines, which the reference kernel copies as fast */

typedef struct picks {
  uint32_t axis;
  int64_t count, extent, pieces;
  size_t bytes; /* of a slice */
} picks;

static picks picks_of(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__GATHER_X];
  picks p = {.count = berth__count(&call->in[BERTH__GATHER_INDICES])};
  if (berth__call_code(call) == BERTH__OP_gather) p.axis = index_axis(call->attrs[BERTH__GATHER_AXIS].i, x->rank);
  p.extent = x->dim[p.axis];
  p.pieces = (p.count + PICKS - 1) / PICKS;
  p.bytes = (size_t)index_product(x->dim, p.axis + 1, x->rank) * berth_type_size(x->type);
  return p;
}

static bool gather_takes(const berth_op_call *call) {
  const picks p = picks_of(call);
  return p.bytes > 0 && p.bytes <= SHORT_SLICE;
}

static int64_t gather_kernel_items(const berth_op_call *call) {
  const picks p = picks_of(call);
  return index_product(call->in[BERTH__GATHER_X].dim, 0, p.axis) * p.pieces;
}

static berth_status gather_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__GATHER_X], *indices = &call->in[BERTH__GATHER_INDICES];
  const picks p = picks_of(call);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t outer = item / p.pieces, first = item % p.pieces * PICKS;
    const int64_t end = first + PICKS < p.count ? first + PICKS : p.count;
    const char *from = (const char *)x->data + outer * p.extent * (int64_t)p.bytes;
    char *to = (char *)call->out[0].data + (outer * p.count + first) * (int64_t)p.bytes;
    for (int64_t i = first; i < end; i++, to += p.bytes) {
      int64_t index = 0;
      BERTH__TRY(index_read(indices, i, p.extent, p.axis, &index, err));
      index_copy(to, from + index * (int64_t)p.bytes, p.bytes);
    }
  }
  return BERTH_OK;
}

/* ---- gather_elements ------------------------------------------------------------------------------------------ */

/* Lines along the last axis. */
static int64_t gather_elements_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  return index_product(out->dim, 0, out->rank - 1);
}

static bool gather_elements_takes(const berth_op_call *call) { return call->out[0].rank > 0; }

/* Where a line of the result begins in x, ignoring the axis. */
static int64_t gather_elements_start(const berth_tensor *x, const berth_tensor *out, uint32_t axis, int64_t line) {
  int64_t start = 0;
  for (uint32_t k = out->rank - 1; k-- > 0; line /= out->dim[k])
    if (k != axis) start += line % out->dim[k] * x->stride[k];
  return start;
}

static berth_status gather_elements_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *indices = &call->in[1], *out = &call->out[0];
  const uint32_t axis = index_axis(call->attrs[BERTH__GATHER_ELEMENTS_AXIS].i, x->rank), last = out->rank - 1;
  const size_t size = berth_type_size(x->type);
  const int64_t length = out->dim[last], stride = x->stride[axis], step = axis == last ? 0 : 1;
  for (int64_t line = call->begin; line < call->end; line++) {
    const char *from = berth__element(x->data, gather_elements_start(x, out, axis, line), size);
    char *to = berth__element(out->data, line * length, size);
    for (int64_t i = 0; i < length; i++) {
      int64_t index = 0;
      BERTH__TRY(index_read(indices, line * length + i, x->dim[axis], axis, &index, err));
      index_copy(to + i * (int64_t)size, from + (index * stride + i * step) * (int64_t)size, size);
    }
  }
  return BERTH_OK;
}

/* ---- scatter -------------------------------------------------------------------------------------------------- */

#define COLUMNS 256 /* per item, if the axis is not the last */

typedef struct scatter_shape {
  uint32_t axis;
  int64_t outer, extent, rows, inner; /* rows: of the indices, along the axis */
  int64_t pieces;                     /* of the columns after the axis */
} scatter_shape;

static scatter_shape scatter_shape_of(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X];
  scatter_shape s = {.axis = index_axis(call->attrs[BERTH__SCATTER_AXIS].i, x->rank)};
  s.outer = index_product(x->dim, 0, s.axis);
  s.extent = x->dim[s.axis];
  s.rows = call->in[BERTH__SCATTER_INDICES].dim[s.axis];
  s.inner = index_product(x->dim, s.axis + 1, x->rank);
  s.pieces = (s.inner + COLUMNS - 1) / COLUMNS;
  return s;
}

static bool scatter_adds_up(const berth_op_call *call) {
  const berth_type type = call->out[0].type;
  return type == BERTH_F32 || type == BERTH_F64 || type == BERTH_I32 || type == BERTH_I64 || type == BERTH_F16 ||
         type == BERTH_BF16;
}

/* Indices with the shape of x except along the axis; reductions of the types that they are used with. */
static bool scatter_takes(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES];
  const uint32_t axis = index_axis(call->attrs[BERTH__SCATTER_AXIS].i, x->rank);
  for (uint32_t k = 0; k < x->rank; k++)
    if (k != axis && indices->dim[k] != x->dim[k]) return false;
  return berth__reduction_of(call->attrs[BERTH__SCATTER_REDUCTION].s) == BERTH__REDUCTION_NONE || scatter_adds_up(call);
}

static int64_t scatter_items(const berth_op_call *call) {
  const scatter_shape s = scatter_shape_of(call);
  return s.outer * s.pieces;
}

/* How an update is combined with its element: `a` is the element, `b` the update. */
#define COMBINE(c_type, unsigned_type)                                                       \
  do {                                                                                       \
    c_type *a = (c_type *)(void *)to;                                                        \
    const c_type b = *(const c_type *)(const void *)from;                                    \
    switch (r) {                                                                             \
      case BERTH__REDUCTION_ADD: *a = (c_type)((unsigned_type)*a + (unsigned_type)b); break; \
      case BERTH__REDUCTION_MUL: *a = (c_type)((unsigned_type)*a * (unsigned_type)b); break; \
      case BERTH__REDUCTION_MAX: *a = *a != *a || *a > b ? *a : b; break;                    \
      default: *a = *a != *a || *a < b ? *a : b; break;                                      \
    }                                                                                        \
  } while (0);                                                                               \
  break

#define HALVES 256 /* elements converted to f32 at a time */

/* Halves of a slice, rounded after every update; f32 is precise enough for each step to round only once. */
static void index_combine_halves(berth__reduction r, berth_type type, char *to, const char *from, int64_t n) {
  float a[HALVES], b[HALVES];
  for (int64_t at = 0, each; at < n; at += each) {
    each = n - at < HALVES ? n - at : HALVES;
    chain_load(a, type, to + 2 * at, 1, each);
    chain_load(b, type, from + 2 * at, 1, each);
    switch (r) {
      case BERTH__REDUCTION_ADD:
        for (int64_t i = 0; i < each; i++) a[i] += b[i];
        break;
      case BERTH__REDUCTION_MUL:
        for (int64_t i = 0; i < each; i++) a[i] *= b[i];
        break;
      case BERTH__REDUCTION_MAX:
        for (int64_t i = 0; i < each; i++) a[i] = a[i] != a[i] || a[i] > b[i] ? a[i] : b[i];
        break;
      default:
        for (int64_t i = 0; i < each; i++) a[i] = a[i] != a[i] || a[i] < b[i] ? a[i] : b[i];
        break;
    }
    chain_store(to + 2 * at, type, a, each);
  }
}

static inline void index_combine(berth__reduction r, berth_type type, char *to, const char *from, size_t size) {
  if (r == BERTH__REDUCTION_NONE) {
    index_copy(to, from, size);
    return;
  }
  switch (type) {
    case BERTH_F32: COMBINE(float, double); /* the sum of two f32, rounded once, is the same either way */
    case BERTH_F64: COMBINE(double, double);
    case BERTH_I32: COMBINE(int32_t, uint32_t);
    case BERTH_F16:
    case BERTH_BF16: index_combine_halves(r, type, to, from, 1); break;
    default: COMBINE(int64_t, uint64_t);
  }
}

static berth_status scatter_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES],
                     *updates = &call->in[BERTH__SCATTER_UPDATES], *out = &call->out[0];
  const scatter_shape s = scatter_shape_of(call);
  const berth__reduction r = berth__reduction_of(call->attrs[BERTH__SCATTER_REDUCTION].s);
  const size_t size = berth_type_size(x->type);
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t outer = item / s.pieces, first = item % s.pieces * COLUMNS;
    const int64_t n = s.inner - first < COLUMNS ? s.inner - first : COLUMNS, base = outer * s.extent * s.inner + first;
    for (int64_t k = 0; k < s.extent && x->data != out->data; k++)
      memcpy(berth__element(out->data, base + k * s.inner, size), berth__element(x->data, base + k * s.inner, size),
             (size_t)n * size);
    for (int64_t k = 0; k < s.rows; k++)
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = (outer * s.rows + k) * s.inner + first + i;
        int64_t index = 0;
        BERTH__TRY(index_read(indices, at, s.extent, s.axis, &index, err));
        index_combine(r, x->type, berth__element(out->data, base + index * s.inner + i, size),
                      berth__element(updates->data, at, size), size);
      }
  }
  return BERTH_OK;
}

/* ---- gather_nd ------------------------------------------------------------------------------------------------ */

#define TUPLES 256 /* per item */

typedef struct tuples {
  uint32_t batch, width;
  int64_t count, in_batch; /* tuples; those that share a position on the batch axes */
  int64_t slice;           /* elements */
} tuples;

static tuples tuples_of(const berth_op_call *call) {
  const berth_tensor *x = &call->in[0], *indices = &call->in[1];
  tuples t = {.batch = (uint32_t)call->attrs[BERTH__GATHER_ND_BATCH_DIMS].i,
              .width = (uint32_t)indices->dim[indices->rank - 1]};
  t.count = index_product(indices->dim, 0, indices->rank - 1);
  t.in_batch = index_product(indices->dim, t.batch, indices->rank - 1);
  t.slice = index_product(x->dim, t.batch + t.width, x->rank);
  return t;
}

static int64_t gather_nd_kernel_items(const berth_op_call *call) {
  return (tuples_of(call).count + TUPLES - 1) / TUPLES;
}

static berth_status gather_nd_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *indices = &call->in[1];
  const tuples t = tuples_of(call);
  const size_t size = berth_type_size(x->type), bytes = (size_t)t.slice * size;
  const int64_t end = call->end * TUPLES < t.count ? call->end * TUPLES : t.count;
  const int64_t of_batch = index_product(x->dim, t.batch, x->rank); /* an axis of extent 1 may have any stride */
  for (int64_t at = call->begin * TUPLES; at < end; at++) {
    int64_t from = t.batch > 0 ? at / t.in_batch * of_batch : 0;
    for (uint32_t k = 0; k < t.width; k++) {
      int64_t index = 0;
      BERTH__TRY(index_read(indices, at * t.width + k, x->dim[t.batch + k], t.batch + k, &index, err));
      from += index * x->stride[t.batch + k];
    }
    index_copy(berth__element(call->out[0].data, at * t.slice, size), berth__element(x->data, from, size), bytes);
  }
  return BERTH_OK;
}

/* ---- scatter_nd ----------------------------------------------------------------------------------------------- */

#define SHARES 8 /* at most: each reads all tuples */

static int64_t scatter_nd_slices(const berth_op_call *call, uint32_t *width) {
  const berth_tensor *indices = &call->in[BERTH__SCATTER_INDICES];
  *width = (uint32_t)indices->dim[indices->rank - 1];
  return index_product(call->out[0].dim, 0, *width);
}

static bool scatter_nd_takes(const berth_op_call *call) {
  return berth__reduction_of(call->attrs[BERTH__SCATTER_ND_REDUCTION].s) == BERTH__REDUCTION_NONE ||
         scatter_adds_up(call);
}

/* Items are shares of the slices of the result, so that all updates of an element belong to one item. */
static int64_t scatter_nd_kernel_items(const berth_op_call *call) {
  uint32_t width;
  const int64_t slices = scatter_nd_slices(call, &width);
  return slices < SHARES ? slices : SHARES;
}

static berth_status scatter_nd_share(const berth_op_call *call, int64_t begin, int64_t end, uint32_t width,
                                     berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__SCATTER_X], *indices = &call->in[BERTH__SCATTER_INDICES],
                     *updates = &call->in[BERTH__SCATTER_UPDATES], *out = &call->out[0];
  const berth__reduction r = berth__reduction_of(call->attrs[BERTH__SCATTER_ND_REDUCTION].s);
  const size_t size = berth_type_size(x->type);
  const int64_t slice = index_product(out->dim, width, out->rank), n = berth__count(indices) / width;
  if (x->data != out->data)
    memcpy(berth__element(out->data, begin * slice, size), berth__element(x->data, begin * slice, size),
           (size_t)((end - begin) * slice) * size);
  for (int64_t at = 0; at < n; at++) {
    int64_t to = 0, index = 0;
    for (uint32_t k = 0; k < width; k++) {
      BERTH__TRY(index_read(indices, at * width + k, x->dim[k], k, &index, err));
      to = to * x->dim[k] + index;
    }
    if (to < begin || to >= end) continue;
    char *first = berth__element(out->data, to * slice, size),
         *update = berth__element(updates->data, at * slice, size);
    if (r == BERTH__REDUCTION_NONE)
      index_copy(first, update, (size_t)slice * size);
    else if (x->type == BERTH_F16 || x->type == BERTH_BF16)
      index_combine_halves(r, x->type, first, update, slice);
    else
      for (int64_t i = 0; i < slice; i++)
        index_combine(r, x->type, first + i * (int64_t)size, update + i * (int64_t)size, size);
  }
  return BERTH_OK;
}

static berth_status scatter_nd_run(const berth_op_call *call, berth_error *err) {
  uint32_t width;
  const int64_t slices = scatter_nd_slices(call, &width), items = scatter_nd_kernel_items(call);
  const int64_t begin = call->begin * slices / items, end = call->end * slices / items;
  return begin < end ? scatter_nd_share(call, begin, end, width, err) : BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_index)[] = {
    {.name = "gather short",
     .code = BERTH__OP_gather,
     .takes = gather_takes,
     .items = gather_kernel_items,
     .run = gather_run},
    {.name = "embedding short",
     .code = BERTH__OP_embedding,
     .takes = gather_takes,
     .items = gather_kernel_items,
     .run = gather_run},
    {.name = "gather_elements",
     .code = BERTH__OP_gather_elements,
     .takes = gather_elements_takes,
     .items = gather_elements_items,
     .run = gather_elements_run},
    {.name = "scatter", .code = BERTH__OP_scatter, .takes = scatter_takes, .items = scatter_items, .run = scatter_run},
    {.name = "gather_nd", .code = BERTH__OP_gather_nd, .items = gather_nd_kernel_items, .run = gather_nd_run},
    {.name = "scatter_nd",
     .code = BERTH__OP_scatter_nd,
     .takes = scatter_nd_takes,
     .items = scatter_nd_kernel_items,
     .run = scatter_nd_run},
    {0},
};
