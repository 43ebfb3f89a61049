/* Rotary positions. Whatever the scaling, an angle is the position times the frequency of its pair, so frequencies are
 * computed once and angles in every run. */
#include <math.h>

#include "import/gguf/parts.h"

#define PI 3.14159265358979323846

typedef struct scaling {
  double factor;    /* divisor of the frequencies */
  bool is_yarn;     /* except those of fast pairs, which are unchanged */
  double low, high; /* yarn: the range of pairs in which the two are blended */
  double magnitude; /* of cosines and sines */
} scaling;

double berth__net_rope_base(berth__net *net) { return berth__net_real_or(net, ".rope.freq_base", 10000); }

/* The pair that makes this many turns within the context that the model was trained with. */
static double yarn_pair(const berth__net *net, double base, double context, double turns) {
  return (double)net->rotated * log(context / (turns * 2 * PI)) / (2 * log(base));
}

static const char yarn_multiplier[] = ".rope.scaling.yarn_log_multiplier";

static void read_yarn(berth__net *net, double base, scaling *out) {
  const double context = (double)berth__net_whole_or(net, ".rope.scaling.original_context_length",
                                                     berth__net_whole_or(net, ".context_length", 0));
  const double fast = berth__net_real_or(net, ".rope.scaling.yarn_beta_fast", 32),
               slow = berth__net_real_or(net, ".rope.scaling.yarn_beta_slow", 1);
  if (net->status == BERTH_OK && !(context > 0 && fast > 0 && slow > 0 && base > 1 && out->factor > 0))
    net->status = berth__fail(net->err, BERTH_MALFORMED, "the keys below .rope.scaling do not describe YaRN");
  if (net->status != BERTH_OK) return;
  out->is_yarn = true;
  out->low = fmax(0, floor(yarn_pair(net, base, context, fast)));
  out->high = fmin((double)net->rotated - 1, ceil(yarn_pair(net, base, context, slow)));
  if (out->factor <= 1) return;
  const double one = 0.1 * log(out->factor), all = berth__net_real_or(net, yarn_multiplier, 0);
  if (all == 0)
    out->magnitude *= one + 1;
  else if (!net->yarn_in_scores)
    out->magnitude *= (one + 1) / (one * all + 1);
}

static scaling read_scaling(berth__net *net, double base) {
  const double linear = berth__net_real_or(net, ".rope.scale_linear", 1); /* the name in older files */
  scaling s = {.factor = berth__net_real_or(net, ".rope.scaling.factor", linear),
               .magnitude = berth__net_real_or(net, ".rope.scaling.attn_factor", 1)};
  berth__gguf_string type = {.data = "linear", .size = 6};
  const berth__gguf_key *key = berth__gguf_find(net->file, ".rope.scaling.type");
  if (s.factor == 0) s.factor = 1;
  if (key != NULL && net->status == BERTH_OK)
    net->status = berth__gguf_string_of(net->file, ".rope.scaling.type", &type, net->err);
  if (berth__gguf_is(type, "yarn"))
    read_yarn(net, base, &s);
  else if (berth__gguf_is(type, "none"))
    s.factor = 1;
  else if (!berth__gguf_is(type, "linear") && !berth__gguf_is(type, "longrope") && net->status == BERTH_OK)
    net->status = berth__fail(net->err, BERTH_UNSUPPORTED, "the RoPE scaling '%.*s' is not supported",
                              (int)(type.size < 64 ? type.size : 64), type.data);
  return s;
}

/* Files have a tenth of the model's own multiplier. */
double berth__net_yarn_magnitude(berth__net *net) {
  const scaling s = read_scaling(net, berth__net_rope_base(net));
  if (net->status != BERTH_OK || !s.is_yarn || s.factor <= 1) return 1;
  const double all = berth__net_real_or(net, yarn_multiplier, 0);
  return s.magnitude * (1 + all * log(s.factor));
}

/* The share of a pair's own frequency, from 0 to 1. */
static double yarn_share(const scaling *s, int64_t pair) {
  const double way = ((double)pair - s->low) / fmax(0.001, s->high - s->low);
  return s->is_yarn ? 1 - fmin(1, fmax(0, way)) : 0;
}

static berth_value rope_frequencies(berth__net *net, double base, const scaling *s) {
  const int64_t pairs = net->rotated / 2;
  float *numbers = berth__alloc_array(net->ctx, (size_t)pairs, sizeof *numbers);
  if (numbers == NULL) {
    net->status = berth__fail_nomem(net->err, "frequencies");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < pairs; i++) {
    const double own = pow(base, -2.0 * (double)i / (double)net->rotated), share = yarn_share(s, i);
    numbers[i] = (float)(own * share + own / s->factor * (1 - share));
  }
  const berth_value out = berth__net_floats(net, numbers, pairs);
  berth__free(net->ctx, numbers);
  return out;
}

/* Long factors are used if the context is longer than the one that the model was trained with. This is known only after
 * binding, so it becomes a condition, which is folded there. */
static berth_value long_or_short(berth__net *net) {
  const int64_t pairs = net->rotated / 2;
  const int64_t context =
      berth__net_whole_or(net, ".rope.scaling.original_context_length", berth__net_whole_or(net, ".context_length", 0));
  const berth_value more = berth__net_vector(net, "rope_factors_long.weight", pairs),
                    less = berth__net_vector(net, "rope_factors_short.weight", pairs);
  const berth_attr attr = berth_attr_dims("shape", &(berth_dim){.name = "ctx"}, 1);
  const berth_value ones = berth__net_add(net, "expand", (const berth_value[]){berth__net_number(net, 1)}, 1, &attr, 1);
  const berth_value extent = berth__net_cast(net, berth__net_one(net, "shape", ones), BERTH_F32);
  const berth_value is_long = berth__net_two(net, "gt", extent, berth__net_number(net, (double)context));
  return berth__net_add(net, "where", (const berth_value[]){is_long, more, less}, 3, NULL, 0);
}

static berth_value rope_factors(berth__net *net) {
  if (berth__net_has(net, "rope_freqs.weight")) return berth__net_vector(net, "rope_freqs.weight", net->rotated / 2);
  return berth__net_has(net, "rope_factors_long.weight") ? long_or_short(net) : BERTH_VALUE_NONE;
}

berth__rope_tables berth__net_rope(berth__net *net, berth__rope_kind kind, double base, bool scaled) {
  berth__rope_tables out = {.kind = kind, .cosines = BERTH_VALUE_NONE, .sines = BERTH_VALUE_NONE};
  scaling s = {.factor = 1, .magnitude = 1};
  if (net->status == BERTH_OK && (net->rotated < 2 || net->rotated % 2 != 0 || net->rotated > net->key_size))
    net->status =
        berth__fail(net->err, BERTH_MALFORMED, "heads of %lld elements cannot have %lld that are rotated in pairs",
                    (long long)net->key_size, (long long)net->rotated);
  if (scaled) s = read_scaling(net, base);
  if (net->status == BERTH_OK && !(base > 0 && s.factor > 0))
    net->status = berth__fail(net->err, BERTH_MALFORMED,
                              "the base of RoPE is %g, and its scale %g: both must be above 0", base, s.factor);
  if (net->status != BERTH_OK) return out;
  berth_value frequencies = rope_frequencies(net, base, &s);
  const berth_value factors = scaled ? rope_factors(net) : BERTH_VALUE_NONE;
  if (factors != BERTH_VALUE_NONE) frequencies = berth__net_two(net, "div", frequencies, factors);
  const berth_value angles = berth__net_two(net, "mul", net->positions, frequencies);
  out.cosines = berth__net_scaled(net, berth__net_one(net, "cos", angles), s.magnitude);
  out.sines = berth__net_scaled(net, berth__net_one(net, "sin", angles), s.magnitude);
  return out;
}

berth_value berth__net_turn(berth__net *net, berth_value x, int64_t heads, const berth__rope_tables *tables) {
  const berth_attr attrs[] = {berth_attr_int("heads", heads), berth_attr_int("dims", net->rotated),
                              berth_attr_int("interleaved", tables->kind == BERTH__ROPE_NEIGHBOURS)};
  return berth__net_add(net, "rope", (const berth_value[]){x, tables->cosines, tables->sines}, 3, attrs, 3);
}
