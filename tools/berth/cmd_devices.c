/* berth devices: the devices of this machine, and why others are unavailable. */
#include <stdio.h>

#include "cli.h"
#include "cmd.h"
#include "format.h"
#include "json.h"

typedef struct devices_options {
  bool json;
} devices_options;

static const arg_option options[] = {
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(devices_options, json), 0, 0},
};

const arg_verb cmd_devices_verb = {
    .name = "devices",
    .purpose = "list the devices of this machine, with the reason where one cannot be used",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .examples =
        "  berth devices\n"
        "  berth devices --json\n",
};

static void devices_print_text(const berth_device_info *info) {
  format_colours colours = format_stdout_colours();
  char memory[FORMAT_SIZE];
  printf("%s%-8s%s %s", colours.bold, info->name, colours.end, info->description);
  if (info->memory) printf(", %s of memory", format_short_bytes(info->memory, memory));
  if (!info->available) printf(" - not available: %s", info->reason ? info->reason : "no reason given");
  putchar('\n');
}

static void write_json(const berth_device_info *info, json *out) {
  json_open_object(out, NULL);
  json_string(out, "name", info->name);
  json_string(out, "description", info->description);
  json_bool(out, "available", info->available != 0);
  json_string(out, "reason", info->available ? NULL : info->reason);
  json_uint(out, "memory", info->memory);
  json_close_object(out);
}

static int devices_list_devices(const berth_context *ctx, bool as_json) {
  json out = JSON_INIT;
  if (as_json) {
    json_open_object(&out, NULL);
    json_open_array(&out, "devices");
  }
  for (uint32_t i = 0; i < berth_device_count(ctx); i++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_device_at(ctx, i, &info, &err) != BERTH_OK) {
      json_free(&out);
      return cli_report(&err);
    }
    if (as_json) {
      write_json(&info, &out);
    } else {
      devices_print_text(&info);
    }
  }
  if (!as_json) return CLI_OK;
  json_close_array(&out);
  json_close_object(&out);
  return json_print(&out);
}

int cmd_devices(int argc, char **argv) {
  devices_options wanted = {0};
  int code;
  if (!args_parse(&cmd_devices_verb, argc, argv, &wanted, &code)) return code;
  berth_context *ctx = NULL;
  code = cli_context(0, 0, NULL, &ctx);
  if (code == CLI_OK) code = devices_list_devices(ctx, wanted.json);
  berth_context_destroy(ctx);
  return code;
}
