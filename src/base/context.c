#include "base/context.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#include "base/desc.h"
#include "base/sigbus.h"
#include "base/thread.h"

/* Precedes every block: its size, header included. Sixteen bytes, so that the block is aligned like the header. */
typedef union block_header {
  size_t size;
  unsigned char room[16];
} block_header;

/* The lock is here and not in context.h, which everything includes: the WebAssembly build has its own pthread.h, which
 * conflicts with some headers of its C library. */
typedef struct locked_context {
  berth_context base; /* first: every context is one of these */
  pthread_mutex_t lock;
} locked_context;

static pthread_mutex_t *lock_of(berth_context *ctx) { return &((locked_context *)ctx)->lock; }

static void *libc_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  return realloc(ptr, new_size);
}

/* The hash key of maps: random, so that nobody can write a file whose names all collide. If the system has no random
 * numbers, the time and an address at least differ between processes. */
static void base_context_draw_key(berth_context *ctx) {
  if (ctx->options.hash_seed != 0) {
    ctx->hash_key[0] = ctx->options.hash_seed;
    ctx->hash_key[1] = ctx->options.hash_seed * UINT64_C(0x9e3779b97f4a7c15);
  } else if (getentropy(ctx->hash_key, sizeof ctx->hash_key) != 0) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    ctx->hash_key[0] = ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec) * UINT64_C(0x9e3779b97f4a7c15);
    ctx->hash_key[1] = (uint64_t)(uintptr_t)ctx * UINT64_C(0xd1b54a32d192ed03) ^ (uint64_t)(uintptr_t)&now;
  }
}

berth_status berth_context_create(const berth_context_desc *desc, berth_context **out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_context_create needs a pointer to store the context");
  *out = NULL;
  berth_context_desc d = BERTH_CONTEXT_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&d, desc, "berth_context_desc", err));
  if (d.n_threads > BERTH__MAX_THREADS) {
    return berth__fail(err, BERTH_INVALID, "n_threads is %u; at most %u are possible, and 0 stands for one a core",
                       (unsigned)d.n_threads, (unsigned)BERTH__MAX_THREADS);
  }
  berth_context first = {.alloc = d.alloc != NULL ? d.alloc : libc_alloc, .user = d.user};
  berth_context *ctx = berth__alloc_zero(&first, sizeof(locked_context));
  if (ctx == NULL) return berth__fail_nomem(err, "the context");
  ctx->alloc = first.alloc;
  ctx->log = d.log;
  ctx->progress = d.progress;
  ctx->user = d.user;
  ctx->n_threads = d.n_threads != 0 ? d.n_threads : berth__cpu_count();
  const int code = pthread_mutex_init(lock_of(ctx), NULL);
  if (code != 0) {
    berth__free(&first, ctx);
    return berth__fail(err, BERTH_NOMEM, "cannot make the lock of the context: %s", strerror(code));
  }
  berth_status status = berth__options_read(ctx, d.options, &ctx->options, err);
  if (status == BERTH_OK && ctx->options.catches_sigbus) status = berth__sigbus_catch(err);
  if (status != BERTH_OK) {
    berth_context_destroy(ctx);
    return status;
  }
  base_context_draw_key(ctx);
  *out = ctx;
  return BERTH_OK;
}

void berth_context_destroy(berth_context *ctx) {
  if (ctx == NULL) return;
  if (ctx->free_custom_ops != NULL) ctx->free_custom_ops(ctx);
  berth__options_free(ctx, &ctx->options);
  pthread_mutex_destroy(lock_of(ctx));
  berth_context last = {.alloc = ctx->alloc, .user = ctx->user};
  berth__free(&last, ctx);
}

void berth__context_lock(berth_context *ctx) { pthread_mutex_lock(lock_of(ctx)); }

void berth__context_unlock(berth_context *ctx) { pthread_mutex_unlock(lock_of(ctx)); }

void *berth__realloc(berth_context *ctx, void *ptr, size_t new_size) {
  if (new_size > SIZE_MAX - sizeof(block_header)) return NULL;
  block_header *header = ptr != NULL ? (block_header *)ptr - 1 : NULL;
  size_t total = new_size + sizeof *header;
  header = ctx->alloc(ctx->user, header, header != NULL ? header->size : 0, total);
  if (header == NULL) return NULL;
  header->size = total;
  return header + 1;
}

void *berth__alloc(berth_context *ctx, size_t size) { return berth__realloc(ctx, NULL, size); }

void *berth__alloc_u64(berth_context *ctx, uint64_t size) {
  return size <= SIZE_MAX ? berth__alloc(ctx, (size_t)size) : NULL;
}

void *berth__alloc_zero(berth_context *ctx, size_t size) {
  void *ptr = berth__alloc(ctx, size);
  if (ptr != NULL) memset(ptr, 0, size);
  return ptr;
}

void *berth__alloc_array(berth_context *ctx, size_t count, size_t element_size) {
  if (element_size != 0 && count > SIZE_MAX / element_size) return NULL;
  return berth__alloc(ctx, count * element_size);
}

void *berth__alloc_array_zero(berth_context *ctx, size_t count, size_t element_size) {
  void *ptr = berth__alloc_array(ctx, count, element_size);
  if (ptr != NULL) memset(ptr, 0, count * element_size);
  return ptr;
}

void berth__free(berth_context *ctx, void *ptr) {
  if (ptr == NULL) return;
  block_header *header = (block_header *)ptr - 1;
  ctx->alloc(ctx->user, header, header->size, 0);
}

char *berth__strdup(berth_context *ctx, const char *text) {
  return text != NULL ? berth__strndup(ctx, text, strlen(text)) : NULL;
}

char *berth__strndup(berth_context *ctx, const char *text, size_t length) {
  if (length == SIZE_MAX) return NULL;
  char *copy = berth__alloc(ctx, length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

berth_status berth__reserve(berth_context *ctx, void **items, size_t *capacity, size_t need, size_t element_size,
                            berth_error *err) {
  if (need <= *capacity) return BERTH_OK;
  size_t half = *capacity / 2;
  size_t grown = *capacity > SIZE_MAX - half ? need : *capacity + half;
  if (grown < need) grown = need;
  if (grown < 8) grown = 8;
  if (grown > SIZE_MAX / element_size) return berth__fail_nomem(err, "a list that is larger than the address space");
  void *moved; /* *items really is a pointer to some other type, so it is copied as bytes */
  memcpy(&moved, items, sizeof moved);
  moved = berth__realloc(ctx, moved, grown * element_size);
  if (moved == NULL) {
    return berth__fail(err, BERTH_NOMEM, "not enough memory for a list of %zu elements of %zu bytes", grown,
                       element_size);
  }
  memcpy(items, &moved, sizeof moved);
  *capacity = grown;
  return BERTH_OK;
}

void berth__progress(const berth_context *ctx, const char *stage, uint64_t done, uint64_t total) {
  if (ctx->progress != NULL) ctx->progress(ctx->user, stage, done, total);
}

void berth__log(const berth_context *ctx, int level, const char *fmt, ...) {
  if (ctx->log == NULL) return;
  char text[512];
  va_list args;
  va_start(args, fmt);
  int length = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (length >= 0) ctx->log(ctx->user, level, text);
}
