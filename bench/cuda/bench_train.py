"""A step of training of GPT-2 124M on the device cuda beside PyTorch: ms a step (median) and bytes.

    bench_train.py [--bench PROGRAM] [--batch N] [--length N] [--vocabulary N] [--steps N] [--budget MEGABYTES (of berth)]

PROGRAM is bench_gpt2 (the preset bench builds it). Both train in bf16 with AdamW from random weights on one batch shape;
PyTorch with autocast, as it is and compiled, where that works without a network. 50304 tokens, not 50257: rows begin at
16 bytes then, which both are faster with.
"""
import argparse
import re
import subprocess
import sys


def run_berth(args):
    command = [args.bench, "--device", "cuda", "--compute", "bf16"]
    for name in ("batch", "length", "vocabulary", "steps", "budget"):
        command += ["--" + name, str(getattr(args, name))]
    done = subprocess.run(command, capture_output=True, text=True)
    ms = re.search(r"berth: ([0-9.]+) ms a step", done.stdout)
    block = re.search(r"one block of ([0-9]+) MB", done.stdout)
    if done.returncode != 0 or ms is None or block is None:
        return "– (%s)" % (done.stderr.strip().splitlines() or ["?"])[-1]
    return "%s ms, %s MB" % (ms.group(1), block.group(1))


def make_model(torch, vocabulary, positions, channels=768, layers=12, heads=12):
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
            self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
            self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(channels, 2)
            q, k, v = (a.view(batch, length, heads, channels // heads).transpose(1, 2) for a in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(batch, length, channels))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, channels), nn.Embedding(positions, channels)
            self.layers, self.norm = nn.ModuleList(Layer() for _ in range(layers)), nn.LayerNorm(channels)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def forward(self, ids, labels):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            for layer in self.layers:
                x = layer(x)
            logits = functional.linear(self.norm(x), self.tokens.weight)
            return functional.cross_entropy(logits.view(-1, vocabulary), labels.view(-1))

    return Model()


def run_torch(args, is_compiled):
    try:
        import torch
    except ImportError:
        return "–"
    if not torch.cuda.is_available():
        return "–"
    torch.manual_seed(1)
    model = make_model(torch, args.vocabulary, max(args.length, 1024)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    forward = torch.compile(model) if is_compiled else model
    ids, labels = (torch.randint(0, args.vocabulary, (args.batch, args.length), device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = forward(ids, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(args.steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return "%.1f ms, %.0f MB" % (sorted(times)[len(times) // 2], torch.cuda.max_memory_allocated() / 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/measure/bench/train/bench_gpt2")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--budget", type=float, default=0)
    args = parser.parse_args()
    print("| berth | PyTorch | PyTorch, compiled |\n|---|---|---|")
    cells = [run_berth(args), run_torch(args, False)]
    try:
        cells.append(run_torch(args, True))
    except Exception as error:  # a compiler that is not there, or wants a network
        cells.append("– (%s)" % type(error).__name__)
    print("| %s |" % " | ".join(cells))


if __name__ == "__main__":
    sys.exit(main())
