#include "format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

const char *format_count(uint64_t number, char out[FORMAT_SIZE]) {
  char digits[24];
  int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
  size_t at = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = '\0';
  return out;
}

const char *format_short_bytes(uint64_t bytes, char out[FORMAT_SIZE]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = (double)bytes;
  size_t unit = 0;
  while (amount >= 1024) {
    amount /= 1024;
    unit++;
  }
  snprintf(out, FORMAT_SIZE, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return out;
}

const char *format_bytes(uint64_t bytes, char out[FORMAT_SIZE]) {
  char exact[FORMAT_SIZE], rough[FORMAT_SIZE];
  if (bytes < 1024) {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 " byte%s", bytes, cli_plural(bytes));
  } else {
    snprintf(out, FORMAT_SIZE, "%.40s bytes (%.40s)", format_count(bytes, exact), format_short_bytes(bytes, rough));
  }
  return out;
}

const char *format_shape(const berth_shape *shape, char out[FORMAT_SIZE]) {
  size_t at = 0;
  out[at++] = '[';
  for (uint32_t i = 0; i < shape->rank && i < BERTH_MAX_RANK && at < FORMAT_SIZE - 3; i++) {
    const berth_dim *dim = &shape->dim[i];
    size_t room = FORMAT_SIZE - 2 - at;
    int n = dim->name ? snprintf(out + at, room, "%s%s", i ? "," : "", dim->name)
                      : snprintf(out + at, room, "%s%" PRId64, i ? "," : "", dim->extent);
    at += (size_t)n < room ? (size_t)n : room - 1;
  }
  out[at++] = ']';
  out[at] = '\0';
  return out;
}

const char *format_extents(uint32_t rank, const int64_t *extents, char out[FORMAT_SIZE]) {
  berth_shape shape = berth_shape_fixed(rank, extents);
  return format_shape(&shape, out);
}

const char *format_summary(const element_summary *summary, char out[FORMAT_SIZE]) {
  if (summary->count == 0) {
    snprintf(out, FORMAT_SIZE, "empty");
  } else if (summary->not_finite == summary->count) {
    snprintf(out, FORMAT_SIZE, "no finite value");
  } else {
    int n = snprintf(out, FORMAT_SIZE, "min %.6g  max %.6g  mean %.6g", summary->min, summary->max, summary->mean);
    if (summary->not_finite) {
      snprintf(out + n, FORMAT_SIZE - (size_t)n, "  (%" PRIu64 " not finite)", summary->not_finite);
    }
  }
  return out;
}

static void print_bytes_row(const char *label, uint64_t bytes, const char *remark) {
  char text[FORMAT_SIZE];
  printf("  %-12s %s%s\n", label, format_bytes(bytes, text), remark);
}

void format_memory(const berth_plan_info *info) {
  format_colours colours = format_stdout_colours();
  char text[FORMAT_SIZE], bound[2 * FORMAT_SIZE], percent[FORMAT_SIZE] = "";
  printf("memory: one arena of %s%s%s\n", colours.bold, format_bytes(info->arena_size, text), colours.end);
  print_bytes_row("weights", info->weights_size, "");
  if (info->state_size) print_bytes_row("state", info->state_size, " kept from run to run");
  snprintf(bound, sizeof(bound), "; lower bound %s%s", format_count(info->activations_lower_bound, text),
           info->optimal ? ", optimal (proven)" : "");
  print_bytes_row("activations", info->activations_size, bound);
  print_bytes_row("scratch", info->scratch_size, "");
  if (info->preparation_peak) {
    snprintf(bound, sizeof(bound), " more than a run needs; at most %s at once, before the first run",
             format_count(info->preparation_peak, text));
    print_bytes_row("preparation", info->preparation_size, bound);
  }
  print_bytes_row("unshared", info->total_unshared, " if every value had bytes of its own");
  if (info->total_unshared) {
    snprintf(percent, sizeof(percent), ", %.1f %%", 100 * (double)info->saved / (double)info->total_unshared);
  }
  print_bytes_row("saved", info->saved, percent);
}

format_colours format_stdout_colours(void) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  bool plain = (no_color && *no_color) || !term || strcmp(term, "dumb") == 0 || !isatty(STDOUT_FILENO);
  if (plain) return (format_colours){"", "", "", "", ""};
  return (format_colours){"\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"};
}

int format_width(void) {
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}
