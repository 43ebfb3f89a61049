/* ONNX's own node tests (Debian: libonnx-testdata). Every test that does not pass stands in known.txt with its reason;
 * one that changes sides fails here, whichever way. A name after ~ may go either way: its result is random. With
 * BERTH_TEST_DEVICE they run on that device, and known_gpu.txt lists what it does not do.
 *   test_nodes [-v] [NAME-PART]...   runs those whose name contains a part; -v shows what is wrong with each */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx_case.h"

#define DEFAULT_DATA "/usr/share/libonnx-testdata/data/node"
#define MAX_KNOWN 2048

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

static int is_wanted(const char *name, int argc, char **argv) {
  int parts = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-v") == 0) continue;
    parts++;
    if (strstr(name, argv[i]) != NULL) return 1;
  }
  return parts == 0;
}

int main(int argc, char **argv) {
  const char *data = getenv("BERTH_ONNX_DATA") != NULL ? getenv("BERTH_ONNX_DATA") : DEFAULT_DATA;
  int verbose = argc > 1 && strcmp(argv[1], "-v") == 0, number = 0, failed = 0, passed = 0;
  const char *device = getenv("BERTH_TEST_DEVICE"); /* opened anew in every child, a driver would take its time */
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
    if (strncmp(name, "test_", 5) == 0 && is_wanted(name, argc, argv)) {
      onnx_verdict verdict = device == NULL ? onnx_case_run_apart(folder, message, sizeof message)
                                            : onnx_case_run(folder, message, sizeof message);
      expectation want = expected(name);
      int right = want == EITHER || (verdict == ONNX_PASS) == (want == MUST_PASS);
      passed += verdict == ONNX_PASS;
      failed += !right;
      printf("%sok %d - %s%s\n", right ? "" : "not ", ++number, name, want == MUST_PASS ? "" : " (listed)");
      if ((verbose || !right) && verdict != ONNX_PASS)
        printf("# %s %s: %s\n", verdict == ONNX_UNSUPPORTED ? "unsupported" : "FAIL", name, message);
      if (!right && verdict == ONNX_PASS) printf("# it passes now: take it out of the list\n");
    }
    free(entries[i]);
  }
  free(entries);
  printf("1..%d\n# %d of %d pass\n", number, passed, number);
  return failed != 0;
}
