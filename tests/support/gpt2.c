#include "gpt2.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
  char *at, *end;
} text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
  va_end(args);
  if (n > 0 && n < t->end - t->at) t->at += n;
}

/* %<out> = %<x> <weight>.<l> + <bias>.<l>, with the two params. */
static void put_linear(text *t, int l, const char *out, const char *x, const char *name, int from, int to) {
  put(t, "param %%%sw.%d : f32[%d, %d] param %%%sb.%d : f32[%d]\n", name, l, from, to, name, l, to);
  put(t, "%%%s.p.%d = matmul(%%%s.%d, %%%sw.%d) %%%s.%d = add(%%%s.p.%d, %%%sb.%d)\n", out, l, x, l, name, l, out, l,
      out, l, name, l);
}

static void put_norm(text *t, int l, const char *out, const char *x, const char *name, int channels) {
  put(t, "param %%%sw.%d : f32[%d] param %%%sb.%d : f32[%d]\n", name, l, channels, name, l, channels);
  put(t, "%%%s.%d = layer_norm(%%%s.%d, %%%sw.%d, %%%sb.%d) {epsilon = 1e-5}\n", out, l, x, l, name, l, name, l);
}

/* From %x.<l> to %x.<l + 1>. */
static void put_layer(text *t, const gpt2_shape *s, int l) {
  const int c = s->channels;
  put_norm(t, l, "n1", "x", "ln1", c);
  put_linear(t, l, "qkv", "n1", "qkv", c, 3 * c);
  put(t, "%%q.%d, %%k.%d, %%v.%d = split(%%qkv.%d) {axis = 2}\n", l, l, l, l);
  put(t, "%%att.%d = attention(%%q.%d, %%k.%d, %%v.%d) {heads = %d, mode = \"causal\"}\n", l, l, l, l, s->heads);
  put_linear(t, l, "proj", "att", "proj", c, c);
  put(t, "%%mid.%d = add(%%x.%d, %%proj.%d)\n", l, l, l);
  put_norm(t, l, "n2", "mid", "ln2", c);
  put_linear(t, l, "fc", "n2", "fc", c, 4 * c);
  put(t, "%%act.%d = gelu_tanh(%%fc.%d)\n", l, l);
  put_linear(t, l, "out", "act", "fcproj", 4 * c, c);
  put(t, "%%x.%d = add(%%mid.%d, %%out.%d)\n", l + 1, l, l);
}

static void put_graph(text *t, const gpt2_shape *s) {
  const int c = s->channels, last = s->layers;
  put(t, "graph \"gpt2\" {\ninput %%ids : i64[%d, %d] input %%labels : i64[%d, %d]\n", s->batch, s->length, s->batch,
      s->length);
  put(t, "param %%wte : f32[%d, %d] param %%wpe : f32[%d, %d]\n", s->vocabulary, c, s->positions, c);
  put(t, "%%tok = embedding(%%wte, %%ids) %%pos = narrow(%%wpe) {axes = [0], starts = [0], ends = [%d]}\n", s->length);
  put(t, "%%x.0 = add(%%tok, %%pos)\n");
  for (int l = 0; l < s->layers; l++) put_layer(t, s, l);
  put(t, "param %%lnfw : f32[%d] param %%lnfb : f32[%d]\n", c, c);
  put(t, "%%nf = layer_norm(%%x.%d, %%lnfw, %%lnfb) {epsilon = 1e-5}\n", last);
  put(t, "%%wteT = transpose(%%wte) {perm = [1, 0]} %%logits = matmul(%%nf, %%wteT)\n");
  put(t, "%%losses = cross_entropy(%%logits, %%labels) %%loss = reduce_mean(%%losses) {keepdims = 0}\n");
  put(t, "output \"loss\" = %%loss\n}\n");
}

berth_status build_gpt2(berth_context *ctx, const gpt2_shape *shape, berth_graph **out, berth_error *err) {
  const size_t size = 4096 + 2048 * (size_t)shape->layers;
  char *room = malloc(size);
  text t = {room, room + size};
  *out = NULL;
  if (room == NULL) return BERTH_NOMEM;
  put_graph(&t, shape);
  const berth_status status = berth_graph_parse(ctx, room, (size_t)(t.at - room), out, err);
  free(room);
  return status;
}
