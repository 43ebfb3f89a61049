/* Builds instructions that read and write buffers, arrays and variables. Each of them is a new instruction. */
#include "kernel/maker.h"

static berth__x kernel_access_put(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t bits,
                                  berth__x a, berth__x b) {
  berth__inst inst = {.code = (uint8_t)code, .type = (uint8_t)type, .bits = bits, .in = {a, b, BERTH__X_NONE}};
  berth__range_of_type(type, &inst.low, &inst.high);
  return berth__maker_put(k, &inst);
}

berth__number berth__storage_number(berth__storage storage) {
  switch (storage) {
    case BERTH_I8:
    case BERTH_I16:
    case BERTH_I32: return BERTH__NUM_I32;
    case BERTH_U8:
    case BERTH_U16:
    case BERTH_U32:
    case BERTH_BOOL: return BERTH__NUM_U32;
    default: return BERTH__NUM_F32;
  }
}

/* The nearest bf16, ties to even; NaN stays NaN. */
static berth__x pack_bf16(berth__kernel *k, berth__x value) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, value), by = berth__x_u32(k, 16);
  const berth__x odd = berth__x_and(k, berth__x2(k, BERTH__INST_shr, bits, by), berth__x_u32(k, 1));
  const berth__x raised = berth__x_add(k, berth__x_add(k, bits, berth__x_u32(k, 0x7fff)), odd);
  const berth__x quiet = berth__x_or(k, bits, berth__x_u32(k, 0x400000));
  return berth__x2(k, BERTH__INST_shr, berth__x_select(k, berth__x_is_nan(k, value), quiet, raised), by);
}

berth__x berth__x_pack(berth__kernel *k, berth__storage storage, berth__x value) {
  if (k == NULL || k->status != BERTH_OK) return BERTH__X_NONE;
  if (storage == BERTH_F16) return berth__x1(k, BERTH__INST_pack_half, value);
  if (storage == BERTH_BF16) return pack_bf16(k, value);
  const uint32_t per_word = berth__storage_per_word(storage);
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, value);
  return per_word == 1 ? bits : berth__x_and(k, bits, berth__x_u32(k, per_word == 2 ? 0xffff : 0xff));
}

berth__x berth__x_pack_pair(berth__kernel *k, berth__x first, berth__x second) {
  const berth__x in[2] = {first, second};
  if (!berth__maker_accepts(k, BERTH__INST_pack_pair, 2, in)) return BERTH__X_NONE;
  if (berth__maker_type(k, first) != BERTH__NUM_F32 || berth__maker_type(k, second) != BERTH__NUM_F32)
    return berth__maker_mistake(k, BERTH__INST_pack_pair, "it packs two f32");
  return kernel_access_put(k, BERTH__INST_pack_pair, BERTH__NUM_U32, 0, first, second);
}

/* The range of integers of fewer than 32 bits follows from their type. */
static berth__x kernel_access_put_load(berth__kernel *k, uint32_t buffer, berth__x index) {
  const berth__storage storage = k->buffers[buffer].storage;
  const berth__number type = berth__storage_number(storage);
  const int64_t values = (int64_t)1 << (32 / berth__storage_per_word(storage));
  berth__inst inst = {
      .code = BERTH__INST_load, .type = (uint8_t)type, .bits = buffer, .in = {index, BERTH__X_NONE, BERTH__X_NONE}};
  berth__range_of_type(type, &inst.low, &inst.high);
  if (type == BERTH__NUM_I32) inst.low = -values / 2;
  if (type != BERTH__NUM_F32) inst.high = inst.low + values - 1;
  return berth__maker_put(k, &inst);
}

/* Converts an element of a buffer to its position in the buffer's words. */
static berth__x skipped(berth__kernel *k, uint32_t buffer, berth__x index) {
  return k->buffers[buffer].skip != 0 ? berth__x_affine(k, index, 1, k->buffers[buffer].skip) : index;
}

/* Whether the operands can be used, `which` is less than n, and the index is an integer of index arithmetic. */
static bool accepts(berth__kernel *k, berth__inst_code code, uint32_t n_in, const berth__x *in, uint32_t which,
                    uint32_t n) {
  if (!berth__maker_accepts(k, code, n_in, in)) return false;
  if (which >= n) berth__maker_mistake(k, code, "there is no such buffer or array");
  if (berth__maker_type(k, in[0]) != BERTH__NUM_I32) berth__maker_mistake(k, code, "an index must be i32");
  return k->status == BERTH_OK;
}

berth__x berth__x_load(berth__kernel *k, uint32_t buffer, berth__x index) {
  if (k == NULL || !accepts(k, BERTH__INST_load, 1, &index, buffer, k->n_buffers)) return BERTH__X_NONE;
  k->buffers[buffer].is_read = true;
  index = skipped(k, buffer, index);
  return kernel_access_put_load(k, buffer, index);
}

berth__x berth__x_quad(berth__kernel *k, uint32_t buffer, berth__x index) {
  if (k == NULL || !accepts(k, BERTH__INST_quad, 1, &index, buffer, k->n_buffers)) return BERTH__X_NONE;
  if (berth__storage_per_word(k->buffers[buffer].storage) != 1)
    return berth__maker_mistake(k, BERTH__INST_quad, "it is for buffers of whole words");
  k->buffers[buffer].is_read = true;
  return kernel_access_put(k, BERTH__INST_quad, BERTH__NUM_U32, buffer, index, BERTH__X_NONE);
}

berth__x berth__x_part(berth__kernel *k, berth__x quad, uint32_t which) {
  const berth__x number = berth__x_u32(k, which);
  if (!berth__maker_accepts(k, BERTH__INST_part, 1, &quad)) return BERTH__X_NONE;
  if (k->insts[quad].code != BERTH__INST_quad || which > 3)
    return berth__maker_mistake(k, BERTH__INST_part, "it is one of the four parts of a quad");
  const uint32_t buffer = k->insts[quad].bits;
  return kernel_access_put(k, BERTH__INST_part, berth__storage_number(k->buffers[buffer].storage), buffer, quad,
                           number);
}

void berth__x_store(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value) {
  berth__x in[2] = {index, value};
  if (k == NULL || !accepts(k, BERTH__INST_store, 2, in, buffer, k->n_buffers)) return;
  const berth__storage storage = k->buffers[buffer].storage;
  if (berth__maker_type(k, value) != berth__storage_number(storage)) {
    berth__maker_mistake(k, BERTH__INST_store, "the value's type is not the buffer's");
    return;
  }
  k->buffers[buffer].is_written = true;
  if (berth__storage_per_word(storage) > 1) value = berth__x_pack(k, storage, value);
  index = skipped(k, buffer, index);
  if (k->status == BERTH_OK) kernel_access_put(k, BERTH__INST_store, berth__maker_type(k, value), buffer, index, value);
}

void berth__x_quad_store(berth__kernel *k, uint32_t buffer, berth__x index, uint32_t local) {
  if (k == NULL || !accepts(k, BERTH__INST_quad_store, 1, &index, buffer, k->n_buffers)) return;
  if (k->buffers[buffer].storage != BERTH_U32 || k->buffers[buffer].skip != 0 || local >= k->n_local ||
      k->local[local].type != BERTH__NUM_U32 || k->local[local].count != 4) {
    berth__maker_mistake(k, BERTH__INST_quad_store, "it is for buffers of u32 and local arrays of four u32");
    return;
  }
  k->buffers[buffer].is_written = true;
  kernel_access_put(k, BERTH__INST_quad_store, BERTH__NUM_U32, buffer | local << 8, index, BERTH__X_NONE);
}

void berth__x_store_max(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value) {
  const berth__x in[2] = {index, value};
  if (k == NULL || !accepts(k, BERTH__INST_store_max, 2, in, buffer, k->n_buffers)) return;
  if (k->buffers[buffer].storage != BERTH_U32 || berth__maker_type(k, value) != BERTH__NUM_U32) {
    berth__maker_mistake(k, BERTH__INST_store_max, "it is for buffers and values of u32");
    return;
  }
  k->buffers[buffer].is_read = k->buffers[buffer].is_written = k->buffers[buffer].is_contended = true;
  kernel_access_put(k, BERTH__INST_store_max, BERTH__NUM_U32, buffer, index, value);
}

static berth__x load_array(berth__kernel *k, berth__inst_code code, const berth__kernel_array *arrays, uint32_t n,
                           uint32_t array, berth__x index) {
  if (!accepts(k, code, 1, &index, array, n)) return BERTH__X_NONE;
  return kernel_access_put(k, code, arrays[array].type, array, index, BERTH__X_NONE);
}

static void store_array(berth__kernel *k, berth__inst_code code, const berth__kernel_array *arrays, uint32_t n,
                        uint32_t array, const berth__x *in) {
  if (!accepts(k, code, 2, in, array, n)) return;
  if (berth__maker_type(k, in[1]) != arrays[array].type) {
    berth__maker_mistake(k, code, "the value's type is not the array's");
    return;
  }
  kernel_access_put(k, code, arrays[array].type, array, in[0], in[1]);
}

berth__x berth__x_shared_load(berth__kernel *k, uint32_t array, berth__x index) {
  return k == NULL ? BERTH__X_NONE : load_array(k, BERTH__INST_shared_load, k->shared, k->n_shared, array, index);
}

void berth__x_shared_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value) {
  if (k != NULL) {
    store_array(k, BERTH__INST_shared_store, k->shared, k->n_shared, array, (berth__x[]){index, value});
  }
}

berth__x berth__x_local_load(berth__kernel *k, uint32_t array, berth__x index) {
  return k == NULL ? BERTH__X_NONE : load_array(k, BERTH__INST_local_load, k->local, k->n_local, array, index);
}

void berth__x_local_store(berth__kernel *k, uint32_t array, berth__x index, berth__x value) {
  if (k != NULL) store_array(k, BERTH__INST_local_store, k->local, k->n_local, array, (berth__x[]){index, value});
}

berth__x berth__x_variable(berth__kernel *k, berth__x first) {
  if (!berth__maker_accepts(k, BERTH__INST_variable, 1, &first)) return BERTH__X_NONE;
  return kernel_access_put(k, BERTH__INST_variable, berth__maker_type(k, first), 0, first, BERTH__X_NONE);
}

berth__x berth__x_get(berth__kernel *k, berth__x variable) {
  if (!berth__maker_accepts(k, BERTH__INST_get, 1, &variable)) return BERTH__X_NONE;
  return kernel_access_put(k, BERTH__INST_get, berth__maker_type(k, variable), 0, variable, BERTH__X_NONE);
}

/* Values of all lanes have the same range here. */
berth__x berth__x_exchange(berth__kernel *k, berth__x value, uint32_t distance) {
  if (!berth__maker_accepts(k, BERTH__INST_exchange, 1, &value)) return BERTH__X_NONE;
  const bool is_power = distance != 0 && (distance & (distance - 1)) == 0;
  if (!is_power || k->group_size % (2 * distance) != 0 || berth__maker_type(k, value) == BERTH__NUM_BOOL)
    return berth__maker_mistake(k, BERTH__INST_exchange, "its distance is a power of two inside of the workgroup");
  berth__inst inst = {.code = BERTH__INST_exchange,
                      .type = k->insts[value].type,
                      .bits = distance,
                      .in = {value, BERTH__X_NONE, BERTH__X_NONE},
                      .low = k->insts[value].low,
                      .high = k->insts[value].high};
  return berth__maker_put(k, &inst);
}

void berth__x_set(berth__kernel *k, berth__x variable, berth__x value) {
  berth__x in[2] = {variable, value};
  if (!berth__maker_accepts(k, BERTH__INST_set, 2, in)) return;
  if (berth__maker_type(k, variable) != berth__maker_type(k, value)) {
    berth__maker_mistake(k, BERTH__INST_set, "the value's type is not the variable's");
    return;
  }
  kernel_access_put(k, BERTH__INST_set, berth__maker_type(k, value), 0, variable, value);
}
