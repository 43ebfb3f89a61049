/* int8 convolutions, which have their channels last: qconv_last and qdepthwise. */
#include "kernel/lower/bytes.h"
#include "kernel/lower/conv_last.h"

/* Every channel is a batch with one column. */
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
  berth__l_last_pixels(&tile, &last);
  berth__l_last_packed(&tile, &last, group);
  tile.right.fours = l->call->in[1].stride[1];
  return berth__tile_lower_bytes(&tile, last.outputs / group, 1, err);
}

berth_status berth__lower_qdepthwise(berth__lowering *l, berth_error *err) {
  berth__last last;
  berth__tile tile;
  berth__last_read(l->call, &last);
  berth__tile_init(&tile, l, BERTH__NUM_I32);
  berth__l_last_pixels(&tile, &last);
  describe_depthwise(&tile, &last);
  return berth__tile_lower_bytes(&tile, 1, 0, err);
}
