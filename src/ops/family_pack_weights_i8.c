/* pack_weights_i8: lays out an int8 weight for products, once, in the prelude. The last axis of w is the columns, all
 * others together are the rows, row-major. Columns are divided into `groups` equal groups and each of these into panels
 * of `panel` columns, the last one padded with zeros: [panels, ceil(rows / 4) + 1, panel, 4], see bytes.h. An item is
 * one panel. */
#include <inttypes.h>

#include "ops/bytes.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__PACK_I8_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
                                   [BERTH__PACK_I8_GROUPS] = {.name = "groups", .kind = BERTH_ATTR_INT, .i = 1}};

static berth_status pack_weights_i8_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *w = &infer->in_shape[0];
  const int64_t panel = infer->attrs[BERTH__PACK_I8_PANEL].i, groups = infer->attrs[BERTH__PACK_I8_GROUPS].i,
                columns = w->dim[w->rank - 1];
  int64_t rows = 1, panels = BERTH__DIM_UNKNOWN;
  if (infer->in_type[0] != BERTH_U8 && infer->in_type[0] != BERTH_I8)
    return berth__fail(err, BERTH_INVALID, "operand 0 has type %s, expected u8 or i8",
                       berth_type_name(infer->in_type[0]));
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  for (uint32_t k = 0; k < 2; k++)
    if (infer->attrs[k].i < 1)
      return berth__fail(err, BERTH_INVALID, "`%s` is %" PRId64 ", expected 1 or more", attrs[k].name,
                         infer->attrs[k].i);
  if (berth__dim_is_fixed(columns) && columns % groups != 0)
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " columns do not split into %" PRId64 " groups", columns, groups);
  if (berth__dim_is_fixed(columns))
    BERTH__TRY(berth__dim_mul(groups, columns / groups / panel + (columns / groups % panel != 0), &panels, err));
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) BERTH__TRY(berth__dim_mul(rows, w->dim[axis], &rows, err));
  infer->out_type[0] = BERTH_I8;
  infer->out_shape[0] = (berth__shape){.rank = 4, .dim = {panels, BERTH__DIM_UNKNOWN, panel, 4}};
  if (berth__dim_is_fixed(rows)) infer->out_shape[0].dim[1] = berth__bytes_groups(rows) + 1;
  return BERTH_OK;
}

static int64_t pack_weights_i8_items(const berth_op_call *call) { return call->out[0].dim[0]; }

static int64_t pack_weights_i8_row_at(const berth_tensor *w, int64_t row) {
  int64_t at = 0;
  for (uint32_t axis = w->rank - 1; axis-- > 0; row /= w->dim[axis]) at += row % w->dim[axis] * w->stride[axis];
  return at;
}

/* `n` columns from `first` on; the panel is initially zero. */
static void pack_panel(const berth_tensor *w, int64_t first, int64_t n, int64_t width, int64_t groups, int8_t *panel) {
  const uint8_t *bytes = w->data;
  const uint8_t flip = w->type == BERTH_U8 ? BERTH__BYTES_SHIFT : 0; /* flipping the top bit gives x - 128 */
  const int64_t step = w->stride[w->rank - 1];
  int64_t rows = 1;
  int8_t *sums = panel + (groups - 1) * width * 4;
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) rows *= w->dim[axis];
  for (int64_t row = 0; row < rows; row++) {
    const uint8_t *from = bytes + pack_weights_i8_row_at(w, row) + first * step;
    int8_t *to = panel + row / 4 * width * 4 + row % 4;
    for (int64_t i = 0; i < n; i++) {
      const uint8_t stored = from[i * step] ^ flip;
      memcpy(to + i * 4, &stored, 1);
    }
  }
  for (int64_t i = 0; i < n; i++) {
    int32_t sum = 0;
    for (int64_t row = 0; row < rows; row++) sum += panel[(row / 4 * width + i) * 4 + row % 4];
    memcpy(sums + i * 4, &sum, sizeof sum);
  }
}

static berth_status pack_weights_i8_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *w = &call->in[0], *out = &call->out[0];
  const int64_t split = call->attrs[BERTH__PACK_I8_GROUPS].i, each = w->dim[w->rank - 1] / split;
  const int64_t groups = out->dim[1], width = out->dim[2], panels = out->dim[0] / split;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    int8_t *panel = (int8_t *)out->data + item * groups * width * 4;
    const int64_t first = item % panels * width, n = each - first < width ? each - first : width;
    memset(panel, 0, (size_t)(groups * width * 4));
    pack_panel(w, item / panels * each + first, n, width, groups, panel);
  }
  return BERTH_OK;
}

const berth__family berth__family_pack_weights_i8 = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__PACK_I8_PANEL,
    .takes_unaligned = true,
    .packs = true,
    .infer = pack_weights_i8_infer,
    .items = pack_weights_i8_items,
    .kernel = pack_weights_i8_kernel,
};
