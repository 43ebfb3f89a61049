/* Attention and recurrent layers. */
#include <stdio.h>

#include "row.h"

static void make_attention(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t heads = size[0], queries = size[1], keys = size[2], width = size[3];
  call_start(&s->call, isa, BERTH__OP_attention);
  CALL_F32(&s->call, 0, 1, queries, heads * width);
  CALL_F32(&s->call, 1, 1, keys, heads * width);
  CALL_F32(&s->call, 2, 1, keys, heads * width);
  call_int(&s->call, "heads", heads);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d heads, %d of %d keys x %d", (int)heads, (int)queries, (int)keys, (int)width);
  s->operations = 4.0 * (double)heads * (double)queries * (double)keys * (double)width;
}

static void make_lstm(subject *s, const berth__cpu_isa *isa, const int64_t *size) {
  const int64_t steps = size[0], inputs = size[1], hidden = size[2];
  call_start(&s->call, isa, BERTH__OP_lstm);
  CALL_F32(&s->call, 0, steps, 1, inputs);
  CALL_F32(&s->call, 1, 1, 4 * hidden, inputs);
  CALL_F32(&s->call, 2, 1, 4 * hidden, hidden);
  CALL_F32(&s->call, 3, 1, 8 * hidden);
  call_finish(&s->call);
  snprintf(s->shape, sizeof s->shape, "%d steps, %d to %d", (int)steps, (int)inputs, (int)hidden);
  s->operations = 8.0 * (double)steps * (double)hidden * (double)(inputs + hidden);
}

/* Heads, queries, keys, width of a head; steps, inputs, hidden. */
const row rows_of_attention[] = {
    {"attention", "MiniLM", make_attention, {12, 128, 128, 32}},
    {"attention", "DeiT-tiny", make_attention, {3, 197, 197, 64}},
    {"attention", "long", make_attention, {8, 1024, 1024, 64}},
    {"attention", "one token", make_attention, {8, 1, 1024, 64}},
    {"lstm", "silero", make_lstm, {1, 128, 128}},
    {"lstm", "speech", make_lstm, {100, 128, 128}},
    {0},
};
