/* pack_weights: lays out a weight for products, once, in the prelude. The last axis of w is the columns, all others
 * together are the rows, row-major. The columns are divided into `groups` equal groups and each of these into panels of
 * `panel` columns, the last one padded with zeros: [panels, rows, panel]. scale? has a factor per column or one for
 * all; zero? (of the type of w) is subtracted from elements first: so an int8 weight is never in memory as f32. With
 * `to` = "f16" or "bf16" elements are rounded to that type; for bf16 two rows of a column are adjacent: [panels,
 * ceil(rows / 2), panel, 2]. An item is one panel. */
#include <inttypes.h>
#include <string.h>

#include "ops/operand.h"
#include "ops/product.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__PACK_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
                                   [BERTH__PACK_GROUPS] = {.name = "groups", .kind = BERTH_ATTR_INT, .i = 1},
                                   [BERTH__PACK_TO] = {.name = "to", .kind = BERTH_ATTR_STRING, .s = "f32"}};

static berth_status check_per_column(const berth__infer *infer, uint32_t operand, const char *what, berth_error *err) {
  const berth__shape *w = &infer->in_shape[BERTH__PACK_WEIGHT];
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, operand, 1, 1, err));
  if (infer->in_shape[operand].dim[0] == 1) return BERTH_OK;
  return berth__same_dim(w->dim[w->rank - 1], infer->in_shape[operand].dim[0], what, &same, err);
}

static berth_status pack_weights_check(const berth__infer *infer, berth_error *err) {
  const berth_type type = infer->in_type[BERTH__PACK_WEIGHT];
  if (type != BERTH_I8 && type != BERTH_U8) BERTH__TRY(berth__want_float(infer, BERTH__PACK_WEIGHT, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__PACK_WEIGHT, 2, BERTH_MAX_RANK, err));
  if (berth__infer_has(infer, BERTH__PACK_SCALE)) {
    BERTH__TRY(berth__want_float(infer, BERTH__PACK_SCALE, err));
    BERTH__TRY(check_per_column(infer, BERTH__PACK_SCALE, "columns and scale", err));
  }
  if (!berth__infer_has(infer, BERTH__PACK_ZERO)) return BERTH_OK;
  BERTH__TRY(berth__want_type(infer, BERTH__PACK_ZERO, type, err));
  return check_per_column(infer, BERTH__PACK_ZERO, "columns and zero", err);
}

static berth_status count_panels(int64_t columns, int64_t panel, int64_t groups, int64_t *out, berth_error *err) {
  for (uint32_t k = 0; k < 2; k++)
    if ((k == BERTH__PACK_PANEL ? panel : groups) < 1)
      return berth__fail(err, BERTH_INVALID, "`%s` is %" PRId64 ", expected 1 or more", attrs[k].name,
                         k == BERTH__PACK_PANEL ? panel : groups);
  *out = BERTH__DIM_UNKNOWN;
  if (!berth__dim_is_fixed(columns)) return BERTH_OK;
  if (columns % groups != 0)
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " columns do not split into %" PRId64 " groups", columns, groups);
  const int64_t each = columns / groups;
  return berth__dim_mul(groups, each / panel + (each % panel != 0), out, err);
}

static berth_status pack_weights_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *w = &infer->in_shape[0];
  const int64_t panel = infer->attrs[BERTH__PACK_PANEL].i;
  int64_t rows = 1, panels;
  BERTH__TRY(pack_weights_check(infer, err));
  BERTH__TRY(count_panels(w->dim[w->rank - 1], panel, infer->attrs[BERTH__PACK_GROUPS].i, &panels, err));
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) BERTH__TRY(berth__dim_mul(rows, w->dim[axis], &rows, err));
  infer->out_type[0] = berth_type_from_name(infer->attrs[BERTH__PACK_TO].s);
  infer->out_shape[0] = (berth__shape){.rank = 3, .dim = {panels, rows, panel}};
  if (infer->out_type[0] == BERTH_F32 || infer->out_type[0] == BERTH_F16) return BERTH_OK;
  if (infer->out_type[0] != BERTH_BF16)
    return berth__fail(err, BERTH_INVALID, "attribute 'to' is '%s', expected f32, f16 or bf16",
                       infer->attrs[BERTH__PACK_TO].s);
  rows = berth__dim_is_fixed(rows) ? berth__bf16_pairs(rows) : BERTH__DIM_UNKNOWN;
  infer->out_shape[0] = (berth__shape){.rank = 4, .dim = {panels, rows, panel, 2}};
  return BERTH_OK;
}

static int64_t pack_weights_items(const berth_op_call *call) { return call->out[0].dim[0]; }

/* May be unaligned: weights are read directly from their file. */
static double pack_weights_load(const berth_tensor *tensor, int64_t index) {
  uint64_t bytes = 0;
  const size_t size = berth_type_size(tensor->type);
  const berth_tensor one = {.data = &bytes, .type = tensor->type};
  memcpy(&bytes, (const char *)tensor->data + (size_t)index * size, size);
  return berth__load_f64(&one, 0);
}

/* An operand with one element per column, or one for all. */
static double per_column(const berth_op_call *call, uint32_t operand, int64_t column, double without) {
  const berth_tensor *of = &call->in[operand];
  if (!berth__call_has(call, operand)) return without;
  return pack_weights_load(of, of->dim[0] == 1 ? 0 : column * of->stride[0]);
}

static double weight(const berth_op_call *call, int64_t row, int64_t column) {
  const berth_tensor *w = &call->in[BERTH__PACK_WEIGHT];
  int64_t at = column * w->stride[w->rank - 1];
  for (uint32_t axis = w->rank - 1; axis-- > 0; row /= w->dim[axis]) at += row % w->dim[axis] * w->stride[axis];
  return berth__packed_weight((pack_weights_load(w, at) - per_column(call, BERTH__PACK_ZERO, column, 0)) *
                              per_column(call, BERTH__PACK_SCALE, column, 1));
}

static berth_status pack_weights_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *w = &call->in[0], *out = &call->out[0];
  const int64_t groups = call->attrs[BERTH__PACK_GROUPS].i, each = w->dim[w->rank - 1] / groups;
  const int64_t beside = out->rank == 4 ? 2 : 1; /* adjacent rows of a column */
  const int64_t width = out->dim[2], panels = out->dim[0] / groups, size = out->dim[1] * width * beside;
  int64_t rows = 1;
  (void)err;
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) rows *= w->dim[axis];
  for (int64_t panel = call->begin; panel < call->end; panel++)
    for (int64_t i = 0; i < size; i++) {
      const int64_t at = panel % panels * width + i / beside % width; /* index in its group */
      const int64_t row = i / (width * beside) * beside + i % beside;
      const bool is_there = at < each && row < rows;
      berth__store_f64(out, panel * size + i, is_there ? weight(call, row, panel / panels * each + at) : 0);
    }
  return BERTH_OK;
}

const berth__family berth__family_pack_weights = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__PACK_PANEL,
    .takes_unaligned = true,
    .packs = true,
    .infer = pack_weights_infer,
    .items = pack_weights_items,
    .kernel = pack_weights_kernel,
};
