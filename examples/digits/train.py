#!/usr/bin/env python3
"""Trains the digit classifier that ships with berth, with numpy alone.

The data are the 1,797 handwritten 8x8 digits of images.npy and labels.npy. A fifth is held out, never trained on, and
gives the accuracy that is printed at the end. Everything is seeded: the same numpy gives the same files. Writes, next
to this script:

  digits.safetensors   the weights (digits.berth is the graph that uses them)
  samples.npy          ten held-out digits, one a class, f32[10, 1, 8, 8]
  samples_labels.npy   what they are, i64[10]
  expected.npy         this network's probabilities for them, f32[10, 10]: what berth must compute as well

The network, with the names of the parameters:

  image [n, 1, 8, 8]
    conv1 3x3 -> 16, relu
    conv2 3x3 -> 32, relu, max pool 2x2              -> a [n, 32, 4, 4]
    conv3 3x3 -> 32, add a, relu, flatten            -> [n, 512]
    fc1 -> 64, relu, fc2 -> 10, softmax
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
EPOCHS = 60
BATCH = 64
RATE = 2e-3
DECAY = 1e-4
DROPOUT = 0.25
SHAPES = {
    "conv1.weight": (16, 1, 3, 3), "conv1.bias": (16,),
    "conv2.weight": (32, 16, 3, 3), "conv2.bias": (32,),
    "conv3.weight": (32, 32, 3, 3), "conv3.bias": (32,),
    "fc1.weight": (512, 64), "fc1.bias": (64,),
    "fc2.weight": (64, 10), "fc2.bias": (10,),
}


# ---- The network: each forward step returns what its backward step needs ----------------------------------------

def columns(x):
    """The 3x3 neighbourhoods of every pixel, zeros outside: [n, c, h, w] -> [n, h, w, c * 9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, h, w, c * 9)


def conv(x, weight, bias):
    cols = columns(x)
    out = cols @ weight.reshape(len(weight), -1).T + bias
    return out.transpose(0, 3, 1, 2), cols


def conv_back(grad, cols, weight):
    """The gradients of the input, the weight and the bias."""
    n, out_channels, h, w = grad.shape
    channels = weight.shape[1]
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, out_channels)
    d_weight = (rows.T @ cols.reshape(len(rows), -1)).reshape(weight.shape)
    d_cols = (rows @ weight.reshape(out_channels, -1)).reshape(n, h, w, channels, 3, 3)
    padded = np.zeros((n, channels, h + 2, w + 2), grad.dtype)
    for i in range(3):
        for j in range(3):
            padded[:, :, i:i + h, j:j + w] += d_cols[:, :, :, :, i, j].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1], d_weight, rows.sum(axis=0)


def pool(x):
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2)
    out = cells.max(axis=(3, 5))
    chosen = cells == out[:, :, :, None, :, None]
    return out, chosen / chosen.sum(axis=(3, 5), keepdims=True)


def pool_back(grad, share):
    n, c, h, w = grad.shape
    return (share * grad[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w).astype(grad.dtype)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(p, image, drop=None):
    """The probabilities, and everything that the way back needs. drop: a mask on the flattened features."""
    s = {}
    h1, s["cols1"] = conv(image, p["conv1.weight"], p["conv1.bias"])
    s["r1"] = np.maximum(h1, 0)
    h2, s["cols2"] = conv(s["r1"], p["conv2.weight"], p["conv2.bias"])
    s["r2"] = np.maximum(h2, 0)
    a, s["share"] = pool(s["r2"])
    h3, s["cols3"] = conv(a, p["conv3.weight"], p["conv3.bias"])
    s["r3"] = np.maximum(h3 + a, 0)
    flat = s["r3"].reshape(len(image), -1)
    s["flat"] = flat if drop is None else flat * drop
    s["r4"] = np.maximum(s["flat"] @ p["fc1.weight"] + p["fc1.bias"], 0)
    return softmax(s["r4"] @ p["fc2.weight"] + p["fc2.bias"]), s


def backward(p, s, d_logits, drop):
    g = {"fc2.weight": s["r4"].T @ d_logits, "fc2.bias": d_logits.sum(axis=0)}
    d = (d_logits @ p["fc2.weight"].T) * (s["r4"] > 0)
    g["fc1.weight"], g["fc1.bias"] = s["flat"].T @ d, d.sum(axis=0)
    d = ((d @ p["fc1.weight"].T) * drop).reshape(s["r3"].shape) * (s["r3"] > 0)
    d_conv, g["conv3.weight"], g["conv3.bias"] = conv_back(d, s["cols3"], p["conv3.weight"])
    d = pool_back(d + d_conv, s["share"]) * (s["r2"] > 0)
    d, g["conv2.weight"], g["conv2.bias"] = conv_back(d, s["cols2"], p["conv2.weight"])
    d = d * (s["r1"] > 0)
    _, g["conv1.weight"], g["conv1.bias"] = conv_back(d, s["cols1"], p["conv1.weight"])
    return g


# ---- Training ------------------------------------------------------------------------------------------------------

def initial(rng):
    p = {}
    for name, shape in SHAPES.items():
        fan_in = shape[0] if name.startswith("fc") else int(np.prod(shape[1:]))
        scale = np.sqrt(2 / fan_in) if name.endswith("weight") else 0
        p[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return p


def shifted(images, rng):
    """Each image moved by up to one pixel either way (half of them not at all), and a little brighter or darker."""
    out = images.copy()
    for k, (dy, dx) in enumerate(rng.integers(-1, 2, (len(images), 2)) * rng.integers(0, 2, (len(images), 1))):
        moved = np.zeros((8, 8), np.float32)
        moved[max(dy, 0):8 + min(dy, 0), max(dx, 0):8 + min(dx, 0)] = \
            images[k, 0, max(-dy, 0):8 + min(-dy, 0), max(-dx, 0):8 + min(-dx, 0)]
        out[k, 0] = moved
    return np.clip(out * rng.uniform(0.9, 1.1, (len(out), 1, 1, 1)).astype(np.float32), 0, 1)


class Adam:
    def __init__(self, p):
        self.mean = {k: np.zeros_like(v) for k, v in p.items()}
        self.square = {k: np.zeros_like(v) for k, v in p.items()}
        self.step = 0

    def update(self, p, g, rate):
        self.step += 1
        fix = np.sqrt(1 - 0.999 ** self.step) / (1 - 0.9 ** self.step)
        for k in p:
            self.mean[k] += 0.1 * (g[k] - self.mean[k])
            self.square[k] += 0.001 * (g[k] ** 2 - self.square[k])
            p[k] -= rate * (fix * self.mean[k] / (np.sqrt(self.square[k]) + 1e-8) + DECAY * p[k])


def accuracy(p, images, labels):
    return float((forward(p, images)[0].argmax(axis=1) == labels).mean())


def train(images, labels, rng):
    p = initial(rng)
    adam = Adam(p)
    for epoch in range(EPOCHS):
        rate = np.float32(RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS)))
        order = rng.permutation(len(images))
        for begin in range(0, len(order), BATCH):
            pick = order[begin:begin + BATCH]
            drop = ((rng.random((len(pick), 512)) >= DROPOUT) / (1 - DROPOUT)).astype(np.float32)
            probabilities, saved = forward(p, shifted(images[pick], rng), drop)
            probabilities[np.arange(len(pick)), labels[pick]] -= 1
            adam.update(p, backward(p, saved, probabilities / np.float32(len(pick)), drop), rate)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {accuracy(p, images, labels):.4f} on the training set", flush=True)
    return p


# ---- Files ---------------------------------------------------------------------------------------------------------

def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, offset + t.nbytes]}
        offset += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    data = b"".join(t.astype("<f4").tobytes() for t in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load_digits():
    images, labels = np.load(HERE / "images.npy"), np.load(HERE / "labels.npy")
    return (images / 16).astype(np.float32), labels.astype(np.int64)


def main():
    rng = np.random.default_rng(8)
    images, labels = load_digits()
    order = rng.permutation(len(images))
    held, rest = order[:len(order) // 5], order[len(order) // 5:]
    p = train(images[rest], labels[rest], rng)
    correct = accuracy(p, images[held], labels[held])
    print(f"{correct:.4f} on the {len(held)} held-out digits")
    if correct < 0.985:
        sys.exit("the accuracy is below 0.985; nothing is written")

    samples = [held[labels[held] == digit][0] for digit in range(10)]
    write_safetensors(HERE / "digits.safetensors", p)
    np.save(HERE / "samples.npy", images[samples])
    np.save(HERE / "samples_labels.npy", labels[samples])
    np.save(HERE / "expected.npy", forward(p, images[samples])[0])


if __name__ == "__main__":
    main()
