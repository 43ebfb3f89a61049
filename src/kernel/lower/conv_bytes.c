/* Convolutions of bytes, which have their channels last: qconv_last and qdepthwise. */
#include "ops/conv_last.h"

#include "kernel/lower/bytes.h"

/* Rows are the pixels of the result. */
static void describe_pixels(berth__tile *tile, const berth__last *last) {
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

/* The number of a tap, axis by axis, in steps of `each` rows. */
static void count_taps(berth__tile *tile, const berth__last *last, int64_t each) {
  const berth__window_axis *w = last->window.axis;
  tile->right.depth[0] = w[1].kernel * w[2].kernel * each;
  tile->right.depth[1] = w[2].kernel * each;
  tile->right.depth[2] = each;
}

/* A weight that pack_weights_i8 made: depth is counted in rows. */
static void describe_packed(berth__tile *tile, const berth__last *last, int64_t group) {
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
  tile->right.panel = panel;
  tile->right.panel_stride = weight->stride[0];
  tile->right.line[0] = weight->stride[2];
  tile->right.batch[0] = (outputs + panel - 1) / panel * weight->stride[0];
}

/* Every channel is a batch of its own with one column. */
static void describe_depthwise(berth__tile *tile, const berth__last *last) {
  const berth_tensor *weight = &tile->l->call->in[1];
  const uint32_t spatial = weight->rank - 1, missing = BERTH__WINDOW_AXES - spatial;
  berth__tile_axis(&tile->batch, last->channels, tile->l->call->out[0].rank - 1, 1);
  berth__tile_axis(&tile->columns, 1, 0, 0);
  tile->left.batch[0] = last->channel_stride;
  tile->right.batch[0] = weight->stride[spatial];
  for (uint32_t i = missing; i < BERTH__WINDOW_AXES; i++) tile->right.depth[i] = weight->stride[i - missing];
}

berth_status berth__lower_qconv_last(berth__lowering *l, berth_error *err) {
  const int64_t group = l->call->attrs[BERTH__QCONV_GROUP].i;
  berth__last last;
  berth__tile tile;
  berth__last_read(l->call, &last);
  berth__tile_init(&tile, l, BERTH__NUM_I32);
  describe_pixels(&tile, &last);
  describe_packed(&tile, &last, group);
  tile.right.fours = l->call->in[1].stride[1];
  return berth__tile_lower_bytes(&tile, last.outputs / group, 1, err);
}

berth_status berth__lower_qdepthwise(berth__lowering *l, berth_error *err) {
  berth__last last;
  berth__tile tile;
  berth__last_read(l->call, &last);
  berth__tile_init(&tile, l, BERTH__NUM_I32);
  describe_pixels(&tile, &last);
  describe_depthwise(&tile, &last);
  return berth__tile_lower_bytes(&tile, 1, 0, err);
}
