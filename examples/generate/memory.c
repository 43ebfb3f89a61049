/* What a model takes for contexts of some lengths, by the header of its file alone; then the whole file in memory goes
 * on with a text. Programs that have no files do it like this, such as the page in a browser.
 *
 *   cc memory.c -o memory $(pkg-config --cflags --libs berth) && ./memory MODEL.gguf TEXT */
#include <berth/berth.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) \
  if ((call) != BERTH_OK) return fprintf(stderr, "%s\n", err.message), 1

static void release(void *user, const void *data, size_t size) {
  (void)data, (void)size;
  free(user);
}

/* The graph of a file of which `size` bytes are read: twice as many, until they have all of the header. */
static berth_status load_header(berth_context *ctx, FILE *file, uint64_t file_size, berth_graph **out,
                                berth_error *err) {
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_model_info *info = NULL;
  berth_status status = BERTH_IO;
  desc.file_size = file_size;
  *out = NULL;
  for (uint64_t size = 4096; status == BERTH_IO; size *= 2) {
    if (size > file_size) size = file_size;
    void *data = malloc((size_t)size);
    rewind(file);
    if (data == NULL || fread(data, 1, (size_t)size, file) != size) return free(data), BERTH_NOMEM;
    status = berth_model_inspect_memory(ctx, data, (size_t)size, file_size, &info, err);
    if (status == BERTH_OK) printf("%s: %zu tensors, by %" PRIu64 " bytes\n", info->name, info->n_tensors, size);
    berth_model_info_destroy(info);
    if (status == BERTH_OK)
      status = berth_graph_from_memory_with(ctx, data, (size_t)size, release, data, &desc, out, err);
    else
      free(data);
  }
  return status;
}

int main(int argc, char **argv) {
  berth_error err = {BERTH_NOMEM, "there is no memory for the file"};
  berth_context *ctx;
  berth_graph *graph;
  berth_generator *model;
  if (argc < 3) return fprintf(stderr, "usage: memory MODEL.gguf TEXT\n"), 2;
  FILE *file = fopen(argv[1], "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return fprintf(stderr, "%s cannot be read\n", argv[1]), 1;
  const size_t file_size = (size_t)ftell(file);
  TRY(berth_context_create(NULL, &ctx, &err));
  TRY(load_header(ctx, file, file_size, &graph, &err));
  for (uint32_t tokens = 32; tokens <= 256; tokens *= 2) {
    berth_dim dims[BERTH_GENERATOR_DIMS];
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    berth_plan *plan;
    desc.dims = dims, desc.n_dims = berth_generator_dims(graph, tokens, 32, 32, dims);
    TRY(berth_plan_create(graph, &desc, &plan, &err));
    printf("%" PRIu32 " tokens: %" PRIu64 " bytes\n", tokens, berth_plan_arena_size(plan));
    berth_plan_destroy(plan);
  }
  berth_graph_destroy(graph);

  void *data = malloc(file_size);
  rewind(file);
  if (data == NULL || fread(data, 1, file_size, file) != file_size) return 1;
  berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  sampling.temperature = 0;
  desc.sampling = &sampling;
  TRY(berth_generator_from_memory(ctx, data, file_size, release, data, &desc, &model, &err));
  TRY(berth_generator_feed(model, argv[2], strlen(argv[2]), 0, &err));
  printf("%s", argv[2]);
  for (int i = 0; i < 20; i++) {
    berth_piece piece = BERTH_PIECE_INIT;
    TRY(berth_generator_next(model, &piece, &err));
    fwrite(piece.text, 1, piece.text_size, stdout);
  }
  putchar('\n');
  fclose(file), berth_generator_destroy(model), berth_context_destroy(ctx);
  return 0;
}
