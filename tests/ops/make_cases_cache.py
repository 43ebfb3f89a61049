#!/usr/bin/python3
"""Writes the cases of what a cache of keys and values needs: write_rows, and attention with a length. Run by hand; see
caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_cache.py

Expected values come from numpy. Keys and values past the length are NaN: whoever looks at one shows it."""
import numpy as np

from casearrays import Cases, bf16, tensor
from make_cases_products import attention, packed, rope

TYPES = ['float32', 'float64', 'float16', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'int64', 'uint32', 'uint64',
         'bool']
rng = np.random.default_rng(7)
own = np.random.default_rng(8)  # of q8_0


def open_file(family):
    return Cases(family, 'make_cases_cache.py')


def counted(*shape, first=0):
    return (np.arange(np.prod(shape, dtype=int)) + first).reshape(shape).astype(np.float32)


def write_rows(x, rows, position, axis=-2, ring=0):
    """One row at a time, as the sentence in docs/ops.md says it."""
    out = x.copy()
    axis %= x.ndim
    extents = list(rows.shape)
    for place in np.ndindex(*extents):
        to = list(place)
        start = int(position[place[0]] if np.ndim(position) and len(position) > 1 else np.ravel(position)[0])
        to[axis] += start
        if ring:
            to[axis] %= x.shape[axis]
        out[tuple(to)] = rows[place]
    return out


class Bytes:
    """An array as q8_0: of 32 elements the largest is 127 steps, and the step is kept as f16. Rounded half away from 0,
    by the step before it was rounded."""

    def __init__(self, x):
        blocks = x.reshape(-1, 32).astype(np.float32)
        scale = (np.abs(blocks).max(1) / np.float32(127)).astype(np.float32)
        with np.errstate(divide='ignore'):
            by = np.where(scale == 0, np.float32(0), np.float32(1) / scale).astype(np.float32)
        steps = (blocks * by[:, None]).astype(np.float32)
        whole = np.trunc(steps)
        whole += np.where(np.abs(steps - whole) >= 0.5, np.sign(steps), 0)
        self.kind, self.shape = 'q8_0', x.shape
        q, half = whole.astype(np.int8), scale.astype('<f2')
        self.values = np.concatenate([half.view(np.uint8).reshape(-1, 2), q.view(np.uint8)], 1)
        self.decoded = (q.astype(np.float32) * half.astype(np.float32)[:, None]).reshape(x.shape)

    def with_rows(self, to):
        """The blocks of an x, with those rows from another Bytes that `to` names: (row of x, row of the other)."""
        self.values = self.values.reshape(self.shape[:-1] + (-1, 34)).copy()
        for at, from_other, other in to:
            self.values[at] = other.values.reshape(other.shape[:-1] + (-1, 34))[from_other]
        return self


def spread(*shape):
    """Of many sizes, some of them exactly between two steps."""
    x = (own.integers(-254, 255, shape) / 2 * 2.0 ** own.integers(-20, 12, shape[:-1] + (1,))).astype(np.float32)
    x[..., 0] = 127 * np.abs(x).max(-1) / 100
    return x.astype(np.float32)


def write_blocks(f):
    def add(name, x, rows, position, pairs, **attrs):
        f.file.add('write_rows_q8_0_' + name, 'write_rows', [Bytes(x), tensor(rows), tensor(position)],
                   [Bytes(x).with_rows([(at, i, Bytes(rows)) for at, i in pairs])], attrs)

    x = spread(5, 64)
    for position in (0, 3):
        rows = spread(2, 64)
        add('rows_%d' % position, x, rows, np.int32(position), [((position + i,), (i,)) for i in range(2)])
    rows = spread(3, 64)
    add('ring', x, rows, np.int64(13), [(((13 + i) % 5,), (i,)) for i in range(3)], ring=1)
    x, rows = spread(2, 4, 32), spread(2, 1, 32)
    add('each', x, rows, np.int64([3, 0]), [((0, 3), (0, 0)), ((1, 0), (1, 0))])
    x, rows = spread(3, 2, 32), spread(1, 2, 32)
    add('first_axis', x, rows, np.int32(2), [((2, i), (0, i)) for i in range(2)], axis=0)
    halves = np.zeros((2, 32), np.float32)
    halves[0] = np.float32([127, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999997, -0.49999997, 126.5, -126.5] + [-127] * 21)
    add('halves', spread(3, 32), halves, np.int32(1), [((1 + i,), (i,)) for i in range(2)])
    blocks = Bytes(spread(3, 32))
    f.file.error('write_rows_q8_0_type', 'write_rows', [blocks, tensor(np.float16(np.zeros((1, 32)))), tensor(np.int32(0))],
                 'operand 1 has type f16')
    f.file.error('write_rows_q8_0_axis', 'write_rows', [blocks, tensor(np.zeros((3, 32), 'f4')), tensor(np.int32(0))],
                 'the one that blocks lie along', {'axis': 1})


def ring_cases(f):
    """The last rows of a longer sequence, each where its position is modulo their number."""
    def add(name, length, t, s=1, h=2, kv=1, d=4, **attrs):
        q, k, v = (own_eighths(1, n, m, d) for n, m in ((h, s), (kv, length), (kv, length)))
        kept = np.arange(max(0, length - t), length)
        rings = []
        for a in (k, v):
            ring = np.full((1, kv, t, d), np.nan, np.float32)
            ring[:, :, kept % t] = a[:, :, kept]
            rings.append(ring)
        first = max(0, length - t)
        want = attention(q, k[:, :, first:], v[:, :, first:], None, None, None, attrs.get('mode') == 'causal',
                         attrs.get('window'))
        f.case('attention_length_ring_' + name, 'attention', [q] + rings + [None, None, np.int32(length)],
               want.astype('f4'), tol=(2e-6, 2e-6), ring=1, **attrs)

    for length in (1, 5, 6, 7, 11, 12, 23):
        add('decode_%d' % length, length, 6, mode='sliding_window', window=5)
        add('decode_all_%d' % length, length, 6, mode='causal')
    for length in (3, 8, 9, 17, 40):
        add('prefill_%d' % length, length, 8, s=3, h=4, kv=2, mode='sliding_window', window=6)
    add('tile', 90, 40, s=7, mode='sliding_window', window=34)
    add('long', 200, 70, s=1, mode='sliding_window', window=70)
    q, k, v = (own_eighths(1, 1, n, 4) for n in (1, 3, 3))
    f.error('attention_length_ring_without', 'attention', [q, k, v], 'a ring needs a length', ring=1)
    f.error('attention_length_ring_mask', 'attention', [q, k, v, np.ones((1, 3), bool), None, np.int32(2)],
            'neither a mask nor a bias', ring=1)


def own_eighths(*shape):
    return (own.integers(-16, 17, shape) / 8).astype(np.float32)


def rope_rows_cases():
    """rope, and then write_rows, of heads side by side."""
    f = open_file('rope_rows')
    turned = np.random.default_rng(9)

    def eighths(*shape):
        return (turned.integers(-16, 17, shape) / 8).astype(np.float32)

    def add(name, n, heads, size, position, kind='f4', dims=0, **attrs):
        rotated = dims or size
        x, rows = counted(7, heads * size), eighths(n, heads * size)
        angle = (np.arange(n)[:, None] + 3) * 100.0 ** (-2 * np.arange(rotated // 2) / rotated)
        cos, sin = np.cos(angle).astype('f4'), np.sin(angle).astype('f4')
        apart = rows.reshape(1, n, heads, size).transpose(0, 2, 1, 3)
        made = packed(rope(apart, cos, sin, rotated, attrs.get('interleaved', 0)))[0]
        want = write_rows(x, made, position, ring=attrs.get('ring', 0))
        if dims:
            attrs['dims'] = dims
        to = bf16 if kind == 'bf16' else lambda a: a.astype(kind)
        tol = {'f4': (1e-6, 1e-6), 'f2': (1e-4, 1e-3), 'bf16': (1e-3, 8e-3)}[kind]
        f.case('rope_rows_' + name, 'rope_rows', [to(x), rows, position, cos, sin], to(want), tol=tol, heads=heads,
               **attrs)

    add('one', 1, 2, 8, np.int64(3))
    add('many', 3, 3, 4, np.int32(4))
    add('interleaved', 2, 2, 8, np.int64(0), interleaved=1)
    add('some_dims', 2, 2, 8, np.int64(5), dims=4)
    add('some_dims_interleaved', 1, 3, 6, np.int64([2]), dims=4, interleaved=1)
    add('f16', 2, 2, 8, np.int64(1), kind='f2')
    add('f16_odd', 1, 3, 6, np.int64(6), kind='f2', dims=2)
    add('bf16', 2, 1, 8, np.int64(2), kind='bf16')
    add('ring', 3, 2, 4, np.int64(12), kind='f2', ring=1)
    add('no_rows', 0, 2, 4, np.int64(7))
    x, rows, table = counted(4, 8), eighths(1, 8), np.zeros((1, 2), 'f4')
    where = np.int64(0)
    f.error('rope_rows_heads', 'rope_rows', [x, rows, where, table, table], '`heads`')
    f.error('rope_rows_rank', 'rope_rows', [counted(2, 4, 8), rows, where, table, table], 'operand 0 has shape', heads=2)
    f.error('rope_rows_type', 'rope_rows', [x, rows.astype('f2'), where, table, table], 'operand 1 has type f16', heads=2)
    f.error('rope_rows_table', 'rope_rows', [x, rows, where, table, counted(1, 3)], 'pairs of x and of its tables', heads=2)
    f.save()


def write_rows_cases():
    f = open_file('write_rows')

    def add(name, x, rows, position, **attrs):
        f.case('write_rows_' + name, 'write_rows', [x, rows, position], write_rows(x, rows, position, **attrs), **attrs)

    cache, flat = counted(2, 5, 3), counted(6, 4)
    one, two = counted(2, 1, 3, first=100), counted(2, 2, 3, first=100)
    for position in range(5):
        add('heads_%d' % position, cache, one, np.int32(position))
    for position in range(4):
        add('heads_two_%d' % position, cache, two, np.int64(position))
    add('packed_first', flat, counted(1, 4, first=100), np.int64(0))
    add('packed_last', flat, counted(1, 4, first=100), np.int64(5))
    add('packed_many', flat, counted(4, 4, first=100), np.int32([1]))
    add('packed_all', flat, counted(6, 4, first=100), np.int32(0))
    add('no_rows', flat, counted(0, 4), np.int32(6))
    add('nothing', counted(3, 0), counted(1, 0), np.int32(2))
    add('one_row_each', counted(7, 1, 2), counted(7, 1, 2, first=50), np.int64(0))
    add('vector', counted(5), counted(2, first=10), np.int64(3), axis=0)
    add('first_axis', counted(4, 2, 3), counted(2, 2, 3, first=100), np.int64(1), axis=0)
    add('last_axis', counted(3, 7), counted(3, 3, first=100), np.int64(2), axis=-1)
    add('middle', counted(2, 4, 3, 2), counted(2, 3, 3, 2, first=100), np.int32(1), axis=1)
    add('each', counted(3, 4, 2), counted(3, 2, 2, first=100), np.int64([2, 0, 1]))
    add('each_heads', counted(2, 3, 4, 2), counted(2, 3, 1, 2, first=100), np.int32([3, 1]))
    for position in (0, 2, 3, 4, 5, 7, 1000003):
        add('ring_%d' % position, cache, two, np.int64(position), ring=1)
    add('ring_all', flat, counted(6, 4, first=100), np.int32(4), ring=1)
    add('ring_packed', flat, counted(5, 4, first=100), np.int32(11), ring=1)
    add('ring_each', counted(3, 4, 2), counted(3, 3, 2, first=100), np.int64([3, 8, 6]), ring=1)
    add('ring_last_axis', counted(3, 5), counted(3, 4, first=100), np.int64(13), axis=1, ring=1)
    for kind in TYPES:
        x, rows = (counted(3, 2) % 2).astype(kind), (counted(2, 2, first=1) % 2).astype(kind)
        add(kind, x, rows, np.int64(1))
    x, rows = counted(3, 3), counted(1, 3, first=100)
    f.case('write_rows_bf16', 'write_rows', [bf16(x), bf16(rows), np.int64(2)], bf16(write_rows(x, rows, np.int64(2))))
    halves = np.float32([[1 / 3, -2049, 2051], [0.1, -1e-3, 65519], [65520, -np.inf, np.nan]])
    for kind, to in (('f16', np.float16), ('bf16', bf16)):
        with np.errstate(over='ignore'):
            x, rounded = to(counted(5, 3)), to(write_rows(counted(5, 3), halves, np.int32(1)))
            f.case('write_rows_f32_to_%s' % kind, 'write_rows', [x, halves, np.int32(1)], rounded)
            f.case('write_rows_f32_to_%s_ring' % kind, 'write_rows', [x, halves, np.int32(8)],
                   to(write_rows(counted(5, 3), halves, np.int32(8), ring=1)), ring=1)
            f.case('write_rows_f32_to_%s_last_axis' % kind, 'write_rows', [to(counted(3, 5)), halves, np.int64(2)],
                   to(write_rows(counted(3, 5), halves, np.int64(2), axis=1)), axis=1)
            f.case('write_rows_f32_to_%s_heads' % kind, 'write_rows', [to(cache), two, np.int64(2)],
                   to(write_rows(cache, two, np.int64(2))))
    odd = np.float32([[np.nan, -0.0, np.inf]])
    add('not_numbers', counted(2, 3), odd, np.int32(1))
    where = np.int64(0)
    f.error('write_rows_position_type', 'write_rows', [flat, flat, np.float32(0)], 'a position has type i32 or i64')
    f.error('write_rows_types', 'write_rows', [flat, flat.astype('f8'), where], 'operand 1 has type f64')
    f.error('write_rows_half_types', 'write_rows', [np.float16(flat), flat.astype('f8'), where], 'operand 1 has type f64')
    f.error('write_rows_ranks', 'write_rows', [flat, counted(4), where], 'operand 1 has shape [4]')
    f.error('write_rows_axis', 'write_rows', [counted(4), counted(1), where], 'axis -2 is out of range')
    f.error('write_rows_width', 'write_rows', [flat, counted(1, 3), where], 'rows and the operand: extents 4 and 3 differ')
    f.error('write_rows_too_many', 'write_rows', [flat, counted(7, 4), where], '7 rows do not fit a capacity of 6')
    f.error('write_rows_ring_too_many', 'write_rows', [flat, counted(7, 4), where], '7 rows do not fit', ring=1)
    f.error('write_rows_positions', 'write_rows', [cache, one, np.int64([0, 0, 0])],
            'positions and the first axis of the operand')
    f.error('write_rows_positions_of_rows', 'write_rows', [flat, counted(1, 4), np.int64([0, 1])],
            'that is the axis of the rows')
    write_blocks(f)
    f.save()


def eighths(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype(np.float32)


def with_length(q, k, v, lengths, mask, bias, **attrs):
    """What attention gives for the keys that there are, one batch entry at a time."""
    scores = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    outs = []
    for b in range(q.shape[0]):
        n = int(lengths[b % len(lengths)])
        beside = [None if a is None else np.broadcast_to(a, scores)[b:b + 1, ..., :n] for a in (mask, bias)]
        outs.append(attention(q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n], *beside, attrs.get('scale'),
                              attrs.get('mode') == 'causal', attrs.get('window')))
    return np.concatenate(outs)


def attention_cases():
    f = open_file('attention_length')

    def add(name, q, k, v, length, mask=None, bias=None, pack=0, **attrs):
        lengths = np.ravel(length)
        k, v = k.copy(), v.copy()
        want = with_length(q, k, v, lengths, mask, bias, **attrs).astype('f4')
        for b in range(q.shape[0]):
            k[b, :, lengths[b % len(lengths)]:] = np.nan
            v[b, :, lengths[b % len(lengths)]:] = np.nan
        ins = [q, k, v]
        if pack:
            ins, want = [packed(a) for a in ins], packed(want)
            attrs.update(heads=q.shape[1], kv_heads=k.shape[1])
        if pack == 2:
            ins, want = [a[0] for a in ins], want[0]
        f.case('attention_length_' + name, 'attention', ins + [mask, bias, length], want, tol=(1e-6, 1e-6), **attrs)

    def qkv(b=1, h=2, kv=None, s=1, t=7, d=4, dv=None):
        kv = kv or h
        return eighths(b, h, s, d), eighths(b, kv, t, d), eighths(b, kv, t, dv or d)

    for length in (1, 2, 6, 7):
        add('decode_%d' % length, *qkv(), np.int32(length))
        add('decode_causal_%d' % length, *qkv(h=4, kv=2), np.int64(length), mode='causal')
    for length in (3, 5, 7):
        add('prefill_%d' % length, *qkv(s=3), np.int64(length), mode='causal')
        add('prefill_none_%d' % length, *qkv(s=3, dv=3), np.int32([length]))
        add('prefill_window_%d' % length, *qkv(s=3, h=2, kv=1), np.int64(length), mode='sliding_window', window=2)
    add('more_queries_than_keys', *qkv(s=4), np.int64(2), mode='causal')
    add('each', *qkv(b=3, s=2), np.int64([1, 7, 4]))
    add('each_causal', *qkv(b=3, h=4, kv=2, s=2), np.int32([2, 7, 5]), mode='causal')
    add('each_window', *qkv(b=2, s=2), np.int32([3, 6]), mode='sliding_window', window=3)
    add('one_for_all', *qkv(b=2, s=2), np.int64([4]), mode='causal')
    add('window_decode', *qkv(t=9), np.int64(8), mode='sliding_window', window=3)
    add('packed', *qkv(b=2, h=4, kv=2, s=3), np.int64(5), pack=1, mode='causal')
    add('packed_no_batch', *qkv(h=2, s=2, t=6), np.int32(4), pack=2, mode='causal')
    add('scale', *qkv(s=2), np.int64(3), scale=0.25)
    mask = rng.random((2, 2, 3, 7)) < 0.6
    mask[..., 0] = True
    add('mask', *qkv(b=2, s=3), np.int64(4), mask=mask)
    add('mask_by_key', *qkv(b=2, s=3), np.int64([4, 6]), mask=mask[:, :1, :1])
    add('bias', *qkv(b=2, s=3), np.int32(5), bias=eighths(2, 2, 3, 7), mode='causal')
    add('bias_by_key', *qkv(s=3), np.int32(5), bias=eighths(7))
    add('mask_and_bias', *qkv(b=2, s=3), np.int32([5, 2]), mask=mask[0, 0], bias=eighths(2, 1, 7))
    add('one_key', *qkv(t=1), np.int32(1))
    add('long', *qkv(h=1, t=40, d=2), np.int32(37))
    q, k, v = qkv(s=2)
    want = attention(q, k[:, :, :5], v[:, :, :5])
    for kind, tol in (('f8', (1e-13, 1e-13)), ('f2', (1e-4, 1e-3))):
        f.case('attention_length_' + kind, 'attention', [a.astype(kind) for a in (q, k, v)] + [None, None, np.int64(5)],
               want.astype(kind), tol=tol)
    f.case('attention_length_bf16', 'attention', [bf16(a) for a in (q, k, v)] + [None, None, np.int64(5)], bf16(want),
           tol=(1e-3, 8e-3))
    f.error('attention_length_type', 'attention', [q, k, v, None, None, np.float32(3)],
            'operand 5 has type f32, and a length has type i32 or i64')
    f.error('attention_length_shape', 'attention', [q, k, v, None, None, np.int64([[3]])], 'operand 5 has shape')
    f.error('attention_length_batch', 'attention', [q, k, v, None, None, np.int64([3, 3])],
            'batch of q and its lengths: extents 1 and 2 differ')
    for name, heads, kv, s, t, d, dv, length in (('decode', 4, 2, 1, 9, 32, 32, 7), ('prefill', 2, 1, 6, 9, 32, 64, 8),
                                                 ('small_heads', 4, 4, 2, 5, 8, 8, 5), ('across', 2, 2, 1, 6, 48, 48, 6)):
        q, k, v = qkv(h=heads, kv=kv, s=s, t=t, d=d, dv=dv)
        k, v = Bytes(packed(k)[0]), Bytes(packed(v)[0])
        apart = [a.decoded.reshape(1, t, kv, -1).transpose(0, 2, 1, 3) for a in (k, v)]
        want = with_length(q, *apart, [length], None, None, mode='causal')
        f.file.add('attention_length_q8_0_' + name, 'attention',
                   [tensor(packed(q)[0]), k, v, None, None, tensor(np.int32(length))], [tensor(packed(want)[0].astype('f4'))],
                   dict(heads=heads, kv_heads=kv, mode='causal'), (2e-6, 2e-6))
    ring_cases(f)
    f.save()


if __name__ == '__main__':
    write_rows_cases()
    rope_rows_cases()
    attention_cases()
