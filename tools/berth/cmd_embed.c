/* berth embed: embeddings of texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "json.h"
#include "out.h"

typedef struct embed_options {
  const char *path, *file, *device;
  arg_list texts;
  uint64_t threads, memory_limit;
  bool json;
} embed_options;

static const arg_option options[] = {
    {"prompt", 'p', ARG_LIST, "TEXT", "text to embed; may be repeated", offsetof(embed_options, texts), 0, 0},
    {"file", 'f', ARG_TEXT, "FILE", "read texts from a file, one per line (-: stdin)", offsetof(embed_options, file), 0,
     0},
    {"device", 0, ARG_TEXT, "D", "device to run on, as listed by `berth devices` (cpu)",
     offsetof(embed_options, device), 0, 0},
    {"threads", 0, ARG_COUNT, "N", "number of threads; 0: one per core (0)", offsetof(embed_options, threads), 0, 1024},
    {"memory-limit", 0, ARG_BYTES, "N",
     "refuse an arena of more than N bytes of host memory (memory of the machine or its control group)",
     offsetof(embed_options, memory_limit), 1, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(embed_options, json), 0, 0},
};

const arg_verb cmd_embed_verb = {
    .name = "embed",
    .purpose = "compute text embeddings with a model from a GGUF file",
    .operand = "MODEL",
    .operand_required = true,
    .operand_offset = offsetof(embed_options, path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "Prints one vector per text: a line of numbers, normalised to length 1. The dot product of two vectors\n"
        "says how similar the texts are; with several texts, --json has all of these products.\n",
    .examples =
        "  berth embed minilm.gguf -p 'a cat' -p 'a kitten' --json\n"
        "  berth embed minilm.gguf -f lines.txt\n",
};

typedef struct embed {
  berth_context *ctx;
  berth_embedder *embedder;
  float *vectors; /* one after the other */
  size_t n, width;
  double ms;
} embed;

static int embed_text(embed *e, const char *text, size_t size) {
  berth_error err = {BERTH_OK, ""};
  float *grown = realloc(e->vectors, (e->n + 1) * e->width * sizeof(*grown));
  if (!grown) return cli_no_memory();
  e->vectors = grown;
  const double start = cli_now_ms();
  if (berth_embedder_embed(e->embedder, text, size, grown + e->n * e->width, e->width, &err) != BERTH_OK)
    return cli_report(&err);
  e->ms += cli_now_ms() - start;
  e->n++;
  return CLI_OK;
}

static int embed_lines(embed *e, const char *path) {
  char *data;
  size_t size;
  int code = out_read_all(path, &data, &size);
  if (code != CLI_OK) return code;
  for (size_t at = 0; at < size && code == CLI_OK;) {
    const size_t length = strcspn(data + at, "\r\n");
    if (length > 0) code = embed_text(e, data + at, length);
    at += length + (at + length < size);
  }
  free(data);
  return code;
}

static int embed_open(embed *e, const embed_options *wanted) {
  berth_error err = {BERTH_OK, ""};
  berth_embedder_desc desc = BERTH_EMBEDDER_DESC_INIT;
  desc.device = wanted->device;
  desc.n_threads = (uint32_t)wanted->threads;
  int code = cli_context((uint32_t)wanted->threads, wanted->memory_limit, NULL, &e->ctx);
  if (code == CLI_OK) code = cli_check_device(e->ctx, wanted->device);
  if (code != CLI_OK) return code;
  if (berth_embedder_create(e->ctx, wanted->path, &desc, &e->embedder, &err) != BERTH_OK) return cli_report(&err);
  e->width = berth_embedder_size(e->embedder);
  return CLI_OK;
}

static double embed_product(const embed *e, size_t a, size_t b) {
  double sum = 0;
  for (size_t i = 0; i < e->width; i++)
    sum += (double)e->vectors[a * e->width + i] * (double)e->vectors[b * e->width + i];
  return sum;
}

static int embed_print_json(const embed *e) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_uint(&out, "size", e->width);
  json_open_array(&out, "embeddings");
  for (size_t i = 0; i < e->n; i++) {
    json_open_array(&out, NULL);
    for (size_t k = 0; k < e->width; k++) json_double(&out, NULL, (double)e->vectors[i * e->width + k]);
    json_close_array(&out);
  }
  json_close_array(&out);
  json_open_array(&out, "products");
  for (size_t i = 0; i < e->n; i++) {
    json_open_array(&out, NULL);
    for (size_t k = 0; k < e->n; k++) json_double(&out, NULL, embed_product(e, i, k));
    json_close_array(&out);
  }
  json_close_array(&out);
  json_double(&out, "ms", e->ms);
  json_close_object(&out);
  return json_print(&out);
}

static int embed_print_text(const embed *e) {
  for (size_t i = 0; i < e->n; i++)
    for (size_t k = 0; k < e->width; k++)
      printf("%.7g%c", (double)e->vectors[i * e->width + k], k + 1 < e->width ? ' ' : '\n');
  return CLI_OK;
}

int cmd_embed(int argc, char **argv) {
  embed_options wanted = {0};
  embed e = {0};
  int code;
  if (args_parse(&cmd_embed_verb, argc, argv, &wanted, &code)) {
    code = wanted.texts.n == 0 && !wanted.file ? cli_usage("`berth embed` needs a text: -p TEXT or -f FILE")
                                               : embed_open(&e, &wanted);
    for (size_t i = 0; i < wanted.texts.n && code == CLI_OK; i++)
      code = embed_text(&e, wanted.texts.items[i], strlen(wanted.texts.items[i]));
    if (code == CLI_OK && wanted.file) code = embed_lines(&e, wanted.file);
    if (code == CLI_OK) code = wanted.json ? embed_print_json(&e) : embed_print_text(&e);
  }
  berth_embedder_destroy(e.embedder);
  berth_context_destroy(e.ctx);
  free(e.vectors);
  args_free(&cmd_embed_verb, &wanted);
  return code;
}
