#!/usr/bin/python3
"""Writes the cases of what language models ask of ops beside caches: attention with a soft cap and with sinks, and
expert_matmul. Run by hand; see caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_generate.py

Expected values come from numpy, in f64."""
import numpy as np

from casearrays import Cases, bf16, tensor
from make_cases_products import packed

rng = np.random.default_rng(14)


def open_file(family):
    return Cases(family, 'make_cases_generate.py')


def eighths(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype(np.float32)


def attention(q, k, v, cap=0, sinks=None, bias=None, scale=None, mode='none', window=0):
    """q [B, H, S, D], k and v [B, KV, T, D]: cap before the bias, sinks in the sum of the weights alone."""
    q, k, v = (a.astype('f8') for a in (q, k, v))
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = np.einsum('bhsd,bhtd->bhst', q, k) * (scale or q.shape[-1] ** -0.5)
    if cap:
        scores = cap * np.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    s, t = scores.shape[2:]
    here, there = np.arange(s)[:, None] + t - s, np.arange(t)[None, :]
    seen = np.ones((s, t), bool)
    if mode != 'none':
        seen &= there <= here
    if window:
        seen &= there > here - window
    weights = np.where(seen, np.exp(scores), 0)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.where(total == 0, 0, np.exp(sinks.astype('f8'))[None, :, None, None])
    return np.einsum('bhst,bhtd->bhsd', weights / np.where(total == 0, 1, total), v)


def attention_cases():
    f = open_file('attention_capped')

    def qkv(b=1, h=2, kv=None, s=1, t=7, d=4, dv=None):
        kv = kv or h
        return eighths(b, h, s, d), eighths(b, kv, t, d), eighths(b, kv, t, dv or d)

    def add(name, ins, cap=0.0, sinks=None, bias=None, pack=False, **attrs):
        q, k, v = ins
        want = attention(q, k, v, cap, sinks, bias, **attrs).astype('f4')
        if cap:
            attrs['cap'] = cap
        if pack:
            ins, want = [packed(a) for a in ins], packed(want)
            attrs.update(heads=q.shape[1], kv_heads=k.shape[1])
        beside = [None, bias, None, sinks] if sinks is not None else [None, bias]
        f.case('attention_capped_' + name, 'attention', list(ins) + beside, want, tol=(2e-6, 2e-6), **attrs)

    add('one', qkv(), cap=1.5)
    add('few', qkv(s=3, t=9), cap=0.5, mode='causal')
    add('tile', qkv(h=4, kv=2, s=9, t=70, d=8), cap=2.0, mode='causal')
    add('bias', qkv(s=6), cap=1.0, bias=eighths(6, 7))
    add('window', qkv(s=7, t=20), cap=1.25, mode='sliding_window', window=3)
    add('packed', qkv(b=2, h=4, kv=2, s=5), cap=1.0, pack=True)
    add('sink_one', qkv(h=4, kv=2), sinks=eighths(4))
    add('sink_few', qkv(h=2, s=3, t=9), sinks=eighths(2), mode='causal')
    add('sink_tile', qkv(h=4, kv=2, s=9, t=70, d=8), sinks=eighths(4), mode='causal')
    add('sink_far', qkv(h=3, s=6, t=20), sinks=np.float32([30, -30, 0]))
    add('sink_window', qkv(h=2, s=7, t=20), sinks=eighths(2), mode='sliding_window', window=3)
    add('sink_packed', qkv(b=2, h=4, kv=2, s=5), sinks=eighths(4), pack=True, mode='causal')
    add('sink_and_cap', qkv(h=2, s=5, t=33), cap=1.0, sinks=eighths(2), bias=eighths(33))
    q, k, v = qkv(s=2)
    sinks = eighths(2)
    want = attention(q, k, v, 1.0, sinks)
    for kind, tol in (('f8', (1e-12, 1e-12)), ('f2', (1e-4, 1e-3))):
        f.case('attention_capped_' + kind, 'attention',
               [a.astype(kind) for a in (q, k, v)] + [None, None, None, sinks.astype(kind)], want.astype(kind), tol=tol,
               cap=1.0)
    half = eighths(1, 2, 70, 8), eighths(1, 2, 70, 8)  # f16 and bf16 hold these as they are
    for rows in (1, 9):
        q = eighths(1, 4, rows, 8)
        want = attention(q, *half, mode='causal').astype('f4')
        for kind, cast in (('f2', lambda a: a.astype('f2')), ('bf16', bf16)):
            f.case('attention_cache_%s_%d' % (kind, rows), 'attention', [q] + [cast(a) for a in half], want,
                   tol=(2e-6, 2e-6), mode='causal')
    q = eighths(1, 2, 2, 4)
    f.error('attention_cache_of_two_types', 'attention', [q, k.astype('f2'), v], 'operand 2')
    f.error('attention_cache_f64', 'attention', [q, k.astype('f8'), v.astype('f8')], 'operand 1')
    f.error('attention_cap_below_0', 'attention', [q, k, v], 'a cap of -1 is not 0 or more', cap=-1.0)
    f.error('attention_sinks_heads', 'attention', [q, k, v, None, None, None, eighths(3)],
            'heads of q and sinks: extents 2 and 3 differ')
    f.error('attention_sinks_rank', 'attention', [q, k, v, None, None, None, eighths(1, 2)], 'operand 6 has shape')
    f.save()


def expert_matmul(x, w, which):
    rows = x.astype('f8') if x.ndim == 3 else np.repeat(x.astype('f8')[:, None], which.shape[1], 1)
    return np.einsum('ruk,runk->run', rows, w.astype('f8')[which])


class Bytes:
    """Weights as q8_0: an f16 scale and 32 signed bytes a block."""

    def __init__(self, *shape):
        n = int(np.prod(shape)) // 32
        scales = (rng.integers(1, 9, n) / 64).astype('<f2')
        digits = rng.integers(-127, 128, (n, 32)).astype(np.int8)
        self.kind, self.shape = 'q8_0', shape
        self.values = np.concatenate([scales.view(np.uint8).reshape(n, 2), digits.view(np.uint8)], 1)
        self.decoded = (digits.astype('f8') * scales.astype('f8')[:, None]).reshape(shape)


def expert_cases():
    f = open_file('expert_matmul')

    def add(name, x, w, which, tol=(1e-6, 1e-6)):
        f.case('expert_matmul_' + name, 'expert_matmul', [x, w, which], expert_matmul(x, w, which).astype(x.dtype),
               tol=tol)

    add('one_row', eighths(1, 5), eighths(3, 4, 5), np.int32([[2, 0]]))
    add('rows', eighths(4, 8), eighths(5, 7, 8), np.int64([[0, 1], [4, 4], [2, 0], [3, 1]]))
    add('own_rows', eighths(3, 2, 8), eighths(4, 6, 8), np.int64([[0, 3], [1, 2], [2, 2]]))
    add('one_use', eighths(2, 3), eighths(2, 1, 3), np.int32([[1], [0]]))
    add('wide', eighths(2, 130), eighths(3, 33, 130), np.int32([[0, 1, 2], [2, 1, 0]]), tol=(1e-5, 1e-5))
    add('no_rows', eighths(0, 3), eighths(2, 4, 3), np.zeros((0, 2), np.int32))
    add('no_columns', eighths(2, 0), eighths(2, 4, 0), np.int32([[1], [0]]))
    x, w, which = eighths(2, 4), eighths(3, 5, 4), np.int32([[0, 2], [1, 1]])
    want = expert_matmul(x, w, which)
    for kind, tol in (('f8', (1e-13, 1e-13)), ('f2', (1e-3, 1e-3))):
        f.case('expert_matmul_' + kind, 'expert_matmul', [x.astype(kind), w.astype(kind), which], want.astype(kind), tol=tol)
    f.case('expert_matmul_bf16', 'expert_matmul', [bf16(x), bf16(w), which], bf16(want), tol=(1e-2, 8e-3))
    f.case('expert_matmul_f16_weights', 'expert_matmul', [x, w.astype('f2'), which], want.astype('f4'), tol=(1e-6, 1e-6))
    blocks, x, which = Bytes(3, 4, 64), eighths(2, 64), np.int64([[2, 0], [1, 1]])
    x[:, ::32] = 127 / 8  # so that bytes hold x exactly, where a device rounds it to them
    f.file.add('expert_matmul_q8_0', 'expert_matmul', [tensor(x), blocks, tensor(which)],
               [tensor(expert_matmul(x, blocks.decoded, which).astype('f4'))], {}, (1e-4, 1e-5))
    x, which = eighths(2, 4), np.int32([[0, 2], [1, 1]])
    f.error('expert_matmul_columns', 'expert_matmul', [eighths(2, 3), w, which],
            'columns of x and of the weights: extents 3 and 4 differ')
    f.error('expert_matmul_other_rows', 'expert_matmul', [eighths(3, 4), w, which],
            'rows of x and of the experts chosen: extents 3 and 2 differ')
    f.error('expert_matmul_uses', 'expert_matmul', [eighths(2, 3, 4), w, which],
            'uses of x and experts chosen: extents 3 and 2 differ')
    f.error('expert_matmul_type', 'expert_matmul', [x, w, np.float32([[0, 1], [1, 1]])],
            'operand 2 has type f32, and numbers of experts have type i32 or i64')
    f.save()


if __name__ == '__main__':
    attention_cases()
    expert_cases()
