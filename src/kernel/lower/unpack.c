/* unpack: elements that lie in blocks as f32, a thread each. A block is bytes; its scale is seen as an f16. */
#include "base/blocks.h"
#include "kernel/lower.h"

/* The block that an element lies in, and which of its elements it is. */
typedef struct spot {
  const berth__lowering *l;
  berth__kernel *k;
  int64_t bytes; /* of a block */
  berth__x block, lane;
} spot;

static berth__x unpack_byte(const spot *s, berth_type type, int64_t first, berth__x index) {
  const berth__x at = berth__x_add(s->k, berth__x_affine(s->k, s->block, s->bytes, first), index);
  return berth__x_load(s->k, berth__l_buffer(s->l, s->k, berth__operand_in(0), type), at);
}

/* Half words: blocks have an even number of bytes. */
static berth__x unpack_scale(const spot *s, int64_t first) {
  const berth__x at = berth__x_affine(s->k, s->block, s->bytes / 2, first / 2);
  return berth__x_load(s->k, berth__l_buffer(s->l, s->k, berth__operand_in(0), BERTH_F16), at);
}

static berth__x unpack_q8_0(const spot *s) {
  const berth__x q = unpack_byte(s, BERTH_I8, 2, s->lane);
  return berth__x_mul(s->k, berth__x_convert(s->k, BERTH__NUM_F32, q), unpack_scale(s, 0));
}

/* Elements 0 to 15 in the low halves of the bytes, 16 to 31 in the high ones. */
static berth__x unpack_q4_0(const spot *s) {
  berth__kernel *k = s->k;
  const berth__x half = berth__x_i32(k, 16);
  const berth__x byte = unpack_byte(s, BERTH_U8, 2, berth__x_rem(k, s->lane, half));
  const berth__x by = berth__x_affine(k, berth__x_div(k, s->lane, half), 4, 0);
  const berth__x q = berth__x_and(k, berth__x2(k, BERTH__INST_shr, byte, by), berth__x_u32(k, 15));
  const berth__x number = berth__x_affine(k, berth__x_convert(k, BERTH__NUM_I32, q), 1, -8);
  return berth__x_mul(k, berth__x_convert(k, BERTH__NUM_F32, number), unpack_scale(s, 0));
}

static const struct {
  berth_type type;
  berth__x (*value)(const spot *s);
} rows[] = {{BERTH_Q8_0, unpack_q8_0}, {BERTH_Q4_0, unpack_q4_0}};

berth_status berth__lower_unpack(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *out = &l->call->out[0];
  const berth_storage storage = berth_type_storage(x->type);
  if (berth__count(out) == 0) return BERTH_OK;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    if (rows[r].type != x->type) continue;
    berth__kernel *k = berth__l_begin(l, berth_type_name(x->type));
    const berth__x index = berth__l_each(l, k, berth__count(out)), place = berth__l_place_flat(k, x, index);
    const berth__x block = berth__x_i32(k, storage.elements);
    const spot s = {.l = l,
                    .k = k,
                    .bytes = storage.bytes,
                    .block = berth__x_div(k, place, block),
                    .lane = berth__x_rem(k, place, block)};
    berth__l_store(l, k, 0, berth__l_place_flat(k, out, index), rows[r].value(&s));
    return berth__l_end(l, k, err);
  }
  return berth__fail(err, BERTH_UNSUPPORTED, "blocks of %s have no kernel in the kernel language",
                     berth_type_name(x->type));
}
