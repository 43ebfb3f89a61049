#include <math.h>
#include <stdio.h>

#include "import/utf8.h"
#include "plan/draw_facts.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* XML 1.0 allows neither most control characters nor U+FFFE and U+FFFF. */
static int allowed_in_xml(const char *character, size_t length) {
  if (length == 1) return (unsigned char)*character >= 0x20 || strchr("\t\n\r", *character) != NULL;
  return memcmp(character, "\xEF\xBF\xBE", 3) != 0 && memcmp(character, "\xEF\xBF\xBF", 3) != 0;
}

/* One character, or one invalid byte; returns the number of bytes. */
static size_t put_xml_character(berth__text *out, const char *string, size_t size) {
  size_t length = berth__utf8_length(string, size);
  if (*string == '<') {
    berth__draw_put(out, "&lt;");
  } else if (*string == '>') {
    berth__draw_put(out, "&gt;");
  } else if (*string == '&') {
    berth__draw_put(out, "&amp;");
  } else if (*string == '"') {
    berth__draw_put(out, "&quot;");
  } else if (length == 0 || !allowed_in_xml(string, length)) {
    berth__draw_put(out, REPLACEMENT);
  } else {
    berth__text_add(out, string, length);
  }
  return length != 0 ? length : 1;
}

static size_t step_over(const char *string, size_t size) {
  size_t length = berth__utf8_length(string, size);
  return length != 0 ? length : 1;
}

void berth__draw_xml(berth__text *out, const char *string, size_t most) {
  size_t size = strlen(string), count = 0, at = 0;
  for (size_t i = 0; i < size; i += step_over(string + i, size - i)) count++;
  if (count > most) {
    berth__draw_put(out, "\xE2\x80\xA6");
    for (size_t skip = count - most + 1; skip > 0 && at < size; skip--) at += step_over(string + at, size - at);
  }
  while (at < size) at += put_xml_character(out, string + at, size - at);
}

void berth__draw_json(berth__text *out, const char *string) {
  size_t size = strlen(string);
  berth__draw_put(out, "\"");
  while (size > 0) {
    size_t length = berth__utf8_length(string, size);
    unsigned char c = (unsigned char)*string;
    if (length == 0) {
      berth__draw_put(out, REPLACEMENT);
      length = 1;
    } else if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7F) {
      berth__text_printf(out, "\\u%04x", c);
    } else {
      berth__text_add(out, string, length);
    }
    string += length;
    size -= length;
  }
  berth__draw_put(out, "\"");
}

void berth__draw_name(const berth__draw_rect *rect, size_t index, char scratch[24], const char **name) {
  snprintf(scratch, 24, "#%zu", index);
  *name = rect->name != NULL && rect->name[0] != '\0' ? rect->name : scratch;
}

void berth__draw_bytes(berth__text *out, uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned unit = 0;
  double value = (double)bytes;
  for (; value >= 1024 && unit < 6; unit++) value /= 1024;
  double grain = value < 10 ? 100 : value < 100 ? 10 : 1; /* three digits suffice */
  berth__draw_number(out, round(value * grain) / grain);
  berth__text_printf(out, " %s", units[unit]);
}

void berth__draw_number(berth__text *out, double number) {
  long long hundredths = llround(number * 100);
  const char *sign = hundredths < 0 ? "-" : "";
  if (hundredths < 0) hundredths = -hundredths;
  berth__text_printf(out, "%s%lld", sign, hundredths / 100);
  if (hundredths % 100 != 0) {
    berth__text_printf(out, hundredths % 10 == 0 ? ".%lld" : ".%02lld",
                       hundredths % 10 == 0 ? hundredths % 100 / 10 : hundredths % 100);
  }
}
