/* berth inspect: what is in a file, told by its content. */
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "cli.h"
#include "cmd.h"
#include "inspect.h"

typedef struct inspect_options {
  const char *path;
  bool json;
} inspect_options;

static const arg_option options[] = {
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(inspect_options, json), 0, 0},
};

const arg_verb cmd_inspect_verb = {
    .name = "inspect",
    .purpose = "show what is in a file",
    .operand = "FILE",
    .operand_required = true,
    .operand_offset = offsetof(inspect_options, path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details = "Knows .npy arrays, safetensors weights, ONNX models and berth's own graphs as text.\n",
    .examples =
        "  berth inspect weights.safetensors\n"
        "  berth inspect model.onnx\n"
        "  berth inspect model.berth --json\n",
};

typedef struct opening {
  unsigned char bytes[4096];
  size_t size;
  uint64_t file_size;
} opening;

static int read_opening(const char *path, opening *out) {
  FILE *stream = fopen(path, "rb");
  if (!stream) return cli_failed("cannot read %s: %s", path, strerror(errno));
  errno = 0;
  out->size = fread(out->bytes, 1, sizeof(out->bytes), stream);
  bool failed = ferror(stream) != 0;
  int error = errno;
  long end = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
  out->file_size = end < 0 ? out->size : (uint64_t)end;
  fclose(stream);
  if (failed) return cli_failed("cannot read %s: %s", path, strerror(error));
  return out->size ? CLI_OK : cli_failed("%s is empty", path);
}

static bool starts_with(const opening *o, const char *magic, size_t size) {
  return o->size >= size && memcmp(o->bytes, magic, size) == 0;
}

static bool ends_with(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n >= m && strcasecmp(path + n - m, ending) == 0;
}

/* Eight bytes with the header's length, then the header, which is a JSON object. */
static bool is_safetensors(const opening *o) {
  uint64_t length = 0;
  if (o->size < 9 || o->bytes[8] != '{') return false;
  for (int i = 7; i >= 0; i--) length = length << 8 | o->bytes[i];
  return length >= 2 && length <= o->file_size - 8;
}

/* The IR version comes first in the models of the world; there is no magic number. */
static bool is_onnx(const opening *o) { return o->size > 2 && o->bytes[0] == 8 && o->bytes[1] < 0x40; }

static bool is_text(const opening *o) {
  for (size_t i = 0; i < o->size; i++) {
    unsigned char c = o->bytes[i];
    if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t')) return false;
  }
  return true;
}

static int inspect_file(berth_context *ctx, const char *path, bool as_json) {
  opening o = {.size = 0};
  int code = read_opening(path, &o);
  if (code != CLI_OK) return code;
  if (starts_with(&o, "\x93NUMPY", 6)) return inspect_npy(ctx, path, as_json);
  if (starts_with(&o, "GGUF", 4))
    return cli_unsupported("%s is a GGUF model, which this build does not read yet", path);
  if (is_safetensors(&o) || ends_with(path, ".safetensors")) return inspect_weights(ctx, path, as_json);
  if (ends_with(path, ".onnx") || is_onnx(&o)) return inspect_onnx(ctx, path, as_json);
  if (is_text(&o)) return inspect_graph(ctx, path, as_json);
  code = cli_unsupported("%s is of no kind that berth knows", path);
  cli_hint("berth reads .npy arrays, safetensors weights, ONNX models and its own graphs as text");
  return code;
}

int cmd_inspect(int argc, char **argv) {
  inspect_options wanted = {0};
  int code;
  if (!args_parse(&cmd_inspect_verb, argc, argv, &wanted, &code)) return code;
  berth_context *ctx = NULL;
  code = cli_context(1, NULL, &ctx);
  if (code == CLI_OK) code = inspect_file(ctx, wanted.path, wanted.json);
  berth_context_destroy(ctx);
  return code;
}
