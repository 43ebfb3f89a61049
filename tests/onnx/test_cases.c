/* Small models whose outputs come from ONNX Runtime or numpy, for what ONNX's own node tests lack: com.microsoft's ops,
 * newer ones, choices and loops, ai.onnx.ml. A pack (cases/NAME.pack, written by make_cases*.py) is a row of files: a
 * line `path size` and so many bytes. It is laid out in a temporary folder as ONNX's cases are. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "onnx_case.h"
#include "support.h"

#define MAX_PATH_LENGTH 1024

static FILE *open_pack(const char *name) {
  char path[MAX_PATH_LENGTH];
  const char *source = getenv("BERTH_SRC");
  snprintf(path, sizeof path, "%s/tests/onnx/cases/%s.pack", source != NULL ? source : ".", name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  return file;
}

static void make_folders(char *path) {
  for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = '\0';
    mkdir(path, 0777);
    *at = '/';
  }
}

/* Writes the next file of a pack; false at its end. `name` becomes that of the case. */
static int unpack_file(FILE *pack, const char *folder, char name[256]) {
  char path[MAX_PATH_LENGTH + 256];
  size_t size;
  if (fscanf(pack, "%255s %zu", name, &size) != 2 || fgetc(pack) != '\n') return 0;
  char *data = malloc(size + 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, size, pack), size);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  make_folders(path);
  test_write_file(path, data, size);
  free(data);
  name[strcspn(name, "/")] = '\0';
  return 1;
}

static int holds(const char *folder, const char *name) {
  char path[MAX_PATH_LENGTH + 256], message[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (onnx_case_run(path, message, sizeof message) == ONNX_PASS) return 1;
  fprintf(stderr, "%s: %s\n", name, message);
  return 0;
}

/* All of them, so that one run shows everything that is wrong. A case runs when the next one begins. */
static void check_pack(const char *pack_name, int least) {
  char folder[MAX_PATH_LENGTH], name[256], current[256] = "";
  int cases = 0, failed = 0;
  FILE *pack = open_pack(pack_name);
  snprintf(folder, sizeof folder, "%s", test_path(pack_name));
  while (unpack_file(pack, folder, name)) {
    if (strcmp(current, name) == 0) continue;
    if (current[0] != '\0') failed += !holds(folder, current);
    snprintf(current, sizeof current, "%s", name);
    cases++;
  }
  failed += !holds(folder, current);
  fclose(pack);
  assert_int_equal(failed, 0);
  assert_true(cases >= least);
}

static void microsoft_ops(void **state) {
  (void)state;
  check_pack("microsoft", 60);
}

static void quantised_lstms(void **state) {
  (void)state;
  check_pack("recurrent", 12);
}

static void weights_of_four_bits(void **state) {
  (void)state;
  check_pack("four_bits", 8);
}

static void newer_ops_and_control_flow(void **state) {
  (void)state;
  check_pack("newer", 18);
}

static void run_time_control_flow(void **state) {
  (void)state;
  check_pack("control", 29);
}

static void loops_that_grow_and_carry_sequences(void **state) {
  (void)state;
  check_pack("growing", 22);
}

static void windows_and_sampling(void **state) {
  (void)state;
  check_pack("windows", 17);
}

static void extents_that_follow_from_data(void **state) {
  (void)state;
  check_pack("extents", 20);
}

static void caches_of_keys_and_values(void **state) {
  (void)state;
  check_pack("cache", 9);
}

static void attention_of_opsets_23_to_25(void **state) {
  (void)state;
  check_pack("attention", 66);
}

static void classical_machine_learning(void **state) {
  (void)state;
  check_pack("ml", 60);
}

static void ops_of_the_newest_opsets(void **state) {
  (void)state;
  check_pack("newest", 73);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(microsoft_ops),
      cmocka_unit_test(quantised_lstms),
      cmocka_unit_test(weights_of_four_bits),
      cmocka_unit_test(newer_ops_and_control_flow),
      cmocka_unit_test(run_time_control_flow),
      cmocka_unit_test(loops_that_grow_and_carry_sequences),
      cmocka_unit_test(windows_and_sampling),
      cmocka_unit_test(extents_that_follow_from_data),
      cmocka_unit_test(caches_of_keys_and_values),
      cmocka_unit_test(attention_of_opsets_23_to_25),
      cmocka_unit_test(ops_of_the_newest_opsets),
      cmocka_unit_test(classical_machine_learning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
