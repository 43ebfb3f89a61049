"""Square products on the device cuda, in each way that --compute has, beside PyTorch where it is installed.

    bench_gemm.py [--berth PROGRAM] [--device D] [--sizes 1024,2048,...] [--runs N] [--errors]

One line a size, TFLOP/s by the median of the runs (berth: by the host, from submitting a run to its end; PyTorch: by
events of the device). --errors: what each way of computing is off by instead, against f64, over the root of the mean
square of the result: a product of 256 x K by K x 256 of normal numbers.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

WAYS = [("f32", "f32"), ("f32", "tf32x3"), ("f32", "tf32"), ("f32", "bf16"), ("f32", "f16"), ("bf16", "f32"), ("f16", "f32")]


def write_graph(folder, name, text):
    path = os.path.join(folder, name + ".berth")
    with open(path, "w") as file:
        file.write(text)
    return path


def product(kind, m, k, n):
    return ('graph "g" { input %%a : %s[%d, %d] input %%b : %s[%d, %d] %%o = matmul(%%a, %%b) output "o" = %%o }'
            % (kind, m, k, kind, k, n))


def berth_ms(args, path, compute):
    command = [args.berth, "bench", path, "--device", args.device, "--runs", str(args.runs), "--json", "--compute", compute]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        return None
    return json.loads(done.stdout)["median_ms"]


def torch_ms(kind, compute, n, runs):
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available() or compute not in ("f32", "tf32"):
        return None
    torch.backends.cuda.matmul.allow_tf32 = compute == "tf32"
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[kind]
    a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
    times = []
    for i in range(runs + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.matmul(a, b)
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def speeds(args, folder):
    print("| n | " + " | ".join("%s%s" % (kind, "" if way == "f32" else " as " + way) for kind, way in WAYS) + " |")
    print("|---|" + "---|" * len(WAYS))
    for n in (int(size) for size in args.sizes.split(",")):
        cells = []
        for kind, way in WAYS:
            ms = berth_ms(args, write_graph(folder, "%s_%d" % (kind, n), product(kind, n, n, n)), way)
            torch = torch_ms(kind, way, n, args.runs)
            rate = ["%.1f" % (2 * n ** 3 / time * 1e-9) for time in (ms, torch) if time is not None]
            cells.append(" (".join(rate) + ")" * (len(rate) - 1))
        print("| %d | %s |" % (n, " | ".join(cells)), flush=True)


def errors(args, folder):
    import numpy

    print("| K | " + " | ".join(way for _, way in WAYS[:5]) + " |\n|---|" + "---|" * 5)
    for depth in (64, 512, 4096):
        random = numpy.random.default_rng(depth)
        a, b = (random.standard_normal(shape, dtype=numpy.float32) for shape in ((256, depth), (depth, 256)))
        exact = a.astype(float) @ b.astype(float)
        for name, x in (("a", a), ("b", b)):
            numpy.save(os.path.join(folder, name + ".npy"), x)
        path = write_graph(folder, "error", product("f32", 256, depth, 256))
        cells = []
        for _, way in WAYS[:5]:
            command = [args.berth, "run", path, "--device", args.device, "--compute", way, "--output-dir", folder]
            command += ["--input", "a=%s/a.npy" % folder, "--input", "b=%s/b.npy" % folder]
            subprocess.run(command, check=True, capture_output=True)
            off = numpy.abs(numpy.load(os.path.join(folder, "o.npy")) - exact) / numpy.sqrt(numpy.mean(exact ** 2))
            cells.append("%.1e, %.1e" % (numpy.sqrt(numpy.mean(off ** 2)), off.max()))
        print("| %d | %s |" % (depth, " | ".join(cells)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/berth")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--errors", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        errors(args, folder) if args.errors else speeds(args, folder)


if __name__ == "__main__":
    sys.exit(main())
