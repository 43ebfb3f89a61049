#include "digits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "embedded.h"
#include "format.h"

enum {
  side = 8,
  pixels = side * side,
  classes = 10
};

static void tool_digits_print_row(const float *row) {
  static const char shades[] = " .:-=+*#%@";
  for (int x = 0; x < side; x++) {
    float level = row[x] * 9.0f + 0.5f;
    char shade = shades[level > 9 ? 9 : level > 0 ? (int)level : 0];
    putchar(shade);
    putchar(shade); /* a character is about half as wide as high */
  }
}

/* Converts logits to probabilities. */
static double probability_of(const float *scores, int class) {
  double sum = 0, largest = scores[class], exponentials = 0;
  for (int i = 0; i < classes; i++) {
    sum += (double)scores[i];
    exponentials += exp((double)scores[i] - largest);
  }
  return scores[class] >= 0 && fabs(sum - 1) < 1e-3 ? (double)scores[class] : 1 / exponentials;
}

static int best_class(const float *scores) {
  int best = 0;
  for (int i = 1; i < classes; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

static void print_digit(const float *image, const float *scores, int64_t label, const char *title) {
  format_colours colours = format_stdout_colours();
  int class = best_class(scores);
  for (int y = 0; y < side; y++) {
    printf("  |");
    tool_digits_print_row(image + (ptrdiff_t)y * side);
    printf("|");
    if (y == 1) printf("  %s", title);
    if (y == 3) printf("  recognised as %s%d%s", colours.bold, class, colours.end);
    if (y == 4) printf("  probability %.1f %%", 100 * probability_of(scores, class));
    if (y == 5 && label >= 0) {
      printf("  it is a %" PRId64 ": %s%s%s", label, class == label ? colours.good : colours.bad,
             class == label ? "right" : "wrong", colours.end);
    }
    putchar('\n');
  }
  putchar('\n');
}

static const float *find_scores(const outputs *results, int64_t batch) {
  for (uint32_t i = 0; i < results->n; i++) {
    const berth_array *array = &results->items[i].array;
    if (array->type == BERTH_F32 && array->rank == 2 && array->dim[0] == batch && array->dim[1] == classes) {
      return array->data;
    }
  }
  return NULL;
}

static void tool_digits_print_all(const berth_array *images, const float *scores, const berth_array *labels) {
  int64_t batch = images->dim[0], right = 0;
  for (int64_t i = 0; i < batch; i++) {
    char title[64];
    int64_t label = labels ? ((const int64_t *)labels->data)[i % labels->dim[0]] : -1;
    snprintf(title, sizeof(title), "digit %" PRId64 " of %" PRId64, i + 1, batch);
    right += label == best_class(scores + i * classes);
    print_digit((const float *)images->data + i * pixels, scores + i * classes, label, title);
  }
  if (labels) printf("%" PRId64 " of %" PRId64 " recognised\n", right, batch);
}

int digits_print(const runner *r, const outputs *results) {
  if (r->inputs.n == 0) return CLI_OK;
  const input *in = &r->inputs.items[0];
  const berth_array *images = &in->array;
  bool is_images = images->type == BERTH_F32 && images->rank >= 1 &&
                   images->size == (uint64_t)images->dim[0] * pixels * sizeof(float);
  const float *scores = is_images ? find_scores(results, images->dim[0]) : NULL;
  if (!scores) return cli_failed("the model in this binary does not take and give what its digits need");
  if (in->given) {
    tool_digits_print_all(images, scores, NULL);
    return CLI_OK;
  }
  berth_array labels;
  berth_error err = {BERTH_OK, ""};
  if (berth_npy_parse(r->model.ctx, berth_digits_labels, berth_digits_labels_size, &labels, &err) != BERTH_OK) {
    return cli_report(&err);
  }
  bool fit = labels.type == BERTH_I64 && labels.rank == 1 && labels.dim[0] > 0;
  tool_digits_print_all(images, scores, fit ? &labels : NULL);
  berth_array_free(r->model.ctx, &labels);
  return CLI_OK;
}
