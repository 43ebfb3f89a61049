#include "base/map.h"

/* Open addressing with linear probing. A removal moves the entries after it back, so there are no tombstones. */
typedef struct berth__map_entry {
  char *key; /* NULL: empty */
  uint32_t hash;
  uint32_t value;
} berth__map_entry;

/* Names come from files, which may be written by somebody who wants them all to meet in one place: a hash with a key
 * that nobody knows keeps a map as fast as it should be. Nothing ever sees the order of the entries. */
struct berth__map_table {
  uint64_t key[2]; /* the context's */
  berth__map_entry entries[];
};

static uint64_t base_map_rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void base_map_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = base_map_rotate(v[1], 13) ^ v[0];
  v[3] = base_map_rotate(v[3], 16) ^ v[2];
  v[0] = base_map_rotate(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = base_map_rotate(v[1], 17) ^ v[2];
  v[3] = base_map_rotate(v[3], 21) ^ v[0];
  v[2] = base_map_rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein), written after their paper, with words in the machine's own order. */
static uint32_t base_map_hash_of(const uint64_t key[2], const char *text) {
  const size_t size = strlen(text);
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  for (size_t at = 0; at <= size; at += 8) {
    const size_t rest = size - at < 8 ? size - at : 8;
    uint64_t word = 0;
    memcpy(&word, text + at, rest);
    if (rest < 8) word |= (uint64_t)(size & 0xff) << 56;
    v[3] ^= word;
    base_map_round(v);
    v[0] ^= word;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) base_map_round(v);
  const uint64_t hash = v[0] ^ v[1] ^ v[2] ^ v[3];
  return (uint32_t)(hash ^ hash >> 32);
}

/* The entry of the key, or the empty one where it would go. The map has an empty entry. */
static uint32_t probe(const berth__map *map, const char *key, uint32_t hash) {
  uint32_t mask = map->capacity - 1;
  uint32_t at = hash & mask;
  while (map->table->entries[at].key != NULL &&
         (map->table->entries[at].hash != hash || strcmp(map->table->entries[at].key, key) != 0)) {
    at = (at + 1) & mask;
  }
  return at;
}

static berth_status base_map_grow(berth_context *ctx, berth__map *map, berth_error *err) {
  if (map->capacity > UINT32_MAX / 2) return berth__fail_nomem(err, "a map of more than 2^31 names");
  berth__map larger = {.capacity = map->capacity == 0 ? 16 : map->capacity * 2, .count = map->count};
  const uint64_t size = sizeof *larger.table + (uint64_t)larger.capacity * sizeof(berth__map_entry);
  larger.table = berth__alloc_u64(ctx, size);
  if (larger.table == NULL) return berth__fail_nomem(err, "a map of names");
  memset(larger.table, 0, (size_t)size);
  memcpy(larger.table->key, ctx->hash_key, sizeof larger.table->key);
  for (uint32_t i = 0; i < map->capacity; i++) {
    const berth__map_entry *entry = &map->table->entries[i];
    if (entry->key != NULL) larger.table->entries[probe(&larger, entry->key, entry->hash)] = *entry;
  }
  berth__free(ctx, map->table);
  *map = larger;
  return BERTH_OK;
}

void berth__map_clear(berth_context *ctx, berth__map *map) {
  for (uint32_t i = 0; i < map->capacity; i++) berth__free(ctx, map->table->entries[i].key);
  berth__free(ctx, map->table);
  *map = (berth__map){0};
}

berth_status berth__map_put(berth_context *ctx, berth__map *map, const char *key, uint32_t value, berth_error *err) {
  if (map->count >= map->capacity - map->capacity / 4) BERTH__TRY(base_map_grow(ctx, map, err));
  uint32_t hash = base_map_hash_of(map->table->key, key);
  berth__map_entry *entry = &map->table->entries[probe(map, key, hash)];
  if (entry->key == NULL) {
    char *copy = berth__strdup(ctx, key);
    if (copy == NULL) return berth__fail_nomem(err, "a name in a map");
    *entry = (berth__map_entry){.key = copy, .hash = hash};
    map->count++;
  }
  entry->value = value;
  return BERTH_OK;
}

int berth__map_get(const berth__map *map, const char *key, uint32_t *value) {
  if (map->count == 0) return 0;
  const berth__map_entry *entry = &map->table->entries[probe(map, key, base_map_hash_of(map->table->key, key))];
  if (entry->key == NULL) return 0;
  *value = entry->value;
  return 1;
}

void berth__map_remove(berth_context *ctx, berth__map *map, const char *key) {
  if (map->count == 0) return;
  uint32_t mask = map->capacity - 1;
  uint32_t hole = probe(map, key, base_map_hash_of(map->table->key, key));
  if (map->table->entries[hole].key == NULL) return;
  berth__free(ctx, map->table->entries[hole].key);
  map->count--;
  for (uint32_t at = (hole + 1) & mask; map->table->entries[at].key != NULL; at = (at + 1) & mask) {
    uint32_t home = map->table->entries[at].hash & mask;
    int may_move = ((at - home) & mask) >= ((at - hole) & mask); /* it stays at or after its home */
    if (may_move) {
      map->table->entries[hole] = map->table->entries[at];
      hole = at;
    }
  }
  map->table->entries[hole] = (berth__map_entry){0};
}
