#!/usr/bin/python3
"""Writes tests/base/block_vectors.h: what blocks of every format stand for, by the library that defined the formats.

    /usr/bin/python3 tests/base/make_block_vectors.py LIBGGML_BASE

LIBGGML_BASE is libggml-base.so of llama.cpp; its dequantize_row_* are called. The tests need it no more. A block is
given in full, and a checksum (FNV-1a of the bits of the elements, any NaN as 7fc00000) of 400 blocks of random bytes,
which the test makes itself: the low bytes of test_random, from the given seed on. Random bytes have scales that are NaN
and infinite, and below the normal numbers.
"""
import ctypes
import os
import sys

import numpy as np

TYPES = {"q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q2_K": (256, 84),
         "q3_K": (256, 110), "q4_K": (256, 144), "q5_K": (256, 176), "q6_K": (256, 210), "iq2_xxs": (256, 66),
         "iq4_nl": (32, 18), "iq4_xs": (256, 136), "mxfp4": (32, 17), "iq2_xs": (256, 74), "iq2_s": (256, 82),
         "iq3_xxs": (256, 98), "iq3_s": (256, 110)}
BLOCKS = 400
MASK = 2**64 - 1


def random_bytes(seed, count):
    out = bytearray()
    state = seed
    for _ in range(count):
        state = (state + 0x9e3779b97f4a7c15) & MASK
        z = state
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
        z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
        out.append((z ^ z >> 31) & 255)
    return bytes(out)


def decode(library, name, blocks, elements):
    out = np.zeros(elements, dtype=np.float32)
    getattr(library, "dequantize_row_" + name)(blocks, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(elements))
    bits = out.view(np.uint32).copy()
    bits[np.isnan(out)] = 0x7fc00000
    return bits


def checksum(bits):
    h = 0xcbf29ce484222325
    for byte in bits.astype("<u4").tobytes():
        h = (h ^ byte) * 0x100000001b3 & MASK
    return h


def words(values, form, per_line):
    text = [form % v for v in values]
    lines = [", ".join(text[i:i + per_line]) for i in range(0, len(text), per_line)]
    return ",\n     ".join(lines)


def main():
    library = ctypes.CDLL(sys.argv[1])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "block_vectors.h")
    with open(path, "w", encoding="ascii") as f:
        f.write("/* Written by tests/base/make_block_vectors.py; do not edit. */\n"
                "#ifndef BERTH_TESTS_BASE_BLOCK_VECTORS_H\n#define BERTH_TESTS_BASE_BLOCK_VECTORS_H\n\n"
                '#include "berth/berth.h"\n\n'
                "#define BLOCK_VECTOR_BLOCKS %d\n\n/* clang-format off */\n"
                "static const struct {\n  berth_type type;\n  uint64_t seed, checksum;\n  uint8_t block[210];\n"
                "  uint32_t bits[256];\n} block_vectors[] = {\n" % BLOCKS)
        for seed, (name, (elements, size)) in enumerate(TYPES.items(), 1000):
            many = decode(library, name, random_bytes(seed, BLOCKS * size), BLOCKS * elements)
            for other in range(2000, 3000):  # one whose elements are numbers
                one = random_bytes(other, size)
                bits = decode(library, name, one, elements)
                if np.isfinite(bits.view(np.float32)).all():
                    break
            f.write("    {BERTH_%s, %d, UINT64_C(0x%016x),\n    {%s},\n    {%s}},\n" % (
                name.upper(), seed, checksum(many), words(one, "0x%02x", 18), words(bits, "0x%08x", 9)))
        f.write("};\n/* clang-format on */\n\n#endif\n")


main()
