#include "speaker.h"

#include <stdio.h>

#include "toy.h"

static char path[1024];

const char *speaker_path(void) { return path; }

int speaker_write(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("text.gguf"));
  toy_write(path, "llama/text");
  return 0;
}

berth_generator_desc speaker_greedy(void) {
  static berth_sampling_desc sampling;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  sampling = (berth_sampling_desc)BERTH_SAMPLING_DESC_INIT;
  sampling.temperature = 0;
  desc.sampling = &sampling;
  desc.ctx = 64;
  desc.chunk = 8;
  return desc;
}

void speaker_start_with(speaker *s, const char *file, const berth_generator_desc *desc) {
  berth_error err;
  memset(s, 0, sizeof *s);
  s->ctx = test_context_counting(&s->alloc);
  TEST_OK(berth_generator_create(s->ctx, file, desc, &s->g, &err));
}

void speaker_start(speaker *s, const berth_generator_desc *desc) { speaker_start_with(s, path, desc); }

void speaker_finish(speaker *s) {
  berth_generator_destroy(s->g);
  test_context_done(s->ctx, &s->alloc);
}

void speaker_feed(berth_generator *g, const char *text) {
  berth_error err;
  TEST_OK(berth_generator_feed(g, text, strlen(text), 0, &err));
}

void speaker_speak(berth_generator *g, int n, int32_t *tokens) {
  berth_error err;
  for (int i = 0; i < n; i++) {
    berth_piece piece = BERTH_PIECE_INIT;
    TEST_OK(berth_generator_next(g, &piece, &err));
    tokens[i] = piece.token;
  }
}

uint32_t speaker_count(const berth_generator *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  berth_error err;
  TEST_OK(berth_generator_get_info(g, &info, &err));
  return info.n_tokens;
}

void speaker_write_changed(const char *to, const char *name, uint8_t flip, size_t n_flipped) {
  static char bytes[1 << 20];
  static const char old[] = "a toy that talks";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(size < sizeof bytes && strlen(name) == strlen(old));
  char *found = memmem(bytes, size, old, strlen(old));
  assert_non_null(found);
  memcpy(found, name, strlen(name));
  for (size_t i = size - n_flipped; i < size; i++) bytes[i] = (char)((uint8_t)bytes[i] | flip);
  test_write_file(to, bytes, size);
}
