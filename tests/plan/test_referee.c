/* Recomputed values, compared with an integer program (Debian's coinor-cbc solves it): of all ways to keep a value or
 * to make it again, any number of times, none meets the target with less work.
 *
 * For class c and step t, a is 1 where its bytes are there during the step, r where it is made again just before it:
 *   a(c, t) = 1 where the step touches it; a(c, t) <= a(c, t - 1) + r(c, t); r(c, t) <= a(o, t) for all that it is made
 *   from; bytes at every step within the target, less those of a result that lies over an operand that ends (y). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plan/planning.h"
#include "plan/remake.h"

static const berth__limits limits = {.device = "none", .min_align = 1};

/* ---- Graphs: a chain, and one back along it that reads every link ---- */

#define LINKS 10u
#define MOST_TEXT 8192u

static void write_chain(char *text, uint64_t seed) {
  uint32_t width[LINKS + 1];
  int n = 0;
  uint64_t random = seed;
  width[0] = 16;
  n += snprintf(text, MOST_TEXT, "input %%f0 : f32[8, 16]\n");
  for (uint32_t i = 1; i <= LINKS; i++) {
    width[i] = 16u << test_random(&random) % 3;
    if (test_random(&random) % 2) width[i] = width[i - 1];
    if (width[i] == width[i - 1] && test_random(&random) % 2)
      n += snprintf(text + n, MOST_TEXT - (size_t)n, "%%f%u = gelu(%%f%u)\n", i, i - 1);
    else
      n += snprintf(text + n, MOST_TEXT - (size_t)n, "param %%w%u : f32[%u, %u] %%f%u = matmul(%%f%u, %%w%u)\n", i,
                    width[i - 1], width[i], i, i - 1, i);
  }
  n += snprintf(text + n, MOST_TEXT - (size_t)n, "%%g%u = tanh(%%f%u)\n", LINKS, LINKS);
  for (uint32_t i = LINKS; i-- > 1;)
    n += snprintf(text + n, MOST_TEXT - (size_t)n,
                  "param %%v%u : f32[%u, %u] %%h%u = matmul(%%g%u, %%v%u) %%g%u = mul(%%h%u, %%f%u)\n", i, width[i + 1],
                  width[i], i, i + 1, i, i, i, i);
  snprintf(text + n, MOST_TEXT - (size_t)n, "output \"y\" = %%g1\n");
}

/* ---- The program ---- */

static bool touches(const berth__remake_model *model, uint32_t class, uint32_t step) {
  for (uint32_t i = model->first_touch[step]; i < model->first_touch[step + 1]; i++)
    if (model->touches[i].class == class) return true;
  return false;
}

static bool is_made_by(const berth__remake_model *model, uint32_t class, uint32_t step) {
  return model->classes[class].maker == step;
}

static uint32_t first_step(const berth__remake_class *class) { return class->is_there ? 0 : class->maker; }

static bool may_be_made(const berth__remake_model *model, uint32_t class, uint32_t step) {
  const berth__remake_class *c = &model->classes[class];
  return c->may_drop && c->maker != BERTH__REMAKE_NEVER && step > c->maker && model->latest[c->maker] >= step;
}

static void write_objective(const berth__remake_model *model, FILE *file) {
  fprintf(file, "Minimize\n obj: 0 zero");
  for (uint32_t c = 0; c < model->n_classes; c++)
    for (uint32_t t = 0; t < model->n_steps; t++)
      if (may_be_made(model, c, t)) fprintf(file, " + %.6f r_%u_%u", model->work[model->classes[c].maker] * 1e-3, c, t);
}

static void write_lives(const berth__remake_model *model, uint32_t c, FILE *file) {
  const berth__remake_class *class = &model->classes[c];
  for (uint32_t t = first_step(class); t < model->n_steps; t++) {
    const bool is_last = class->stays && t + 1 == model->n_steps;
    if (touches(model, c, t) || is_last) fprintf(file, " a_%u_%u = 1\n", c, t);
    if (t == first_step(class)) continue;
    const bool may = may_be_made(model, c, t);
    fprintf(file, " a_%u_%u - a_%u_%u", c, t, c, t - 1);
    fprintf(file, may ? " - r_%u_%u <= 0\n" : " <= 0\n", c, t);
    for (uint32_t i = model->first_touch[class->maker]; may && i < model->first_touch[class->maker + 1]; i++) {
      const uint32_t from = model->touches[i].class;
      if (from != c) fprintf(file, " r_%u_%u - a_%u_%u <= 0\n", c, t, from, t);
    }
  }
}

static void write_memory(const berth__remake_model *model, uint32_t t, uint64_t target, FILE *file) {
  uint64_t result = 0;
  fprintf(file, " 0 zero");
  for (uint32_t c = 0; c < model->n_classes; c++)
    if (t >= first_step(&model->classes[c]))
      fprintf(file, " + %llu a_%u_%u", (unsigned long long)model->classes[c].size, c, t);
  for (uint32_t i = model->first_touch[t]; i < model->first_touch[t + 1]; i++)
    if (model->touches[i].is_result) result = model->classes[model->touches[i].class].size;
  fprintf(file, " - %llu y_%u <= %lld\n", (unsigned long long)result, t,
          (long long)(target - model->base - model->scratch[t]));
  fprintf(file, " y_%u", t); /* one of those that it may lie over ends here */
  uint32_t n_yield = 0;
  for (uint32_t i = model->first_touch[t]; i < model->first_touch[t + 1]; i++) {
    const uint32_t c = model->touches[i].class;
    if (!model->touches[i].may_yield || model->classes[c].stays || is_made_by(model, c, t)) continue;
    n_yield++;
    if (t + 1 < model->n_steps) fprintf(file, " + a_%u_%u", c, t + 1);
  }
  fprintf(file, " <= %u\n", n_yield);
}

static void write_program(const berth__remake_model *model, uint64_t target, const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  write_objective(model, file);
  fprintf(file, "\nSubject To\n");
  for (uint32_t c = 0; c < model->n_classes; c++) write_lives(model, c, file);
  for (uint32_t t = 0; t < model->n_steps; t++) write_memory(model, t, target, file);
  fprintf(file, " zero = 0\nBinary\n");
  for (uint32_t t = 0; t < model->n_steps; t++) fprintf(file, " y_%u\n", t);
  for (uint32_t c = 0; c < model->n_classes; c++)
    for (uint32_t t = first_step(&model->classes[c]); t < model->n_steps; t++) {
      fprintf(file, " a_%u_%u\n", c, t);
      if (may_be_made(model, c, t)) fprintf(file, " r_%u_%u\n", c, t);
    }
  fprintf(file, "End\n");
  assert_int_equal(fclose(file), 0);
}

/* The least work; negative: there is no way, or it was not found in time. */
static double solve(const char *folder) {
  char command[600], line[200] = "", path[300];
  double objective = -1;
  snprintf(command, sizeof command, "cbc '%s/program.lp' sec 20 solve solution '%s/solution' >'%s/log' 2>&1", folder,
           folder, folder);
  assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a program that users install */
  snprintf(path, sizeof path, "%s/solution", folder);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  if (strncmp(line, "Optimal", 7) != 0) return -1;
  assert_int_equal(sscanf(line, "Optimal - objective value %lf", &objective), 1);
  return objective * 1e3;
}

/* ---- Beside the search ---- */

typedef struct score {
  uint32_t n_compared, n_worse, n_equal;
} score;

static void compare(berth_plan *plan, const char *folder, uint64_t seed, score *s) {
  berth__remake_model model;
  berth__remake_cost whole, found;
  berth_error err;
  char path[300];
  snprintf(path, sizeof path, "%s/program.lp", folder);
  TEST_OK(berth__remake_model_create(&model, plan, &limits, &err));
  assert_true(model.n_steps <= 40);
  uint8_t *dropped = calloc(model.n_classes + 1, 1);
  assert_non_null(dropped);
  assert_true(berth__remake_measure(&model, dropped, 0, &whole));
  for (uint32_t percent = 80; percent >= 50; percent -= 15) {
    const uint64_t target = whole.peak / 100 * percent;
    write_program(&model, target, path);
    const double best = solve(folder);
    if (best < 0) continue;
    TEST_OK(berth__remake_search(&model, target, dropped, &found, &err));
    const bool meets = found.peak <= target;
    s->n_compared++;
    s->n_equal += meets && found.work <= best * 1.0001 + 1 && found.work >= best * 0.9999 - 1;
    if (meets && found.work <= best * 1.0001 + 1) continue;
    s->n_worse++;
    print_message("seed %llu at %u %%: %g, and %g of the program\n", (unsigned long long)seed, percent,
                  meets ? found.work : -1, best);
  }
  free(dropped);
  berth__remake_model_free(&model);
}

static void test_the_search_is_as_good_as_an_integer_program(void **state) {
  fixture *f = *state;
  char folder[] = "/tmp/berth-referee-XXXXXX", text[MOST_TEXT], command[100];
  score s = {0};
  if (system("command -v cbc >/dev/null 2>&1") != 0) /* NOLINT(cert-env33-c): whether it is installed */
    TEST_SKIP("cbc is not installed (coinor-cbc)");
  assert_non_null(mkdtemp(folder));
  const uint64_t n = getenv("BERTH_TEST_SLOW") != NULL ? 40 : 6;
  for (uint64_t seed = 1; seed <= n; seed++) {
    write_chain(text, seed);
    plan_text(f, text, BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_REFERENCE);
    compare(f->plan, folder, seed, &s);
  }
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): its own folder */
  print_message("# %u targets: %u alike; worse than the program %u\n", s.n_compared, s.n_equal, s.n_worse);
  assert_true(s.n_compared >= n);
  assert_int_equal(s.n_worse, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_the_search_is_as_good_as_an_integer_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
