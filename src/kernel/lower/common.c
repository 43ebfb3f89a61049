/* Shared by all lowerings. */
#include "kernel/lower.h"

#include "base/storage.h"
#include "kernel/lower/words.h"

#include <stdio.h>

#define EACH_GROUP 64u        /* threads per workgroup with one element per thread */
#define LARGE_COUNT (1 << 18) /* elements or, with whole words, words */
#define LARGE_GROUP 256u
#define LARGE_ROUNDS 4

berth__number berth__l_number(berth_type type) {
  switch (type) {
    case BERTH_F32:
    case BERTH_F64:
    case BERTH_F16:
    case BERTH_BF16: return BERTH__NUM_F32;
    case BERTH_BOOL: return BERTH__NUM_BOOL;
    case BERTH_U8:
    case BERTH_U16:
    case BERTH_U32:
    case BERTH_U64: return BERTH__NUM_U32;
    default: return BERTH__NUM_I32;
  }
}

berth__storage berth__l_storage(berth_type type) {
  switch (type) {
    case BERTH_F64: return BERTH_F32;
    case BERTH_I64: return BERTH_I32;
    case BERTH_U64: return BERTH_U32;
    default: return type;
  }
}

/* ---- Kernels ---- */

uint32_t berth__l_skip(uint64_t at, berth__storage storage) {
  return (uint32_t)(at % 4) / berth_type_storage(storage).bytes;
}

static berth__x load_condition(const berth__lowering *l, berth__kernel *k, uint32_t condition) {
  const uint32_t buffer =
      berth__kernel_buffer_of(k, BERTH__OPERAND_CONDITION + condition, l->conditions[condition].storage);
  k->buffers[buffer].skip = berth__l_skip(l->conditions[condition].at, l->conditions[condition].storage);
  return berth__x_load(k, buffer, berth__x_i32(k, 0));
}

berth__kernel *berth__l_begin(berth__lowering *l, const char *what) {
  berth__kernel *k;
  char name[sizeof k->name];
  snprintf(name, sizeof name, "%s%s%s", l->op->name, what != NULL ? " " : "", what != NULL ? what : "");
  if (berth__kernel_create(l->ctx, name, &k, NULL) != BERTH_OK) return NULL;
  for (uint32_t g = 0; g < l->n_conditions; g++) {
    const berth__x truth = load_condition(l, k, g), zero = berth__x_u32(k, 0);
    berth__x_if(k, l->conditions[g].sense ? berth__x_ne(k, truth, zero) : berth__x_eq(k, truth, zero));
  }
  return k;
}

double berth__l_bytes(const berth__lowering *l, uint32_t operand) {
  const berth_op_call *call = l->call;
  const berth_tensor *tensor = operand < call->n_in ? &call->in[operand] : &call->out[operand - call->n_in];
  if (tensor->type == BERTH_TYPE_NONE) return 0;
  const berth_storage storage = berth_type_storage(berth__l_storage_of(l, operand));
  return (double)berth__storage_size(storage, (uint64_t)berth__count(tensor));
}

/* Bytes of the operands and results that it reads and writes. An operand may be accessed both as elements and as
 * words. */
static double lower_common_bytes_of(const berth__lowering *l, const berth__kernel *k) {
  double bytes = 0;
  for (uint32_t operand = 0; operand < l->call->n_in + l->call->n_out; operand++) {
    bool is_used = false;
    for (uint32_t i = 0; i < k->n_buffers; i++)
      is_used = is_used || (k->buffers[i].operand == operand && (k->buffers[i].is_read || k->buffers[i].is_written));
    if (is_used) bytes += berth__l_bytes(l, operand);
  }
  return bytes;
}

/* Whether sums are kept: the device has matrix units for their kind or, for f32, a form for threads that load by
 * fours. */
static bool lower_common_multiplies(const berth__kernel_limits *limits, const berth__kernel_sums *sums) {
  return (limits->multiplies >> sums->kind & 1u) != 0 && (sums->kind != BERTH_COMPUTE_F32 || sums->by_fours);
}

/* Expands the kernel if the device has no matrix units for its products, or no subgroup exchange. */
static berth_status finish_for(const berth__kernel_limits *limits, berth__kernel **k, berth_error *err) {
  BERTH__TRY(berth__kernel_finish(*k, err));
  if (!limits->exchanges && berth__kernel_uses(*k, BERTH__INST_exchange)) return berth__kernel_expand(k, err);
  for (uint32_t i = 0; i < (*k)->n_sums; i++)
    if (!lower_common_multiplies(limits, &(*k)->sums[i])) return berth__kernel_expand(k, err);
  return BERTH_OK;
}

berth_status berth__l_end(berth__lowering *l, berth__kernel *k, berth_error *err) {
  if (k == NULL) return berth__fail_nomem(err, "a kernel");
  if (k->word.is_open) berth__l_close_words(l, k);
  while (k->depth != 0 && k->status == BERTH_OK) berth__x_end(k);
  berth_status status = finish_for(l->limits, &k, err);
  if (status == BERTH_OK) status = BERTH__RESERVE(l->ctx, l->kernels, l->capacity, l->n_kernels + 1, err);
  if (status != BERTH_OK) {
    berth__kernel_destroy(k);
    return status;
  }
  if (k->bytes <= 0) k->bytes = lower_common_bytes_of(l, k);
  l->kernels[l->n_kernels++] = k;
  return BERTH_OK;
}

/* Starting a workgroup takes a GPU longer than one element per thread is worth: if there are very many elements,
 * workgroups are large and go through several rounds of adjacent elements. */
static berth__x each(berth__lowering *l, berth__kernel *k, int64_t count, bool is_often) {
  const bool is_large = l->limits->shares_well && count >= LARGE_COUNT;
  const uint32_t wanted = is_large ? LARGE_GROUP : EACH_GROUP;
  const int64_t rounds = is_large && is_often ? LARGE_ROUNDS : 1;
  k->group_size = l->limits->group_size < wanted ? l->limits->group_size : wanted;
  const int64_t threads = k->group_size, of_group = threads * rounds;
  k->n_groups = (uint64_t)((count + of_group - 1) / of_group);
  const berth__x thread =
      berth__x_thread(k); /* in its own statement, since the order of evaluation of arguments is unspecified */
  berth__x index = berth__x_add(k, berth__x_affine(k, berth__x_group(k), of_group, 0), thread);
  if (rounds > 1) {
    const berth__x round = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, rounds), 1);
    index = berth__x_add(k, index, berth__x_affine(k, round, threads, 0));
  }
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, count)));
  return index;
}

berth__x berth__l_each_alone(berth__lowering *l, berth__kernel *k, int64_t count) {
  return k != NULL ? each(l, k, count, false) : BERTH__X_NONE;
}

uint32_t berth__l_each_ahead(berth__lowering *l, berth__kernel *k, int64_t count, berth__x *index, berth__x *is_there) {
  if (k == NULL || !l->limits->shares_well || count < LARGE_COUNT) {
    index[0] = berth__l_each_alone(l, k, count);
    is_there[0] = BERTH__X_NONE;
    return 1;
  }
  k->group_size = l->limits->group_size < LARGE_GROUP ? l->limits->group_size : LARGE_GROUP;
  const int64_t threads = k->group_size, of_group = threads * BERTH__EACH_AHEAD;
  k->n_groups = (uint64_t)((count + of_group - 1) / of_group);
  const berth__x thread = berth__x_thread(k);
  const berth__x first = berth__x_add(k, berth__x_affine(k, berth__x_group(k), of_group, 0), thread);
  for (uint32_t e = 0; e < BERTH__EACH_AHEAD; e++) {
    const berth__x at = berth__x_affine(k, first, 1, e * threads);
    const bool is_even = count % of_group == 0;
    index[e] = is_even ? at : berth__x_min(k, at, berth__x_i32(k, count - 1));
    is_there[e] = is_even ? BERTH__X_NONE : berth__x_lt(k, at, berth__x_i32(k, count));
  }
  return BERTH__EACH_AHEAD;
}

berth__x berth__l_each(berth__lowering *l, berth__kernel *k, int64_t count) {
  const uint32_t per_word = berth__l_words_of_result(l, count);
  if (k == NULL) return BERTH__X_NONE;
  if (per_word == 1) return each(l, k, count, true);
  return berth__l_open_words(l, k, each(l, k, count / per_word + (count % per_word != 0), true), per_word, count);
}

/* ---- Buffers ---- */

berth__storage berth__l_storage_of(const berth__lowering *l, uint32_t operand) {
  const berth_op_call *call = l->call;
  if (l->storage != NULL) return l->storage[operand];
  return berth__l_storage(operand < call->n_in ? call->in[operand].type : call->out[operand - call->n_in].type);
}

uint32_t berth__l_buffer(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__storage storage) {
  const uint32_t buffer = berth__kernel_buffer_of(k, operand, storage);
  if (k != NULL && l->at != NULL) k->buffers[buffer].skip = berth__l_skip(l->at[operand], storage);
  return buffer;
}

uint32_t berth__l_in(const berth__lowering *l, berth__kernel *k, uint32_t i) {
  return berth__l_buffer(l, k, berth__operand_in(i), berth__l_storage_of(l, i));
}

uint32_t berth__l_out(const berth__lowering *l, berth__kernel *k, uint32_t i) {
  const uint32_t operand = berth__operand_out(l->call, i);
  return berth__l_buffer(l, k, operand, berth__l_storage_of(l, operand));
}

uint32_t berth__l_scratch(berth__kernel *k, berth__storage storage) {
  return berth__kernel_buffer_of(k, BERTH__OPERAND_SCRATCH, storage);
}

/* ---- Positions ---- */

void berth__l_unravel(berth__kernel *k, berth__x index, uint32_t rank, const int64_t *dim, berth__x *at) {
  berth__x rest = index;
  for (uint32_t axis = rank; axis-- > 0;) {
    const berth__x extent = berth__x_i32(k, dim[axis]);
    at[axis] = axis == 0 ? rest : berth__x_rem(k, rest, extent);
    if (axis != 0) rest = berth__x_div(k, rest, extent);
  }
}

/* If consecutive axes are contiguous, their flat index serves as well, and is shorter. */
berth__x berth__l_place_flat(berth__kernel *k, const berth_tensor *tensor, berth__x index) {
  if (berth__is_contiguous(tensor)) return index;
  berth__x at[BERTH_MAX_RANK];
  berth__l_unravel(k, index, tensor->rank, tensor->dim, at);
  return berth__l_place(k, tensor, at);
}

berth__x berth__l_place(berth__kernel *k, const berth_tensor *tensor, const berth__x *at) {
  return berth__l_place_broadcast(k, tensor, tensor->rank, at);
}

berth__x berth__l_place_broadcast(berth__kernel *k, const berth_tensor *tensor, uint32_t rank, const berth__x *at) {
  const uint32_t skipped = rank - tensor->rank;
  berth__x place = berth__x_i32(k, 0);
  for (uint32_t axis = 0; axis < tensor->rank; axis++)
    if (tensor->dim[axis] != 1)
      place = berth__x_add(k, place, berth__x_affine(k, at[skipped + axis], tensor->stride[axis], 0));
  return place;
}

/* ---- Elements ---- */

berth__x berth__l_load(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place) {
  const berth__x value = berth__x_load(k, berth__l_in(l, k, i), place);
  return berth__x_convert(k, berth__l_number(l->call->in[i].type), value);
}

static berth__x shift_out_and_in(berth__kernel *k, berth__x value, berth__number type, int64_t bits) {
  const berth__x by = type == BERTH__NUM_I32 ? berth__x_i32(k, 32 - bits) : berth__x_u32(k, (uint32_t)(32 - bits));
  return berth__x2(k, BERTH__INST_shr, berth__x2(k, BERTH__INST_shl, value, by), by);
}

/* Wraps integers of fewer than 32 bits. */
berth__x berth__l_wrap(berth__kernel *k, berth__x value, berth_type type) {
  switch (type) {
    case BERTH_I8:
    case BERTH_U8: return shift_out_and_in(k, value, berth__l_number(type), 8);
    case BERTH_I16:
    case BERTH_U16: return shift_out_and_in(k, value, berth__l_number(type), 16);
    default: return value;
  }
}

/* The number type from which an element of this storage is stored. */
static berth__x stored_number(berth__kernel *k, berth__storage storage, berth__x value) {
  return berth__x_convert(k, berth__storage_number(storage), value);
}

void berth__l_store_bits(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__storage storage,
                         berth__x place, berth__x value) {
  if (k == NULL) return;
  const berth__x stored = stored_number(k, storage, value);
  if (k->word.is_open && k->word.operand == operand && k->word.index == place)
    berth__l_keep_bits(k, storage, stored);
  else
    berth__x_store(k, berth__l_buffer(l, k, operand, storage), place, stored);
}

/* Storing in the element's own width drops the upper bits. */
void berth__l_store(const berth__lowering *l, berth__kernel *k, uint32_t i, berth__x place, berth__x value) {
  const berth_type type = l->call->out[i].type;
  const uint32_t operand = berth__operand_out(l->call, i);
  const berth__storage storage = berth__l_storage_of(l, operand);
  const berth__x number = berth__x_convert(k, berth__l_number(type), value);
  berth__l_store_bits(l, k, operand, storage, place, storage == type ? number : berth__l_wrap(k, number, type));
}
