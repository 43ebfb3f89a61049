#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "elements.h"
#include "format.h"
#include "inspect.h"
#include "json.h"

static int tool_inspect_npy_print_json(const char *path, const berth_array *array, const element_summary *summary) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string(&out, "format", "npy");
  json_string(&out, "file", path);
  json_string(&out, "dtype", berth_type_name(array->type));
  json_ints(&out, "shape", array->rank, array->dim);
  json_uint(&out, "bytes", array->size);
  const bool has_any = summary->count > summary->not_finite;
  json_double(&out, "min", has_any ? summary->min : (double)NAN);
  json_double(&out, "max", has_any ? summary->max : (double)NAN);
  json_double(&out, "mean", has_any ? summary->mean : (double)NAN);
  json_uint(&out, "not_finite", summary->not_finite);
  json_close_object(&out);
  return json_print(&out);
}

int inspect_npy(berth_context *ctx, const char *path, bool as_json) {
  berth_array array;
  berth_error err = {BERTH_OK, ""};
  char shape[FORMAT_SIZE], bytes[FORMAT_SIZE], numbers[FORMAT_SIZE];
  if (berth_npy_load(ctx, path, &array, &err) != BERTH_OK) return cli_report(&err);
  element_summary summary =
      element_summarise(array.type, array.data, (size_t)(array.size / berth_type_size(array.type)));
  int code = CLI_OK;
  if (as_json) {
    code = tool_inspect_npy_print_json(path, &array, &summary);
  } else {
    printf("%s: npy array, %s%s, %s\n  %s\n", path, berth_type_name(array.type),
           format_extents(array.rank, array.dim, shape), format_bytes(array.size, bytes),
           format_summary(&summary, numbers));
  }
  berth_array_free(ctx, &array);
  return code;
}
