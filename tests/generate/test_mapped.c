/* Weights that are pages of their file: the same text as copies of them give, and an error where the file shrinks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "speaker.h"
#include "toy.h"

#define COUNT 12

static char path[1024];

static int write_model(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("blocks.gguf"));
  toy_write(path, "llama/blocks");
  return 0;
}

/* Mappings of the file that can be written, which is what an arena has of it; -1: the system does not say. */
static int count_mapped(void) {
  char line[2048], perms[8];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return -1;
  while (fgets(line, sizeof line, maps) != NULL)
    n += sscanf(line, "%*s %7s", perms) == 1 && strcmp(perms, "rw-p") == 0 && strstr(line, "blocks.gguf") != NULL;
  fclose(maps);
  return n;
}

static void *read_model(size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  struct stat info;
  assert_int_equal(fstat(fileno(file), &info), 0);
  *size = (size_t)info.st_size;
  void *bytes = malloc(*size);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

static uint64_t arena_of(const berth_generator *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  berth_error err;
  TEST_OK(berth_generator_get_info(g, &info, &err));
  return info.arena_size;
}

static void speak(berth_generator *g, int32_t *tokens) {
  speaker_feed(g, SPEAKER_TEXT);
  speaker_speak(g, COUNT, tokens);
}

static void the_text_is_that_of_copies(void **state) {
  (void)state;
  const berth_generator_desc desc = speaker_greedy();
  berth_generator *copied;
  berth_error err;
  speaker s;
  int32_t tokens[COUNT], others[COUNT];
  size_t size;
  void *bytes = read_model(&size);
  speaker_start_with(&s, path, &desc);
#ifdef __linux__
  const int mapped = count_mapped();
  if (mapped >= 0) assert_true(mapped >= 3); /* gate, up and down of a layer; the other has no page of room */
#endif
  TEST_OK(berth_generator_from_memory(s.ctx, bytes, size, NULL, NULL, &desc, &copied, &err));
  assert_int_equal(arena_of(s.g), arena_of(copied));
  speak(s.g, tokens);
  speak(copied, others);
  assert_memory_equal(tokens, others, sizeof tokens);
  berth_generator_destroy(copied);
  speaker_finish(&s);
  assert_true(count_mapped() <= 0); /* and they are gone with the arena */
  free(bytes);
}

static void a_fork_has_its_own(void **state) {
  (void)state;
  const berth_generator_desc desc = speaker_greedy();
  berth_generator *fork;
  berth_error err;
  speaker s;
  int32_t tokens[COUNT], others[COUNT];
  speaker_start_with(&s, path, &desc);
  speaker_feed(s.g, SPEAKER_TEXT);
  TEST_OK(berth_generator_fork(s.g, &fork, &err));
  speaker_speak(s.g, COUNT, tokens);
  speaker_speak(fork, COUNT, others);
  assert_memory_equal(tokens, others, sizeof tokens);
  berth_generator_destroy(fork);
  speaker_finish(&s);
}

/* Before a run touches what is not there any more. */
static void a_file_that_shrinks_is_an_error(void **state) {
  (void)state;
  const berth_generator_desc desc = speaker_greedy();
  speaker s, fresh;
  berth_generator *fork = NULL;
  berth_error err;
  berth_piece piece = BERTH_PIECE_INIT;
  size_t size;
  int32_t tokens[COUNT];
  void *bytes = read_model(&size);
  speaker_start_with(&s, path, &desc);
  const bool is_mapped = count_mapped() > 0;
  speaker_feed(s.g, SPEAKER_TEXT);
  assert_int_equal(truncate(path, (off_t)size / 2), 0);
  const berth_status status = berth_generator_next(s.g, &piece, &err);
  if (is_mapped) {
    assert_int_equal(status, BERTH_OK); /* its logits were there already */
    test_expect_error(berth_generator_next(s.g, &piece, &err), BERTH_IO, &err, "\"blocks.gguf\" has shrunk");
    test_expect_error(berth_generator_fork(s.g, &fork, &err), BERTH_IO, &err, "\"blocks.gguf\" has shrunk");
    assert_null(fork);
  }
  speaker_finish(&s);
  test_write_file(path, bytes, size);
  speaker_start_with(&fresh, path, &desc);
  speak(fresh.g, tokens);
  speaker_finish(&fresh);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_text_is_that_of_copies),
      cmocka_unit_test(a_fork_has_its_own),
      cmocka_unit_test(a_file_that_shrinks_is_an_error),
  };
  return cmocka_run_group_tests(tests, write_model, NULL);
}
