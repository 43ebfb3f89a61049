#include "segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "format.h"

typedef struct segment_list {
  berth_segment *items;
  uint32_t n;
} segment_list;

static int read_segments(const berth_plan *plan, segment_list *out) {
  berth_error err = {BERTH_OK, ""};
  *out = (segment_list){NULL, 0};
  if (berth_plan_segments(plan, NULL, 0, &out->n, &err) != BERTH_OK) return cli_report(&err);
  out->items = calloc((size_t)out->n + 1, sizeof(*out->items));
  if (!out->items) return cli_no_memory();
  out->items[0] = (berth_segment)BERTH_SEGMENT_INIT;
  return berth_plan_segments(plan, out->items, out->n, &out->n, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

const char *segments_device_name(const char *device, const char *asked) {
  return strcmp(asked, "loops") == 0 && strcmp(device, "interp") == 0 ? asked : device;
}

static void print_one(const berth_segment *s, const char *asked) {
  char down[FORMAT_SIZE], up[FORMAT_SIZE];
  printf("  steps %u to %u on %s", s->first_step, s->first_step + s->n_steps - 1,
         segments_device_name(s->device, asked));
  if (s->bytes_down + s->bytes_up != 0)
    printf(": %s down, %s up", format_short_bytes(s->bytes_down, down), format_short_bytes(s->bytes_up, up));
  putchar('\n');
}

int segments_print(const berth_plan *plan, const char *asked) {
  segment_list list;
  int code = read_segments(plan, &list);
  if (code == CLI_OK && list.n > 1) {
    printf("split into %u segments\n", list.n);
    for (uint32_t i = 0; i < list.n; i++) print_one(&list.items[i], asked);
  }
  free(list.items);
  return code;
}

int segments_write_json(const berth_plan *plan, const char *asked, json *out) {
  segment_list list;
  int code = read_segments(plan, &list);
  json_open_array(out, "segments");
  for (uint32_t i = 0; i < list.n && code == CLI_OK; i++) {
    json_open_object(out, NULL);
    json_string(out, "device", segments_device_name(list.items[i].device, asked));
    json_uint(out, "first_step", list.items[i].first_step);
    json_uint(out, "n_steps", list.items[i].n_steps);
    json_uint(out, "bytes_down", list.items[i].bytes_down);
    json_uint(out, "bytes_up", list.items[i].bytes_up);
    json_close_object(out);
  }
  json_close_array(out);
  free(list.items);
  return code;
}
