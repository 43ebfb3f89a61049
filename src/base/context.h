/* The context: allocator, log, and the ops that a user registered. All memory of the library is allocated from it. */
#ifndef BERTH_BASE_CONTEXT_H
#define BERTH_BASE_CONTEXT_H

#include <stdatomic.h>

#include "base/options.h"
#include "base/status.h"

struct berth__op_list; /* owned by src/ops/registry.c */

struct berth_context {
  void *(*alloc)(void *user, void *ptr, size_t old_size, size_t new_size);
  void (*log)(void *user, int level, const char *text);
  void (*progress)(void *user, const char *stage, uint64_t done, uint64_t total);
  void *user;
  uint32_t n_threads;                          /* never 0: resolved when the context is made */
  berth__options options;                      /* never changed after the context is made */
  _Atomic(struct berth__op_list *) custom_ops; /* see ops/registry.c; freed by free_custom_ops */
  void (*free_custom_ops)(berth_context *ctx);
  uint64_t hash_key[2]; /* for maps */
};

/* Protects the parts that change after the context is made: registered ops. */
void berth__context_lock(berth_context *ctx);
void berth__context_unlock(berth_context *ctx);

/* Every block stores its size, so the caller needs no bookkeeping to free it. NULL if memory runs out or the size
 * overflows. Blocks are aligned to 16. Size 0 gives a valid block. */
void *berth__alloc(berth_context *ctx, size_t size);
void *berth__alloc_zero(berth_context *ctx, size_t size);
void *berth__alloc_u64(berth_context *ctx, uint64_t size); /* may exceed the address space: then NULL */
void *berth__alloc_array(berth_context *ctx, size_t count, size_t element_size); /* not cleared */
void *berth__alloc_array_zero(berth_context *ctx, size_t count, size_t element_size);
void *berth__realloc(berth_context *ctx, void *ptr, size_t new_size); /* ptr may be NULL; on failure ptr stays valid */
void berth__free(berth_context *ctx, void *ptr);                      /* NULL is fine */
char *berth__strdup(berth_context *ctx, const char *text);            /* NULL for a NULL text */
char *berth__strndup(berth_context *ctx, const char *text, size_t length);

/* Makes room for `need` elements in a growing array: *items of *capacity elements (both updated). */
berth_status berth__reserve(berth_context *ctx, void **items, size_t *capacity, size_t need, size_t element_size,
                            berth_error *err);
/* For `T *items; size_t capacity;` in a struct: BERTH__RESERVE(ctx, s->items, s->capacity, s->count + 1, err). */
#define BERTH__RESERVE(ctx, items, capacity, need, err) \
  berth__reserve((ctx), (void **)&(items), &(capacity), (need), sizeof *(items), (err))

void berth__progress(const berth_context *ctx, const char *stage, uint64_t done, uint64_t total);
void berth__log(const berth_context *ctx, int level, const char *fmt, ...) BERTH__PRINTF(3, 4);

#endif
