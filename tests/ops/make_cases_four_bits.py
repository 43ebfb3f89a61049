#!/usr/bin/python3
"""Writes the cases of weights of four bits with scales of f32 (q4_0f, q4_1f). Run by hand; see caselib.py for what it
needs.

Fields are bytes of two neighbours, the first in the low half, as in ONNX's MatMulNBits. What they stand for, (field -
zero) * scale, is computed here in f64, and so are the bytes of the blocks, from their definition: an f32 scale, for
q4_1f an f32 offset, then 16 bytes with elements 0 to 15 in their low halves and 16 to 31 in their high halves."""
import numpy as np

from caselib import CaseFile, Tensor

rng = np.random.default_rng(41)


class Blocks:
    """What tensor_text needs: the bytes of all blocks under the shape of the elements."""

    def __init__(self, shape, fours, scale, offset):
        """fours [N, K]: 0 to 15; scale and offset [N, K / 32]; without an offset 8 stands for 0."""
        n = int(np.prod(shape)) // 32
        fours = fours.reshape(n, 32).astype(np.uint8)
        halves = fours[:, :16] | fours[:, 16:] << 4
        heads = [scale.astype('<f4').reshape(n, 1).view(np.uint8)]
        if offset is not None:
            heads.append(offset.astype('<f4').reshape(n, 1).view(np.uint8))
        self.kind, self.shape = 'q4_0f' if offset is None else 'q4_1f', shape
        self.values = np.concatenate(heads + [halves], axis=1)
        numbers = fours.astype('f4') - np.float32(8 if offset is None else 0)
        numbers = numbers * scale.astype('f4').reshape(n, 1)  # rounded, and the sum again
        if offset is not None:
            numbers = numbers + offset.astype('f4').reshape(n, 1)
        self.plain = numbers.reshape(shape)


def packing(f, name, rows, groups, bytes_of, columns, zero, kind='f32'):
    fields = rng.integers(0, 256, (rows, groups, bytes_of), dtype=np.uint8)
    scale = (rng.random((rows, groups)) / 16 + 0.001).astype('f2' if kind == 'f16' else 'f4').astype('f4')
    fours = np.stack([fields & 15, fields >> 4], axis=-1).reshape(rows, groups * bytes_of * 2)[:, :columns]
    each = np.repeat(scale, bytes_of // 16, axis=1)[:, :columns // 32]
    ins, offset = [Tensor('u8', fields), Tensor(kind, scale)], None
    if zero is not None:
        of = rng.integers(0, 16, (rows, groups)) if zero == 'u8' else (rng.random((rows, groups)) * 15).astype('f4')
        whole = np.concatenate([of, np.zeros((rows, groups % 2), of.dtype)], axis=1)  # the last byte may have one
        ins.append(Tensor(zero, whole[:, ::2] | whole[:, 1::2] << 4 if zero == 'u8' else of))
        offset = -(np.repeat(of.astype('f4'), bytes_of // 16, axis=1)[:, :columns // 32] * each)
    f.add('pack_blocks_' + name, 'pack_blocks', ins, [Blocks((rows, columns), fours, each, offset)],
          {'columns': columns})


def weight(columns, depth, has_offset):
    fours = rng.integers(0, 16, (columns, depth))
    scale = (rng.random((columns, depth // 32)) / 16 + 0.01).astype('f4')
    offset = (rng.random((columns, depth // 32)) - 0.5).astype('f4') if has_offset else None
    return Blocks((columns, depth), fours, scale, offset)


def product(f, name, rows, columns, depth, has_offset, is_exact, op='product'):
    w = weight(columns, depth, has_offset)
    if is_exact:  # numbers that bytes with a scale for 32 do not hold
        x = (rng.standard_normal((rows, depth)) * 3).astype('f4')
    else:
        x = rng.integers(-99, 100, (rows, depth)).astype('f4') / 8
        x[:, ::32] = 127 / 8
    want = x.astype('f8') @ w.plain.astype('f8').T
    bound = float((np.abs(x).astype('f8') @ np.abs(w.plain).T).max()) * 1e-6
    f.add(op + '_' + name, op, [Tensor('f32', x), w], [Tensor('f32', want)],
          {'columns': columns, 'exact': 1} if is_exact else {'columns': columns}, tol=(bound, 1e-6))


def main():
    f = CaseFile('pack_blocks', 'make_cases_four_bits.py')
    packing(f, 'plain', 3, 2, 16, 64, None)
    packing(f, 'zero', 2, 3, 16, 96, 'u8')
    packing(f, 'zero_f32', 2, 2, 16, 64, 'f32')
    packing(f, 'large_groups', 2, 2, 64, 256, None)
    packing(f, 'part_of_a_group', 2, 2, 64, 160, 'u8')
    packing(f, 'f16', 2, 3, 16, 96, 'u8', 'f16')
    packing(f, 'no_rows', 0, 2, 16, 64, None)
    for kind in (False, True):
        w = weight(2, 64, kind)
        f.add('unpack_' + w.kind, 'unpack', [w], [Tensor('f32', w.plain)])
        for rows, columns in [(1, 3), (2, 37), (3, 5), (5, 33)]:
            product(f, '%s_%d' % (w.kind, rows), rows, columns, 96, kind, False)
            product(f, '%s_%d_exact' % (w.kind, rows), rows, columns, 96, kind, True)
            if rows < 3:
                product(f, '%s_%d_exact' % (w.kind, rows), rows, columns, 96, kind, True, 'row_product')
    fields, scale = Tensor('u8', np.zeros((2, 2, 16))), Tensor('f32', np.zeros((2, 2)))
    f.error('pack_blocks_columns', 'pack_blocks', [fields, scale], 'expected a multiple of 32', {'columns': 60})
    f.error('pack_blocks_more', 'pack_blocks', [fields, scale], 'more than the elements of a row', {'columns': 96})
    f.error('pack_blocks_groups', 'pack_blocks', [Tensor('u8', np.zeros((2, 2, 8))), scale],
            'expected a multiple of 16', {'columns': 32})
    f.error('pack_blocks_scales', 'pack_blocks', [fields, Tensor('f32', np.zeros((2, 3)))],
            'groups of fields and their scales', {'columns': 64})
    f.error('pack_blocks_type', 'pack_blocks', [fields, scale, Tensor('i8', np.zeros((2, 2)))], 'operand 2',
            {'columns': 64})
    f.write()


main()
