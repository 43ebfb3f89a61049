#include "base/map.h"

#include "base/hash.h"

/* Open addressing with linear probing. A removal moves the entries after it back, so there are no tombstones. */
typedef struct berth__map_entry {
  char *key; /* NULL: empty */
  uint32_t hash;
  uint32_t value;
} berth__map_entry;

/* Names come from files, whose author may want them all to collide: a hash with a secret key prevents that. The order
 * of the entries is never visible. */
struct berth__map_table {
  uint64_t key[2]; /* the context's */
  berth__map_entry entries[];
};

/* The entry of the key, or the empty one where it would go. The map must have an empty entry. */
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
  uint32_t hash = berth__hash(map->table->key, key, strlen(key));
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
  const berth__map_entry *entry = &map->table->entries[probe(map, key, berth__hash(map->table->key, key, strlen(key)))];
  if (entry->key == NULL) return 0;
  *value = entry->value;
  return 1;
}

void berth__map_remove(berth_context *ctx, berth__map *map, const char *key) {
  if (map->count == 0) return;
  uint32_t mask = map->capacity - 1;
  uint32_t hole = probe(map, key, berth__hash(map->table->key, key, strlen(key)));
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
