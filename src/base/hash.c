#include "base/hash.h"

#include <string.h>

static uint64_t hash_rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void hash_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = hash_rotate(v[1], 13) ^ v[0];
  v[3] = hash_rotate(v[3], 16) ^ v[2];
  v[0] = hash_rotate(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = hash_rotate(v[1], 17) ^ v[2];
  v[3] = hash_rotate(v[3], 21) ^ v[0];
  v[2] = hash_rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein), written from their paper, with words in host byte order. */
uint32_t berth__hash(const uint64_t key[2], const void *bytes, size_t size) {
  const uint8_t *text = bytes;
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  for (size_t at = 0; at <= size; at += 8) {
    const size_t rest = size - at < 8 ? size - at : 8;
    uint64_t word = 0;
    if (rest != 0) memcpy(&word, text + at, rest);
    if (rest < 8) word |= (uint64_t)(size & 0xff) << 56;
    v[3] ^= word;
    hash_round(v);
    v[0] ^= word;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) hash_round(v);
  const uint64_t hash = v[0] ^ v[1] ^ v[2] ^ v[3];
  return (uint32_t)(hash ^ hash >> 32);
}
