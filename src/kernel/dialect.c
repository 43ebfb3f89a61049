/* Shared by the renderers of all languages. */
#include "kernel/dialect.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

bool berth__dialect_has_digits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return isnormal(value) || bits == 0;
}

/* The decimal number with the fewest digits that reads back as this f32. The largest ones are truncated, not rounded:
 * compilers reject a decimal above the largest f32 even if that is the nearest one. */
static double shortest(float value) {
  if (fabsf(value) == FLT_MAX) return copysign(3.4028234e38, (double)value);
  for (int digits = 1; digits < 9; digits++) {
    char text[BERTH__DOUBLE_TEXT];
    snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
    const double near = strtod(text, NULL); /* in the locale in which it was written */
    if ((float)near == value) return near;
  }
  return value;
}

void berth__dialect_digits(berth__text *out, uint32_t bits) {
  char text[BERTH__DOUBLE_TEXT];
  float value;
  memcpy(&value, &bits, sizeof value);
  berth__format_double(shortest(value), text);
  berth__text_printf(out, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

void berth__dialect_literal(berth__text *out, berth__number type, uint32_t bits, const char *as_f32) {
  int32_t value;
  memcpy(&value, &bits, sizeof value);
  switch (type) {
    case BERTH__NUM_F32:
      if (berth__dialect_has_digits(bits)) {
        berth__dialect_digits(out, bits);
        berth__text_printf(out, "f");
      } else {
        berth__text_printf(out, "%s(0x%08xu)", as_f32, bits);
      }
      break;
    case BERTH__NUM_I32:
      if (value == INT32_MIN)
        berth__text_printf(out, "(-2147483647 - 1)");
      else
        berth__text_printf(out, "%d", value);
      break;
    case BERTH__NUM_U32: berth__text_printf(out, "%uu", bits); break;
    case BERTH__NUM_BOOL: berth__text_printf(out, "%s", bits != 0 ? "true" : "false"); break;
  }
}

uint32_t berth__dialect_binding(const berth__render_desc *desc, uint32_t buffer) {
  if (!desc->windows) return 0;
  return desc->window_of != NULL ? desc->window_of[buffer] : buffer;
}

bool berth__dialect_is_atomic(const berth__kernel *kernel, const berth__render_desc *desc, uint32_t binding) {
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (kernel->buffers[i].is_written &&
        (kernel->buffers[i].is_contended || berth__storage_per_word(kernel->buffers[i].storage) > 1) &&
        berth__dialect_binding(desc, i) == binding)
      return true;
  return false;
}

void berth__dialect_name(berth__text *out, const berth__kernel *kernel) {
  berth__text_printf(out, "// ");
  for (const char *c = kernel->name; *c != '\0'; c++)
    berth__text_printf(out, "%c", isprint((unsigned char)*c) && *c != '\\' ? *c : '?');
  berth__text_printf(out, "\n");
}
