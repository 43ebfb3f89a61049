/* Looks at the two most probable next tokens of a text, and lets a fork of the model go on after each of them.
 *
 *   cc branches.c -o branches $(pkg-config --cflags --libs berth) && ./branches MODEL.gguf TEXT */
#include <berth/berth.h>
#include <stdio.h>
#include <string.h>

#define TRY(call) \
  if ((call) != BERTH_OK) return fprintf(stderr, "%s\n", err.message), 1

int main(int argc, char **argv) {
  berth_error err;
  berth_context *ctx;
  berth_generator *model, *fork;
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  const float *logits;
  uint32_t count;
  int32_t best[2] = {0, 0};
  if (argc < 3) return fprintf(stderr, "usage: branches MODEL.gguf TEXT\n"), 2;
  TRY(berth_context_create(NULL, &ctx, &err));
  TRY(berth_generator_create(ctx, argv[1], NULL, &model, &err));
  TRY(berth_generator_feed(model, argv[2], strlen(argv[2]), 0, &err));
  TRY(berth_generator_get_info(model, &info, &err));
  printf("%u tokens, the last of them %d\n", info.n_tokens, berth_generator_tokens(model)[info.n_tokens - 1]);
  TRY(berth_generator_logits(model, &logits, &count, &err));
  for (uint32_t i = 1; i < count; i++)
    if (logits[i] > logits[best[0]]) best[0] = (int32_t)i;
  best[1] = best[0] == 0;
  for (uint32_t i = 0; i < count; i++)
    if ((int32_t)i != best[0] && logits[i] > logits[best[1]]) best[1] = (int32_t)i;
  for (int branch = 0; branch < 2; branch++) {
    TRY(berth_generator_fork(model, &fork, &err)); /* the text is not evaluated again */
    TRY(berth_generator_feed_tokens(fork, &best[branch], 1, &err));
    printf("after token %d:", best[branch]);
    for (int i = 0; i < 12; i++) {
      berth_piece piece = BERTH_PIECE_INIT;
      TRY(berth_generator_next(fork, &piece, &err));
      fwrite(piece.text, 1, piece.text_size, stdout);
    }
    putchar('\n');
    berth_generator_destroy(fork);
  }
  berth_generator_reset(model); /* ready for another text */
  berth_generator_destroy(model), berth_context_destroy(ctx);
  return 0;
}
