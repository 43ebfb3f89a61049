/* bitcast: the same bits as elements of another type of the same size. */
#include "ops/copy.h"
#include "ops/registry.h"

static const berth_attr attrs_of_bitcast[] = {[BERTH__BITCAST_TO] = {.name = "to", .kind = BERTH_ATTR_STRING, .s = ""}};

static berth_status bitcast_infer(berth__infer *infer, berth_error *err) {
  const char *name = infer->attrs[BERTH__BITCAST_TO].s;
  const berth_type from = infer->in_type[0], to = name ? berth_type_from_name(name) : BERTH_TYPE_NONE;
  if (to == BERTH_TYPE_NONE)
    return berth__fail(err, BERTH_INVALID, "attribute 'to' is '%s', expected the name of a type such as f32 or i64",
                       name ? name : "");
  if (berth_type_size(from) != berth_type_size(to))
    return berth__fail(err, BERTH_INVALID, "elements of type %s have %zu byte%s, those of %s have %zu",
                       berth_type_name(from), berth_type_size(from), berth__plural(berth_type_size(from)), name,
                       berth_type_size(to));
  infer->out_type[0] = to;
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

/* A stored bool must be 0 or 1. */
static void bitcast_to_bool(const berth_op_call *call) {
  uint8_t *out = call->out[0].data;
  for (int64_t i = call->begin; i < call->end; i++) out[i] = out[i] != 0;
}

static berth_status bitcast_kernel(const berth_op_call *call, berth_error *err) {
  if (call->in[0].data != call->out[0].data) BERTH__TRY(berth__copy_kernel(call, err));
  if (call->out[0].type == BERTH_BOOL && call->in[0].type != BERTH_BOOL) bitcast_to_bool(call);
  return BERTH_OK;
}

const berth__family berth__family_bitcast = {.attrs = attrs_of_bitcast,
                                             .n_attrs = 1,
                                             .required = 1u << BERTH__BITCAST_TO,
                                             .infer = bitcast_infer,
                                             .items = berth__copy_items,
                                             .kernel = bitcast_kernel};
