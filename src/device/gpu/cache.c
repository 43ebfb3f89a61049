#include "device/gpu/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x6b747262u      /* of a cache file: "brtk"; reversed in files of the other byte order */
#define VERSION 2u             /* of the files, and of rendering and compilation: increment it when either changes */
#define MOST_BYTES (64u << 20) /* larger than any kernel */
#define NAME_TEXT 64           /* room for a file's name */

typedef struct hash {
  uint64_t a, b;
} hash;

/* Precedes the code. There must be no gaps between fields. */
typedef struct file_head {
  uint32_t magic, version;
  uint64_t source_size;
  hash source;
  uint64_t code_size;
  hash code;
} file_head;

/* ---- Hashing: two lanes with different constants, so that a collision in one is none in the other ---- */

static uint64_t gpu_cache_turn(uint64_t x, unsigned by) { return (x << by) | (x >> (64 - by)); }

static uint64_t gpu_cache_finish(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 29)) * 0xa0761d6478bd642fu;
  return x ^ (x >> 32);
}

static hash hash_word(hash h, uint64_t word) {
  h.a = gpu_cache_turn((h.a ^ word) * 0x9e3779b97f4a7c15u, 29) + h.b;
  h.b = gpu_cache_turn((h.b + word) * 0xc2b2ae3d27d4eb4fu, 37) ^ h.a;
  return h;
}

static hash hash_bytes(hash h, const void *data, size_t size) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i += 8) {
    uint64_t word = 0;
    memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
    h = hash_word(h, word);
  }
  h = hash_word(h, size);
  return (hash){gpu_cache_finish(h.a + h.b), gpu_cache_finish(h.b ^ gpu_cache_turn(h.a, 31))};
}

/* One seed for names, another for contents: sources whose names collide by chance still differ in the second hash. */
static hash hash_key(const berth__kernel_key *key, uint64_t seed) {
  hash h = hash_bytes((hash){seed, VERSION}, key->compiler, strlen(key->compiler));
  h = hash_bytes(h, key->target, strlen(key->target));
  return hash_bytes(h, key->source, key->size);
}

static hash hash_code(const berth__kernel_code *code) { return hash_bytes((hash){3, VERSION}, code->data, code->size); }

void berth__kernel_name(const char *target, const char *source, size_t size, uint64_t out[2]) {
  const hash h = hash_key(&(berth__kernel_key){.compiler = "", .target = target, .source = source, .size = size}, 4);
  out[0] = h.a;
  out[1] = h.b;
}

void berth__kernel_code_sum(const berth__kernel_code *code, uint64_t out[2]) {
  const hash h = hash_code(code);
  out[0] = h.a;
  out[1] = h.b;
}

static bool gpu_cache_is_equal(hash a, hash b) { return a.a == b.a && a.b == b.b; }

/* ---- The folder ---- */

static char *gpu_cache_join(berth_context *ctx, const char *folder, const char *name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  char *path = berth__alloc(ctx, size);
  if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

void berth__kernel_cache_open(berth__kernel_cache *cache, berth_context *ctx) {
  *cache = (berth__kernel_cache){.ctx = ctx, .folder = berth__strdup(ctx, ctx->options.cache_dir)};
}

void berth__kernel_cache_close(berth__kernel_cache *cache) {
  berth__free(cache->ctx, cache->folder);
  cache->folder = NULL;
}

/* Makes the folder and its parents. */
static void make_folder(berth_context *ctx, const char *folder) {
  char *path = berth__strdup(ctx, folder);
  if (path == NULL) return;
  for (char *c = path + 1; *c != '\0'; c++) {
    if (*c != '/') continue;
    *c = '\0';
    mkdir(path, 0700); /* existing ones stay; after a failure the next step fails, too */
    *c = '/';
  }
  mkdir(path, 0700);
  berth__free(ctx, path);
}

static char *path_of(const berth__kernel_cache *cache, const berth__kernel_key *key) {
  char name[NAME_TEXT];
  const hash h = hash_key(key, 1);
  snprintf(name, sizeof name, "%016llx%016llx.%.8s", (unsigned long long)h.a, (unsigned long long)h.b, key->ending);
  return gpu_cache_join(cache->ctx, cache->folder, name);
}

/* ---- Reading ---- */

static bool read_all(int file, void *data, size_t size) {
  uint8_t *bytes = data;
  while (size != 0) {
    const ssize_t n = read(file, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= (size_t)n;
  }
  return true;
}

static bool is_head_good(const file_head *head, const berth__kernel_key *key, uint64_t file_size) {
  return head->magic == MAGIC && head->version == VERSION && head->source_size == key->size &&
         gpu_cache_is_equal(head->source, hash_key(key, 2)) && head->code_size >= sizeof key->magic &&
         head->code_size <= MOST_BYTES && file_size == sizeof *head + head->code_size;
}

/* Whether the code begins with the magic number of its kind. */
static bool gpu_cache_has_magic(const berth__kernel_code *code, const berth__kernel_key *key) {
  return memcmp(code->data, &key->magic, sizeof key->magic) == 0;
}

static bool gpu_cache_read_file(const berth__kernel_cache *cache, int file, const berth__kernel_key *key,
                                berth__kernel_code *out) {
  struct stat about;
  file_head head;
  /* Code from a file of another user is not trusted. */
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid()) return false;
  if (!read_all(file, &head, sizeof head) || !is_head_good(&head, key, (uint64_t)about.st_size)) return false;
  berth__kernel_code code = {.size = (size_t)head.code_size};
  code.data = berth__alloc(cache->ctx, code.size);
  if (code.data == NULL) return false;
  if (!read_all(file, code.data, code.size) || !gpu_cache_is_equal(hash_code(&code), head.code) ||
      !gpu_cache_has_magic(&code, key)) {
    berth__free(cache->ctx, code.data);
    return false;
  }
  *out = code;
  return true;
}

bool berth__kernel_cache_read(const berth__kernel_cache *cache, const berth__kernel_key *key, berth__kernel_code *out) {
  if (cache->folder == NULL) return false;
  char *path = path_of(cache, key);
  if (path == NULL) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a pipe of that name */
  berth__free(cache->ctx, path);
  if (file < 0) return false;
  const bool is_there = gpu_cache_read_file(cache, file, key, out);
  close(file);
  return is_there;
}

/* ---- Writing: under a temporary name first, so that nobody sees a partial file ---- */

static bool gpu_cache_write_all(int file, const void *data, size_t size) {
  const uint8_t *bytes = data;
  while (size != 0) {
    const ssize_t n = write(file, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= (size_t)n;
  }
  return true;
}

static bool write_file(int file, const berth__kernel_key *key, const berth__kernel_code *code) {
  const file_head head = {.magic = MAGIC,
                          .version = VERSION,
                          .source_size = key->size,
                          .source = hash_key(key, 2),
                          .code_size = code->size,
                          .code = hash_code(code)};
  return gpu_cache_write_all(file, &head, sizeof head) && gpu_cache_write_all(file, code->data, code->size);
}

static void write_and_rename(char *unfinished, const char *path, const berth__kernel_key *key,
                             const berth__kernel_code *code) {
  const int file = mkstemp(unfinished); /* 0600 */
  if (file < 0) return;
  const bool is_whole = write_file(file, key, code);
  const bool is_closed = close(file) == 0;
  if (!is_whole || !is_closed || rename(unfinished, path) != 0) unlink(unfinished);
}

void berth__kernel_cache_write(const berth__kernel_cache *cache, const berth__kernel_key *key,
                               const berth__kernel_code *code) {
  if (cache->folder == NULL || code->size > MOST_BYTES) return;
  make_folder(cache->ctx, cache->folder);
  char *path = path_of(cache, key), *unfinished = gpu_cache_join(cache->ctx, cache->folder, "unfinished.XXXXXX");
  if (path != NULL && unfinished != NULL) write_and_rename(unfinished, path, key, code);
  berth__free(cache->ctx, path);
  berth__free(cache->ctx, unfinished);
}
