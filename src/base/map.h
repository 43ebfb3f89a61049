/* A hash map from strings to numbers. Keys are copied, and hashed with the context's key. */
#ifndef BERTH_BASE_MAP_H
#define BERTH_BASE_MAP_H

#include "base/context.h"

typedef struct berth__map {
  struct berth__map_table *table;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t count;
} berth__map;

void berth__map_clear(berth_context *ctx, berth__map *map); /* frees everything; a zeroed map is an empty one */
berth_status berth__map_put(berth_context *ctx, berth__map *map, const char *key, uint32_t value, berth_error *err);
int berth__map_get(const berth__map *map, const char *key, uint32_t *value); /* 0: no such key */
void berth__map_remove(berth_context *ctx, berth__map *map, const char *key);

#endif
