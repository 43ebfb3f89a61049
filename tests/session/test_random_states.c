/* Random graphs with states against a few lines of C: in four runs, planned in every way, on the CPU and on a GPU
 * (support.h says which). */
#include <stdbool.h>
#include <stdio.h>

#include "sessions.h"

static const char *device = "cpu";

enum {
  MOST_VALUES = 40,
  ELEMENTS = 4, /* every value is f32[2, 2] */
  MOST_STATES = 5
};

typedef struct made {
  char op; /* x: input, s: state, or what run_model knows */
  int a, b;
} made;

typedef struct model {
  made values[MOST_VALUES];
  int n, n_states, next[MOST_STATES]; /* states are values 1 and so on; -1: not updated */
  float state[MOST_STATES][ELEMENTS], value[MOST_VALUES][ELEMENTS];
} model;

static int any(uint64_t *seed, int n) { return (int)(test_random(seed) % (uint64_t)n); }

static void make_model(model *m, uint64_t seed) {
  static const char ops[] = "naamvtirc";
  memset(m, 0, sizeof *m);
  m->n_states = 1 + any(&seed, MOST_STATES);
  m->values[m->n++].op = 'x';
  for (int i = 0; i < m->n_states; i++) {
    m->values[m->n++].op = 's';
    for (int k = 0; k < ELEMENTS; k++) m->state[i][k] = (float)any(&seed, 9) - 4;
  }
  const int end = m->n + 2 + any(&seed, 14);
  while (m->n < end) {
    made *v = &m->values[m->n];
    v->op = ops[any(&seed, (int)sizeof ops - 1)];
    v->a = any(&seed, m->n);
    v->b = any(&seed, m->n);
    m->n++;
  }
  for (int i = 0; i < m->n_states; i++) m->next[i] = any(&seed, 8) == 0 ? -1 : any(&seed, m->n);
}

static void run_model(model *m, const float *x) {
  for (int v = 0, s = 0; v < m->n; v++) {
    const float *a = m->value[m->values[v].a], *b = m->value[m->values[v].b];
    float *y = m->value[v];
    for (int k = 0; k < ELEMENTS; k++) switch (m->values[v].op) {
        case 'x': y[k] = x[k]; break;
        case 's': y[k] = m->state[s][k]; break;
        case 'n': y[k] = -a[k]; break;
        case 'a': y[k] = a[k] + b[k]; break;
        case 'm': y[k] = a[k] > b[k] ? a[k] : b[k]; break;
        case 't': y[k] = a[k % 2 * 2 + k / 2]; break;
        case 'r': y[k] = k < 2 ? a[k + 2] : b[k - 2]; break; /* a roll: concat of rows */
        case 'c': y[k] = k < 2 ? a[k] : b[k]; break;         /* rows of b written into a */
        default: y[k] = a[k]; break;                         /* i, v: the same elements */
      }
    s += m->values[v].op == 's';
  }
  for (int i = 0; i < m->n_states; i++)
    if (m->next[i] >= 0) memcpy(m->state[i], m->value[m->next[i]], sizeof m->state[i]);
}

static size_t print_node(const made *v, int i, char *text, size_t size) {
  switch (v->op) {
    case 'n': return (size_t)snprintf(text, size, "%%v%d = neg(%%v%d)\n", i, v->a);
    case 'a': return (size_t)snprintf(text, size, "%%v%d = add(%%v%d, %%v%d)\n", i, v->a, v->b);
    case 'm': return (size_t)snprintf(text, size, "%%v%d = max(%%v%d, %%v%d)\n", i, v->a, v->b);
    case 't': return (size_t)snprintf(text, size, "%%v%d = transpose(%%v%d) {perm = [1, 0]}\n", i, v->a);
    case 'i': return (size_t)snprintf(text, size, "%%v%d = identity(%%v%d)\n", i, v->a);
    case 'v':
      return (size_t)snprintf(
          text, size, "%%w%d = reshape(%%v%d) {shape = [4]}\n%%v%d = reshape(%%w%d) {shape = [2, 2]}\n", i, v->a, i, i);
    case 'r':
      return (size_t)snprintf(
          text, size,
          "%%p%d = narrow(%%v%d) {starts = [1], ends = [2]}\n"
          "%%q%d = narrow(%%v%d) {starts = [0], ends = [1]}\n%%v%d = concat(%%p%d, %%q%d) {axis = 0}\n",
          i, v->a, i, v->b, i, i, i);
    default:
      return (size_t)snprintf(
          text, size, "%%q%d = narrow(%%v%d) {starts = [1], ends = [2]}\n%%v%d = write_rows(%%v%d, %%q%d, %%at)\n", i,
          v->b, i, v->a, i);
  }
}

static void print_model(const model *m, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, "graph \"r\" {\nconst %%at : i32[] = [1]\ninput %%v0 : f32[2, 2]\n");
  for (int i = 0; i < m->n_states; i++)
    n += (size_t)snprintf(text + n, size - n, "state %%v%d : f32[2, 2] = [%g, %g, %g, %g]\n", i + 1,
                          (double)m->state[i][0], (double)m->state[i][1], (double)m->state[i][2],
                          (double)m->state[i][3]);
  for (int i = m->n_states + 1; i < m->n; i++) n += print_node(&m->values[i], i, text + n, size - n);
  for (int i = 0; i < m->n_states; i++)
    if (m->next[i] >= 0) n += (size_t)snprintf(text + n, size - n, "update %%v%d = %%v%d\n", i + 1, m->next[i]);
  snprintf(text + n, size - n, "output \"last\" = %%v%d\noutput \"middle\" = %%v%d\n}\n", m->n - 1,
           (m->n + m->n_states) / 2 + 1);
}

static void compare_model(model m, const char *text, uint32_t plan_flags, uint32_t session_flags, uint64_t seed) {
  fixture f;
  berth_error err;
  const int middle = (m.n + m.n_states) / 2 + 1;
  session_start_on(&f, text, device, NULL, 0, plan_flags, session_flags);
  for (int run = 0; run < 4; run++) {
    float x[ELEMENTS], got[2][ELEMENTS];
    for (int k = 0; k < ELEMENTS; k++) x[k] = (float)(run + k - 2);
    OK(berth_session_write(f.session, "v0", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    run_model(&m, x);
    OK(berth_session_read(f.session, "last", got[0], sizeof got[0], &err));
    OK(berth_session_read(f.session, "middle", got[1], sizeof got[1], &err));
    bool is_same = true;
    for (int k = 0; k < ELEMENTS; k++)
      is_same = is_same && got[0][k] == m.value[m.n - 1][k] && got[1][k] == m.value[middle][k];
    for (int i = 0; i < m.n_states; i++) {
      char name[16];
      snprintf(name, sizeof name, "v%d", i + 1);
      OK(berth_session_state_read(f.session, name, got[0], sizeof got[0], &err));
      for (int k = 0; k < ELEMENTS; k++) is_same = is_same && got[0][k] == m.state[i][k];
    }
    if (!is_same)
      fail_msg("run %d with flags 0x%x, 0x%x on %s, seed %llu:\n%s", run, plan_flags, session_flags, device,
               (unsigned long long)seed, text);
  }
  session_finish(&f);
}

static void random_graphs_run_as_written(void **state) {
  static const uint32_t flags[] = {0,
                                   BERTH_PLAN_INPUTS_DIE,
                                   BERTH_PLAN_NO_INPLACE,
                                   BERTH_PLAN_NO_REUSE,
                                   BERTH_PLAN_NO_STRIDED,
                                   BERTH_PLAN_NO_PASSES,
                                   BERTH_PLAN_REFERENCE};
  const int n_graphs = strcmp(device, "cpu") == 0 ? 150 : strcmp(device, "interp") == 0 ? 60 : 12;
  static char text[16384];
  (void)state;
  for (uint64_t seed = 1; seed <= (uint64_t)n_graphs; seed++) {
    model m;
    make_model(&m, seed);
    if (m.values[m.n - 1].op == 's' || m.values[(m.n + m.n_states) / 2 + 1].op == 's') continue;
    print_model(&m, text, sizeof text);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) compare_model(m, text, flags[i], 0, seed);
    if (strcmp(device, "cpu") == 0) compare_model(m, text, 0, BERTH_SESSION_CHECKED, seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_run_as_written)};
  int failed = cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
  device = test_gpu();
  return failed + cmocka_run_group_tests_name(device, tests, NULL, NULL);
}
