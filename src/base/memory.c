#include "base/memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_PATH 1024

static uint64_t memory_of_machine(void) {
#if defined(_SC_PHYS_PAGES) && !defined(__wasi__)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return (uint64_t)pages * (uint64_t)page;
#endif
  return UINT64_MAX;
}

#ifdef __linux__
/* Reads the beginning of a small file as text, without stdio, which allocates; false: it cannot be read. */
static bool memory_read_text(const char *path, char *text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/* The number in a file of a control group; "max", or a file that cannot be read, means no limit. */
static uint64_t memory_read_limit(const char *path) {
  char text[64], *end;
  if (!memory_read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return UINT64_MAX;
  const unsigned long long limit = strtoull(text, &end, 10);
  return limit != 0 ? (uint64_t)limit : UINT64_MAX;
}

/* A group is limited by its own limit and by those of all enclosing groups. */
static uint64_t memory_of_group(const char *root, const char *mount, const char *group, const char *file) {
  char path[MAX_PATH], inner[MAX_PATH];
  uint64_t least = UINT64_MAX;
  if (snprintf(inner, sizeof inner, "%s", group) >= (int)sizeof inner) return least;
  for (;;) {
    if (snprintf(path, sizeof path, "%s%s%s/%s", root, mount, inner, file) >= (int)sizeof path) return least;
    const uint64_t limit = memory_read_limit(path);
    if (limit < least) least = limit;
    char *slash = strrchr(inner, '/');
    if (slash == NULL) return least;
    *slash = '\0';
  }
}

/* One line of /proc/self/cgroup: "0::/group" (version 2), or "4:memory:/group" (version 1). */
static uint64_t memory_of_line(const char *root, char *line) {
  char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
  if (group == NULL) return UINT64_MAX;
  *group++ = '\0';
  if (strcmp(group, "/") == 0) group[0] = '\0';
  if (names[1] == '\0') return memory_of_group(root, "/sys/fs/cgroup", group, "memory.max");
  if (strcmp(names + 1, "memory") != 0) return UINT64_MAX;
  return memory_of_group(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
}

uint64_t berth__memory_of_groups(const char *root) {
  char path[MAX_PATH], text[4096], *rest = text;
  uint64_t least = UINT64_MAX;
  if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path) return least;
  if (!memory_read_text(path, text, sizeof text)) return least;
  while (rest != NULL && *rest != '\0') {
    char *end = strchr(rest, '\n');
    if (end != NULL) *end++ = '\0';
    const uint64_t limit = memory_of_line(root, rest);
    if (limit < least) least = limit;
    rest = end;
  }
  return least;
}
#else
uint64_t berth__memory_of_groups(const char *root) {
  (void)root;
  return UINT64_MAX;
}
#endif

uint64_t berth__memory_total(const char **where) {
  const uint64_t machine = memory_of_machine(), group = berth__memory_of_groups("");
  *where = group < machine ? "the control group of this process" : "this machine";
  return group < machine ? group : machine;
}

berth_status berth__memory_check(const berth_context *ctx, uint64_t size, const char *what, berth_status status,
                                 berth_error *err) {
  const char *where = "";
  const uint64_t own = ctx->options.memory_limit, limit = own != 0 ? own : berth__memory_total(&where);
  if (size <= limit) return BERTH_OK;
  if (own != 0)
    return berth__fail(err, status, "%s needs %llu bytes, and the memory limit of this context is %llu", what,
                       (unsigned long long)size, (unsigned long long)limit);
  return berth__fail(err, status,
                     "%s needs %llu bytes, and %s has %llu in all (a memory limit that is set, "
                     "BERTH_MEMORY_LIMIT, takes the place of that)",
                     what, (unsigned long long)size, where, (unsigned long long)limit);
}
