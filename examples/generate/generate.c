/* Continues a text, twice: the prompt is evaluated once, and the same tokens come again after a restart.
 *
 *   cc generate.c -o generate $(pkg-config --cflags --libs berth) && ./generate MODEL.gguf TEXT [DEVICE] */
#include <berth/berth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) \
  if ((call) != BERTH_OK) return fprintf(stderr, "%s\n", err.message), 1

int main(int argc, char **argv) {
  berth_error err;
  berth_context *ctx;
  berth_generator *model, *other;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  if (argc < 3) return fprintf(stderr, "usage: generate MODEL.gguf TEXT [DEVICE]\n"), 2;
  desc.device = argc > 3 ? argv[3] : NULL;
  desc.ctx = 256;
  TRY(berth_context_create(NULL, &ctx, &err));
  TRY(berth_generator_create(ctx, argv[1], &desc, &model, &err)); /* all memory is taken here */
  TRY(berth_generator_feed(model, argv[2], strlen(argv[2]), 0, &err));
  TRY(berth_generator_mark(model, &err));
  size_t size = 0;
  void *saved = NULL;
  for (uint64_t seed = 1; seed <= 2; seed++) { /* two ends of one beginning */
    sampling.seed = seed;
    TRY(berth_generator_rewind(model, &err));
    TRY(berth_generator_sample(model, &sampling, &err));
    printf("%s", argv[2]);
    for (int i = 0; i < 40; i++) {
      berth_piece piece = BERTH_PIECE_INIT;
      TRY(berth_generator_next(model, &piece, &err));
      fwrite(piece.text, 1, piece.text_size, stdout);
      if (piece.is_end) break;
    }
    putchar('\n');
  }
  size = (size_t)berth_generator_save_size(model); /* as a file would keep it */
  if ((saved = malloc(size)) == NULL) return 1;
  TRY(berth_generator_save(model, saved, size, &err));
  TRY(berth_generator_create(ctx, argv[1], &desc, &other, &err));
  TRY(berth_generator_load(other, saved, size, &err));
  for (int i = 0; i < 10; i++) {
    berth_piece a = BERTH_PIECE_INIT, b = BERTH_PIECE_INIT;
    TRY(berth_generator_next(model, &a, &err));
    TRY(berth_generator_next(other, &b, &err));
    if (a.token != b.token) return fprintf(stderr, "the restored conversation goes on with other tokens\n"), 1;
  }
  free(saved), berth_generator_destroy(other), berth_generator_destroy(model), berth_context_destroy(ctx);
  return 0;
}
