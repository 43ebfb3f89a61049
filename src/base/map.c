#include "base/map.h"

/* Open addressing with linear probing. A removal moves the entries after it back, so there are no tombstones. */
typedef struct berth__map_entry {
  char *key; /* NULL: empty */
  uint32_t hash;
  uint32_t value;
} berth__map_entry;

static uint32_t base_map_hash_of(
    const char *key) { /* FNV-1a, with the high bits mixed into the low ones that are used */
  uint32_t hash = UINT32_C(2166136261);
  for (const unsigned char *c = (const unsigned char *)key; *c != '\0'; c++) {
    hash = (hash ^ *c) * UINT32_C(16777619);
  }
  return hash ^ hash >> 15;
}

/* The entry of the key, or the empty one where it would go. The map has an empty entry. */
static uint32_t probe(const berth__map *map, const char *key, uint32_t hash) {
  uint32_t mask = map->capacity - 1;
  uint32_t at = hash & mask;
  while (map->entries[at].key != NULL && (map->entries[at].hash != hash || strcmp(map->entries[at].key, key) != 0)) {
    at = (at + 1) & mask;
  }
  return at;
}

static berth_status base_map_grow(berth_context *ctx, berth__map *map, berth_error *err) {
  if (map->capacity > UINT32_MAX / 2) return berth__fail_nomem(err, "a map of more than 2^31 names");
  berth__map larger = {.capacity = map->capacity == 0 ? 16 : map->capacity * 2, .count = map->count};
  larger.entries = berth__alloc_array_zero(ctx, larger.capacity, sizeof *larger.entries);
  if (larger.entries == NULL) return berth__fail_nomem(err, "a map of names");
  for (uint32_t i = 0; i < map->capacity; i++) {
    berth__map_entry *entry = &map->entries[i];
    if (entry->key != NULL) larger.entries[probe(&larger, entry->key, entry->hash)] = *entry;
  }
  berth__free(ctx, map->entries);
  *map = larger;
  return BERTH_OK;
}

void berth__map_clear(berth_context *ctx, berth__map *map) {
  for (uint32_t i = 0; i < map->capacity; i++) berth__free(ctx, map->entries[i].key);
  berth__free(ctx, map->entries);
  *map = (berth__map){0};
}

berth_status berth__map_put(berth_context *ctx, berth__map *map, const char *key, uint32_t value, berth_error *err) {
  if (map->count >= map->capacity - map->capacity / 4) BERTH__TRY(base_map_grow(ctx, map, err));
  uint32_t hash = base_map_hash_of(key);
  berth__map_entry *entry = &map->entries[probe(map, key, hash)];
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
  const berth__map_entry *entry = &map->entries[probe(map, key, base_map_hash_of(key))];
  if (entry->key == NULL) return 0;
  *value = entry->value;
  return 1;
}

void berth__map_remove(berth_context *ctx, berth__map *map, const char *key) {
  if (map->count == 0) return;
  uint32_t mask = map->capacity - 1;
  uint32_t hole = probe(map, key, base_map_hash_of(key));
  if (map->entries[hole].key == NULL) return;
  berth__free(ctx, map->entries[hole].key);
  map->count--;
  for (uint32_t at = (hole + 1) & mask; map->entries[at].key != NULL; at = (at + 1) & mask) {
    uint32_t home = map->entries[at].hash & mask;
    int may_move = ((at - home) & mask) >= ((at - hole) & mask); /* it stays at or after its home */
    if (may_move) {
      map->entries[hole] = map->entries[at];
      hole = at;
    }
  }
  map->entries[hole] = (berth__map_entry){0};
}
