/* A step of training that fails anywhere: weights are as they were before it, or as it made them, or they are lost, and
 * the session says so. */
#include <stdbool.h>
#include <stdlib.h>

#include "session/session.h"
#include "sessions.h"

static const char net[] =
    "graph \"net\" { input %x : f32[4, 3] param %w : f32[3, 50] param %v : f32[50, 2]\n"
    "%h = matmul(%x, %w) %a = tanh(%h) %y = matmul(%a, %v) %q = mul(%y, %y)\n"
    "%loss = reduce_mean(%q) {keepdims = 0} output \"loss\" = %loss }";

typedef struct stopper {
  berth_cancel *cancel;
  uint32_t left; /* steps until the run is stopped; 0: never */
} stopper;

static void stop_after(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  stopper *s = user;
  (void)step, (void)node, (void)out, (void)n_out, (void)ms;
  if (s->left != 0 && --s->left == 0) berth_cancel_request(s->cancel);
}

typedef struct lost_fixture {
  fixture f;
  stopper stop;
  size_t size;
  unsigned char *before, *after, *now;
} lost_fixture;

static void start_net(lost_fixture *l, const char *device) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_error err;
  uint64_t seed = 3;
  float data[150];
  const float rate = 0.1f;
  *l = (lost_fixture){0};
  l->f.ctx = test_context_counting(&l->f.alloc);
  l->f.graph = session_parse(l->f.ctx, net);
  OK(berth_graph_train(l->f.graph, berth_graph_find(l->f.graph, "loss"), NULL, &err));
  OK(berth_cancel_create(l->f.ctx, &l->stop.cancel, &err));
  desc.device = device;
  desc.cancel = l->stop.cancel;
  OK(berth_session_create(l->f.graph, &desc, &l->f.session, &err));
  for (int i = 0; i < 150; i++) data[i] = test_random_f32(&seed);
  OK(berth_session_state_write(l->f.session, "w", data, 600, &err));
  OK(berth_session_state_write(l->f.session, "v", data, 400, &err));
  OK(berth_session_write(l->f.session, "x", data, 48, &err));
  OK(berth_session_write(l->f.session, "learning_rate", &rate, sizeof rate, &err));
  l->size = (size_t)berth_session_state_size(l->f.session);
  l->before = malloc(l->size);
  l->after = malloc(l->size);
  l->now = malloc(l->size);
  assert_true(l->before != NULL && l->after != NULL && l->now != NULL);
  OK(berth_session_state_save(l->f.session, l->before, l->size, &err));
  OK(berth_session_run(l->f.session, &err));
  OK(berth_session_state_save(l->f.session, l->after, l->size, &err));
  berth_session_observe(l->f.session, stop_after, &l->stop);
}

static void finish_net(lost_fixture *l) {
  free(l->before);
  free(l->after);
  free(l->now);
  berth_session_destroy(l->f.session);
  l->f.session = NULL;
  berth_cancel_destroy(l->stop.cancel);
  session_finish(&l->f);
}

typedef struct outcomes {
  uint32_t before, after, lost;
} outcomes;

/* Nothing is read, saved, run or cloned that is made of such states, until all of them are something again. */
static void check_lost(lost_fixture *l, berth_session *session) {
  float w[150];
  berth_error err;
  REFUSED(berth_session_state_read(session, "w", w, sizeof w, &err), "the states are lost");
  REFUSED(berth_session_state_save(session, l->now, l->size, &err), "the states are lost");
  REFUSED(berth_session_run(session, &err), "Restore, reset or write all of them");
  OK(berth_session_state_reset(session, "w", &err)); /* one is not enough */
  assert_true(berth_session_states_lost(session));
  REFUSED(berth_session_run(session, &err), "the states are lost");
}

/* Stopped after every step in turn. */
static outcomes sweep(const char *device) {
  lost_fixture l;
  outcomes seen = {0};
  berth_error err;
  start_net(&l, device);
  OK(berth_session_state_restore(l.f.session, l.before, l.size, &err));
  berth_cancel_request(l.stop.cancel); /* before it begins */
  assert_int_equal(berth_session_run(l.f.session, &err), BERTH_CANCELLED);
  berth_cancel_clear(l.stop.cancel);
  OK(berth_session_state_save(l.f.session, l.now, l.size, &err));
  assert_memory_equal(l.now, l.before, l.size);
  for (uint32_t step = 1;; step++) {
    OK(berth_session_state_restore(l.f.session, l.before, l.size, &err));
    assert_false(berth_session_states_lost(l.f.session));
    l.stop.left = step;
    const berth_status status = berth_session_run(l.f.session, &err);
    const bool was_stopped = l.stop.left == 0;
    berth_cancel_clear(l.stop.cancel);
    if (status == BERTH_OK) {
      OK(berth_session_state_save(l.f.session, l.now, l.size, &err));
      assert_memory_equal(l.now, l.after, l.size);
      if (was_stopped) continue; /* after the last step of all */
      break;
    }
    assert_int_equal(status, BERTH_CANCELLED);
    if (berth_session_states_lost(l.f.session)) {
      check_lost(&l, l.f.session);
      seen.lost++;
      continue;
    }
    OK(berth_session_state_save(l.f.session, l.now, l.size, &err));
    const bool is_before = memcmp(l.now, l.before, l.size) == 0, is_after = memcmp(l.now, l.after, l.size) == 0;
    assert_true(is_before || is_after);
    seen.before += is_before;
    seen.after += is_after;
  }
  finish_net(&l);
  return seen;
}

static void a_failed_step_leaves_weights_whole_or_says_that_they_are_lost(void **state) {
  (void)state;
  const outcomes cpu = sweep("cpu");
  assert_true(cpu.before >= 3 && cpu.lost >= 1);
  (void)sweep(test_gpu()); /* whose run is one submission, which is not stopped half way */
}

/* One after the other, by every way there is. */
static void lost_states_come_back_one_by_one(void **state) {
  lost_fixture l;
  berth_error err;
  (void)state;
  start_net(&l, "cpu");
  for (uint32_t at = 1; !berth_session_states_lost(l.f.session); at++) {
    l.stop.left = at;
    OK(berth_session_state_restore(l.f.session, l.before, l.size, &err));
    assert_int_equal(berth_session_run(l.f.session, &err), BERTH_CANCELLED);
    berth_cancel_clear(l.stop.cancel);
  }
  berth_session *clone = NULL;
  OK(berth_session_clone(l.f.session, &clone, &err));
  assert_true(berth_session_states_lost(clone));
  OK(berth_session_state_reset(clone, NULL, &err));
  assert_false(berth_session_states_lost(clone));
  l.stop.left = 0;
  OK(berth_session_run(clone, &err));
  for (uint32_t i = 0; i < berth_graph_n_states(l.f.graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    OK(berth_graph_value(l.f.graph, berth_graph_state_at(l.f.graph, i), &info, &err));
    assert_true(berth_session_states_lost(l.f.session));
    memset(l.now, 0, l.size);
    OK(berth_session_state_write(l.f.session, info.name, l.now, (size_t)info.size, &err));
  }
  assert_false(berth_session_states_lost(l.f.session));
  OK(berth_session_run(l.f.session, &err));
  berth_session_destroy(clone);
  finish_net(&l);
}

/* A counter that the very first step updates is an update too, where nobody knows how far a run came. */
static void the_first_step_may_update(void **state) {
  fixture f;
  (void)state;
  session_start_with(&f,
                     "graph \"count\" { state %n : i64[] = zeros const %one : i64[] = [1]\n"
                     "%next = add(%n, %one) update %n = %next output \"next\" = %next }",
                     0, 0, 1);
  f.session->begun = UINT32_MAX; /* as a GPU says */
  berth__session_note_failure(f.session);
  assert_true(berth_session_states_lost(f.session));
  session_finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failed_step_leaves_weights_whole_or_says_that_they_are_lost),
      cmocka_unit_test(lost_states_come_back_one_by_one),
      cmocka_unit_test(the_first_step_may_update),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
