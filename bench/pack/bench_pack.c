/* The packer compared with classical heuristics, one line per instance.
 *
 *   bench_pack [-e EFFORT] [-s SEED] [FILE.csv ...]
 *
 * FILE has the columns id, lower, upper, size in that order, like MiniMalloc's instances. Without files, those in the
 * folder $BERTH_PACK_DATA are used (by default ../shared/data/pack). Sizes are relative to the load; seconds are CPU
 * time. The classical heuristics are quadratic and are skipped above 50,000 buffers. If a program `minimalloc` is on
 * the PATH it is run too, at the size that berth reached, for at most 60 seconds. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "classic.h"

enum {
  CLASSIC_MAX = 50000,
  PATH_MAX_LENGTH = 4096
};

typedef struct settings {
  uint64_t effort, seed;
  int minimalloc; /* it is available */
} settings;

static double seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Reads the four columns; NULL if the file cannot be read or has another form. */
static berth_pack_buffer *read_instance(const char *path, size_t *n) {
  char line[512];
  size_t capacity = 1024;
  FILE *file = fopen(path, "r");
  berth_pack_buffer *b = file != NULL ? malloc(capacity * sizeof *b) : NULL;
  *n = 0;
  if (file == NULL || b == NULL || fgets(line, sizeof line, file) == NULL) goto fail;
  while (fgets(line, sizeof line, file) != NULL) {
    berth_pack_buffer row = {.offset = BERTH_PACK_FREE};
    const char *comma = strchr(line, ',');
    if (comma == NULL) continue;
    if (sscanf(comma, ",%" SCNd64 ",%" SCNd64 ",%" SCNu64, &row.lower, &row.upper, &row.size) != 3) goto fail;
    if (*n == capacity) {
      berth_pack_buffer *more = realloc(b, (capacity *= 2) * sizeof *b);
      if (more == NULL) goto fail;
      b = more;
    }
    b[(*n)++] = row;
  }
  fclose(file);
  return b;
fail:
  if (file != NULL) fclose(file);
  free(b);
  return NULL;
}

static void show_classic(const berth_pack_buffer *b, size_t n, uint64_t bound) {
  for (int rule = 0; rule < CLASSIC_N; rule++) {
    if (n > CLASSIC_MAX)
      printf(" %10s", "-");
    else
      printf(" %10.4f", (double)classic_pack(b, n, (classic_rule)rule) / (double)bound);
  }
}

/* CPU seconds of all children that have ended. */
static double children_seconds(void) {
  struct rusage u;
  getrusage(RUSAGE_CHILDREN, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void show_minimalloc(const char *path, uint64_t capacity) {
  char command[PATH_MAX_LENGTH];
  int length =
      snprintf(command, sizeof command,
               "minimalloc --capacity=%" PRIu64 " --input='%s' --output=/dev/null --timeout=60s >/dev/null 2>&1",
               capacity, path);
  if (length < 0 || (size_t)length >= sizeof command) return;
  double before = children_seconds();
  int status = system(command);
  printf("  %s %.3f s", status == 0 ? "solved" : "not solved", children_seconds() - before);
}

static int bench_file(berth_context *ctx, const char *path, const settings *set) {
  const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
  size_t n;
  berth_pack_buffer *b = read_instance(path, &n);
  uint64_t *offsets = malloc((n + 1) * sizeof *offsets);
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_error err = {BERTH_OK, "cannot be read"};
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = set->effort;
  d.seed = set->seed;
  double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  int failed = b == NULL || offsets == NULL || berth_pack(ctx, b, n, &d, offsets, &r, &err) != BERTH_OK;
  double taken = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
  if (failed) {
    printf("%-20s %s\n", name, err.message);
  } else {
    printf("%-20s %8zu %12" PRIu64 " %12" PRIu64 " %8.5f %7s %8.3f", name, n, r.size, r.lower_bound,
           r.lower_bound > 0 ? (double)r.size / (double)r.lower_bound : 1.0, r.optimal ? "yes" : "no", taken);
    show_classic(b, n, r.lower_bound > 0 ? r.lower_bound : 1);
    if (set->minimalloc) show_minimalloc(path, r.size);
    puts("");
  }
  fflush(stdout);
  free(offsets);
  free(b);
  return failed;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Every .csv of a folder, sorted by name. */
static int bench_folder(berth_context *ctx, const char *folder, const settings *set) {
  char *paths[256];
  size_t n = 0;
  int failed = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL && n < 256; e = readdir(dir)) {
    size_t length = strlen(e->d_name), room = strlen(folder) + length + 2;
    if (length < 4 || strcmp(e->d_name + length - 4, ".csv") != 0 || (paths[n] = malloc(room)) == NULL) continue;
    snprintf(paths[n++], room, "%s/%s", folder, e->d_name);
  }
  if (dir != NULL) closedir(dir);
  qsort(paths, n, sizeof *paths, by_name);
  for (size_t k = 0; k < n; k++) {
    failed |= bench_file(ctx, paths[k], set);
    free(paths[k]);
  }
  if (n == 0) printf("no instances in %s; name files, or set BERTH_PACK_DATA\n", folder);
  return failed;
}

int main(int argc, char **argv) {
  settings set = {0, 0, system("command -v minimalloc >/dev/null 2>&1") == 0};
  berth_context *ctx;
  int failed = 0, files = 0;
  if (berth_context_create(NULL, &ctx, NULL) != BERTH_OK) return 1;
  printf("%-20s %8s %12s %12s %8s %7s %8s", "instance", "buffers", "size", "bound", "ratio", "optimal", "cpu s");
  for (int rule = 0; rule < CLASSIC_N; rule++) printf(" %10s", classic_name[rule]);
  puts(set.minimalloc ? "  minimalloc" : "");
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-e") == 0 && i + 1 < argc) {
      set.effort = strtoull(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
      set.seed = strtoull(argv[++i], NULL, 10);
    } else {
      failed |= bench_file(ctx, argv[i], &set);
      files++;
    }
  }
  const char *folder = getenv("BERTH_PACK_DATA");
  if (files == 0) failed |= bench_folder(ctx, folder != NULL ? folder : "../shared/data/pack", &set);
  berth_context_destroy(ctx);
  return failed;
}
