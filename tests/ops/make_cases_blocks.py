#!/usr/bin/python3
"""Writes the cases of block types. Run by hand; see caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_blocks.py LIBGGML_BASE

The blocks are random bytes, with scales of every kind; what they stand for is computed here from the definition of the
formats, with numpy's f16: q8_0 is an f16 scale and 32 signed bytes; q4_0 is an f16 scale and 16 bytes, whose low halves
are elements 0 to 15 and whose high halves are elements 16 to 31, with 8 for 0. The other formats are decoded by the library that defined them, libggml-base.so of llama.cpp, whose path is
given; building and testing need it not."""
import ctypes
import os
import re
import sys

import numpy as np

from caselib import CaseFile, Tensor

rng = np.random.default_rng(12)
BYTES = {'q8_0': 34, 'q4_0': 18}
# elements and bytes of a block, and where its f16 scales are (mxfp4: the byte that is its exponent)
OTHERS = {'q4_1': (32, 20, (0, 2)), 'q5_0': (32, 22, (0,)), 'q5_1': (32, 24, (0, 2)), 'q2_k': (256, 84, (80, 82)),
          'q3_k': (256, 110, (108,)), 'q4_k': (256, 144, (0, 2)), 'q5_k': (256, 176, (0, 2)),
          'q6_k': (256, 210, (208,)), 'iq2_xxs': (256, 66, (0,)), 'iq4_nl': (32, 18, (0,)),
          'iq4_xs': (256, 136, (0,)), 'mxfp4': (32, 17, ())}
# These came later, and have random numbers of their own: the cases of the others stay as they are.
LATER = {'iq2_xs': (256, 74, (0,)), 'iq2_s': (256, 82, (0,)), 'iq3_xxs': (256, 98, (0,)), 'iq3_s': (256, 110, (0,))}
OTHERS.update(LATER)
later_rng = np.random.default_rng(13)


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


class Others:
    """The same for the other formats."""

    def __init__(self, kind, shape, scales):
        elements, size, places = OTHERS[kind]
        count = int(np.prod(shape))
        n = count // elements
        blocks = (later_rng if kind in LATER else rng).integers(0, 256, (n, size), dtype=np.uint8)
        for i in range(n):
            for j, place in enumerate(places):
                scale = np.float16(scales[(i + j) % len(scales)])
                blocks[i, place:place + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
            if not places:
                blocks[i, 0] = 127 + i
        out = np.zeros(count, dtype=np.float32)
        library = ctypes.CDLL(sys.argv[1])
        getattr(library, 'dequantize_row_' + kind.replace('_k', '_K'))(
            blocks.tobytes(), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(count))
        self.kind, self.shape, self.values = kind, shape, blocks
        self.decoded = Tensor('f32', out.reshape(shape))


def numbers(rows, depth, of=rng):
    """Eighths that the CPU's kernels, which make bytes of x, hold exactly: of each 32 the largest is 127."""
    x = of.integers(-99, 100, (rows, depth))
    x[:, ::32] = 127
    return (x / 8).astype('f4')


def product_cases():
    """In f64; the tolerance is what sums of f32 may be off by."""
    f = CaseFile('product_blocks', 'make_cases_blocks.py')
    for kind in list(BYTES) + list(OTHERS):
        elements = 32 if kind in BYTES else OTHERS[kind][0]
        for rows, columns in [(1, 2), (5, 2)]:
            depth = 2 * elements if rows == 1 or elements == 32 else elements
            scales = [0.0011, 0.00073, -0.0009, 0.0005] if elements == 256 else [0.03, -0.02, 0.07]
            w = (Blocks if kind in BYTES else Others)(kind, (columns, depth), scales)
            x = numbers(rows, depth, later_rng if kind in LATER else rng)
            plain = w.decoded.f64()
            bound = float((np.abs(x).astype('f8') @ np.abs(plain).T).max()) * 1e-6
            f.add('product_%s_%d' % (kind, rows), 'product', [Tensor('f32', x), w],
                  [Tensor('f32', x.astype('f8') @ plain.T)], {'columns': columns}, tol=(bound, 1e-6))
    x = Tensor('f32', numbers(2, 64))
    w = Blocks('q8_0', (3, 64), [1.0])
    f.error('product_blocks_columns', 'product', [x, w], 'rows of operand 1', {'columns': 4})
    f.error('product_blocks_panel', 'product', [x, w], 'neither packed into panels', {'columns': 3, 'panel': 8})
    f.error('product_blocks_depth', 'product', [Tensor('f32', numbers(2, 32)), w], 'columns of operands 0 and 1',
            {'columns': 3})
    f.write()


def rms(x, scale, epsilon):
    x = x.astype('f8')
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * scale.astype('f8')


def silu_of_second(s, t):
    return s * t / (1 + np.exp(-t))


def chain_codes(*names):
    """The numbers of steps, as src/ops/chain.def counts them."""
    with open(os.path.join(os.path.dirname(__file__), '../../src/ops/chain.def')) as text:
        all_names = re.findall(r'^BERTH__CHAIN\((\w+),', text.read(), re.M)
    return [all_names.index(name) for name in names]


def row_product_cases(silu, mul):
    """Norms before a product, gates beside it, in f64. silu, mul: the numbers of these steps of a chain."""
    f = CaseFile('row_product', 'make_cases_blocks.py')
    gate = [silu, 1, 0, 0, mul, 0, 2, 0]
    for kind, rows, columns, deep in [('q8_0', 1, 9, 4), ('q4_0', 3, 8, 2), ('q4_k', 1, 5, 2), ('q6_k', 2, 4, 1)]:
        depth = deep * (32 if kind in BYTES else OTHERS[kind][0])
        make = Blocks if kind in BYTES else Others
        scales = [0.0011, 0.00073, -0.0009, 0.0005] if kind in OTHERS else [0.03, -0.02, 0.07]
        w, v = make(kind, (columns, depth), scales), make(kind, (columns, depth), scales)
        x, scale, bias = numbers(rows, depth), numbers(1, depth)[0] / 8, numbers(1, columns)[0]
        # where a device makes bytes of x * scale, they hold it exactly, too: powers of two, each for 32 elements
        scale = np.repeat(np.exp2(np.sign(scale[1::32]) * np.ceil(np.abs(scale[1::32]))), 32).astype('f4')
        normed = rms(x, scale, 1e-3)
        plain = normed @ w.decoded.f64().T
        bound = float((np.abs(normed) @ np.abs(w.decoded.f64()).T).max()) * 2e-6
        ins = [Tensor('f32', x), w, None, Tensor('f32', scale)]
        f.add('row_product_%s' % kind, 'row_product', ins, [Tensor('f32', plain)],
              {'columns': columns, 'epsilon': 1e-3}, tol=(bound, 1e-5))
        other = normed @ v.decoded.f64().T
        want = silu_of_second(plain + bias.astype('f8'), other)
        f.add('row_product_gate_%s' % kind, 'row_product', ins[:2] + [Tensor('f32', bias)] + ins[3:] + [v],
              [Tensor('f32', want)], {'columns': columns, 'epsilon': 1e-3, 'code': gate},
              tol=(bound * (1 + float(np.abs(want).max())), 1e-5))
        f.add('row_product_pair_%s' % kind, 'row_product', [Tensor('f32', x), w, None, None, v],
              [Tensor('f32', (x.astype('f8') @ w.decoded.f64().T) * (x.astype('f8') @ v.decoded.f64().T))],
              {'columns': columns, 'code': [mul, 0, 1, 0]}, tol=(1e-2, 1e-4))
    for rows, depth, columns in [(1, 96, 40), (4, 600, 12), (2, 5, 8), (6, 80, 9)]:
        x, scale, w = numbers(rows, depth), numbers(1, depth)[0] / 8, numbers(depth, columns) / 16
        bias = numbers(1, columns)[0]
        normed = rms(x, scale, 0.5)
        f.add('row_product_f32_%d' % depth, 'row_product',
              [Tensor('f32', x.reshape(1, rows, depth)), Tensor('f32', w), Tensor('f32', bias), Tensor('f32', scale)],
              [Tensor('f32', (normed @ w.astype('f8') + bias.astype('f8')).reshape(1, rows, columns))],
              {'columns': columns, 'epsilon': 0.5}, tol=(float((np.abs(normed) @ np.abs(w)).max()) * 1e-6, 1e-5))
    x, w = Tensor('f32', numbers(2, 64)), Blocks('q8_0', (3, 64), [1.0])
    f.error('row_product_columns', 'row_product', [x, w], '`columns` and columns of a weight', {'columns': 4})
    f.error('row_product_depth', 'row_product', [Tensor('f32', numbers(2, 32)), w], 'columns of x and rows of a weight',
            {'columns': 3})
    f.error('row_product_scale', 'row_product', [x, w, None, Tensor('f32', numbers(1, 32)[0])],
            'columns of x and scale', {'columns': 3})
    f.error('row_product_bias', 'row_product', [x, w, Tensor('f32', numbers(1, 32)[0])], '`columns` and bias',
            {'columns': 3})
    f.error('row_product_other_type', 'row_product', [x, w, None, None, Blocks('q4_0', (3, 64), [1.0])], 'operand 4',
            {'columns': 3, 'code': [mul, 0, 1, 0]})
    for rows, depth, columns in [(1, 48, 10), (3, 40, 9)]:
        a, g, u = numbers(rows, depth) / 4, numbers(depth, columns) / 16, numbers(depth, columns) / 16
        scale = numbers(1, depth)[0] / 8
        normed = rms(a, scale, 0.5)
        want = silu_of_second(normed @ g.astype('f8'), normed @ u.astype('f8'))
        f.add('row_product_gate_f32_%d' % depth, 'row_product',
              [Tensor('f32', a), Tensor('f32', g), None, Tensor('f32', scale), Tensor('f32', u)], [Tensor('f32', want)],
              {'columns': columns, 'epsilon': 0.5, 'code': gate}, tol=(1e-5 * (1 + float(np.abs(want).max())), 1e-5))
    f.error('row_product_unused', 'row_product', [x, w, None, None, w], '`code` makes nothing of it', {'columns': 3})
    f.write()


def rows_cases():
    f = CaseFile('unpack_rows', 'make_cases_blocks.py')
    for kind in ['q8_0', 'q4_k', 'iq2_xxs', 'iq2_s', 'iq3_s', 'mxfp4']:
        elements = 32 if kind in BYTES else OTHERS[kind][0]
        x = (Blocks if kind in BYTES else Others)(kind, (3, elements), [0.125, 0.0371, -0.5])
        ids = np.array([[2, 0], [-1, 1]], 'i4')
        f.add('unpack_rows_%s' % kind, 'unpack_rows', [x, Tensor('i32', ids)],
              [Tensor('f32', x.decoded.values[ids])])
    f.add('unpack_rows_i64', 'unpack_rows', [x, Tensor('i64', [1])], [Tensor('f32', x.decoded.values[[1]])])
    f.error('unpack_rows_of_f32', 'unpack_rows', [Tensor('f32', np.zeros((2, 32))), Tensor('i32', [0])], 'x is f32')
    f.write()


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
    for kind, (elements, _, _) in OTHERS.items():
        x = Others(kind, (2, elements), [0.125, 0.0371, -0.5, 0.0003])
        f.add('unpack_%s' % kind, 'unpack', [x], [x.decoded])
    f.error('unpack_of_f32', 'unpack', [Tensor('f32', np.zeros(32))], 'x is f32')
    f.write()
    product_cases()
    rows_cases()
    row_product_cases(*chain_codes('silu', 'mul'))


main()
