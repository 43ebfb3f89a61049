"""Models on the device cuda beside vulkan, and beside PyTorch with a CUDA graph where it is installed.

    bench_cuda.py [--berth PROGRAM] [--runs N] NAME=FILE.onnx[,DIM=N...] ...

NAME is resnet50, minilm, or llama-SHAPE with a file of make_llama.py in that shape (its dims are rows and ctx, and
position=N is where the rows begin), to have PyTorch's own beside it (the same shapes, random weights, f32 without TF32,
and as bf16), or anything else. One line a model, medians in ms: berth is timed by the host, from submitting a run to its
end, as the file is and with --compute bf16; PyTorch by the host and by events of the device.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time


def berth_ms(program, device, file, dims, runs, compute="f32"):
    command = [program, "bench", file, "--device", device, "--runs", str(runs), "--json", "--compute", compute]
    with tempfile.TemporaryDirectory() as folder:
        for dim, value in dims.items():
            if dim == "position":
                path = os.path.join(folder, "position.npy")
                with open(path, "wb") as out:
                    out.write(npy_scalar(value))
                command += ["--input", "position=" + path]
            else:
                command += ["--dim", "%s=%d" % (dim, value)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["?"])[-1]
    result = json.loads(done.stdout)
    return result["median_ms"], ""


def npy_scalar(value):
    """A file .npy of one i32."""
    head = "{'descr': '<i4', 'fortran_order': False, 'shape': (), }"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<i", value)


def torch_model(name, dims, torch):
    if name.startswith("llama-"):
        import torch_llama

        return torch_llama.make(name[len("llama-"):], dims.get("rows", 1), dims.get("ctx", 512), dims.get("position", 0))
    if name.startswith("resnet50"):
        import torchvision

        return torchvision.models.resnet50(), [torch.rand(1, 3, 224, 224)]
    if name.startswith("minilm"):
        from transformers import BertConfig, BertModel

        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        ids = torch.randint(0, 1000, (1, 128))
        return BertModel(config, add_pooling_layer=False), [ids, torch.ones_like(ids)]
    return None, None


def torch_ms(name, dims, runs, is_bf16):
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model, inputs = torch_model(name, dims, torch)
    if model is None:
        return None
    model = model.eval().cuda()
    inputs = [x.cuda() for x in inputs]
    if is_bf16:
        model = model.bfloat16()
        inputs = [x.bfloat16() if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                model(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(*inputs)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    host, device = [], []
    for i in range(runs + 10):
        start = time.perf_counter()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 10:
            host.append(1e3 * (time.perf_counter() - start))
            device.append(begin.elapsed_time(end))
    return statistics.median(host), statistics.median(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/berth")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    args = parser.parse_args()
    print("| model | berth cuda, ms | with --compute bf16 | berth vulkan, ms | PyTorch CUDA graph, ms (host, events) | "
          "in bf16 |\n|---|---|---|---|---|---|")
    for model in args.models:
        name, _, rest = model.partition("=")
        file, *pairs = rest.split(",")
        dims = {pair.split("=")[0]: int(pair.split("=")[1]) for pair in pairs}
        cells = []
        for device, compute in (("cuda", "f32"), ("cuda", "bf16"), ("vulkan", "f32")):
            ms, why = berth_ms(args.berth, device, file, dims, args.runs, compute)
            cells.append("%.3f" % ms if ms is not None else "– (%s)" % why)
        for is_bf16 in (False, True):
            torch = torch_ms(name, dims, args.runs, is_bf16)
            cells.append("%.3f, %.3f" % torch if torch is not None else "–")
        print("| %s | %s |" % (name, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
