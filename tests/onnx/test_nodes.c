/* ONNX's own node tests (Debian: libonnx-testdata). Every test that does not pass stands in known.txt with its reason;
 * one that changes sides fails here, whichever way. A name after ~ may go either way: its result is random. With
 * BERTH_TEST_DEVICE every third runs on that device (all with BERTH_TEST_SLOW), and known_gpu.txt lists what it does
 * not do.
 *   test_nodes [-v] [-o] [NAME-PART]...   runs those whose name contains a part; -v shows what is wrong with each, -o
 *                                         counts by opset: docs/onnx.md has the table for ONNX's newest tests */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berth/berth.h"
#include "onnx_case.h"
#include "support.h"

#define DEFAULT_DATA "/usr/share/libonnx-testdata/data/node"
#define MAX_KNOWN 2048
#define SHARE_OF_DEVICES 3 /* a driver takes its time for every kernel; tests/ops has the cases of each op */

static char known[MAX_KNOWN][128];
static size_t n_known;

static void read_known(const char *list) {
  char path[4096], line[1024];
  const char *source = getenv("BERTH_SRC");
  snprintf(path, sizeof path, "%s/tests/onnx/%s", source != NULL ? source : ".", list);
  FILE *file = fopen(path, "r");
  if (file == NULL) return;
  while (n_known < MAX_KNOWN && fgets(line, sizeof line, file) != NULL)
    if (line[0] != '#' && sscanf(line, "%127s", known[n_known]) == 1) n_known++;
  fclose(file);
}

typedef enum expectation {
  MUST_PASS,
  MUST_NOT_PASS,
  EITHER
} expectation;

static expectation expected(const char *name) {
  for (size_t i = 0; i < n_known; i++) {
    if (strcmp(known[i], name) == 0) return MUST_NOT_PASS;
    if (known[i][0] == '~' && strcmp(known[i] + 1, name) == 0) return EITHER;
  }
  return MUST_PASS;
}

/* ---- Counts by opset ---- */

#define MOST_OPSET 64

typedef struct counts {
  int passed, refused, wrong;
} counts;
static counts by_opset[MOST_OPSET + 1]; /* the last: no opset of ONNX's own domain, or a larger one */

/* That of ONNX's own domain, which most tests import alone. */
static int64_t opset_of(const char *folder) {
  char path[4200];
  berth_context *ctx = NULL;
  berth_model_info *info = NULL;
  int64_t opset = MOST_OPSET;
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  if (berth_context_create(NULL, &ctx, NULL) == BERTH_OK && berth_model_inspect(ctx, path, &info, NULL) == BERTH_OK)
    for (size_t i = 0; i < info->n_opsets; i++)
      if (info->opsets[i].domain[0] == '\0' || strcmp(info->opsets[i].domain, "ai.onnx") == 0)
        opset = info->opsets[i].version;
  berth_model_info_destroy(info);
  berth_context_destroy(ctx);
  return opset >= 0 && opset < MOST_OPSET ? opset : MOST_OPSET;
}

static void count(const char *folder, onnx_verdict verdict) {
  counts *c = &by_opset[opset_of(folder)];
  if (verdict == ONNX_PASS)
    c->passed++;
  else if (verdict == ONNX_UNSUPPORTED)
    c->refused++;
  else
    c->wrong++;
}

static void print_counts(void) {
  counts all = {0, 0, 0};
  printf("# | opset | tests | pass | refused | other |\n# |---|---|---|---|---|\n");
  for (int i = 0; i <= MOST_OPSET; i++) {
    const counts *c = &by_opset[i];
    const int n = c->passed + c->refused + c->wrong;
    all = (counts){all.passed + c->passed, all.refused + c->refused, all.wrong + c->wrong};
    if (n == 0) continue;
    if (i < MOST_OPSET)
      printf("# | %d |", i);
    else
      printf("# | none |");
    printf(" %d | %d | %d | %d |\n", n, c->passed, c->refused, c->wrong);
  }
  printf("# | all | %d | %d | %d | %d |\n", all.passed + all.refused + all.wrong, all.passed, all.refused, all.wrong);
}

static int is_wanted(const char *name, int argc, char **argv) {
  int parts = 0;
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] == '-') continue;
    parts++;
    if (strstr(name, argv[i]) != NULL) return 1;
  }
  return parts == 0;
}

static int has_option(int argc, char **argv, const char *option) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], option) == 0) return 1;
  return 0;
}

/* A case that crashes takes none of the others with it. Not so where it would be costly: a driver would be opened anew
 * in every child, and a sanitizer has all of its memory copied; but it says itself what has happened where. */
static onnx_verdict run_case(const char *device, const char *folder, char *message, size_t size) {
  return device != NULL || TEST_IS_SANITIZED ? onnx_case_run(folder, message, size)
                                             : onnx_case_run_apart(folder, message, size);
}

int main(int argc, char **argv) {
  const char *data = getenv("BERTH_ONNX_DATA") != NULL ? getenv("BERTH_ONNX_DATA") : DEFAULT_DATA;
  int verbose = has_option(argc, argv, "-v"), counts_opsets = has_option(argc, argv, "-o");
  int number = 0, failed = 0, passed = 0;
  const char *device = getenv("BERTH_TEST_DEVICE");
  const int share = device == NULL || argc > 1 || getenv("BERTH_TEST_SLOW") != NULL ? 1 : SHARE_OF_DEVICES;
  struct dirent **entries;
  int n = scandir(data, &entries, NULL, alphasort);
  if (n < 0) {
    printf("ok 1 - onnx node tests # SKIP %s is not there (Debian: libonnx-testdata)\n1..1\n", data);
    return 0;
  }
  read_known("known.txt");
  if (device != NULL) read_known("known_gpu.txt");
  for (int i = 0; i < n; i++) {
    char folder[4096], message[1024];
    const char *name = entries[i]->d_name;
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    if (strncmp(name, "test_", 5) == 0 && i % share == 0 && is_wanted(name, argc, argv)) {
      onnx_verdict verdict = run_case(device, folder, message, sizeof message);
      expectation want = expected(name);
      int right = want == EITHER || (verdict == ONNX_PASS) == (want == MUST_PASS);
      passed += verdict == ONNX_PASS;
      if (counts_opsets) count(folder, verdict);
      failed += !right;
      printf("%sok %d - %s%s\n", right ? "" : "not ", ++number, name, want == MUST_PASS ? "" : " (listed)");
      if ((verbose || !right) && verdict != ONNX_PASS)
        printf("# %s %s: %s\n", verdict == ONNX_UNSUPPORTED ? "unsupported" : "FAIL", name, message);
      if (!right && verdict == ONNX_PASS) printf("# it passes now: take it out of the list\n");
    }
    free(entries[i]);
  }
  free(entries);
  if (counts_opsets) print_counts();
  printf("1..%d\n# %d of %d pass\n", number, passed, number);
  return failed != 0;
}
