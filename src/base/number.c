#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 512 /* the most digits passed to strtod; nobody writes a longer number */

/* strtod and printf use the locale's decimal point, which may be longer than one character. */
static const char *local_point(void) { return localeconv()->decimal_point; }

static bool to_local(const char *text, char local[LONGEST]) {
  const char *mark = local_point();
  size_t mark_size = strlen(mark), size = 0;
  for (; *text != '\0'; text++) {
    size_t add = *text == '.' ? mark_size : 1;
    if (size + add >= LONGEST) return false;
    memcpy(local + size, *text == '.' ? mark : text, add);
    size += add;
  }
  local[size] = '\0';
  return true;
}

bool berth__parse_double(const char *text, double *out) {
  char local[LONGEST], *end;
  bool has_foreign_point = strcmp(local_point(), ".") != 0 && strstr(text, local_point()) != NULL;
  if (text[0] == '\0' || has_foreign_point || !to_local(text, local)) return false;
  double value = strtod(local, &end);
  if (*end != '\0') return false;
  *out = value;
  return true;
}

void berth__format_double(double value, char text[BERTH__DOUBLE_TEXT]) {
  const char *mark = local_point();
  if (isnan(value) || isinf(value)) {
    snprintf(text, BERTH__DOUBLE_TEXT, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  for (int precision = 1; precision <= 17; precision++) {
    snprintf(text, BERTH__DOUBLE_TEXT, "%.*g", precision, value);
    if (strtod(text, NULL) == value) break;
  }
  char *at = strstr(text, mark);
  if (at == NULL || strcmp(mark, ".") == 0) return;
  *at = '.';
  memmove(at + 1, at + strlen(mark), strlen(at + strlen(mark)) + 1);
}
