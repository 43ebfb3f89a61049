/* Shared by both kinds of pictures: their numbers, and text that is safe in XML and JSON. */
#ifndef BERTH_PLAN_DRAW_FACTS_H
#define BERTH_PLAN_DRAW_FACTS_H

#include <stdbool.h>

#include "base/text.h"
#include "plan/draw.h"

/* `bytes` are alive from the time `at` until the next point. */
typedef struct berth__draw_point {
  int64_t at;
  uint64_t bytes;
} berth__draw_point;

typedef struct berth__draw_facts {
  const berth__drawing *drawing;
  berth__draw_point *load; /* ascending in time; the last one is at the end */
  size_t n_load;
  uint64_t peak; /* of the load */
  uint64_t lower_bound;
  uint64_t unshared;
  uint64_t floor; /* below it there are only weights and constants */
  size_t count[BERTH__DRAW_GROUPS];
  uint64_t bytes[BERTH__DRAW_GROUPS];
} berth__draw_facts;

/* Buffers without bytes or lifetime are in the page's table, but not in the picture. */
static inline bool berth__draw_visible(const berth__draw_rect *rect) {
  return rect->size > 0 && rect->birth < rect->death;
}

extern const char *const berth__draw_group_names[BERTH__DRAW_GROUPS];

/* draw_svg.c and draw_html.c */
berth_status berth__draw_svg(berth_context *ctx, const berth__draw_facts *facts, berth__text *out, berth_error *err);
void berth__draw_html(const berth__draw_facts *facts, berth__text *out);

static inline void berth__draw_put(berth__text *out, const char *text) { berth__text_add(out, text, strlen(text)); }

/* draw_text.c. The strings come from files: bytes that are not UTF-8, and characters that XML does not allow, become
 * U+FFFD. Strings longer than `most` characters keep their end, after an ellipsis, because names differ at the end. */
void berth__draw_xml(berth__text *out, const char *string, size_t most);
void berth__draw_json(berth__text *out, const char *string); /* with quotes; also safe inside <script> */
void berth__draw_name(const berth__draw_rect *rect, size_t index, char scratch[24], const char **name);
void berth__draw_bytes(berth__text *out, uint64_t bytes); /* "1.31 MiB" */
void berth__draw_number(berth__text *out, double number); /* two decimals, with a point in every locale */

#endif
