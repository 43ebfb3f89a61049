"""A Llama in PyTorch in the shapes of make_llama.py, with random weights and a cache of fixed size, for bench_cuda.py.

One call reads `rows` tokens from `position` on: it writes their keys and values into the cache and computes the logits
of the last one, which is what berth's graph of a GGUF file does. The position is part of the recorded graph, so
attention sees exactly the keys that there are, as it does in berth.
"""
import torch
from torch import nn
from torch.nn import functional

from make_llama import SHAPES


class Layer(nn.Module):
    def __init__(self, c, ctx):
        super().__init__()
        d, kv = c["dim"], c["dim"] // c["heads"] * c["kv"]
        self.heads, self.kv, self.size = c["heads"], c["kv"], c["dim"] // c["heads"]
        self.norm1, self.norm2 = nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5)
        self.qkv, self.out = nn.Linear(d, d + 2 * kv, bias=False), nn.Linear(d, d, bias=False)
        self.gate_up = nn.Linear(d, 2 * c["hidden"], bias=False)
        self.down = nn.Linear(c["hidden"], d, bias=False)
        self.register_buffer("keys", torch.zeros(1, self.kv, ctx, self.size))
        self.register_buffer("values", torch.zeros(1, self.kv, ctx, self.size))

    def rotate(self, x, cos, sin):
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    def forward(self, x, position, cos, sin):
        rows = x.shape[0]
        parts = self.qkv(self.norm1(x)).view(rows, self.heads + 2 * self.kv, self.size).transpose(0, 1).unsqueeze(0)
        q, k, v = parts.split((self.heads, self.kv, self.kv), 1)
        self.keys[:, :, position:position + rows] = self.rotate(k, cos, sin)
        self.values[:, :, position:position + rows] = v
        seen = position + rows
        y = functional.scaled_dot_product_attention(
            self.rotate(q, cos, sin), self.keys[:, :, :seen], self.values[:, :, :seen],
            is_causal=rows > 1 and position == 0, enable_gqa=self.heads != self.kv)
        x = x + self.out(y.squeeze(0).transpose(0, 1).reshape(rows, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, shape, rows, ctx, position):
        super().__init__()
        c = SHAPES[shape]
        size = c["dim"] // c["heads"]
        self.position = position
        self.tokens = nn.Embedding(c["vocab"], c["dim"])
        self.layers = nn.ModuleList(Layer(c, ctx) for _ in range(c["layers"]))
        self.norm, self.head = nn.RMSNorm(c["dim"], 1e-5), nn.Linear(c["dim"], c["vocab"], bias=False)
        steps = c["base"] ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(position, position + rows)[:, None] * steps
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, self.position, self.cos, self.sin)
        return self.head(self.norm(x[-1:]))


def make(shape, rows, ctx, position):
    if rows > 1 and position > 0:
        raise ValueError("a prompt is read from position 0 here")
    with torch.device("cuda"):
        model = Llama(shape, rows, ctx, position)
    return model, [torch.randint(0, SHAPES[shape]["vocab"], (rows,))]
