/* Hashes of names. Names come from files, so the key must be unknown to whoever writes a file. */
#ifndef BERTH_BASE_HASH_H
#define BERTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The key is a context's (`hash_key`). `bytes` may be NULL if there are none. */
uint32_t berth__hash(const uint64_t key[2], const void *bytes, size_t size);

#endif
