/* A case or more for every rule: odd shapes, broadcasting, every attribute that a rule looks at. */
#include "check.h"

#define X "input %x : f64[3, 1, 5] "
#define UNARY(op, low, high) \
  { #op, X "%y = " #op "(%x)", low, high, 0 }
#define BINARY(op)                                                                           \
  {#op, "input %a : f64[2, 1, 5] input %b : f64[3, 1] %y = " #op "(%a, %b)", 0.5, 3.0, 0}, { \
#op, "input %a : f64[5] input %b : f64[2, 3, 5] %y = " #op "(%a, %b)", 0.5, 3.0, 0       \
  }

const grad_case grad_cases[] = {
    UNARY(identity, 0, 0),
    UNARY(neg, 0, 0),
    UNARY(abs, 0, 0),
    UNARY(exp, 0, 0),
    UNARY(expm1, 0, 0),
    UNARY(log, 0.5, 2),
    UNARY(sqrt, 0.5, 2),
    UNARY(rsqrt, 0.5, 2),
    UNARY(reciprocal, 0.5, 2),
    UNARY(sin, 0, 0),
    UNARY(cos, 0, 0),
    UNARY(tan, 0, 0),
    UNARY(asin, -0.7, 0.7),
    UNARY(acos, -0.7, 0.7),
    UNARY(atan, 0, 0),
    UNARY(sinh, 0, 0),
    UNARY(cosh, 0, 0),
    UNARY(tanh, 0, 0),
    UNARY(asinh, 0, 0),
    UNARY(acosh, 1.5, 3),
    UNARY(atanh, -0.7, 0.7),
    UNARY(softplus, -3, 3),
    UNARY(sigmoid, -3, 3),
    UNARY(silu, -3, 3),
    UNARY(gelu, -3, 3),
    UNARY(gelu_tanh, -3, 3),
    UNARY(erf, 0, 0),
    UNARY(relu, 0, 0),
    {"clamp", X "%y = clamp(%x) {min = -0.4, max = 0.5}", 0, 0, 0},
    {"cast", X "%y = cast(%x) {to = \"f64\"}", 0, 0, 0},
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(pow),
    BINARY(min),
    BINARY(max),
    BINARY(mod),
    {"mod", "input %a : f64[7] input %b : f64[7] %y = mod(%a, %b) {fmod = 1}", 0.5, 3, 0},
    {"pow", "input %a : f64[7] const %b : f64[] = [3] %y = pow(%a, %b)", 0, 0, 0},
    {"where", "const %c : bool[3, 1] = [1, 0, 1] input %a : f64[2, 1, 5] input %b : f64[5] %y = where(%c, %a, %b)", 0,
     0, 0},
    {"choose",
     "input %a : f64[2, 3] input %b : f64[2, 3] %s = reduce_sum(%a) {keepdims = 0} const %t : f64[] = [9]\n"
     "%c = lt(%s, %t) %e = exp(%a) %f = sin(%b) %y = choose(%c, %e, %f) %z = choose(%c, %f, %a)",
     0, 0, 0},
    {"reduce_sum", "input %x : f64[3, 2, 5] %y = reduce_sum(%x) {axes = [-1, 0], keepdims = 0}", 0, 0, 0},
    {"reduce_sum", "input %x : f64[3, 2, 5] %y = reduce_sum(%x)", 0, 0, 0},
    {"reduce_mean", "input %x : f64[3, 2, 5] %y = reduce_mean(%x) {axes = [1], keepdims = 1}", 0, 0, 0},
    {"reduce_mean", "input %x : f64[3, 2, 5] const %a : i64[2] = [2, 0] %y = reduce_mean(%x, %a) {keepdims = 0}", 0, 0,
     0},
    {"reduce_max", "input %x : f64[3, 2, 5] %y = reduce_max(%x) {axes = [0, 2], keepdims = 0}", 0, 0, 0},
    {"reduce_min", "input %x : f64[3, 2, 5] %y = reduce_min(%x) {axes = [2]}", 0, 0, 0},
    {"reduce_prod", "input %x : f64[3, 2, 5] %y = reduce_prod(%x) {axes = [1], keepdims = 0}", 0, 0, 0},
    {"reduce_prod", "input %x : f64[3, 2, 3] %y = reduce_prod(%x) {axes = [2, 0], keepdims = 0}", 0, 0, 0},
    {"reduce_prod", /* with a zero in it */
     "input %x : f64[3, 3] const %m : f64[3] = [1, 0, 1] %k = mul(%x, %m) %y = reduce_prod(%k) {axes = [1]}", 0, 0, 0},
    {"softmax", "input %x : f64[3, 2, 5] %y = softmax(%x) {axis = 1}", 0, 0, 0},
    {"softmax", "input %x : f64[3, 5] %y = softmax(%x)", -3, 3, 0},
    {"log_softmax", "input %x : f64[3, 5] %y = log_softmax(%x) {axis = 0}", -3, 3, 0},
    {"cumsum", "input %x : f64[3, 5] %y = cumsum(%x) {axis = 1, exclusive = 1}", 0, 0, 0},
    {"cumsum", "input %x : f64[3, 5] const %a : i64[] = [0] %y = cumsum(%x, %a) {reverse = 1}", 0, 0, 0},
    {"cumprod", "input %x : f64[3, 4] %y = cumprod(%x) {axis = 1}", 0, 0, 0},
    {"cumprod", "input %x : f64[4, 3] %y = cumprod(%x) {axis = 0, exclusive = 1, reverse = 1}", 0, 0, 0},
    {"top_k", "input %x : f64[3, 7] %y, %i = top_k(%x) {k = 3, axis = 1}", 0, 0, 0},
    {"matmul", "input %a : f64[3, 5] input %b : f64[5, 2] %y = matmul(%a, %b)", 0, 0, 0},
    {"matmul", "input %a : f64[2, 3, 5] input %b : f64[5, 2] %y = matmul(%a, %b)", 0, 0, 0},
    {"matmul", "input %a : f64[2, 1, 3, 2] input %b : f64[3, 2, 5] %y = matmul(%a, %b)", 0, 0, 0},
    {"matmul", "input %a : f64[5] input %b : f64[2, 5, 3] %y = matmul(%a, %b)", 0, 0, 0},
    {"matmul", "input %a : f64[2, 3, 5] input %b : f64[5] %y = matmul(%a, %b)", 0, 0, 0},
    {"matmul", "input %a : f64[5] input %b : f64[5] %y = matmul(%a, %b)", 0, 0, 0},
    {"det", "input %x : f64[2, 3, 3] %y = det(%x)", 0, 0, 0},
    {"det", "input %x : f64[1, 1] %y = det(%x)", 0, 0, 0},
    {"layer_norm", "input %x : f64[2, 3, 5] input %s : f64[5] input %b : f64[5] %y = layer_norm(%x, %s, %b)", 0, 0, 0},
    {"layer_norm", "input %x : f64[2, 3, 5] %y = layer_norm(%x) {axis = 1, epsilon = 0.1}", 0, 0, 0},
    {"layer_norm",
     "input %x : f64[3, 2, 3] input %s : f64[2, 1] input %b : f64[3] %y = layer_norm(%x, %s, %b) {axis = 1}", 0, 0, 0},
    {"rms_norm", "input %x : f64[2, 3, 5] input %s : f64[5] %y = rms_norm(%x, %s)", 0, 0, 0},
    {"rms_norm", "input %x : f64[7] input %s : f64[7] %y = rms_norm(%x, %s) {axis = 0, epsilon = 0.2}", 0, 0, 0},
    {"layer_norm_grad",
     "input %x : f64[3, 7] input %s : f64[7] input %d : f64[3, 7] %y = layer_norm_grad(%x, %s, %d) {epsilon = 0.1}", 0,
     0, 1},
    {"rms_norm_grad",
     "input %x : f64[2, 3, 2] input %s : f64[3, 1] input %d : f64[2, 3, 2] %y = rms_norm_grad(%x, %s, %d) {axis = 1}",
     0, 0, 1},
    {"layer_norm_scale_grad",
     "input %x : f64[5, 2, 3] input %d : f64[5, 2, 3] %y, %z = layer_norm_scale_grad(%x, %d) {axis = 1}", 0, 0, 1},
    {"layer_norm_scale_grad", "input %x : f64[4] input %d : f64[4] %y, %z = layer_norm_scale_grad(%x, %d)", 0, 0, 1},
    {"rms_norm_scale_grad", "input %x : f64[5, 3] input %d : f64[5, 3] %y = rms_norm_scale_grad(%x, %d)", 0, 0, 1},
    {"group_norm",
     "input %x : f64[2, 6, 3] input %s : f64[6] input %b : f64[6] %y = group_norm(%x, %s, %b) {groups = 2}", 0, 0, 0},
    {"batch_norm",
     "input %x : f64[2, 3, 2, 2] input %s : f64[3] input %b : f64[3] input %m : f64[3] input %v : f64[3]\n"
     "%y = batch_norm(%x, %s, %b, %m, %v)",
     0.5, 2, 0},
    {"attention",
     "input %q : f64[2, 2, 3, 4] input %k : f64[2, 2, 5, 4] input %v : f64[2, 2, 5, 3]\n"
     "%y = attention(%q, %k, %v)",
     0, 0, 0},
    {"attention",
     "input %q : f64[1, 3, 8] input %k : f64[1, 3, 4] input %v : f64[1, 3, 4]\n"
     "%y = attention(%q, %k, %v) {heads = 4, kv_heads = 2, mode = \"causal\", scale = 0.7}",
     0, 0, 0},
    {"attention",
     "input %q : f64[4, 4] input %k : f64[6, 4] input %v : f64[6, 4] input %b : f64[2, 1, 6]\n"
     "input %s : f64[2] const %m : bool[4, 6] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0,\n"
     "0, 0, 0, 0, 0] %y = attention(%q, %k, %v, %m, %b, _, %s) {heads = 2, cap = 1.5,\n"
     "mode = \"sliding_window\", window = 3}",
     0, 0, 0},
    {"attention",
     "input %q : f64[2, 2, 2, 3] input %k : f64[2, 1, 5, 3] input %v : f64[2, 1, 5, 3]\n"
     "const %n : i64[2] = [3, 4] %y = attention(%q, %k, %v, _, _, %n) {mode = \"causal\", merged = 1}",
     0, 0, 0},
    {"attention", /* the bias has no gradient: an op of its own does it */
     "input %q : f64[4, 4] input %k : f64[6, 2] input %v : f64[6, 2] const %b : f64[2, 1, 6] = [0.1, -0.2, 0.3,\n"
     "-0.4, 0.5, -0.6, 0.6, 0.5, -0.4, 0.3, -0.2, 0.1] const %s : f64[2] = [0.5, -1]\n"
     "%y = attention(%q, %k, %v, _, %b, _, %s) {heads = 2, kv_heads = 1, cap = 1.5,\n"
     "mode = \"sliding_window\", window = 3}",
     0, 0, 0},
    {"attention_grad",
     "input %q : f64[1, 3, 8] input %k : f64[1, 3, 4] input %v : f64[1, 3, 6] input %d : f64[1, 3, 12]\n"
     "%y, %z, %u = attention_grad(%q, %k, %v, _, _, _, _, %d) {heads = 4, kv_heads = 2, mode = \"causal\",\n"
     "scale = 0.7}",
     0, 0, 1},
    {"attention_grad",
     "input %q : f64[2, 2, 3, 2] input %k : f64[2, 2, 4, 2] input %v : f64[2, 2, 4, 2] input %d : f64[2, 3, 4]\n"
     "input %s : f64[2] const %m : bool[3, 4] = [1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1]\n"
     "%y, %u, %z = attention_grad(%q, %k, %v, %m, _, _, %s, %d) {cap = 1.5, merged = 1}",
     0, 0, 1},
    {"cross_entropy", "input %x : f64[2, 3, 5] const %l : i64[2, 3] = [0, 4, -100, 2, 2, 1] %y = cross_entropy(%x, %l)",
     -3, 3, 0},
    {"cross_entropy_grad",
     "input %x : f64[4, 3] const %l : i32[4] = [2, 0, 1, 1] input %d : f64[4]\n"
     "%y = cross_entropy_grad(%x, %l, %d) {ignore_index = 1}",
     -2, 2, 0},
    {"cross_entropy_grad",
     "input %x : f64[4, 3] const %l : i32[4] = [2, 0, 1, 1] input %d : f64[4]\n"
     "%c = cross_entropy(%x, %l) {ignore_index = 1} %y = cross_entropy_grad(%x, %l, %d, %c) {ignore_index = 1}",
     -2, 2, 0},
    {"rope", "input %x : f64[2, 2, 3, 4] const %p : i64[3] = [0, 3, 7] %y = rope(%x, %p)", 0, 0, 0},
    {"rope",
     "input %x : f64[3, 12] const %p : i64[3] = [0, 3, 7]\n"
     "%y = rope(%x, %p) {heads = 2, dims = 4, interleaved = 1, theta = 100.0}",
     0, 0, 0},
    {"rope",
     "input %x : f64[2, 6] const %c : f64[2, 3] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]\n"
     "const %s : f64[2, 3] = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1] %y = rope(%x, %c, %s) {heads = 1}",
     0, 0, 0},
    {"conv", "input %x : f64[2, 3, 5, 4] input %w : f64[2, 3, 3, 2] input %b : f64[2] %y = conv(%x, %w, %b)", 0, 0, 0},
    {"conv",
     "input %x : f64[2, 4, 7] input %w : f64[6, 2, 3] %y = conv(%x, %w) {group = 2, strides = [2],\n"
     "pads = [2, 1], dilations = [2]}",
     0, 0, 0},
    {"conv", "input %x : f64[1, 2, 4, 3, 3] input %w : f64[1, 2, 2, 2, 2] %y = conv(%x, %w) {strides = [2, 1, 2]}", 0,
     0, 0},
    {"conv",
     "input %x : f64[1, 2, 6, 5] input %w : f64[2, 1, 3, 2] %y = conv(%x, %w) {group = 2, strides = [2, 3],\n"
     "auto_pad = \"same_upper\"}",
     0, 0, 0},
    {"conv_transpose",
     "input %x : f64[2, 3, 3, 2] input %w : f64[3, 2, 3, 2] input %b : f64[2]\n"
     "%y = conv_transpose(%x, %w, %b)",
     0, 0, 0},
    {"conv_transpose",
     "input %x : f64[1, 4, 4] input %w : f64[4, 3, 3] %y = conv_transpose(%x, %w) {group = 2,\n"
     "strides = [2], pads = [1, 2], dilations = [2], output_padding = [1]}",
     0, 0, 0},
    {"conv_transpose",
     "input %x : f64[1, 2, 3, 3] input %w : f64[2, 1, 3, 3] %y = conv_transpose(%x, %w)\n"
     "{strides = [2, 2], output_shape = [6, 5]}",
     0, 0, 0},
    {"conv", /* depthwise: the weight by an op of its own */
     "input %x : f64[2, 3, 5, 4] input %w : f64[3, 1, 3, 2] %y = conv(%x, %w) {group = 3, strides = [2, 1],\n"
     "pads = [1, 0, 1, 1]}",
     0, 0, 0},
    {"conv", "input %x : f64[2, 2, 7] input %w : f64[4, 1, 3] %y = conv(%x, %w) {group = 2, dilations = [2]}", 0, 0, 0},
    {"conv_weight_grad",
     "input %x : f64[2, 4, 5, 4] input %d : f64[2, 2, 3, 4] %y = conv_weight_grad(%x, %d) {kernel = [3, 2], group = "
     "2,\n"
     "strides = [2, 1], pads = [1, 0, 1, 1]}",
     0, 0, 1},
    {"conv_weight_grad",
     "input %x : f64[2, 6, 3] input %d : f64[2, 2, 3] %y = conv_weight_grad(%x, %d) {kernel = [2], group = 3,\n"
     "dilations = [3], channels_last = 1}",
     0, 0, 1},
    {"max_pool",
     "input %x : f64[2, 3, 5, 4] %y = max_pool(%x) {kernel = [3, 2], strides = [1, 2],\n"
     "pads = [1, 0, 1, 1]}",
     0, 0, 0},
    {"max_pool", "input %x : f64[1, 2, 7] %y, %i = max_pool(%x) {kernel = [3], strides = [2], ceil_mode = 1}", 0, 0, 0},
    {"max_pool", "input %x : f64[2, 4, 4, 3] %y = max_pool(%x) {kernel = [2, 2], channels_last = 1}", 0, 0, 0},
    {"avg_pool",
     "input %x : f64[2, 3, 5, 4] %y = avg_pool(%x) {kernel = [3, 2], strides = [2, 1],\n"
     "pads = [1, 0, 1, 1]}",
     0, 0, 0},
    {"avg_pool",
     "input %x : f64[1, 2, 7] %y = avg_pool(%x) {kernel = [3], strides = [2], pads = [1, 1],\n"
     "count_include_pad = 1, ceil_mode = 1}",
     0, 0, 0},
    {"avg_pool", "input %x : f64[2, 4, 4, 3] %y = avg_pool(%x) {kernel = [2, 3], channels_last = 1}", 0, 0, 0},
    {"lp_pool", "input %x : f64[2, 2, 5, 4] %y = lp_pool(%x) {kernel = [2, 2], p = 3, pads = [1, 0, 0, 1]}", 0.2, 2, 0},
    {"reshape", "input %x : f64[3, 4] %y = reshape(%x) {shape = [2, -1]}", 0, 0, 0},
    {"flatten", "input %x : f64[3, 2, 2] %y = flatten(%x) {axis = 2}", 0, 0, 0},
    {"squeeze", "input %x : f64[3, 1, 2] %y = squeeze(%x) {axes = [1]}", 0, 0, 0},
    {"unsqueeze", "input %x : f64[3, 2] const %a : i64[2] = [0, 3] %y = unsqueeze(%x, %a)", 0, 0, 0},
    {"transpose", "input %x : f64[3, 2, 4] %y = transpose(%x) {perm = [1, 2, 0]}", 0, 0, 0},
    {"transpose", "input %x : f64[3, 2, 4] %y = transpose(%x)", 0, 0, 0},
    {"diagonal", "input %x : f64[3, 2, 3] %y = diagonal(%x) {axis1 = 2, axis2 = 0}", 0, 0, 0},
    {"narrow", "input %x : f64[5, 7] %y = narrow(%x) {axes = [1, 0], starts = [1, -3], ends = [6, 9]}", 0, 0, 0},
    {"narrow", "input %x : f64[5, 7] %y = narrow(%x) {starts = [4, 5], ends = [0, -8], steps = [-2, -3]}", 0, 0, 0},
    {"narrow",
     "input %x : f64[8] const %s : i64[1] = [1] const %e : i64[1] = [99] const %p : i64[1] = [3]\n"
     "%y = narrow(%x, %s, %e, _, %p)",
     0, 0, 0},
    {"split", "input %x : f64[2, 7] %y, %z, %rest = split(%x) {axis = 1, parts = [3, 2, 2]}", 0, 0, 0},
    {"expand", "input %x : f64[3, 1] %y = expand(%x) {shape = [2, 3, 5]}", 0, 0, 0},
    {"concat", "input %a : f64[2, 3] input %b : f64[2, 1] %y = concat(%a, %b, %a) {axis = 1}", 0, 0, 0},
    {"pad", "input %x : f64[3, 5] input %v : f64[] %y = pad(%x, _, %v) {pads = [1, -2, 0, 3]}", 0, 0, 0},
    {"pad", "input %x : f64[3, 4] %y = pad(%x) {pads = [2, 1], axes = [0], mode = \"reflect\"}", 0, 0, 0},
    {"pad", "input %x : f64[3, 4] %y = pad(%x) {pads = [2, 1, 0, 3], mode = \"edge\"}", 0, 0, 0},
    {"pad", "input %x : f64[3, 4] %y = pad(%x) {pads = [2, 1, 0, 3], mode = \"wrap\"}", 0, 0, 0},
    {"tile", "input %x : f64[3, 2] %y = tile(%x) {repeats = [2, 3]}", 0, 0, 0},
    {"gather", "input %x : f64[3, 4, 2] const %i : i64[2, 2] = [0, -1, 1, 0] %y = gather(%x, %i) {axis = 1}", 0, 0, 0},
    {"gather", "input %x : f64[3, 4] const %i : i64[] = [2] %y = gather(%x, %i)", 0, 0, 0},
    {"embedding", "input %x : f64[5, 3] const %i : i32[2, 2] = [4, 1, 1, 0] %y = embedding(%x, %i)", 0, 0, 0},
    {"gather_elements",
     "input %x : f64[3, 4] const %i : i64[3, 2] = [0, 3, 1, 1, -1, 0]\n"
     "%y = gather_elements(%x, %i) {axis = 1}",
     0, 0, 0},
    {"gather_nd", "input %x : f64[3, 4, 2] const %i : i64[3, 2] = [0, 3, 2, 1, 0, 3] %y = gather_nd(%x, %i)", 0, 0, 0},
    {"gather_nd",
     "input %x : f64[2, 3, 4] const %i : i64[2, 2, 1] = [0, 2, 1, 1]\n"
     "%y = gather_nd(%x, %i) {batch_dims = 1}",
     0, 0, 0},
    {"scatter",
     "input %x : f64[3, 4] input %u : f64[2, 4] const %i : i64[2, 4] = [0, 2, 1, 1, 2, 2, 1, 0]\n"
     "%y = scatter(%x, %i, %u)",
     0, 0, 0},
    {"scatter",
     "input %x : f64[3, 4] input %u : f64[3, 2] const %i : i64[3, 2] = [0, 2, 1, 1, 3, -1]\n"
     "%y = scatter(%x, %i, %u) {axis = 1, reduction = \"add\"}",
     0, 0, 0},
    {"scatter",
     "input %x : f64[3, 4] input %u : f64[3, 2] const %i : i64[3, 2] = [0, 2, 1, 1, 3, -1]\n"
     "%y = scatter(%x, %i, %u) {axis = 1, reduction = \"mul\"}",
     0.5, 2, 0},
    {"scatter",
     "input %x : f64[3, 4] input %u : f64[3, 2] const %i : i64[3, 2] = [0, 2, 1, 1, 3, -1]\n"
     "%y = scatter(%x, %i, %u) {axis = 1, reduction = \"max\"}",
     0, 0, 0},
    {"scatter_nd",
     "input %x : f64[4, 3] input %u : f64[3, 3] const %i : i64[3, 1] = [2, 0, 2]\n"
     "%y = scatter_nd(%x, %i, %u)",
     0, 0, 0},
    {"scatter_nd",
     "input %x : f64[4, 3] input %u : f64[3] const %i : i64[3, 2] = [2, 1, 0, 0, 2, 1]\n"
     "%y = scatter_nd(%x, %i, %u) {reduction = \"add\"}",
     0, 0, 0},
    {"scatter_nd",
     "input %x : f64[4, 3] input %u : f64[3] const %i : i64[3, 2] = [2, 1, 0, 0, 2, 1]\n"
     "%y = scatter_nd(%x, %i, %u) {reduction = \"min\"}",
     0, 0, 0},
    {"resize", "input %x : f64[1, 2, 3, 4] const %t : f32[4] = [1, 1, 2, 0.6] %y = resize(%x, %t) {mode = \"linear\"}",
     0, 0, 0},
    {"resize",
     "input %x : f64[5, 3] const %t : i64[1] = [7] %y = resize(%x, %t) {mode = \"cubic\", axes = [0],\n"
     "coordinates = \"align_corners\", antialias = 1}",
     0, 0, 0},
    {"resize",
     "input %x : f64[5, 3] const %t : i64[2] = [4, 5] const %r : f32[4] = [0.1, -0.2, 0.9, 1.1]\n"
     "%y = resize(%x, %t, %r) {mode = \"linear\", coordinates = \"tf_crop_and_resize\", extrapolation = 2.0}",
     0, 0, 0},
    {"max_unpool",
     "input %x : f64[1, 1, 2, 2] const %p : i64[1, 1, 2, 2] = [0, 5, 5, 15]\n"
     "%y = max_unpool(%x, %p) {kernel = [2, 2], strides = [2, 2]}",
     0, 0, 0},
    {"dequantize",
     "const %q : u8[2, 3] = [1, 200, 3, 4, 5, 128] input %s : f64[2, 1] const %o : u8[] = [128]\n"
     "%y = dequantize(%q, %s, %o)",
     0, 0, 0},
    {"dft", "input %x : f64[2, 5, 1] %y = dft(%x)", 0, 0, 0},
    {"dft", "input %x : f64[5, 2, 2] %y = dft(%x) {axis = 0, inverse = 1, length = [7]}", 0, 0, 0},
    {"dft", "input %x : f64[2, 6, 1] %y = dft(%x) {onesided = 1, length = [4]}", 0, 0, 0},
    {"dft",
     "input %x : f64[2, 4, 2] const %n : i64[] = [6] const %a : i64[] = [1]\n"
     "%y = dft(%x, %n, %a) {onesided = 1, inverse = 1}",
     0, 0, 0},
    {"dft", "input %x : f64[2, 4, 2] %y = dft(%x) {onesided = 1, inverse = 1, length = [7]}", 0, 0, 0},
    {"rnn",
     "input %x : f64[3, 2, 3] input %w : f64[1, 2, 3] input %r : f64[1, 2, 2] input %b : f64[1, 4]\n"
     "%y, %z = rnn(%x, %w, %r, %b) {direction = \"reverse\", activations = \"softsign\"}",
     0, 0, 0},
    {"gru",
     "input %x : f64[2, 2, 3] input %w : f64[2, 6, 3] input %r : f64[2, 6, 2] input %b : f64[2, 12]\n"
     "input %h : f64[2, 2, 2] const %n : i32[2] = [2, 1] %y, %z = gru(%x, %w, %r, %b, %n, %h)\n"
     "{direction = \"bidirectional\", linear_before_reset = 1}",
     0, 0, 0},
    {"gru",
     "input %x : f64[3, 1, 3] input %w : f64[1, 6, 3] input %r : f64[1, 6, 2] %y = gru(%x, %w, %r)\n"
     "{activations = \"hard_sigmoid elu\", clip = 0.9}",
     0, 0, 0},
    {"lstm",
     "input %x : f64[2, 2, 3] input %w : f64[1, 8, 3] input %r : f64[1, 8, 2] input %b : f64[1, 16]\n"
     "input %h : f64[1, 2, 2] input %c : f64[1, 2, 2] input %p : f64[1, 6] const %n : i32[2] = [2, 1]\n"
     "%y, %hn, %z = lstm(%x, %w, %r, %b, %n, %h, %c, %p)",
     0, 0, 0},
    {"lstm",
     "input %x : f64[2, 1, 3] input %w : f64[1, 8, 3] input %r : f64[1, 8, 2] %y = lstm(%x, %w, %r)\n"
     "{input_forget = 1}",
     0, 0, 0},
    {"loop_end",
     "input %x : f64[3] input %w : f64[3] const %t : i64[] = [4] const %yes : bool[] = [1]\n"
     "%round, %starts, %acc = loop_begin(%t, %yes, %x) %m = mul(%acc, %w) %n = sin(%m)\n"
     "%rounds, %again, %last, %all = loop_end(%round, %starts, %t, %yes, %acc, %n, %m)\n"
     "%y = exp(%last) %z = mul(%all, %all)",
     0, 0, 0},
    /* It ends when the sum says so, carries an integer, and nothing of x goes in but through the body. */
    {"loop_end",
     "input %x : f64[2] const %zero : f64[2] = [0, 0] const %t : i64[1] = [9] const %yes : bool[] = [1]\n"
     "const %limit : f64[] = [2] const %one : i64[] = [1] const %none : i64[] = [0]\n"
     "%round, %starts, %acc, %k = loop_begin(%t, %yes, %zero, %none) %f = cast(%round) {to = \"f64\"}\n"
     "%g = mul(%x, %f) %h = add(%acc, %g) %e = exp(%x) %n = add(%h, %e) %k2 = add(%k, %one)\n"
     "%s = reduce_sum(%n) {keepdims = 0} %go = lt(%s, %limit)\n"
     "%rounds, %again, %last, %count = loop_end(%round, %starts, %t, %go, %acc, %k, %n, %k2)\n"
     "%y = mul(%last, %last)",
     0.1, 0.3, 1},
    {"loop_begin",
     "input %x : f64[2] input %w : f64[2] const %t : i64[] = [2] const %u : i64[] = [3]\n"
     "const %yes : bool[] = [1] %round, %starts, %a = loop_begin(%t, %yes, %x) %p = mul(%a, %w)\n"
     "%iround, %istarts, %b = loop_begin(%u, %yes, %p) %q = mul(%b, %a) %n = tanh(%q)\n"
     "%irounds, %iagain, %ilast = loop_end(%iround, %istarts, %u, %yes, %b, %n) %s = add(%ilast, %w)\n"
     "%rounds, %again, %y = loop_end(%round, %starts, %t, %yes, %a, %s)",
     0.3, 1, 0},
    {"grid_sample", "input %x : f64[2, 2, 3, 4] input %g : f64[2, 2, 3, 2] %y = grid_sample(%x, %g)", -1.2, 1.2, 0},
    {"grid_sample",
     "input %x : f64[1, 2, 5] input %g : f64[1, 4, 1] %y = grid_sample(%x, %g)\n"
     "{mode = \"cubic\", padding = \"reflection\"}",
     -1.4, 1.4, 0},
    {"grid_sample",
     "input %x : f64[1, 1, 3, 2, 3] input %g : f64[1, 2, 1, 2, 3] %y = grid_sample(%x, %g)\n"
     "{padding = \"border\", align_corners = 1}",
     -1.3, 1.3, 0},
    {"grid_sample",
     "input %x : f64[1, 1, 3, 4] input %g : f64[1, 2, 2, 2] %y = grid_sample(%x, %g)\n"
     "{padding = \"reflection\", align_corners = 1}",
     -1.7, 1.7, 0},
    {"grid_sample",
     "input %x : f64[1, 2, 3, 3] const %g : f64[1, 1, 2, 2] = [0.3, -0.2, 0.9, 0.8]\n"
     "%y = grid_sample(%x, %g) {mode = \"nearest\"}",
     0, 0, 0},
    {"deform_conv",
     "input %x : f64[1, 2, 4, 3] input %w : f64[2, 2, 2, 2] input %o : f64[1, 8, 3, 2] input %b : f64[2]\n"
     "input %m : f64[1, 4, 3, 2] %y = deform_conv(%x, %w, %o, %b, %m)",
     -0.9, 0.9, 0},
    {"deform_conv",
     "input %x : f64[2, 4, 4, 4] input %w : f64[2, 2, 2, 1] input %o : f64[2, 8, 2, 5]\n"
     "%y = deform_conv(%x, %w, %o) {group = 2, offset_group = 2, strides = [2, 1], pads = [0, 1, 1, 0],\n"
     "dilations = [2, 1]}",
     -0.9, 0.9, 0},
    {"roi_align",
     "input %x : f64[2, 2, 4, 5] input %r : f64[2, 4] const %i : i64[2] = [1, 0]\n"
     "%m = mul(%r, %r) %s = narrow(%m) {axes = [1], starts = [0], ends = [2]} const %k : f64[] = [2.3]\n"
     "%e = add(%s, %k) %q = concat(%s, %e) {axis = 1} %y = roi_align(%x, %q, %i) {output_height = 2,\n"
     "output_width = 3, sampling_ratio = 2}",
     0.2, 1, 0},
    {"roi_align",
     "input %x : f64[1, 2, 4, 4] const %r : f64[2, 4] = [0.3, 0.7, 3.1, 2.9, 2.2, 1.1, 9.4, 5.2]\n"
     "const %i : i32[2] = [0, 0] %y = roi_align(%x, %r, %i) {output_height = 2, output_width = 2,\n"
     "sampling_ratio = 2, half_pixel = 0, mode = \"max\", spatial_scale = 0.7}",
     0.2, 1, 0},
    {"max_roi_pool",
     "input %x : f64[2, 2, 5, 4] const %r : f64[3, 5] = [0, 0, 0, 3, 4, 1, 1, 1, 2, 3, 1, 2, 3, 9, 9]\n"
     "%y = max_roi_pool(%x, %r) {pooled = [2, 3]}",
     0, 0, 0},
    /* Several readers, views of views, integers on the way. */
    {"mul", "input %x : f64[3, 4] %e = exp(%x) %a = mul(%e, %x) %b = add(%a, %e) %y = mul(%b, %b) %z = sub(%e, %b)", 0,
     0, 0},
    {"transpose",
     "input %x : f64[4, 6] %r = reshape(%x) {shape = [2, 2, 3, 2]} %t = transpose(%r) {perm = [2, 0, 3, 1]}\n"
     "%n = narrow(%t) {axes = [0], starts = [1], ends = [3]} %u = unsqueeze(%n) {axes = [1]}\n"
     "%g = expand(%u) {shape = [2, 2, 2, 2, 2]} %y = mul(%g, %g)",
     0, 0, 0},
    {"cast", "input %x : f64[5] %i = cast(%x) {to = \"i64\"} %f = cast(%i) {to = \"f64\"} %y = mul(%x, %f)", 1.2, 4.9,
     0},
    {0}};
