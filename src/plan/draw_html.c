/* The picture as a self-contained page: page.html with the numbers inserted as JSON. The build embeds page.html in
 * the library (berth_embed in the CMake files). */
#include <inttypes.h>

#include "plan/draw_facts.h"

extern const unsigned char berth__page_html[];
extern const size_t berth__page_html_size;

#define MARK "@DATA@" /* occurs once in page.html */

static void put_rects(const berth__drawing *d, berth__text *out) {
  berth__draw_put(out, ",\n\"rects\":[");
  for (size_t i = 0; i < d->n_rects; i++) {
    const berth__draw_rect *r = &d->rects[i];
    char scratch[24];
    const char *name;
    berth__draw_name(r, i, scratch, &name);
    berth__draw_put(out, i == 0 ? "\n[" : ",\n[");
    berth__draw_json(out, name);
    berth__text_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%d", r->offset, r->size, r->birth,
                       r->death, (int)r->group);
    if (r->detail != NULL && r->detail[0] != '\0') {
      berth__draw_put(out, ",");
      berth__draw_json(out, r->detail);
    }
    berth__draw_put(out, "]");
  }
  berth__draw_put(out, "]");
}

static void put_steps(const berth__drawing *d, berth__text *out) {
  berth__draw_put(out, ",\n\"steps\":[");
  for (int64_t i = 0; d->step_labels != NULL && i < d->end - d->begin; i++) {
    if (i > 0) berth__draw_put(out, ",");
    berth__draw_json(out, d->step_labels[i] != NULL ? d->step_labels[i] : "");
  }
  berth__draw_put(out, "]");
}

static void plan_draw_html_put_load(const berth__draw_facts *facts, berth__text *out) {
  berth__draw_put(out, ",\n\"load\":[");
  for (size_t i = 0; i < facts->n_load; i++) {
    berth__text_printf(out, "%s[%" PRId64 ",%" PRIu64 "]", i > 0 ? "," : "", facts->load[i].at, facts->load[i].bytes);
  }
  berth__draw_put(out, "]");
}

static void put_data(const berth__draw_facts *facts, berth__text *out) {
  const berth__drawing *d = facts->drawing;
  berth__draw_put(out, "{\"title\":");
  berth__draw_json(out, d->title != NULL ? d->title : "Memory");
  berth__text_printf(out,
                     ",\n\"arena\":%" PRIu64 ",\"lower\":%" PRIu64 ",\"unshared\":%" PRIu64 ",\"floor\":%" PRIu64
                     ",\"begin\":%" PRId64 ",\"end\":%" PRId64 ",\n\"groups\":[",
                     d->arena_size, facts->lower_bound, facts->unshared, facts->floor, d->begin, d->end);
  for (unsigned g = 0; g < BERTH__DRAW_GROUPS; g++) {
    if (g > 0) berth__draw_put(out, ",");
    berth__draw_json(out, berth__draw_group_names[g]);
  }
  berth__draw_put(out, "]");
  put_steps(d, out);
  plan_draw_html_put_load(facts, out);
  put_rects(d, out);
  berth__draw_put(out, "}\n");
}

void berth__draw_html(const berth__draw_facts *facts, berth__text *out) {
  const char *page = (const char *)berth__page_html;
  size_t at = 0, mark = strlen(MARK);
  while (at + mark <= berth__page_html_size && memcmp(page + at, MARK, mark) != 0) at++;
  berth__text_add(out, page, at);
  put_data(facts, out);
  if (at + mark <= berth__page_html_size) berth__text_add(out, page + at + mark, berth__page_html_size - at - mark);
}
