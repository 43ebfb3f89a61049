#include "elements.h"

#include <math.h>

bool element_is_float(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F64 || type == BERTH_F16 || type == BERTH_BF16;
}

float element_from_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t element_to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double from_f16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                     : exponent == 0 ? ldexp(fraction, -24)
                                     : ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/* Only for values of the pseudo-random sequence: zero or a normal half float. */
static uint16_t to_f16_exact(double value) {
  int exponent;
  double fraction = frexp(fabs(value), &exponent);
  if (fraction == 0) return 0;
  unsigned bits = (unsigned)(exponent + 14) << 10 | ((unsigned)ldexp(fraction, 11) & 1023);
  return (uint16_t)(value < 0 ? bits | 0x8000 : bits);
}

#define ELEMENT_TYPES(X) \
  X(BERTH_F32, float)    \
  X(BERTH_F64, double)   \
  X(BERTH_I8, int8_t)    \
  X(BERTH_U8, uint8_t)   \
  X(BERTH_I16, int16_t)  \
  X(BERTH_I32, int32_t)  \
  X(BERTH_I64, int64_t)  \
  X(BERTH_U16, uint16_t) \
  X(BERTH_U32, uint32_t) \
  X(BERTH_U64, uint64_t) \
  X(BERTH_BOOL, uint8_t)

size_t element_count_of(berth_type type, uint64_t size) {
  berth_storage storage = berth_type_storage(type);
  return storage.bytes ? (size_t)(size / storage.bytes * storage.elements) : 0;
}

#define MOST_IN_BLOCK 1024

static double in_block(berth_type type, const void *data, size_t index) {
  berth_storage storage = berth_type_storage(type);
  float block[MOST_IN_BLOCK];
  if (storage.elements < 2 || storage.elements > MOST_IN_BLOCK) return 0;
  const char *from = (const char *)data + index / storage.elements * storage.bytes;
  return berth_to_f32(type, from, storage.elements, block, NULL) == BERTH_OK ? (double)block[index % storage.elements]
                                                                             : 0;
}

double element_at(berth_type type, const void *data, size_t index) {
  switch (type) {
#define READ(name, ctype) \
  case name: return (double)((const ctype *)data)[index];
    ELEMENT_TYPES(READ)
#undef READ
    case BERTH_F16: return from_f16(((const uint16_t *)data)[index]);
    case BERTH_BF16: return (double)element_from_bf16(((const uint16_t *)data)[index]);
    default: return in_block(type, data, index);
  }
}

static void tool_elements_store(berth_type type, void *data, size_t index, double value) {
  switch (type) {
#define WRITE(name, ctype) \
  case name: ((ctype *)data)[index] = (ctype)value; break;
    ELEMENT_TYPES(WRITE)
#undef WRITE
    case BERTH_F16: ((uint16_t *)data)[index] = to_f16_exact(value); break;
    case BERTH_BF16: ((uint16_t *)data)[index] = element_to_bf16((float)value); break;
    default: break; /* block types: fill_blocks */
  }
}

element_summary element_summarise(berth_type type, const void *data, size_t count) {
  element_summary summary = {0, 0, 0, count, 0};
  double sum = 0;
  uint64_t finite = 0;
  for (size_t i = 0; i < count; i++) {
    double value = element_at(type, data, i);
    if (!isfinite(value)) {
      summary.not_finite++;
      continue;
    }
    if (finite == 0 || value < summary.min) summary.min = value;
    if (finite == 0 || value > summary.max) summary.max = value;
    sum += value;
    finite++;
  }
  if (finite) summary.mean = sum / (double)finite;
  return summary;
}

static uint64_t hash_name(const char *name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
  return hash;
}

uint64_t element_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double random_value(berth_type type, uint64_t random, uint32_t most) {
  if (!element_is_float(type)) return (double)((random >> 32) % (type == BERTH_BOOL ? 2 : most));
  int bits = type == BERTH_F16 ? 11 : type == BERTH_BF16 ? 8 : 24;
  return ldexp((double)(random >> (64 - bits)), 1 - bits) - 1;
}

static void fill_blocks(berth_type type, char *data, size_t count, uint64_t *state, double divisor) {
  berth_storage storage = berth_type_storage(type);
  float block[MOST_IN_BLOCK];
  if (storage.elements > MOST_IN_BLOCK) return;
  for (size_t i = 0; i < count; i += storage.elements, data += storage.bytes) {
    for (uint32_t k = 0; k < storage.elements; k++)
      block[k] = (float)(random_value(BERTH_F32, element_random(state), 1) / divisor);
    if (berth_from_f32(type, block, storage.elements, data, NULL) != BERTH_OK) return;
  }
}

void element_fill(berth_type type, void *data, size_t count, const char *name, double divisor, uint32_t most) {
  uint64_t state = hash_name(name);
  if (berth_type_size(type) == 0) {
    fill_blocks(type, data, count, &state, divisor);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    double value = random_value(type, element_random(&state), most);
    tool_elements_store(type, data, i, element_is_float(type) ? value / divisor : value);
  }
}

void element_set(berth_type type, void *data, size_t count, double value) {
  for (size_t i = 0; i < count; i++) tool_elements_store(type, data, i, value);
}
