/* The picture as SVG. It stays small with any number of buffers: the largest few thousand are separate elements, with a
 * tooltip; the rest are drawn as one path per group. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "plan/draw_facts.h"

#define WIDTH 1280.0
#define LEFT 92.0
#define RIGHT 28.0
#define TOP 112.0
#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT 560.0
#define BOTTOM (TOP + PLOT_HEIGHT)
#define MAX_ELEMENTS 4000
#define MAX_STEP_LABELS 64
#define CHARACTER 6.5 /* average character width in labels */
#define SHADES 6u

/* The scale of bytes and steps in pixels. If weights would squeeze everything else into a thin strip at the top, they
 * get a band of fixed height below a break in the axis. */
typedef struct frame {
  const berth__draw_facts *facts;
  double steps;             /* horizontally */
  bool broken;              /* the axis, at facts->floor */
  double band;              /* pixels below the break */
  double band_scale, scale; /* pixels per byte, below and above it */
} frame;

static frame make_frame(const berth__draw_facts *facts) {
  const berth__drawing *d = facts->drawing;
  frame f = {.facts = facts, .steps = (double)((uint64_t)d->end - (uint64_t)d->begin)};
  double arena = (double)d->arena_size, low = (double)facts->floor;
  if (f.steps < 1) f.steps = 1;
  f.broken = low < arena && low > 0.12 * arena;
  f.band = f.broken ? 0.1 * PLOT_HEIGHT : 0;
  f.band_scale = f.broken ? f.band / low : 0;
  f.scale = (PLOT_HEIGHT - f.band) / fmax(1, f.broken ? arena - low : arena);
  return f;
}

static double x_of(const frame *f, int64_t step) {
  return LEFT + PLOT_WIDTH * (double)((uint64_t)step - (uint64_t)f->facts->drawing->begin) / f->steps;
}

static double y_of(const frame *f, uint64_t bytes) {
  double low = f->broken ? (double)f->facts->floor : 0, b = (double)bytes;
  return b < low ? BOTTOM - b * f->band_scale : BOTTOM - f->band - (b - low) * f->scale;
}

typedef struct box {
  double x, y, width, height;
} box;

static box box_of(const frame *f, const berth__draw_rect *r) {
  box b = {.x = x_of(f, r->birth), .y = y_of(f, r->offset + r->size)};
  b.width = fmax(0.25, x_of(f, r->death) - b.x);
  b.height = fmax(0.25, y_of(f, r->offset) - b.y);
  return b;
}

/* ---- Pieces ---------------------------------------------------------------------------------------------------- */

static void put_attribute(berth__text *out, const char *name, double value) {
  berth__text_printf(out, " %s=\"", name);
  berth__draw_number(out, value);
  berth__draw_put(out, "\"");
}

static void put_point(berth__text *out, const char *command, double x, double y) {
  berth__draw_put(out, command);
  berth__draw_number(out, x);
  berth__draw_put(out, " ");
  berth__draw_number(out, y);
}

static void put_line(berth__text *out, const char *class, double x1, double y1, double x2, double y2) {
  berth__text_printf(out, "<path class=\"%s\" d=\"", class);
  put_point(out, "M", x1, y1);
  put_point(out, "L", x2, y2);
  berth__draw_put(out, "\"/>\n");
}

static void open_text(berth__text *out, const char *class, double x, double y) {
  berth__text_printf(out, "<text class=\"%s\"", class);
  put_attribute(out, "x", x);
  put_attribute(out, "y", y);
  berth__draw_put(out, ">");
}

static void put_rect(berth__text *out, const char *class, box b) {
  berth__text_printf(out, "<rect class=\"%s\"", class);
  put_attribute(out, "x", b.x);
  put_attribute(out, "y", b.y);
  put_attribute(out, "width", b.width);
  put_attribute(out, "height", b.height);
}

static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#46515f}\n"
    ".t{font-size:20px;font-weight:600;fill:#17202b}.v{font-weight:600;fill:#17202b}.e{text-anchor:end}\n"
    ".m{text-anchor:middle}.l{font-size:11px;fill:#10202f;pointer-events:none}.bg{fill:#fff}.pl{fill:#f5f7fa}\n"
    ".ax{stroke:#c3cbd5;fill:none}.gr{stroke:#e3e8ee;fill:none}.br{stroke:#7a8594;fill:none;stroke-dasharray:2 3}\n"
    ".ld{stroke:#17202b;stroke-width:1.4;fill:none;stroke-linejoin:round;pointer-events:none;opacity:.75}\n"
    ".lb{stroke:#d1372f;stroke-width:1.6;stroke-dasharray:7 4;fill:none;pointer-events:none}.lt{fill:#d1372f}\n"
    ".h{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\n";

static const char group_style[] =
    ".b rect{stroke:#fff;stroke-width:.8}.b rect:hover{stroke:#17202b;stroke-width:1.6}\n"
    ".a0{fill:#7fb2e5}.a1{fill:#9ccbf0}.a2{fill:#6fa5da}.a3{fill:#8fd0d4}.a4{fill:#93b4f2}.a5{fill:#7cc0c9}\n"
    ".g0{fill:#7fb2e5}.g1{fill:#b4bcc8}.g2{fill:#7cc79a}.g3{fill:#f3b562}.g4{fill:#cf9be0}.g5{fill:#cfc4a5}\n"
    ".g6{fill:url(#hatch)}.g7{fill:#e0a3b8}.hb{fill:#f7dede}.hl{stroke:#d98080;stroke-width:2}\n"
    "@media (prefers-color-scheme:dark){text{fill:#a9b4c2}.t,.v{fill:#eef2f7}.l{fill:#10202f}.bg{fill:#12161c}\n"
    ".pl{fill:#191f27}.ax{stroke:#3c4653}.gr{stroke:#262e38}.ld{stroke:#fff}.lb{stroke:#ff6b62}.lt{fill:#ff8a82}\n"
    ".h{stroke:#191f27}.b rect{stroke:#12161c}.b rect:hover{stroke:#fff}}\n"
    "</style>\n"
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect class=\"hb\" width=\"6\" height=\"6\"/><path class=\"hl\" d=\"M0 0V6\"/>"
    "</pattern></defs>\n";

/* ---- Around the plot ------------------------------------------------------------------------------------------- */

static void put_total(berth__text *out, double *x, const char *name, uint64_t bytes) {
  open_text(out, "", *x, 62);
  berth__draw_put(out, name);
  berth__draw_put(out, " <tspan class=\"v\">");
  berth__draw_bytes(out, bytes);
  berth__draw_put(out, "</tspan></text>\n");
  *x += 190;
}

static void put_head(berth__text *out, const frame *f) {
  const berth__draw_facts *facts = f->facts;
  const berth__drawing *d = facts->drawing;
  double x = LEFT;
  open_text(out, "t", LEFT, 38);
  berth__draw_xml(out, d->title != NULL ? d->title : "Memory", 80);
  berth__draw_put(out, "</text>\n");
  put_total(out, &x, "Arena", d->arena_size);
  put_total(out, &x, "Lower bound", facts->lower_bound);
  put_total(out, &x, "Unshared", facts->unshared);
  if (facts->unshared > d->arena_size) put_total(out, &x, "Saved", facts->unshared - d->arena_size);
  open_text(out, "", x, 62);
  berth__text_printf(out, "<tspan class=\"v\">%zu</tspan> buffers</text>\n", d->n_rects);
}

static void put_legend(berth__text *out, const frame *f) {
  double x = LEFT;
  char class[8] = "g0";
  for (unsigned g = 0; g < BERTH__DRAW_GROUPS; g++) {
    if (f->facts->count[g] == 0) continue;
    class[1] = (char)('0' + g);
    put_rect(out, class, (box){x, 80, 12, 12});
    berth__draw_put(out, " rx=\"2\"/>");
    open_text(out, "", x + 18, 90);
    berth__text_printf(out, "%s</text>\n", berth__draw_group_names[g]);
    x += 40 + CHARACTER * (double)strlen(berth__draw_group_names[g]);
  }
  put_line(out, "ld", x, 86, x + 22, 86);
  open_text(out, "", x + 28, 90);
  berth__draw_put(out, "bytes alive</text>\n");
  put_line(out, "lb", x + 112, 86, x + 134, 86);
  open_text(out, "", x + 140, 90);
  berth__draw_put(out, "lower bound</text>\n");
}

static void put_byte_axis(berth__text *out, const frame *f) {
  uint64_t low = f->broken ? f->facts->floor : 0, range = f->facts->drawing->arena_size - low, step = 1;
  while (step < range / 8) step *= 2;
  uint64_t ticks = range / step;
  for (uint64_t i = 0; i <= ticks; i++) {
    double y = y_of(f, low + i * step);
    put_line(out, "gr", LEFT, y, WIDTH - RIGHT, y);
    open_text(out, "e", LEFT - 8, y + 4);
    if (f->broken && i > 0) berth__draw_put(out, "+");
    if (f->broken && i == 0) {
      berth__draw_put(out, "0");
    } else {
      berth__draw_bytes(out, i * step);
    }
    berth__draw_put(out, "</text>\n");
  }
}

/* The picture marks where weights are squeezed. */
static void put_break(berth__text *out, const frame *f) {
  double y = BOTTOM - f->band;
  put_line(out, "br", LEFT, y, WIDTH - RIGHT, y);
  open_text(out, "e", LEFT - 8, BOTTOM - f->band / 2 - 2);
  berth__draw_put(out, "weights</text>\n");
  open_text(out, "e", LEFT - 8, BOTTOM - f->band / 2 + 12);
  berth__draw_bytes(out, f->facts->floor);
  berth__draw_put(out, "</text>\n");
}

static void put_step_labels(berth__text *out, const frame *f) {
  const berth__drawing *d = f->facts->drawing;
  for (int64_t step = d->begin; step < d->end; step++) {
    double x = x_of(f, step) + PLOT_WIDTH / f->steps / 2 + 4;
    berth__draw_put(out, "<text class=\"e\" transform=\"translate(");
    put_point(out, "", x, BOTTOM + 14);
    berth__draw_put(out, ")rotate(-40)\">");
    const char *label = d->step_labels[step - d->begin];
    berth__draw_xml(out, label != NULL ? label : "", 18);
    berth__draw_put(out, "</text>\n");
  }
}

static void put_step_axis(berth__text *out, const frame *f) {
  const berth__drawing *d = f->facts->drawing;
  uint64_t range = (uint64_t)d->end - (uint64_t)d->begin, step = 1;
  for (int i = 0; range / step > 12; i++) step = i % 3 == 1 ? step * 5 / 2 : step * 2; /* 1, 2, 5, 10, 20, 50, ... */
  int64_t past = d->begin % (int64_t)step; /* the first tick is the first multiple of the step */
  uint64_t first = past > 0 ? step - (uint64_t)past : (uint64_t)-past;
  for (uint64_t i = 0; i <= 12 && first + i * step <= range; i++) {
    int64_t at = (int64_t)((uint64_t)d->begin + first + i * step);
    double x = x_of(f, at);
    put_line(out, "ax", x, BOTTOM, x, BOTTOM + 5);
    open_text(out, "m", x, BOTTOM + 19);
    berth__text_printf(out, "%" PRId64 "</text>\n", at);
  }
  open_text(out, "m", LEFT + PLOT_WIDTH / 2, BOTTOM + 40);
  berth__draw_put(out, "step</text>\n");
}

/* ---- Buffers --------------------------------------------------------------------------------------------------- */

static void put_class(char class[8], const berth__draw_rect *r, size_t index) {
  bool shaded = r->group == BERTH__DRAW_ACTIVATION; /* adjacent rectangles get different shades */
  class[0] = shaded ? 'a' : 'g';
  class[1] = (char)('0' + (shaded ? (unsigned)(index % SHADES) : (unsigned)r->group));
  class[2] = '\0';
}

static void put_title(berth__text *out, const berth__draw_rect *r, const char *name) {
  berth__draw_put(out, "><title>");
  berth__draw_xml(out, name, 200);
  berth__draw_put(out, "\n");
  berth__draw_bytes(out, r->size);
  berth__text_printf(out, " (%" PRIu64 " bytes) at %" PRIu64 "\n%s, alive over [%" PRId64 ", %" PRId64 ")", r->size,
                     r->offset, berth__draw_group_names[r->group], r->birth, r->death);
  if (r->detail != NULL && r->detail[0] != '\0') {
    berth__draw_put(out, "\n");
    berth__draw_xml(out, r->detail, 200);
  }
  berth__draw_put(out, "</title></rect>");
}

/* The name inside the rectangle: horizontal if it is wide enough, rotated if it is only tall. */
static void put_label(berth__text *out, const char *name, box b) {
  bool upright = b.width > 40 || b.width >= b.height;
  double room = (upright ? b.width : b.height) - 8, thickness = upright ? b.height : b.width;
  if (room < 26 || thickness < 13) return;
  if (upright) {
    open_text(out, "l", b.x + 4, b.y + fmin(b.height / 2, 14) + 4);
  } else {
    berth__draw_put(out, "<text class=\"l\" transform=\"translate(");
    put_point(out, "", b.x + fmin(b.width / 2, 14) + 4, b.y + b.height - 4);
    berth__draw_put(out, ")rotate(-90)\">");
  }
  berth__draw_xml(out, name, (size_t)(room / CHARACTER));
  berth__draw_put(out, "</text>");
}

static void put_element(berth__text *out, const berth__draw_rect *r, size_t index, box b) {
  char class[8], scratch[24];
  const char *name;
  berth__draw_name(r, index, scratch, &name);
  put_class(class, r, index);
  put_rect(out, class, b);
  if (b.width < 3 || b.height < 3) berth__draw_put(out, " style=\"stroke:none\"");
  put_title(out, r, name);
  put_label(out, name, b);
  berth__draw_put(out, "\n");
}

/* All rectangles that are too small to be separate elements, in one shape. */
static void put_small(berth__text *out, const frame *f, const uint8_t *large, berth__draw_group group) {
  const berth__drawing *d = f->facts->drawing;
  bool open = false;
  for (size_t i = 0; i < d->n_rects; i++) {
    const berth__draw_rect *r = &d->rects[i];
    if (r->group != group || large[i] || !berth__draw_visible(r)) continue;
    if (!open) berth__text_printf(out, "<path class=\"g%d\" d=\"", (int)group);
    open = true;
    box b = box_of(f, r);
    put_point(out, "M", b.x, b.y);
    berth__draw_put(out, "h");
    berth__draw_number(out, b.width);
    berth__draw_put(out, "v");
    berth__draw_number(out, b.height);
    berth__draw_put(out, "h");
    berth__draw_number(out, -b.width);
    berth__draw_put(out, "z");
  }
  if (open) berth__draw_put(out, "\"/>\n");
}

/* Marks the rectangles with the largest areas: at most MAX_ELEMENTS, in whole size classes. */
static void mark_large(const frame *f, uint8_t *large) {
  enum {
    CLASSES = 64,
    OFFSET = 16
  };
  const berth__drawing *d = f->facts->drawing;
  size_t classes[CLASSES] = {0}, kept = 0;
  for (size_t i = 0; i < d->n_rects; i++) {
    box b = box_of(f, &d->rects[i]);
    int exponent = 0;
    frexp(b.width * b.height, &exponent);
    large[i] = (uint8_t)(exponent + OFFSET);
    if (berth__draw_visible(&d->rects[i])) classes[large[i]]++;
  }
  int least = CLASSES;
  while (least > 0 && kept + classes[least - 1] <= MAX_ELEMENTS) kept += classes[--least];
  for (size_t i = 0; i < d->n_rects; i++) large[i] = berth__draw_visible(&d->rects[i]) && large[i] >= least;
}

static void put_buffers(berth__text *out, const frame *f, uint8_t *large) {
  const berth__drawing *d = f->facts->drawing;
  mark_large(f, large);
  berth__draw_put(out, "<g class=\"b\">\n");
  for (unsigned g = 0; g < BERTH__DRAW_GROUPS; g++) put_small(out, f, large, (berth__draw_group)g);
  for (size_t i = 0; i < d->n_rects; i++) {
    if (large[i]) put_element(out, &d->rects[i], i, box_of(f, &d->rects[i]));
  }
  berth__draw_put(out, "</g>\n");
}

/* ---- Curves ---------------------------------------------------------------------------------------------------- */

/* A staircase. Points within half a pixel are merged, at their maximum. */
static void plan_draw_svg_put_load(berth__text *out, const frame *f) {
  const berth__draw_facts *facts = f->facts;
  berth__draw_put(out, "<path class=\"ld\" d=\"");
  put_point(out, "M", LEFT, y_of(f, facts->n_load > 0 ? facts->load[0].bytes : 0));
  for (size_t i = 0; i + 1 < facts->n_load;) {
    double x = x_of(f, facts->load[i].at);
    uint64_t highest = facts->load[i].bytes;
    for (i++; i + 1 < facts->n_load && x_of(f, facts->load[i].at) < x + 0.5; i++) {
      if (facts->load[i].bytes > highest) highest = facts->load[i].bytes;
    }
    berth__draw_put(out, "V");
    berth__draw_number(out, y_of(f, highest));
    berth__draw_put(out, "H");
    berth__draw_number(out, x_of(f, facts->load[i].at));
  }
  berth__draw_put(out, "\"/>\n");
}

static void put_lower_bound(berth__text *out, const frame *f) {
  double y = y_of(f, f->facts->lower_bound);
  put_line(out, "lb", LEFT, y, WIDTH - RIGHT, y);
  open_text(out, "lt e h", WIDTH - RIGHT - 6, y + 16);
  berth__draw_put(out, "lower bound ");
  berth__draw_bytes(out, f->facts->lower_bound);
  berth__draw_put(out, f->facts->lower_bound == f->facts->drawing->arena_size ? ", reached</text>\n" : "</text>\n");
}

berth_status berth__draw_svg(berth_context *ctx, const berth__draw_facts *facts, berth__text *out, berth_error *err) {
  frame f = make_frame(facts);
  const berth__drawing *d = facts->drawing;
  bool labelled = d->step_labels != NULL && f.steps <= MAX_STEP_LABELS;
  double height = BOTTOM + (labelled ? 104 : 56);
  uint8_t *large = berth__alloc_zero(ctx, d->n_rects);
  if (large == NULL) return berth__fail_nomem(err, "a picture");
  berth__text_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                     "viewBox=\"0 0 %.0f %.0f\">\n",
                     WIDTH, height, WIDTH, height);
  berth__draw_put(out, style);
  berth__draw_put(out, group_style);
  put_rect(out, "bg", (box){0, 0, WIDTH, height});
  berth__draw_put(out, "/>");
  put_rect(out, "pl", (box){LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT});
  berth__draw_put(out, "/>\n");
  put_head(out, &f);
  put_legend(out, &f);
  put_byte_axis(out, &f);
  put_buffers(out, &f, large);
  if (f.broken) put_break(out, &f);
  plan_draw_svg_put_load(out, &f);
  put_lower_bound(out, &f);
  put_line(out, "ax", LEFT, TOP, LEFT, BOTTOM);
  put_line(out, "ax", LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM);
  if (labelled) {
    put_step_labels(out, &f);
  } else {
    put_step_axis(out, &f);
  }
  berth__draw_put(out, "</svg>\n");
  berth__free(ctx, large);
  return BERTH_OK;
}
