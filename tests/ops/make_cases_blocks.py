#!/usr/bin/python3
"""Writes the cases of block types. Run by hand; see caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_blocks.py

The blocks are random bytes, with scales of every kind; what they stand for is computed here from the definition of the
formats, with numpy's f16: q8_0 is an f16 scale and 32 signed bytes; q4_0 is an f16 scale and 16 bytes, whose low halves
are elements 0 to 15 and whose high halves are elements 16 to 31, with 8 for 0."""
import numpy as np

from caselib import CaseFile, Tensor

rng = np.random.default_rng(12)
BYTES = {'q8_0': 34, 'q4_0': 18}


def decode(kind, block):
    scale = np.float32(np.frombuffer(bytes(block[:2]), dtype='<f2')[0])
    rest = np.frombuffer(bytes(block[2:]), dtype=np.uint8)
    if kind == 'q8_0':
        q = rest.view(np.int8).astype(np.float32)
    else:
        q = np.concatenate([rest & 15, rest >> 4]).astype(np.float32) - np.float32(8)
    return q * scale


class Blocks:
    """What tensor_text needs: the bytes of all blocks under the shape of the elements."""

    def __init__(self, kind, shape, scales):
        n = int(np.prod(shape)) // 32
        blocks = rng.integers(0, 256, (n, BYTES[kind]), dtype=np.uint8)
        for i in range(n):
            blocks[i, :2] = np.frombuffer(np.float16(scales[i % len(scales)]).tobytes(), dtype=np.uint8)
        self.kind, self.shape, self.values = kind, shape, blocks
        self.decoded = Tensor('f32', np.concatenate([decode(kind, b) for b in blocks] or [[]]).reshape(shape))


def main():
    f = CaseFile('unpack', 'make_cases_blocks.py')
    for kind in BYTES:
        for name, shape, scales in [
                ('one', (32,), [0.125]),
                ('rows', (3, 64), [1.0, -0.5, 0.0003, 12.5]),
                ('deep', (2, 2, 32), [3.0e-5, 6.0e-8, -2.0, 0.0]),  # below the normal numbers of f16, too
                ('empty', (0, 32), [1.0])]:
            x = Blocks(kind, shape, scales)
            f.add('unpack_%s_%s' % (kind, name), 'unpack', [x], [x.decoded])
    f.error('unpack_of_f32', 'unpack', [Tensor('f32', np.zeros(32))], 'x is f32')
    f.write()


main()
