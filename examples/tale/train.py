#!/usr/bin/env python3
"""Trains the language model that ships with berth, with numpy alone: a Llama of 99,000 weights that knows three tales.

It is trained on the few hundred tokens below until it can say them by heart, which is what tests want: greedy decoding
from the first words of a tale gives the rest of it, on every device and with every kernel. Everything is seeded: the
same numpy gives the same file. Writes, next to this script:

  tale.gguf     the model: weights as q8_0, norms as f32, and a SentencePiece vocabulary
  tale.txt      the tales, which it says when it is given their first words

The names of the parameters are those of llama.cpp; queries and keys are rotated in adjacent pairs.
"""
import struct
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TALES = [
    "Once upon a time there was a small boat. It had no berth of its own, so it slept at sea. One day the harbour "
    "master said: there is room for you, if you leave when the tide does. The boat was glad. It came with the tide "
    "and left with the tide, and the next boat slept in the same place.",
    "The harbour was full. Every ship had a place, and every place had a ship. Then an old sailor drew a map of who "
    "comes and who goes. Two ships that never meet can share one place, she said. Now half of the harbour was free.",
    "A little whale asked: how much sea do I need? As much as you fill, said the moon, and not a drop more.",
]
LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN = 2, 64, 4, 2, 16, 128
CONTEXT, BASE, EPS = 256, 10000.0, 1e-5
MERGES = 90
STEPS, RATE = 1200, 3e-3
SPACE = "\u2581"


# ---- The vocabulary: three special tokens, 256 bytes, characters, and pieces by how often they come ----

def merge(pieces, pair):
    out, i = [], 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return out


def make_vocabulary():
    """Tokens, scores and kinds. A piece may not go over the start of a word."""
    words = [list(w) for tale in TALES for w in (SPACE + tale.replace(" ", SPACE + SPACE)).split(SPACE)[1:] if w]
    words = [[SPACE] + w for w in words]
    pieces = []
    for _ in range(MERGES):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        pair = max(sorted(counts), key=lambda p: counts[p])
        pieces.append("".join(pair))
        words = [merge(w, pair) for w in words]
    characters = sorted({c for tale in TALES for c in tale if c != " "} | {SPACE})
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + pieces + characters
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces) + len(characters))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(pieces) + len(characters))
    return tokens, scores, kinds


def encode(text, tokens, scores):
    """As SentencePiece does: the neighbours that make the piece with the best score are joined first."""
    ids = {t: i for i, t in enumerate(tokens)}
    parts = list(SPACE + text.replace(" ", SPACE))
    while True:
        best = max(((scores[ids[a + b]], -i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in ids),
                   default=None)
        if best is None:
            return [ids[p] for p in parts]
        i = -best[1]
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


# ---- The network, forwards and backwards ----

def make_params(vocabulary, random):
    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    params = {"token_embd.weight": matrix(vocabulary, WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    for i in range(LAYERS):
        params["blk.%d.attn_norm.weight" % i] = np.ones(WIDTH, np.float32)
        params["blk.%d.attn_q.weight" % i] = matrix(HEADS * HEAD, WIDTH)
        params["blk.%d.attn_k.weight" % i] = matrix(KV_HEADS * HEAD, WIDTH)
        params["blk.%d.attn_v.weight" % i] = matrix(KV_HEADS * HEAD, WIDTH)
        params["blk.%d.attn_output.weight" % i] = matrix(WIDTH, HEADS * HEAD) * np.float32(0.5)
        params["blk.%d.ffn_norm.weight" % i] = np.ones(WIDTH, np.float32)
        params["blk.%d.ffn_gate.weight" % i] = matrix(HIDDEN, WIDTH)
        params["blk.%d.ffn_up.weight" % i] = matrix(HIDDEN, WIDTH)
        params["blk.%d.ffn_down.weight" % i] = matrix(WIDTH, HIDDEN) * np.float32(0.5)
    return params


def norm(x, scale):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(EPS))
    return x * r * scale, (x, r, scale)


def norm_back(dy, saved):
    x, r, scale = saved
    dn = dy * scale
    dx = r * (dn - x * r * r * (dn * x).mean(-1, keepdims=True))
    return dx, (dy * x * r).reshape(-1, x.shape[-1]).sum(0)


def angles(length):
    a = np.arange(length)[:, None] * BASE ** (-np.arange(0, HEAD, 2) / HEAD)
    return np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)


def rotate(x, cos, sin):
    """x: [heads, length, HEAD]."""
    y = np.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    y[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return y


def split(x, heads):
    return x.reshape(len(x), heads, HEAD).transpose(1, 0, 2)


def join(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def attention(n, p, i, cos, sin):
    q = rotate(split(n @ p["blk.%d.attn_q.weight" % i].T, HEADS), cos, sin)
    k = rotate(split(n @ p["blk.%d.attn_k.weight" % i].T, KV_HEADS), cos, sin)
    v = split(n @ p["blk.%d.attn_v.weight" % i].T, KV_HEADS)
    group = HEADS // KV_HEADS
    kk, vv = np.repeat(k, group, 0), np.repeat(v, group, 0)
    s = q @ kk.transpose(0, 2, 1) / np.float32(np.sqrt(HEAD))
    s = np.where(np.tri(len(n), dtype=bool), s, np.float32(-1e30))
    s = np.exp(s - s.max(-1, keepdims=True))
    s /= s.sum(-1, keepdims=True)
    o = join(s @ vv)
    return o @ p["blk.%d.attn_output.weight" % i].T, (n, q, kk, vv, s, o)


def attention_back(dy, saved, p, g, i, cos, sin):
    n, q, kk, vv, s, o = saved
    g["blk.%d.attn_output.weight" % i] += dy.T @ o
    do = split(dy @ p["blk.%d.attn_output.weight" % i], HEADS)
    ds = do @ vv.transpose(0, 2, 1)
    dvv = s.transpose(0, 2, 1) @ do
    ds = s * (ds - (ds * s).sum(-1, keepdims=True)) / np.float32(np.sqrt(HEAD))
    dq, dkk = ds @ kk, ds.transpose(0, 2, 1) @ q
    group = HEADS // KV_HEADS
    dk, dv = (d.reshape(KV_HEADS, group, *d.shape[1:]).sum(1) for d in (dkk, dvv))
    parts = {"q": join(rotate(dq, cos, -sin)), "k": join(rotate(dk, cos, -sin)), "v": join(dv)}
    dn = 0
    for name, d in parts.items():
        g["blk.%d.attn_%s.weight" % (i, name)] += d.T @ n
        dn = dn + d @ p["blk.%d.attn_%s.weight" % (i, name)]
    return dn


def feed(n, p, i):
    gate, up = n @ p["blk.%d.ffn_gate.weight" % i].T, n @ p["blk.%d.ffn_up.weight" % i].T
    sig = 1 / (1 + np.exp(-gate))
    h = gate * sig * up
    return h @ p["blk.%d.ffn_down.weight" % i].T, (n, gate, up, sig, h)


def feed_back(dy, saved, p, g, i):
    n, gate, up, sig, h = saved
    g["blk.%d.ffn_down.weight" % i] += dy.T @ h
    dh = dy @ p["blk.%d.ffn_down.weight" % i]
    dgate, dup = dh * up * sig * (1 + gate * (1 - sig)), dh * gate * sig
    g["blk.%d.ffn_gate.weight" % i] += dgate.T @ n
    g["blk.%d.ffn_up.weight" % i] += dup.T @ n
    return dgate @ p["blk.%d.ffn_gate.weight" % i] + dup @ p["blk.%d.ffn_up.weight" % i]


def forward(p, ids):
    cos, sin = angles(len(ids))
    x, saved = p["token_embd.weight"][ids], []
    for i in range(LAYERS):
        n, a = norm(x, p["blk.%d.attn_norm.weight" % i])
        y, b = attention(n, p, i, cos, sin)
        x = x + y
        n, c = norm(x, p["blk.%d.ffn_norm.weight" % i])
        y, d = feed(n, p, i)
        x = x + y
        saved.append((a, b, c, d))
    n, last = norm(x, p["output_norm.weight"])
    return n @ p["token_embd.weight"].T, (saved, n, last, cos, sin)


def backward(p, g, ids, dlogits, kept):
    saved, n, last, cos, sin = kept
    g["token_embd.weight"] += dlogits.T @ n
    dx, d = norm_back(dlogits @ p["token_embd.weight"], last)
    g["output_norm.weight"] += d
    for i in reversed(range(LAYERS)):
        a, b, c, e = saved[i]
        d, s = norm_back(feed_back(dx, e, p, g, i), c)
        dx = dx + d
        g["blk.%d.ffn_norm.weight" % i] += s
        d, s = norm_back(attention_back(dx, b, p, g, i, cos, sin), a)
        dx = dx + d
        g["blk.%d.attn_norm.weight" % i] += s
    np.add.at(g["token_embd.weight"], ids, dx)


def train(p, sequences):
    mean, square = ({k: np.zeros_like(v) for k, v in p.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        g = {k: np.zeros_like(v) for k, v in p.items()}
        loss = count = 0
        for s in sequences:
            ids, want = np.array(s[:-1]), np.array(s[1:])
            logits, kept = forward(p, ids)
            e = np.exp(logits - logits.max(-1, keepdims=True))
            e /= e.sum(-1, keepdims=True)
            at = np.arange(len(want))
            loss -= np.log(e[at, want] + 1e-30).sum()
            count += len(want)
            e[at, want] -= 1
            backward(p, g, ids, e, kept)
        rate = RATE * min(1, step / 50) * (0.5 + 0.5 * np.cos(np.pi * step / STEPS))
        for k in p:
            d = g[k] / count
            mean[k] = 0.9 * mean[k] + 0.1 * d
            square[k] = 0.99 * square[k] + 0.01 * d * d
            p[k] -= (rate * mean[k] / (1 - 0.9 ** step) / (np.sqrt(square[k] / (1 - 0.99 ** step)) + 1e-8)).astype("f4")
        if step % 100 == 0:
            print("step %d: loss %.5f" % (step, loss / count), flush=True)


# ---- The file ----

def to_q8_0(x):
    """Blocks of 32: an f16 scale, then bytes. And what they stand for."""
    blocks = x.reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 127).astype(np.float32)
    inverse = np.where(scale > 0, 1 / np.maximum(scale, 1e-30), 0).astype(np.float32)
    q = np.rint(blocks * inverse[:, None]).astype(np.int8)
    half = scale.astype(np.float16)
    data = b"".join(h.tobytes() + row.tobytes() for h, row in zip(half, q))
    return data, (q * half.astype(np.float32)[:, None]).reshape(x.shape)


def text(t):
    b = t.encode() if isinstance(t, str) else t
    return struct.pack("<Q", len(b)) + b


U32, I32, F32, BOOL, STRING = 4, 5, 6, 7, 8
FORMS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}


def value(kind, v):
    return text(v) if kind == STRING else struct.pack(FORMS[kind], v)


def key(name, kind, v):
    if isinstance(v, list):
        return text(name) + struct.pack("<IIQ", 9, kind, len(v)) + b"".join(value(kind, e) for e in v)
    return text(name) + struct.pack("<I", kind) + value(kind, v)


TEMPLATE = "{% for message in messages %}{{ message['content'] }} {% endfor %}"


def write(path, params, tokens, scores, kinds):
    keys = [
        key("general.architecture", STRING, "llama"), key("general.name", STRING, "tale"),
        key("general.license", STRING, "as berth"), key("general.file_type", U32, 7),
        key("llama.context_length", U32, CONTEXT), key("llama.embedding_length", U32, WIDTH),
        key("llama.block_count", U32, LAYERS), key("llama.feed_forward_length", U32, HIDDEN),
        key("llama.rope.dimension_count", U32, HEAD), key("llama.rope.freq_base", F32, BASE),
        key("llama.attention.head_count", U32, HEADS), key("llama.attention.head_count_kv", U32, KV_HEADS),
        key("llama.attention.layer_norm_rms_epsilon", F32, EPS), key("llama.vocab_size", U32, len(tokens)),
        key("tokenizer.ggml.model", STRING, "llama"), key("tokenizer.ggml.tokens", STRING, tokens),
        key("tokenizer.ggml.scores", F32, scores), key("tokenizer.ggml.token_type", I32, kinds),
        key("tokenizer.ggml.bos_token_id", U32, 1), key("tokenizer.ggml.eos_token_id", U32, 2),
        key("tokenizer.ggml.unknown_token_id", U32, 0), key("tokenizer.ggml.add_bos_token", BOOL, True),
        key("tokenizer.ggml.add_eos_token", BOOL, False), key("tokenizer.chat_template", STRING, TEMPLATE),
    ]
    infos, data = [], b""
    for name, w in params.items():
        bytes_of, kind = (to_q8_0(w)[0], 8) if w.ndim == 2 else (w.tobytes(), 0)
        shape = tuple(reversed(w.shape))
        infos.append(text(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, kind, len(data)))
        data += bytes_of + bytes(-len(bytes_of) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def say(p, ids, n, end):
    ids = list(ids)
    for _ in range(n):
        ids.append(int(forward(p, np.array(ids))[0][-1].argmax()))
        if ids[-1] == end:
            break
    return ids


def main():
    tokens, scores, kinds = make_vocabulary()
    sequences = [[1] + encode(tale, tokens, scores) + [2] for tale in TALES]
    params = make_params(len(tokens), np.random.default_rng(14))
    print("%d tokens, %d weights, tales of %s" % (len(tokens), sum(v.size for v in params.values()),
                                                  [len(s) for s in sequences]))
    train(params, sequences)
    rounded = {k: to_q8_0(v)[1] if v.ndim == 2 else v for k, v in params.items()}
    margin = 1e9
    for s in sequences:  # from the first words on: all tales begin with the same token
        logits = forward(rounded, np.array(s[:-1]))[0][4:]
        best = np.sort(logits, -1)
        margin = min(margin, float((best[:, -1] - best[:, -2]).min()))
        assert say(rounded, s[:5], len(s), 2) == s, "it does not know its tales"
    print("the least margin of a token over the next best one: %.3f" % margin)
    write(HERE / "tale.gguf", params, tokens, scores, kinds)
    (HERE / "tale.txt").write_text("".join(t + "\n" for t in TALES))


if __name__ == "__main__":
    main()
