"""Writes a GGUF file in the shape of a Llama with random weights, for measuring speed and memory.

    make_llama.py SHAPE TYPE FILE

SHAPE: 110M (llama2.c's), 1.2B (Llama 3.2's 1B) or tiny (TinyLlama's); TYPE: f32, f16, bf16, q8_0, q4_0 or q4_k_m (as
llama.cpp mixes it: most matrices q4_k; the table, and the values and down matrices of half the layers, q6_k). Blocks
are random bits with small scales, so numbers stay within range; what comes out makes no sense. Needs numpy alone.
"""
import struct
import sys

import numpy as np

SHAPES = {
    "110M": dict(dim=768, hidden=2048, layers=12, heads=12, kv=12, vocab=32000, seq=1024, base=10000.0),
    "tiny": dict(dim=2048, hidden=5632, layers=22, heads=32, kv=4, vocab=32000, seq=2048, base=10000.0),
    "1.2B": dict(dim=2048, hidden=8192, layers=16, heads=32, kv=8, vocab=128256, seq=2048, base=500000.0),
}
# GGUF's number, elements and bytes of a block, where its f16 scales are
TYPES = {"f32": (0, 1, 4, ()), "f16": (1, 1, 2, ()), "bf16": (30, 1, 2, ()), "q8_0": (8, 32, 34, (0,)),
         "q4_0": (2, 32, 18, (0,)), "q4_k": (12, 256, 144, (0, 2)), "q6_k": (14, 256, 210, (208,))}


def numbers(rng, shape, kind):
    """Bytes of a matrix. One stretch of random numbers is repeated: files are large, and speed does not see it."""
    _, elements, size, scales = TYPES[kind]
    count = int(np.prod(shape)) // elements
    some = min(count, 1 << 18)
    if elements == 1:
        values = (rng.standard_normal(some, dtype=np.float32) * np.float32(0.02)).astype("<f4")
        if kind == "f16":
            values = values.astype("<f2")
        block = (values.view("<u4") >> 16).astype("<u2").tobytes() if kind == "bf16" else values.tobytes()
    else:
        bits = rng.integers(0, 256, (some, size), dtype=np.uint8)
        for at in scales:
            scale = (rng.random(some, dtype=np.float32) * np.float32(2e-4) + np.float32(1e-4)).astype("<f2")
            bits[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
        block = bits.tobytes()
    whole = block * (count // some) + block[:count % some * size]
    return whole + b"\0" * (-len(whole) % 32)


def tensors(c, kind):
    """(name, shape, type) of every tensor."""
    d, h, kv = c["dim"], c["hidden"], c["dim"] // c["heads"] * c["kv"]
    most, more = ("q4_k", "q6_k") if kind == "q4_k_m" else (kind, kind)
    yield "token_embd.weight", (c["vocab"], d), most
    for i in range(c["layers"]):
        often = more if i % 2 == 0 else most
        for name, shape, of in (("attn_norm", (d,), "f32"), ("attn_q", (d, d), most), ("attn_k", (kv, d), most),
                                ("attn_v", (kv, d), often), ("attn_output", (d, d), most), ("ffn_norm", (d,), "f32"),
                                ("ffn_gate", (h, d), most), ("ffn_up", (h, d), most), ("ffn_down", (d, h), often)):
            yield f"blk.{i}.{name}.weight", shape, of
    yield "output_norm.weight", (d,), "f32"
    yield "output.weight", (c["vocab"], d), more


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def head(c, kind):
    def u32(key, value):
        return text(key) + struct.pack("<II", 4, value)

    def f32(key, value):
        return text(key) + struct.pack("<If", 6, value)

    def array(key, of, items):
        return text(key) + struct.pack("<IIQ", 9, of, len(items)) + b"".join(items)

    def string(key, value):
        return text(key) + struct.pack("<I", 8) + text(value)

    tokens = [("<unk>", 2), ("<s>", 3), ("</s>", 3)] + [(f"<0x{i:02X}>", 6) for i in range(256)]
    tokens += [(f"t{i}", 1) for i in range(c["vocab"] - len(tokens))]
    meta = [string("general.architecture", "llama"), string("general.name", kind), u32("llama.context_length", c["seq"]),
            u32("llama.embedding_length", c["dim"]), u32("llama.feed_forward_length", c["hidden"]),
            u32("llama.attention.head_count", c["heads"]), u32("llama.attention.head_count_kv", c["kv"]),
            u32("llama.block_count", c["layers"]), u32("llama.rope.dimension_count", c["dim"] // c["heads"]),
            f32("llama.attention.layer_norm_rms_epsilon", 1e-5), f32("llama.rope.freq_base", c["base"]),
            string("tokenizer.ggml.model", "llama"), array("tokenizer.ggml.tokens", 8, [text(t) for t, _ in tokens]),
            array("tokenizer.ggml.scores", 6, [struct.pack("<f", -float(i)) for i in range(len(tokens))]),
            array("tokenizer.ggml.token_type", 5, [struct.pack("<i", of) for _, of in tokens]),
            u32("tokenizer.ggml.bos_token_id", 1), u32("tokenizer.ggml.eos_token_id", 2),
            u32("tokenizer.ggml.unknown_token_id", 0)]
    every, index, at = list(tensors(c, kind)), b"", 0
    for name, shape, of in every:
        number, elements, size, _ = TYPES[of]
        index += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in shape[::-1])
        index += struct.pack("<IQ", number, at)
        bytes_of = int(np.prod(shape)) // elements * size
        at += bytes_of + -bytes_of % 32
    whole = b"GGUF" + struct.pack("<IQQ", 3, len(every), len(meta)) + b"".join(meta) + index
    return whole + b"\0" * (-len(whole) % 32)


def main():
    shape, kind, path = sys.argv[1:]
    c, rng = SHAPES[shape], np.random.default_rng(1)
    with open(path, "wb") as f:
        f.write(head(c, kind))
        for name, dims, of in tensors(c, kind):
            f.write(np.ones(dims, "<f4").tobytes() if "norm" in name else numbers(rng, dims, of))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main()
