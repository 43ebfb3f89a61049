#!/usr/bin/python3
"""Writes tests/grad/recorded.h: three small models as text, and what PyTorch makes of them in f64: every gradient of
the first step, and the losses of ten steps of two optimisers. Run by hand; needs Debian's python3-torch (1.13 or newer);
the build and the tests do not.

    /usr/bin/python3 tests/grad/record_torch.py
"""
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 10


def fill(tensor_index, count, scale):
    """What test_models.c fills a tensor with: numbers from a hash, exact in f32."""
    out = []
    for i in range(count):
        h = ((tensor_index * 1000003 + i + 1) * 2654435761) & 0xFFFFFFFF
        h ^= h >> 15
        h = (h * 2246822519) & 0xFFFFFFFF
        h ^= h >> 13
        out.append(((h >> 16) / 65536 - 0.5) * 2 * scale)
    return out


def mlp(p, x):
    h = torch.relu(x["x"] @ p["w1"] + p["b1"])
    logits = h @ p["w2"] + p["b2"]
    return F.cross_entropy(logits, x["labels"].reshape(-1))


MLP = """graph "mlp" {
  input %x : f32[5, 7]
  input %labels : i64[5, 1]
  param %w1 : f32[7, 9]
  param %b1 : f32[9]
  param %w2 : f32[9, 4]
  param %b2 : f32[4]
  %m1 = matmul(%x, %w1)
  %a1 = add(%m1, %b1)
  %h = relu(%a1)
  %m2 = matmul(%h, %w2)
  %logits = add(%m2, %b2)
  %logs = log_softmax(%logits)
  %picked = gather_elements(%logs, %labels) {axis = 1}
  %mean = reduce_mean(%picked) {keepdims = 0}
  %loss = neg(%mean)
  output "loss" = %loss
}
"""


def conv(p, x):
    h = F.conv2d(x["x"], p["w1"], p["b1"], stride=(2, 1), padding=1)
    h = F.group_norm(h, 2, p["s1"], p["o1"], 1e-5)
    h = F.max_pool2d(F.silu(h), 3, 2, 1)
    h = F.conv2d(h, p["w2"], p["b2"], padding=1, groups=2)
    h = F.avg_pool2d(torch.relu(h), 2, 1, 1, count_include_pad=False)
    h = h.mean((2, 3))
    return F.cross_entropy(h @ p["w3"], x["labels"].reshape(-1))


CONV = """graph "conv" {
  input %x : f32[2, 3, 9, 8]
  input %labels : i64[2, 1]
  param %w1 : f32[4, 3, 3, 3]
  param %b1 : f32[4]
  param %s1 : f32[4]
  param %o1 : f32[4]
  param %w2 : f32[6, 2, 3, 3]
  param %b2 : f32[6]
  param %w3 : f32[6, 5]
  %c1 = conv(%x, %w1, %b1) {strides = [2, 1], pads = [1, 1, 1, 1]}
  %n1 = group_norm(%c1, %s1, %o1) {groups = 2}
  %a1 = silu(%n1)
  %p1 = max_pool(%a1) {kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}
  %c2 = conv(%p1, %w2, %b2) {pads = [1, 1, 1, 1], group = 2}
  %a2 = relu(%c2)
  %p2 = avg_pool(%a2) {kernel = [2, 2], pads = [1, 1, 1, 1]}
  %h = reduce_mean(%p2) {axes = [2, 3], keepdims = 0}
  %logits = matmul(%h, %w3)
  %logs = log_softmax(%logits)
  %picked = gather_elements(%logs, %labels) {axis = 1}
  %mean = reduce_mean(%picked) {keepdims = 0}
  %loss = neg(%mean)
  output "loss" = %loss
}
"""


def transformer(p, x):
    ids = x["ids"]
    h = p["table"][ids] + p["places"]
    n = F.layer_norm(h, (8,), p["s1"], p["o1"])
    q, k, v = (part.reshape(2, 5, 2, 4).transpose(1, 2) for part in (n @ p["wqkv"] + p["bqkv"]).split(8, -1))
    scores = q @ k.transpose(-1, -2) / 2
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    y = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
    h = h + y.transpose(1, 2).reshape(2, 5, 8) @ p["wo"]
    n = F.layer_norm(h, (8,), p["s2"], p["o2"])
    h = h + F.gelu(n @ p["w1"] + p["b1"]) @ p["w2"]
    logits = F.layer_norm(h, (8,), p["s3"], p["o3"]) @ p["table"].T
    return F.cross_entropy(logits.reshape(10, 11), x["labels"].reshape(-1))


TRANSFORMER = """graph "transformer" {
  input %ids : i64[2, 5]
  input %labels : i64[10, 1]
  param %table : f32[11, 8]
  param %places : f32[5, 8]
  param %s1 : f32[8]
  param %o1 : f32[8]
  param %wqkv : f32[8, 24]
  param %bqkv : f32[24]
  param %wo : f32[8, 8]
  param %s2 : f32[8]
  param %o2 : f32[8]
  param %w1 : f32[8, 16]
  param %b1 : f32[16]
  param %w2 : f32[16, 8]
  param %s3 : f32[8]
  param %o3 : f32[8]
  %e = embedding(%table, %ids)
  %h0 = add(%e, %places)
  %n1 = layer_norm(%h0, %s1, %o1)
  %m1 = matmul(%n1, %wqkv)
  %qkv = add(%m1, %bqkv)
  %q, %k, %v = split(%qkv) {axis = 2}
  %y = attention(%q, %k, %v) {heads = 2, mode = "causal"}
  %m2 = matmul(%y, %wo)
  %h1 = add(%h0, %m2)
  %n2 = layer_norm(%h1, %s2, %o2)
  %m3 = matmul(%n2, %w1)
  %a3 = add(%m3, %b1)
  %g = gelu(%a3)
  %m4 = matmul(%g, %w2)
  %h2 = add(%h1, %m4)
  %n3 = layer_norm(%h2, %s3, %o3)
  %turned = transpose(%table)
  %m5 = matmul(%n3, %turned)
  %logits = reshape(%m5) {shape = [10, 11]}
  %logs = log_softmax(%logits)
  %picked = gather_elements(%logs, %labels) {axis = 1}
  %mean = reduce_mean(%picked) {keepdims = 0}
  %loss = neg(%mean)
  output "loss" = %loss
}
"""


def declared(text, kind):
    out = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [kind]:
            name, spec = words[1][1:], line.split(":")[1].strip()
            out.append((name, spec[:spec.index("[")], [int(n) for n in spec[spec.index("[") + 1:-1].split(",")]))
    return out


def tensors(text, classes):
    """Inputs and params, filled by their position among all of them."""
    inputs, params = {}, {}
    for index, (name, kind, shape) in enumerate(declared(text, "input") + declared(text, "param")):
        count = 1
        for extent in shape:
            count *= extent
        values = fill(index, count, 0.6)
        if kind == "i64":
            inputs[name] = torch.tensor([int((v + 0.6) / 1.2 * classes) % classes for v in values]).reshape(shape)
        else:
            place = inputs if index < len(declared(text, "input")) else params
            place[name] = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return inputs, params


def losses(model, inputs, params, make):
    params = {name: value.clone().requires_grad_() for name, value in params.items()}
    optimizer, clip = make(list(params.values()))
    out = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(params, inputs)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(params.values(), clip)
        optimizer.step()
        out.append(loss.item())
    return out


def numbers(values):
    return ", ".join("%.12g" % v for v in values)


def main():
    torch.use_deterministic_algorithms(True)
    lines = ["/* Written by tests/grad/record_torch.py (torch %s); do not edit. */" % torch.__version__.split("+")[0],
             "/* clang-format off */"]
    rows = []
    for name, text, model, classes in (("mlp", MLP, mlp, 4), ("conv", CONV, conv, 5),
                                       ("transformer", TRANSFORMER, transformer, 11)):
        inputs, params = tensors(text, classes)
        leaves = {key: value.clone().requires_grad_() for key, value in params.items()}
        loss = model(leaves, inputs)
        loss.backward()
        flat = [v for key in leaves for v in leaves[key].grad.reshape(-1).tolist()]
        adamw = losses(model, inputs, params,
                       lambda p: (torch.optim.AdamW(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.05), 0.5))
        sgd = losses(model, inputs, params,
                     lambda p: (torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01), 0))
        quoted = "\n".join('  "%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines())
        lines.append("static const char %s_text[] =\n%s;" % (name, quoted))
        lines.append("static const double %s_gradients[] = {%s};" % (name, numbers(flat)))
        lines.append("static const double %s_adamw[] = {%s};" % (name, numbers(adamw)))
        lines.append("static const double %s_sgd[] = {%s};" % (name, numbers(sgd)))
        rows.append('  {"%s", %s_text, %d, %s_gradients, sizeof %s_gradients / sizeof *%s_gradients, %s_adamw, %s_sgd},'
                    % (name, name, classes, name, name, name, name, name))
    lines.append("static const recorded_model recorded_models[] = {\n%s\n};" % "\n".join(rows))
    with open(os.path.join(HERE, "recorded.h"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
