/* The learning rate of a step: a warm-up from 0, and optionally a decay until the last step. */
#include <math.h>
#include <string.h>

#include "train.h"

double train_rate(const training *t) {
  const train_options *wanted = t->wanted;
  const double pi = 3.14159265358979323846;
  if (t->step < wanted->warmup) return wanted->rate * (double)(t->step + 1) / (double)wanted->warmup;
  if (strcmp(wanted->schedule, "constant") == 0 || wanted->steps <= wanted->warmup) return wanted->rate;
  const double done = (double)(t->step - wanted->warmup) / (double)(wanted->steps - wanted->warmup);
  if (strcmp(wanted->schedule, "linear") == 0) return wanted->rate * (1 - done);
  return wanted->rate * 0.5 * (1 + cos(pi * done)); /* cosine */
}
