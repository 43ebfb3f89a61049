/* berth inspect: describes the contents of a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    .details = "Knows .npy arrays, safetensors weights, ONNX and GGUF models and berth's own graphs as text.\n",
    .examples =
        "  berth inspect weights.safetensors\n"
        "  berth inspect model.onnx\n"
        "  berth inspect model.gguf\n"
        "  berth inspect model.berth --json\n",
};

/* How each format is displayed. */
static const struct {
  const char *name;
  int (*show)(berth_context *ctx, const char *path, bool as_json);
} views[] = {{"npy", inspect_npy},
             {"safetensors", inspect_weights},
             {"onnx", inspect_onnx},
             {"gguf", inspect_gguf},
             {"berth", inspect_graph}};

/* The formats that berth reads, from the library's table. */
static void hint_formats(void) {
  char text[512];
  size_t used = 0;
  for (uint32_t i = 0; i < berth_format_count(); i++) {
    berth_format_info info = BERTH_FORMAT_INFO_INIT;
    if (berth_format_at(i, &info, NULL) != BERTH_OK || info.parts == 0) continue;
    int n = snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "", info.description);
    if (n > 0 && (size_t)n < sizeof(text) - used) used += (size_t)n;
  }
  cli_hint("berth reads %s", text);
}

static int inspect_file(berth_context *ctx, const char *path, bool as_json) {
  berth_format_info info = BERTH_FORMAT_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  /* Reports a missing file in the tool's words; does not open it, because a pipe would wait for its writer. */
  if (access(path, R_OK) != 0) return cli_failed("cannot read %s: %s", path, strerror(errno));
  if (berth_file_format(path, &info, &err) != BERTH_OK) {
    int code = cli_report(&err);
    if (err.status == BERTH_UNSUPPORTED) hint_formats();
    return code;
  }
  for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
    if (strcmp(views[i].name, info.name) == 0) return views[i].show(ctx, path, as_json);
  return cli_unsupported("%s is %s, which this build does not read yet", path, info.description);
}

int cmd_inspect(int argc, char **argv) {
  inspect_options wanted = {0};
  int code;
  if (!args_parse(&cmd_inspect_verb, argc, argv, &wanted, &code)) return code;
  berth_context *ctx = NULL;
  code = cli_context(1, 0, NULL, &ctx);
  if (code == CLI_OK) code = inspect_file(ctx, wanted.path, wanted.json);
  berth_context_destroy(ctx);
  return code;
}
