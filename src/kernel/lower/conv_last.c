/* conv_last, with weights packed by pack_weights. */
#include "kernel/lower/conv_last.h"

#include "ops/epilogue.h"

/* Rows are the pixels of the result. */
void berth__l_last_pixels(berth__tile *tile, const berth__last *last) {
  const uint32_t missing = BERTH__WINDOW_AXES - (tile->l->call->out[0].rank - 2);
  berth__tile_axis(&tile->rows, last->images, 0, 1);
  tile->left.line[0] = last->image_stride;
  tile->left.window = &last->window;
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++) {
    const bool is_there = i >= missing;
    berth__tile_axis(&tile->rows, last->window.axis[i].out, is_there ? 1 + i - missing : 0, is_there ? 1 : 0);
    berth__tile_axis(&tile->depth, last->window.axis[i].kernel, 0, 0);
    tile->left.window_stride[i] = last->axis_stride[i];
  }
}

/* Counts taps axis by axis, in steps of `each` rows. */
static void count_taps(berth__tile *tile, const berth__last *last, int64_t each) {
  const berth__window_axis *w = last->window.axis;
  tile->right.depth[0] = w[1].kernel * w[2].kernel * each;
  tile->right.depth[1] = w[2].kernel * each;
  tile->right.depth[2] = each;
}

/* A panel that contains all columns of a group is a plain matrix. */
void berth__l_last_packed(berth__tile *tile, const berth__last *last, int64_t group) {
  const berth_tensor *weight = &tile->l->call->in[1];
  const uint32_t axis = tile->l->call->out[0].rank - 1;
  const int64_t each = last->channels / group, outputs = last->outputs / group, panel = weight->dim[2];
  berth__tile_axis(&tile->batch, group, axis, outputs);
  berth__tile_axis(&tile->columns, outputs, axis, 1);
  berth__tile_axis(&tile->depth, each, 0, 0);
  tile->left.batch[0] = each * last->channel_stride;
  tile->left.depth[3] = last->channel_stride;
  count_taps(tile, last, each);
  tile->right.depth[3] = 1;
  tile->right.panel = panel < outputs ? panel : 0;
  tile->right.panel_stride = weight->stride[0];
  tile->right.line[0] = weight->stride[2];
  tile->right.batch[0] = (outputs + panel - 1) / panel * weight->stride[0];
}

/* The tile keeps a pointer to the window of `last`. */
static void last_describe(berth__tile *tile, berth__lowering *l, berth__last *last) {
  berth__last_read(l->call, last);
  berth__tile_init(tile, l, BERTH__NUM_F32);
  tile->has_weight = true;
  berth__l_last_pixels(tile, last);
  berth__l_last_packed(tile, last, l->call->attrs[BERTH__LAST_GROUP].i);
  tile->right.depth[3] = l->call->in[BERTH__LAST_WEIGHT].stride[1];
  for (uint32_t i = 0; i < BERTH__WINDOW_AXES; i++) tile->right.depth[i] *= tile->right.depth[3];
}

uint64_t berth__scratch_of_conv_last(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__lowering l = {.limits = limits, .call = call};
  berth__tile tile;
  berth__last last;
  last_describe(&tile, &l, &last);
  return berth__tile_scratch(&tile);
}

berth_status berth__lower_conv_last(berth__lowering *l, berth_error *err) {
  const berth_attr *attr = l->call->attrs;
  berth__last last;
  berth__tile tile;
  berth__tile_epilogue epilogue;
  last_describe(&tile, l, &last);
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, BERTH__LAST_BIAS, l->call->out[0].rank - 1,
                                       &attr[BERTH__LAST_ADDS], berth__epilogue_first(&attr[BERTH__LAST_ADDS]),
                                       &attr[BERTH__LAST_CODE], &attr[BERTH__LAST_NUMBERS], err));
  return berth__tile_lower_sections(&tile, err);
}
