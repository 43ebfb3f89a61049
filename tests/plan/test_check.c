/* The independent checker: it accepts good plans, and rejects each kind of broken one. */
#include "plan/planning.h"
#include "plan/random_graph.h"

/* Everything that the planner knows: views, a strided one, in-place results, parts born inside, scratch, an output. */
#define GRAPH                                                                                   \
  "input %in : f32[8, 12]\nparam %w : f32[12, 12]\nconst %k : f32[2] = [1, 2]\n"                \
  "%x = matmul(%in, %w)\n"                                            /* step 0 */              \
  "%q = narrow(%x) {axes = [1], starts = [0], ends = [4]}\n"          /* 1: strided views */    \
  "%r = narrow(%x) {axes = [1], starts = [4], ends = [8]}\n"          /* 2 */                   \
  "%t = attention(%q, %r, %r) {heads = 1}\n"                          /* 3: scratch */          \
  "%u = relu(%t)\n"                                                   /* 4: in place */         \
  "%h = narrow(%u) {starts = [4], ends = [8]}\n"                      /* 5: a view */           \
  "%e = matmul(%h, %f)\n%f = narrow(%w) {starts = [0], ends = [4]}\n" /* 6, 7 */                \
  "%g = matmul(%in, %w)\n"                                            /* 8 */                   \
  "%c = concat(%e, %g) {axis = 0}\n"                                  /* 9: both born inside */ \
  "%m = reduce_sum(%c) {axes = [0]}\n%z = add(%c, %m)\noutput \"z\" = %z\noutput \"u\" = %u"

typedef struct broken {
  fixture *f;
  berth_plan *plan;
} broken;

static broken good_plan(void **state) {
  fixture *f = *state;
  plan_text(f, GRAPH, 0);
  return (broken){.f = f, .plan = f->plan};
}

static void expect_rejected(const berth_plan *plan, const char *part) {
  berth_error err;
  test_expect_error(berth_plan_check(plan, &err), BERTH_INTERNAL, &err, "plan check");
  if (strstr(err.message, part) == NULL) fail_msg("\"%s\" says nothing of \"%s\"", err.message, part);
}

static uint32_t plan_step_of(const berth_plan *plan, const char *name) {
  uint32_t step = 0;
  while (plan->order[step] != plan->graph->values[find(plan, name)].node) step++;
  return step;
}

static berth__place *place(berth_plan *plan, const char *name) { return &plan->places[find(plan, name)]; }

static void test_good_plans(void **state) {
  broken b = good_plan(state);
  berth_error err;
  TEST_OK(berth_plan_check(b.plan, &err));
  /* The graph has what the tests below break. */
  assert_true(place(b.plan, "q")->is_view && place(b.plan, "q")->stride[0] == 12);
  assert_true(place(b.plan, "u")->in_place);
  assert_true(place(b.plan, "e")->born_inside && place(b.plan, "g")->born_inside);
  assert_int_not_equal(b.plan->scratch[3], BERTH__NO_BUFFER);
  test_expect_error(berth_plan_check(NULL, &err), BERTH_INVALID, &err, NULL);
}

static void test_offsets(void **state) {
  broken b = good_plan(state);
  buffer_of(b.plan, "x")->offset += 4;
  expect_rejected(b.plan, "not aligned");
  b = good_plan(state);
  buffer_of(b.plan, "x")->offset = b.plan->info.arena_size;
  expect_rejected(b.plan, "outside the arena");
  b = good_plan(state);
  buffer_of(b.plan, "x")->offset = buffer_of(b.plan, "in")->offset;
  expect_rejected(b.plan, "share bytes");
  b = good_plan(state);
  buffer_of(b.plan, "x")->offset = buffer_of(b.plan, "w")->offset;
  expect_rejected(b.plan, "share bytes");
  b = good_plan(state);
  b.plan->info.arena_size -= 64;
  expect_rejected(b.plan, "outside the arena");
}

/* Two buffers whose lives were cut so that they seem to pass each other by. */
static void test_bytes_that_are_destroyed(void **state) {
  fixture *f = *state;
  plan_text(f, "input %in : f32[4]\n%x = exp(%in)\n%y = exp(%in)\n%z = matmul(%x, %y)\noutput \"z\" = %z", 0);
  buffer_of(f->plan, "y")->offset = buffer_of(f->plan, "x")->offset;
  buffer_of(f->plan, "x")->death = 1;
  expect_rejected(f->plan, "destroys 'x'");
}

static void test_lifetimes(void **state) {
  broken b = good_plan(state);
  buffer_of(b.plan, "x")->death = buffer_of(b.plan, "x")->birth;
  expect_rejected(b.plan, "never lives");
  b = good_plan(state);
  buffer_of(b.plan, "x")->death = 3; /* its views are read in step 3 */
  expect_rejected(b.plan, "outside its lifetime");
  b = good_plan(state);
  buffer_of(b.plan, "x")->birth = 1;
  expect_rejected(b.plan, "outside its lifetime");
  b = good_plan(state);
  buffer_of(b.plan, "in")->death -= 1;
  expect_rejected(b.plan, "throughout");
  b = good_plan(state);
  buffer_of(b.plan, "w")->birth += 1;
  expect_rejected(b.plan, "throughout");
  b = good_plan(state);
  buffer_of(b.plan, "u")->death -= 1;
  expect_rejected(b.plan, "to the end");
  b = good_plan(state);
  place(b.plan, "g")->death = 9; /* what berth_plan_slot says */
  expect_rejected(b.plan, "outside its lifetime");
  b = good_plan(state);
  place(b.plan, "g")->birth = 9;
  expect_rejected(b.plan, "outside its lifetime");
}

/* ---- States ---- */

/* Two states that are updated in place, one that a copy updates, one that nothing does; scratch, and a late reader. */
#define STATES                                                                                             \
  "input %x : f32[16]\nparam %w : f32[16]\nstate %a : f32[16] = zeros\nstate %b : f32[16] = zeros\n"       \
  "state %c : f32[16] = zeros\nstate %d : f32[16] = zeros\n"                                               \
  "%p = mul(%a, %d)\n"                                                /* step 0 */                         \
  "%n = add(%a, %x)\n"                                                /* 1: over a */                      \
  "%m = softmax(%p)\n"                                                /* 2: into b, which nobody reads */  \
  "%k = add(%c, %p)\n"                                                /* 3 */                              \
  "%y = mul(%k, %c)\n"                                                /* 4: reads c and what it becomes */ \
  "update %a = %n\nupdate %b = %m\nupdate %c = %k\noutput \"y\" = %y" /* 5: c.next */

static broken good_states(void **state) {
  fixture *f = *state;
  plan_text(f, STATES, BERTH_PLAN_REFERENCE);
  berth_plan *plan = f->plan;
  assert_int_equal(plan->n_steps, 6);
  for (uint32_t step = 0; step < 6; step++) assert_int_equal(plan->order[step], step);
  assert_true(place(plan, "n")->in_place && place(plan, "n")->root == find(plan, "a"));
  assert_true(!place(plan, "m")->in_place && place(plan, "m")->root == find(plan, "b"));
  assert_true(place(plan, "c.next")->root == find(plan, "c") && place(plan, "k")->root == find(plan, "p"));
  return (broken){.f = f, .plan = plan};
}

/* Moves a value into the bytes of another, as a mistaken alias would. */
static void move_into(berth_plan *plan, const char *value, const char *root) {
  place(plan, value)->root = find(plan, root);
  place(plan, value)->buffer = place(plan, root)->buffer;
  place(plan, value)->root_offset = 0;
  place(plan, value)->in_place = false;
}

static void swap_steps(berth_plan *plan, uint32_t a, uint32_t b) {
  const uint32_t node = plan->order[a];
  plan->order[a] = plan->order[b];
  plan->order[b] = node;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t step = i == 0 ? a : b;
    berth__place *moved = &plan->places[plan->graph->nodes[plan->order[step]].out[0]];
    moved->birth = step;
    if (moved->death <= step) moved->death = step + 1;
  }
}

static void test_an_update_that_is_made_elsewhere(void **state) {
  broken b = good_states(state);
  b.plan->graph->updates[2].next = find(b.plan, "k"); /* as if nothing had to be copied */
  expect_rejected(b.plan, "is not made where state 'c' lies");
  b = good_states(state);
  b.plan->graph->updates[1].next = find(b.plan, "x");
  expect_rejected(b.plan, "is not made where state 'b' lies");
  b = good_states(state);
  b.plan->graph->updates[0].state = find(b.plan, "b");
  expect_rejected(b.plan, "is not made where state 'b' lies");
}

static void test_a_state_that_is_read_behind_its_update(void **state) {
  broken b = good_states(state);
  swap_steps(b.plan, 0, 1); /* p reads a, which n has written over */
  expect_rejected(b.plan, "'a'");
}

/* Each of these is right within one run. */
static void test_a_state_that_something_else_writes(void **state) {
  broken b = good_states(state);
  move_into(b.plan, "k", "b"); /* b is not read, and k is read for the last time after m */
  expect_rejected(b.plan, "writes over state 'b'");
  b = good_states(state);
  move_into(b.plan, "p", "b"); /* before its update, and dead by then? no: m reads it */
  expect_rejected(b.plan, "state 'b'");
  b = good_states(state);
  move_into(b.plan, "y", "d"); /* after the last reader of d, which is never updated */
  expect_rejected(b.plan, "writes over an input, param, state or constant");
  b = good_states(state);
  move_into(b.plan, "y", "a"); /* after its update */
  expect_rejected(b.plan, "writes over state 'a'");
}

static void test_scratch_in_a_state(void **state) {
  fixture *f = *state;
  plan_text(f,
            "input %x : f32[4, 4]\nstate %s : f32[64] = zeros\n%y = attention(%x, %x, %x) {heads = 1}\n"
            "%n = exp(%s)\nupdate %s = %n\noutput \"y\" = %y",
            BERTH_PLAN_REFERENCE);
  const uint32_t step = plan_step_of(f->plan, "y");
  assert_int_not_equal(f->plan->scratch[step], BERTH__NO_BUFFER);
  berth__buffer *scratch = &f->plan->buffers[f->plan->scratch[step]], *s = buffer_of(f->plan, "s");
  scratch->offset = s->offset;
  expect_rejected(f->plan, "share bytes");
}

static void test_states_among_what_is_shared(void **state) {
  broken b = good_states(state);
  buffer_of(b.plan, "b")->offset = b.plan->info.arena_size;
  b.plan->info.arena_size += 64;
  expect_rejected(b.plan, "not among what bindings share");
  b = good_states(state);
  buffer_of(b.plan, "a")->offset = buffer_of(b.plan, "b")->offset;
  expect_rejected(b.plan, "share bytes");
  b = good_states(state);
  buffer_of(b.plan, "a")->death -= 1;
  expect_rejected(b.plan, "throughout");
  b = good_states(state);
  buffer_of(b.plan, "a")->kind = BERTH__BUFFER_ACTIVATION;
  expect_rejected(b.plan, "has no bytes of its own");
}

static void test_a_prelude_that_reads_a_state(void **state) {
  broken b = good_states(state);
  b.plan->n_prelude = 1;
  expect_rejected(b.plan, "is run once");
}

/* What a prelude makes must be there in the second run as well. */
static void test_a_prelude_and_a_second_run(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(0);
  berth_error err;
  f->graph = parse_graph(f->ctx,
                         "input %x : f32[16]\nparam %w : f32[16]\nstate %s : f32[16] = zeros\n%v = softmax(%w)\n"
                         "%z = mul(%x, %v)\n%k = softmax(%z)\n%n = softmax(%s)\nupdate %s = %n\n"
                         "output \"k\" = %k");
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err)); /* with its prelude */
  assert_int_equal(f->plan->n_prelude, 1);
  TEST_OK(berth_plan_check(f->plan, &err));
  move_into(f->plan, "k", "v"); /* after its last reader of this run, but not of the next */
  expect_rejected(f->plan, "'v'");
}

static void test_an_in_place_flag_that_is_wrong(void **state) {
  broken b = good_states(state);
  place(b.plan, "n")->in_place = false;
  expect_rejected(b.plan, "is not made as its place says");
  b = good_states(state);
  place(b.plan, "m")->in_place = true;
  expect_rejected(b.plan, "is not made as its place says");
}

static void test_an_input_that_dies_is_there_from_the_start(void **state) {
  fixture *f = *state;
  plan_text(f, "input %a : f32[4]\ninput %b : f32[4]\n%x = exp(%a)\n%y = add(%b, %x)\noutput \"y\" = %y",
            BERTH_PLAN_INPUTS_DIE);
  buffer_of(f->plan, "b")->birth = 1;
  expect_rejected(f->plan, "throughout");
}

/* A concat leaves an input alone only where it lies exactly in its place. */
static void test_an_input_inside_a_concat(void **state) {
  static const char text[] =
      "input %in : f32[3, 5, 4]\ninput %n : f32[3, 1, 4]\n%c = concat(%in, %n) {axis = 1}\noutput \"c\" = %c";
  fixture *f = *state;
  for (int wrong = 0; wrong < 3; wrong++) {
    plan_text(f, text, BERTH_PLAN_INPUTS_DIE);
    berth__place *in = place(f->plan, "in");
    assert_true(in->born_inside);
    if (wrong == 0) in->root_offset += 16;
    if (wrong == 1) in->stride[0] = 20;
    if (wrong == 2) in->stride[1] = 5;
    expect_rejected(f->plan, "writes over its operand 'in'");
  }
}

static void test_strides(void **state) {
  broken b = good_plan(state);
  place(b.plan, "q")->stride[0] = 11;
  expect_rejected(b.plan, "'q' is not the view");
  b = good_plan(state);
  place(b.plan, "q")->stride[0] = 1 << 20;
  expect_rejected(b.plan, "inside its buffer");
  b = good_plan(state);
  place(b.plan, "g")->stride[0] = 1;
  expect_rejected(b.plan, "'g'");
  b = good_plan(state); /* a kernel that takes no strides gets some */
  fixture *f = *state;
  plan_text(f,
            "input %in : f32[4, 4]\n%x = exp(%in)\n%t = transpose(%x)\n%y = add(%t, %x)\n%s = softmax(%x)\n"
            "%a = add(%s, %y)\noutput \"a\" = %a",
            0);
  assert_true(place(f->plan, "t")->is_view);
  f->plan->graph->nodes[3].in[0] = find(f->plan, "t");
  expect_rejected(f->plan, "through strides");
}

static void test_views(void **state) {
  broken b = good_plan(state);
  place(b.plan, "r")->root_offset += 4;
  expect_rejected(b.plan, "'r' is not the view");
  b = good_plan(state);
  place(b.plan, "h")->root_offset = 0;
  expect_rejected(b.plan, "'h' is not the view");
  b = good_plan(state);
  place(b.plan, "h")->root_offset += 64;
  expect_rejected(b.plan, "inside its buffer");
  b = good_plan(state);
  place(b.plan, "h")->root = find(b.plan, "x");
  place(b.plan, "h")->buffer = place(b.plan, "x")->buffer;
  expect_rejected(b.plan, "'h' is not the view");
  b = good_plan(state);
  place(b.plan, "h")->buffer = place(b.plan, "x")->buffer;
  expect_rejected(b.plan, "buffer of another value");
  b = good_plan(state); /* a view that a kernel would write */
  place(b.plan, "h")->is_view = false;
  expect_rejected(b.plan, "'h'");
  b = good_plan(state); /* something that no view can show */
  place(b.plan, "m")->is_view = true;
  expect_rejected(b.plan, "'m' is not the view");
}

static void test_the_edge_of_the_arena(void **state) {
  broken b = good_plan(state);
  place(b.plan, "m")->buffer = BERTH__NO_BUFFER;
  expect_rejected(b.plan, "edge");
  b = good_plan(state);
  place(b.plan, "in")->buffer = BERTH__NO_BUFFER;
  expect_rejected(b.plan, "edge");
  b = good_plan(state);
  b.plan->flags |= BERTH_PLAN_PARAMS_OUTSIDE;
  expect_rejected(b.plan, "edge");
  b = good_plan(state);
  place(b.plan, "m")->root = 1000;
  expect_rejected(b.plan, "'m'");
}

static void test_scratch_can_be_asked_for(void **state) {
  broken b = good_plan(state);
  const berth__buffer *scratch = &b.plan->buffers[b.plan->scratch[3]];
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  TEST_OK(berth_plan_scratch(b.plan, 3, &slot, &err));
  assert_int_equal(slot.offset, scratch->offset);
  assert_int_equal(slot.size, scratch->size);
  assert_int_equal(slot.birth, 3);
  assert_int_equal(slot.death, 4);
  assert_int_equal(slot.root, BERTH_VALUE_NONE);
  TEST_OK(berth_plan_scratch(b.plan, 1, &slot, &err));
  assert_int_equal(slot.size, 0);
  assert_int_equal(slot.offset, BERTH_OFFSET_NONE);
}

static void test_scratch(void **state) {
  broken b = good_plan(state);
  berth__buffer *scratch = &b.plan->buffers[b.plan->scratch[3]];
  scratch->offset = buffer_of(b.plan, "x")->offset;
  expect_rejected(b.plan, "share bytes");
  b = good_plan(state);
  scratch = &b.plan->buffers[b.plan->scratch[3]];
  scratch->birth = 5;
  scratch->death = 6;
  expect_rejected(b.plan, "scratch");
  b = good_plan(state); /* alive elsewhere in time, and lying on what the step reads */
  scratch = &b.plan->buffers[b.plan->scratch[3]];
  b.plan->scratch[3] = place(b.plan, "x")->buffer;
  expect_rejected(b.plan, "'t'");
  b = good_plan(state);
  b.plan->scratch[3] = place(b.plan, "t")->buffer;
  expect_rejected(b.plan, "lies in the scratch");
}

static void test_in_place(void **state) {
  broken b = good_plan(state); /* the flags say otherwise than the bytes */
  place(b.plan, "u")->in_place = false;
  expect_rejected(b.plan, "'u' is not made as its place says");
  b = good_plan(state);
  place(b.plan, "x")->in_place = true;
  expect_rejected(b.plan, "'x' is not made as its place says");
}

/* Lays value a over value b, with no regard for anything. */
static void lay_over(berth_plan *plan, const char *a, const char *b) {
  berth__buffer *old = buffer_of(plan, a), *buffer = buffer_of(plan, b);
  place(plan, a)->buffer = place(plan, b)->buffer;
  place(plan, a)->root = place(plan, b)->root;
  place(plan, a)->in_place = true;
  if (buffer->death < old->death) buffer->death = old->death;
  old->size = 0;
}

static void test_results_over_what_is_needed(void **state) {
  fixture *f = *state;
  plan_text(f, "input %in : f32[8, 8]\n%x = exp(%in)\n%y = matmul(%x, %x)\noutput \"y\" = %y", BERTH_PLAN_NO_INPLACE);
  lay_over(f->plan, "y", "x"); /* the op cannot */
  expect_rejected(f->plan, "'y'");
  plan_text(f, "input %in : f32[8]\n%x = exp(%in)\n%y = exp(%x)\n%z = add(%x, %y)\noutput \"z\" = %z",
            BERTH_PLAN_NO_INPLACE);
  lay_over(f->plan, "y", "x"); /* it is read later */
  expect_rejected(f->plan, "destroys 'x'");
  plan_text(f, "input %in : f32[8]\n%y = exp(%in)\noutput \"y\" = %y", BERTH_PLAN_NO_INPLACE);
  lay_over(f->plan, "y", "in"); /* it stays */
  expect_rejected(f->plan, "over an input");
  plan_text(f, "input %in : f32[8]\n%x = exp(%in)\n%y = exp(%x)\noutput \"x\" = %x\noutput \"y\" = %y",
            BERTH_PLAN_NO_INPLACE);
  lay_over(f->plan, "y", "x"); /* it is an output */
  expect_rejected(f->plan, "destroys 'x'");
  plan_text(f,
            "input %in : f32[8, 8]\n%x = exp(%in)\n%r = narrow(%x) {starts = [2], ends = [3]}\n%y = sub(%x, %r)\n"
            "output \"y\" = %y",
            BERTH_PLAN_NO_INPLACE);
  lay_over(f->plan, "y", "x"); /* another operand shows the same bytes */
  expect_rejected(f->plan, "operand 'r'");
}

static void test_parts(void **state) {
  broken b = good_plan(state); /* the two parts change places */
  uint64_t e = place(b.plan, "e")->root_offset, g = place(b.plan, "g")->root_offset;
  assert_true(e != g);
  place(b.plan, "e")->root_offset = g;
  place(b.plan, "g")->root_offset = g;
  expect_rejected(b.plan, "");
  b = good_plan(state);
  place(b.plan, "e")->root_offset = 8 * 12 * 4; /* 4 rows, where only the last 4 of 12 fit */
  expect_rejected(b.plan, "");
}

/* On an inner axis the parts lie in stripes: what is whole cannot be in its place. */
static void test_parts_of_an_inner_axis(void **state) {
  fixture *f = *state;
  plan_text(f, "input %in : f32[4, 4]\n%a = exp(%in)\n%b = exp(%in)\n%c = concat(%a, %b) {axis = 1}\noutput \"c\" = %c",
            0);
  berth_plan *plan = f->plan;
  const char *names[] = {"a", "b"};
  for (uint32_t i = 0; i < 2; i++) {
    buffer_of(plan, names[i])->size = 0;
    *place(plan, names[i]) = (berth__place){.buffer = place(plan, "c")->buffer,
                                            .root = find(plan, "c"),
                                            .root_offset = i * 64,
                                            .stride = {4, 1},
                                            .storage = place(plan, "c")->storage,
                                            .born_inside = true,
                                            .birth = i,
                                            .death = 3};
  }
  buffer_of(plan, "c")->birth = 0;
  buffer_of(plan, "c")->offset = plan->info.arena_size;
  plan->info.arena_size += 128;
  expect_rejected(plan, "writes over its operand 'a'");
}

static void test_order(void **state) {
  fixture *f = *state;
  plan_text(f, "input %in : f32[4, 4]\n%x = exp(%in)\n%y = reduce_sum(%x)\noutput \"y\" = %y", 0);
  f->plan->order[0] = 1; /* a reader before its operand */
  f->plan->order[1] = 0;
  expect_rejected(f->plan, "'x', which is not intact");
  broken b = good_plan(state); /* nodes that do not read each other: nothing is destroyed, but the lives are wrong */
  uint32_t first = b.plan->order[0];
  b.plan->order[0] = b.plan->order[8];
  b.plan->order[8] = first;
  expect_rejected(b.plan, "outside its lifetime");
  /* One node twice, in place of one that nothing needs. */
  plan_text(f, "input %in : f32[4]\n%a = exp(%in)\n%b = exp(%in)\noutput \"a\" = %a", 0);
  f->plan->order[1] = 0;
  expect_rejected(f->plan, "outside its lifetime");
  plan_text(f, "input %in : f32[4]\n%v = reshape(%in) {shape = [2, 2]}\n%b = exp(%in)\noutput \"v\" = %v", 0);
  f->plan->order[1] = 0;
  expect_rejected(f->plan, "'v' is not the view");
}

static void test_results(void **state) {
  fixture *f = *state;
  plan_text(f, "input %in : f32[4, 4]\n%x = exp(%in)\n%y = add(%x, %x)\noutput \"y\" = %y", BERTH_PLAN_NO_INPLACE);
  place(f->plan, "x")->stride[0] = 1; /* the same bytes in another order */
  place(f->plan, "x")->stride[1] = 4;
  expect_rejected(f->plan, "'x' is written through strides");
  plan_text(f, "input %in : f32[4, 4]\n%p, %q = split(%in) {axis = 1}\noutput \"p\" = %p\noutput \"q\" = %q", 0);
  *place(f->plan, "q") = *place(f->plan, "p");
  expect_rejected(f->plan, "two results share bytes");
}

static void test_guards(void **state) {
  fixture *f = *state;
  f->graph = parse_graph(f->ctx, "input %in : f32[16]\n%a = reduce_sum(%in)\n%y = add(%in, %a)\noutput \"y\" = %y");
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.guard = 64;
  f->plan = make_plan(f->graph, &desc);
  buffer_of(f->plan, "a")->offset = buffer_of(f->plan, "in")->offset + 64;
  expect_rejected(f->plan, "share bytes");
}

/* Any one buffer of a tight plan moved down by one slot hits something, or was alone there. Here: what the checker lets
 * pass after such a move must still have no two lives in the same bytes. */
static bool rectangles_meet(const berth_plan *plan, size_t moved) {
  const berth__buffer *a = &plan->buffers[moved];
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *b = &plan->buffers[i];
    bool in_time = a->birth < b->death && b->birth < a->death;
    bool in_bytes = a->size + a->guard != 0 && b->size + b->guard != 0 && a->offset < b->offset + b->size + b->guard &&
                    b->offset < a->offset + a->size + a->guard;
    if (i != moved && in_time && in_bytes) return true;
  }
  return a->offset + a->size + a->guard > plan->info.arena_size;
}

static void test_random_moves(void **state) {
  fixture *f = *state;
  uint32_t rejected = 0, accepted = 0;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    berth_graph *graph = random_graph(f->ctx, seed, 30);
    berth_plan_desc desc = random_options(seed);
    berth_plan *plan = make_plan(graph, &desc);
    for (size_t i = 0; i < plan->n_buffers; i++) {
      uint64_t offset = plan->buffers[i].offset;
      for (uint64_t to = 0; to < plan->info.arena_size; to += plan->align) {
        plan->buffers[i].offset = to;
        bool fine = berth_plan_check(plan, NULL) == BERTH_OK;
        if (fine == rectangles_meet(plan, i))
          fail_msg("seed %llu: buffer %zu at %llu is %s", (unsigned long long)seed, i, (unsigned long long)to,
                   fine ? "accepted" : "rejected");
        accepted += fine;
        rejected += !fine;
      }
      plan->buffers[i].offset = offset;
    }
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  assert_true(rejected > 500 && accepted > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_good_plans),
      PLAN_TEST(test_offsets),
      PLAN_TEST(test_bytes_that_are_destroyed),
      PLAN_TEST(test_lifetimes),
      PLAN_TEST(test_an_update_that_is_made_elsewhere),
      PLAN_TEST(test_a_state_that_is_read_behind_its_update),
      PLAN_TEST(test_a_state_that_something_else_writes),
      PLAN_TEST(test_scratch_in_a_state),
      PLAN_TEST(test_states_among_what_is_shared),
      PLAN_TEST(test_a_prelude_that_reads_a_state),
      PLAN_TEST(test_a_prelude_and_a_second_run),
      PLAN_TEST(test_an_in_place_flag_that_is_wrong),
      PLAN_TEST(test_an_input_that_dies_is_there_from_the_start),
      PLAN_TEST(test_an_input_inside_a_concat),
      PLAN_TEST(test_strides),
      PLAN_TEST(test_views),
      PLAN_TEST(test_the_edge_of_the_arena),
      PLAN_TEST(test_scratch_can_be_asked_for),
      PLAN_TEST(test_scratch),
      PLAN_TEST(test_in_place),
      PLAN_TEST(test_results_over_what_is_needed),
      PLAN_TEST(test_parts),
      PLAN_TEST(test_parts_of_an_inner_axis),
      PLAN_TEST(test_order),
      PLAN_TEST(test_results),
      PLAN_TEST(test_guards),
      PLAN_TEST(test_random_moves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
