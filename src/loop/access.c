/* Making instructions that read and write: buffers, arrays, variables. None of them is ever shared. */
#include "loop/maker.h"

static berth__x put(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t bits, berth__x a,
                    berth__x b) {
  berth__inst inst = {.code = (uint8_t)code, .type = (uint8_t)type, .bits = bits, .in = {a, b, BERTH__X_NONE}};
  berth__range_of_type(type, &inst.low, &inst.high);
  return berth__maker_put(k, &inst);
}

static berth__number number_of(berth__storage storage) {
  if (storage == BERTH__STORE_I32) return BERTH__NUM_I32;
  return storage == BERTH__STORE_U32 ? BERTH__NUM_U32 : BERTH__NUM_F32;
}

/* The operands can be used, `which` is one of n, and the index is an integer of index arithmetic. */
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
  return put(k, BERTH__INST_load, number_of(k->buffers[buffer].storage), buffer, index, BERTH__X_NONE);
}

void berth__x_store(berth__kernel *k, uint32_t buffer, berth__x index, berth__x value) {
  berth__x in[2] = {index, value};
  if (k == NULL || !accepts(k, BERTH__INST_store, 2, in, buffer, k->n_buffers)) return;
  berth__storage storage = k->buffers[buffer].storage;
  if (storage == BERTH__STORE_F16 || berth__maker_type(k, value) != number_of(storage)) {
    berth__maker_mistake(k, BERTH__INST_store, "the value's type is not the buffer's");
    return;
  }
  k->buffers[buffer].is_written = true;
  put(k, BERTH__INST_store, berth__maker_type(k, value), buffer, index, value);
}

static berth__x load_array(berth__kernel *k, berth__inst_code code, const berth__kernel_array *arrays, uint32_t n,
                           uint32_t array, berth__x index) {
  if (!accepts(k, code, 1, &index, array, n)) return BERTH__X_NONE;
  return put(k, code, arrays[array].type, array, index, BERTH__X_NONE);
}

static void store_array(berth__kernel *k, berth__inst_code code, const berth__kernel_array *arrays, uint32_t n,
                        uint32_t array, const berth__x *in) {
  if (!accepts(k, code, 2, in, array, n)) return;
  if (berth__maker_type(k, in[1]) != arrays[array].type) {
    berth__maker_mistake(k, code, "the value's type is not the array's");
    return;
  }
  put(k, code, arrays[array].type, array, in[0], in[1]);
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
  return put(k, BERTH__INST_variable, berth__maker_type(k, first), 0, first, BERTH__X_NONE);
}

berth__x berth__x_get(berth__kernel *k, berth__x variable) {
  if (!berth__maker_accepts(k, BERTH__INST_get, 1, &variable)) return BERTH__X_NONE;
  return put(k, BERTH__INST_get, berth__maker_type(k, variable), 0, variable, BERTH__X_NONE);
}

void berth__x_set(berth__kernel *k, berth__x variable, berth__x value) {
  berth__x in[2] = {variable, value};
  if (!berth__maker_accepts(k, BERTH__INST_set, 2, in)) return;
  if (berth__maker_type(k, variable) != berth__maker_type(k, value)) {
    berth__maker_mistake(k, BERTH__INST_set, "the value's type is not the variable's");
    return;
  }
  put(k, BERTH__INST_set, berth__maker_type(k, value), 0, variable, value);
}
