#!/usr/bin/python3
"""Writes the cases of matmul, conv, conv_transpose, pooling, attention and rope. Run by hand; see caselib.py for what
it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_products.py

Expected values come from ONNX Runtime; for types that it lacks from numpy; for attention and rope
from the formulas below in f64, held against ONNX Runtime where that has the same form. Values are multiples of 1/8, so
that sums of products are exact in f32 and most cases need no tolerance."""
import numpy as np

from casearrays import Cases, bf16, onnx_op

rng = np.random.default_rng(2)


def eighths(*shape, dtype=np.float32):
    return (rng.integers(-16, 17, shape) / 8).astype(dtype)


def integers(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def open_file(family):
    return Cases(family, "make_cases_products.py")


def matmul_cases():
    f = open_file('matmul')
    shapes = {'plain': ((3, 4), (4, 5)), 'vectors': ((4,), (4,)), 'row': ((4,), (4, 3)), 'column': ((2, 4), (4,)),
              'batched': ((2, 3, 4), (2, 4, 5)), 'broadcast': ((2, 1, 3, 4), (3, 4, 2)), 'row_batched': ((4,),
                                                                                                         (2, 4, 3)),
              'column_batched': ((2, 3, 4), (4,)), 'one': ((1, 1), (1, 1)), 'long_rows': ((2, 7), (7, 300)),
              'deep': ((2, 37), (37, 3))}
    for name, (a, b) in shapes.items():
        x, y = eighths(*a), eighths(*b)
        f.case('matmul_' + name, 'matmul', [x, y], onnx_op('MatMul', [x, y]))
    x, y = eighths(3, 5, dtype=np.float64), eighths(5, 2, dtype=np.float64)
    f.case('matmul_f64', 'matmul', [x, y], onnx_op('MatMul', [x, y]))
    x, y = eighths(2, 5, dtype=np.float16), eighths(5, 3, dtype=np.float16)
    f.case('matmul_f16', 'matmul', [x, y], np.matmul(x.astype('f8'), y.astype('f8')).astype('f2'))
    x, y = eighths(2, 3), eighths(3, 3)
    f.case('matmul_bf16', 'matmul', [bf16(x), bf16(y)], bf16(np.matmul(x, y)), tol=(0, 1 / 256))
    for kind in ('int8', 'uint8', 'int16', 'int32', 'uint32', 'int64'):
        x, y = integers(kind, 3, 6), integers(kind, 6, 2)
        f.case('matmul_%s_wraps' % kind, 'matmul', [x, y], np.matmul(x, y))
    x, y = np.float32([[np.inf, 1], [np.nan, 0]]), np.float32([[1, 0], [2, 3]])
    f.case('matmul_not_numbers', 'matmul', [x, y], np.float32([[np.inf, np.nan], [np.nan, np.nan]]))
    f.case('matmul_no_inner', 'matmul', [eighths(2, 0), eighths(0, 3)], np.zeros((2, 3), 'f4'))
    f.case('matmul_no_rows', 'matmul', [eighths(0, 2), eighths(2, 3)], np.zeros((0, 3), 'f4'))
    f.case('matmul_no_batch', 'matmul', [eighths(0, 2, 2), eighths(2, 3)], np.zeros((0, 2, 3), 'f4'))
    f.error('matmul_inner', 'matmul', [eighths(2, 3), eighths(4, 2)], 'extents 3 and 4 differ')
    f.error('matmul_types', 'matmul', [eighths(2, 3), eighths(3, 2, dtype=np.float64)], 'operand 1 has type f64')
    f.error('matmul_bool', 'matmul', [np.ones((1, 1), bool)] * 2, 'operand 0 has type bool')
    f.error('matmul_scalar', 'matmul', [np.float32(1).reshape(()), eighths(2, 3)], 'operand 0 has shape []')
    f.error('matmul_batches', 'matmul', [eighths(2, 1, 2), eighths(3, 2, 1)], 'do not broadcast')
    f.save()


def conv_cases():
    f = open_file('conv')
    cases = {
        '1d': ((2, 3, 7), (4, 3, 3), {}),
        '1d_padded': ((1, 2, 5), (2, 2, 4), dict(pads=[2, 1])),
        '1d_strided': ((1, 2, 11), (2, 2, 3), dict(strides=[3], dilations=[2], pads=[1, 4])),
        '2d': ((1, 2, 5, 6), (3, 2, 3, 3), {}),
        '2d_same': ((2, 3, 5, 4), (2, 3, 3, 3), dict(pads=[1, 1, 1, 1])),
        '2d_uneven': ((1, 2, 6, 7), (2, 2, 2, 3), dict(pads=[1, 0, 2, 3], strides=[2, 3], dilations=[3, 2])),
        '2d_groups': ((1, 4, 4, 4), (6, 2, 3, 3), dict(pads=[1, 1, 1, 1], group=2)),
        '2d_depthwise': ((1, 5, 4, 4), (5, 1, 3, 3), dict(pads=[1, 1, 1, 1], strides=[2, 2], group=5)),
        '2d_pointwise': ((1, 9, 3, 3), (4, 9, 1, 1), {}),
        '2d_patches': ((1, 3, 8, 8), (4, 3, 4, 4), dict(strides=[4, 4])),
        '2d_wide_pads': ((1, 1, 2, 2), (1, 1, 2, 2), dict(pads=[3, 3, 3, 3])),
        '3d': ((1, 2, 3, 4, 4), (2, 2, 2, 3, 2), dict(pads=[0, 1, 0, 1, 1, 1], strides=[1, 2, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        x, w = eighths(*x), eighths(*w)
        f.case('conv_' + name, 'conv', [x, w], onnx_op('Conv', [x, w], **attrs), **attrs)
    x, w, b = eighths(1, 2, 4, 4), eighths(3, 2, 3, 3), eighths(3)
    f.case('conv_bias', 'conv', [x, w, b], onnx_op('Conv', [x, w, b]))
    f.case('conv_no_bias', 'conv', [x, w, None], onnx_op('Conv', [x, w]))
    same = onnx_op('Conv', [x, w, b])
    f.case('conv_f64', 'conv', [v.astype('f8') for v in (x, w, b)], same.astype('f8'))
    f.case('conv_f16', 'conv', [v.astype('f2') for v in (x, w, b)], same.astype('f2'))
    f.case('conv_bf16', 'conv', [bf16(v) for v in (x, w, b)], bf16(same), tol=(0, 1 / 256))
    xi, wi = rng.integers(-100, 100, (1, 2, 5)), rng.integers(-100, 100, (2, 2, 3))
    whole = np.stack([[np.sum(xi[0, :, at:at + 3] * wi[o]) for at in range(3)] for o in range(2)])[None]
    for kind in ('int8', 'int16', 'int32', 'int64'):
        f.case('conv_%s_wraps' % kind, 'conv', [xi.astype(kind), wi.astype(kind)], whole.astype(kind))
    f.case('conv_no_images', 'conv', [eighths(0, 2, 5), eighths(2, 2, 3)], np.zeros((0, 2, 3), 'f4'))
    f.case('conv_no_channels', 'conv', [eighths(1, 0, 3), eighths(1, 0, 2), np.float32([2])],
           np.full((1, 1, 2), 2, 'f4'))
    x, w = eighths(1, 4, 5), eighths(4, 3, 3)
    f.error('conv_channels', 'conv', [x, w],
            'the weight expects 6 input channels for 2 groups (3 each) but the input has 4',
            group=2)
    f.error('conv_groups', 'conv', [x, eighths(4, 2, 3)], '4 output channels do not split into 3 groups', group=3)
    f.error('conv_group', 'conv', [x, w], 'group is 0', group=0)
    w = eighths(4, 4, 3)
    f.error('conv_kernel', 'conv', [x, eighths(4, 4, 6)],
            'the kernel covers 6 elements of spatial axis 0, but the padded input has 5')
    f.error('conv_dilated_kernel', 'conv', [x, w], 'the kernel covers 7 elements', dilations=[3])
    f.error('conv_strides', 'conv', [x, w], '`strides` has 2 entries, expected 1', strides=[1, 1])
    f.error('conv_stride_0', 'conv', [x, w], 'entry 0 of `strides` is 0', strides=[0])
    f.error('conv_dilation_0', 'conv', [x, w], 'entry 0 of `dilations` is 0', dilations=[0])
    f.error('conv_pads', 'conv', [x, w], 'entry 1 of `pads` is -1', pads=[0, -1])
    f.error('conv_bias_extent', 'conv', [x, w, eighths(3)], 'output channels and bias: extents 4 and 3 differ')
    f.error('conv_rank', 'conv', [eighths(2, 3), eighths(2, 3)], 'operand 0 has shape [2, 3]')
    f.error('conv_ranks', 'conv', [x, eighths(4, 4, 3, 3)], 'expected rank 3')
    f.error('conv_overflow', 'conv', [x, w], 'too large', dilations=[9223372036854775807])
    f.error('conv_pads_overflow', 'conv', [x, w], 'too large', pads=[9223372036854775807, 1])
    f.error('conv_empty_kernel', 'conv', [x, eighths(4, 4, 0)], 'extent 0 on spatial axis 0')
    f.save()


def conv_transpose_cases():
    f = open_file('conv_transpose')
    cases = {
        '1d': ((1, 3, 4), (3, 2, 3), {}),
        '1d_strided': ((2, 2, 4), (2, 3, 3), dict(strides=[2], pads=[1, 1], output_padding=[1])),
        '1d_dilated': ((1, 2, 5), (2, 2, 3), dict(strides=[3], dilations=[2], pads=[2, 1])),
        '2d': ((1, 2, 3, 3), (2, 3, 2, 2), {}),
        '2d_up': ((1, 2, 3, 4), (2, 2, 4, 4), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
        '2d_uneven': ((1, 2, 3, 2), (2, 1, 3, 2), dict(strides=[2, 3], pads=[0, 1, 1, 0], dilations=[1, 2],
                                                       output_padding=[1, 0])),
        '2d_groups': ((1, 4, 3, 3), (4, 3, 2, 3), dict(group=2, strides=[2, 1])),
        '2d_depthwise': ((1, 3, 3, 3), (3, 1, 2, 2), dict(group=3, strides=[2, 2])),
        '2d_gaps': ((1, 1, 2, 2), (1, 1, 1, 1), dict(strides=[3, 2])),
        '3d': ((1, 2, 2, 2, 3), (2, 2, 2, 3, 2), dict(strides=[1, 2, 2], pads=[0, 1, 0, 0, 1, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        x, w = eighths(*x), eighths(*w)
        f.case('conv_transpose_' + name, 'conv_transpose', [x, w], onnx_op('ConvTranspose', [x, w], **attrs), **attrs)
    x, w, b = eighths(1, 2, 3, 3), eighths(2, 2, 2, 2), eighths(2)
    same = onnx_op('ConvTranspose', [x, w, b])
    f.case('conv_transpose_bias', 'conv_transpose', [x, w, b], same)
    f.case('conv_transpose_f64', 'conv_transpose', [v.astype('f8') for v in (x, w, b)], same.astype('f8'))
    f.case('conv_transpose_f16', 'conv_transpose', [v.astype('f2') for v in (x, w, b)], same.astype('f2'))
    f.case('conv_transpose_bf16', 'conv_transpose', [bf16(v) for v in (x, w, b)], bf16(same), tol=(0, 1 / 256))
    f.case('conv_transpose_i32', 'conv_transpose', [(v * 8).astype('i4') for v in (x, w)],
           (onnx_op('ConvTranspose', [x, w]) * 64).astype('i4'))
    x, w = eighths(1, 4, 3), eighths(4, 2, 2)
    f.error('conv_transpose_channels', 'conv_transpose', [x, eighths(3, 2, 2)],
            'the weight expects 3 input channels but the input has 4')
    f.error('conv_transpose_groups', 'conv_transpose', [x, w], '4 channels do not split into 3 groups', group=3)
    f.error('conv_transpose_pads', 'conv_transpose', [x, w], 'pads take 6 elements off spatial axis 0', pads=[3, 3])
    f.error('conv_transpose_output_padding', 'conv_transpose', [x, w], 'entry 0 of `output_padding` is -1',
            output_padding=[-1])
    f.error('conv_transpose_output_paddings', 'conv_transpose', [x, w], '`output_padding` has 2 entries',
            output_padding=[1, 1])
    f.error('conv_transpose_bias_extent', 'conv_transpose', [x, w, eighths(4)], 'extents 2 and 4 differ')
    f.error('conv_transpose_overflow', 'conv_transpose', [x, w], 'too large', strides=[9223372036854775807])
    f.error('conv_transpose_empty', 'conv_transpose', [eighths(1, 4, 0), w], 'is empty')
    f.save()


def pool_cases():
    f = open_file('pool')
    cases = {
        '1d': ((1, 2, 7), dict(kernel=[3])),
        '1d_strided': ((2, 2, 9), dict(kernel=[3], strides=[2], pads=[1, 1])),
        '1d_ceil': ((1, 1, 8), dict(kernel=[3], strides=[3], ceil_mode=1)),
        '1d_ceil_in_pad': ((1, 1, 5), dict(kernel=[2], strides=[2], pads=[1, 1], ceil_mode=1)),
        '2d': ((1, 2, 4, 5), dict(kernel=[2, 3])),
        '2d_padded': ((1, 2, 5, 5), dict(kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
        '2d_uneven': ((1, 1, 6, 7), dict(kernel=[3, 2], strides=[2, 3], pads=[2, 0, 0, 1])),
        '2d_dilated': ((1, 2, 6, 6), dict(kernel=[2, 3], dilations=[3, 2], pads=[1, 1, 1, 0])),
        '2d_ceil': ((1, 2, 7, 6), dict(kernel=[3, 3], strides=[2, 2], pads=[0, 1, 0, 0], ceil_mode=1)),
        '3d': ((1, 1, 3, 4, 4), dict(kernel=[2, 2, 3], strides=[1, 2, 1], pads=[0, 1, 1, 1, 0, 1])),
    }
    def onnx_attrs(attrs):
        return dict({key: value for key, value in attrs.items() if key != 'kernel'}, kernel_shape=attrs['kernel'])
    for name, (shape, attrs) in cases.items():
        x = eighths(*shape)
        f.case('max_pool_' + name, 'max_pool', [x], onnx_op('MaxPool', [x], **onnx_attrs(attrs)), **attrs)
        f.case('avg_pool_' + name, 'avg_pool', [x], onnx_op('AveragePool', [x], **onnx_attrs(attrs)), tol=(1e-6, 1e-6),
               **attrs)
        counted = dict(attrs, count_include_pad=1)
        if 'pads' in attrs:
            f.case('avg_pool_%s_counted' % name, 'avg_pool', [x], onnx_op('AveragePool', [x], **onnx_attrs(counted)),
                   tol=(1e-6, 1e-6), **counted)
    x = eighths(1, 2, 5)
    best = onnx_op('MaxPool', [x], kernel_shape=[2])
    mean = onnx_op('AveragePool', [x], kernel_shape=[2])
    for kind, scale in (('float64', 1), ('float16', 1), ('int8', 8), ('int16', 8), ('int32', 8), ('int64', 8)):
        f.case('max_pool_' + kind, 'max_pool', [(x * scale).astype(kind)], (best * scale).astype(kind), kernel=[2])
    big = np.int64([[[2 ** 62, 2 ** 62 + 1, 3]]])
    f.case('max_pool_exact', 'max_pool', [big], np.int64([[[2 ** 62 + 1] * 2]]), kernel=[2])
    f.case('max_pool_u32', 'max_pool', [np.uint32([[[1, 4000000000, 3]]])], np.uint32([[[4000000000] * 2]]), kernel=[2])
    f.case('max_pool_bf16', 'max_pool', [bf16(x)], bf16(best), kernel=[2])
    f.case('avg_pool_f64', 'avg_pool', [x.astype('f8')], mean.astype('f8'), kernel=[2])
    f.case('avg_pool_f16', 'avg_pool', [x.astype('f2')], mean.astype('f2'), kernel=[2])
    f.case('avg_pool_bf16', 'avg_pool', [bf16(x)], bf16(mean), kernel=[2])
    n = np.float32([[[1, np.nan, 2, -np.inf, -np.inf]]])
    f.case('max_pool_nan', 'max_pool', [n], np.float32([[[np.nan, np.nan, 2, -np.inf]]]), kernel=[2])
    f.case('max_pool_nothing', 'max_pool', [eighths(0, 2, 5)], np.zeros((0, 2, 4), 'f4'), kernel=[2])
    f.error('pool_kernel', 'max_pool', [x], '`kernel` has 2 entries, expected 1', kernel=[2, 2])
    f.error('pool_kernel_0', 'max_pool', [x], 'entry 0 of `kernel` is 0', kernel=[0])
    f.error('pool_too_large', 'avg_pool', [x], 'the kernel covers 6 elements of spatial axis 0', kernel=[6])
    f.error('pool_pads', 'avg_pool', [x], 'leave windows of padding alone', kernel=[2], pads=[2, 0])
    f.error('pool_strides', 'max_pool', [x], 'entry 0 of `strides` is -1', kernel=[2], strides=[-1])
    f.error('avg_pool_int', 'avg_pool', [np.ones((1, 1, 3), 'i4')], 'operand 0 has type i32', kernel=[2])
    f.error('max_pool_bool', 'max_pool', [np.ones((1, 1, 3), bool)], 'operand 0 has type bool', kernel=[2])
    f.error('pool_rank', 'max_pool', [eighths(2, 3)], 'operand 0 has shape [2, 3]', kernel=[2])
    f.save()


def attention(q, k, v, allowed=None, bias=None, scale=None, causal=False, window=None):
    """q [B, H, S, D], k and v [B, KV, T, D]; f64."""
    q, k, v = (a.astype('f8') for a in (q, k, v))
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    scores = np.einsum('bhsd,bhtd->bhst', q, k) * (scale or q.shape[-1] ** -0.5)
    if bias is not None:
        scores = scores + bias
    s, t = scores.shape[2:]
    here, there = np.arange(s)[:, None] + t - s, np.arange(t)[None, :]
    seen = np.ones((s, t), bool)
    if causal or window:
        seen &= there <= here
    if window:
        seen &= there > here - window
    seen = seen & (True if allowed is None else allowed) & np.ones(scores.shape, bool)
    scores = np.where(seen, scores, -np.inf)
    largest = scores.max(-1, keepdims=True) if t else 0
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    return np.einsum('bhst,bhtd->bhsd', weights / np.where(total == 0, 1, total), v)


def packed(x):
    b, h, s, d = x.shape
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(b, s, h * d)


def attention_cases():
    f = open_file('attention')
    close = (1e-6, 1e-6)

    def add(name, q, k, v, check=True, mask=None, bias=None, pack=0, **attrs):
        want = attention(q, k, v, mask, bias, attrs.get('scale'), attrs.get('mode') == 'causal',
                         attrs.get('window'))
        if check:
            beside = mask if bias is None else bias
            scores = q.shape[:3] + k.shape[2:3]
            beside = [] if beside is None else [np.broadcast_to(beside, scores).copy()]
            got = onnx_op('Attention', [q, k, v] + beside, opset=23, is_causal=int(attrs.get('mode') == 'causal'),
                          **({'scale': attrs['scale']} if 'scale' in attrs else {}))
            assert np.allclose(got, want, 1e-4, 1e-5), name
        ins, want = [q, k, v], want.astype('f4')
        if pack:
            ins, want = [packed(a) for a in ins], packed(want)
            attrs['heads'] = q.shape[1]
            if k.shape[1] != q.shape[1]:
                attrs['kv_heads'] = k.shape[1]
        if pack == 2:
            ins, want = [a[0] for a in ins], want[0]
        ins += [mask, bias] if bias is not None else [mask] if mask is not None else []
        f.case('attention_' + name, 'attention', ins, want, tol=close, **attrs)

    def qkv(b=1, h=2, kv=None, s=4, t=None, d=4, dv=None):
        t, kv = t or s, kv or h
        return eighths(b, h, s, d), eighths(b, kv, t, d), eighths(b, kv, t, dv or d)
    add('plain', *qkv())
    add('batched', *qkv(b=2, h=3, s=3, d=5))
    add('other_size', *qkv(dv=3))
    add('cross', *qkv(s=2, t=5))
    add('scale', *qkv(), scale=0.25)
    add('grouped', *qkv(h=4, kv=2, d=8))
    add('multi_query', *qkv(b=2, h=3, kv=1, s=2))
    add('causal', *qkv(s=5), mode='causal')
    add('causal_grouped', *qkv(b=2, h=4, kv=2, s=3), mode='causal')
    add('causal_last_rows', *qkv(s=2, t=5), check=False, mode='causal')
    add('causal_first_rows_see_nothing', *qkv(s=4, t=2), check=False, mode='causal')
    add('window', *qkv(s=6), check=False, mode='sliding_window', window=2)
    add('window_last_rows', *qkv(s=3, t=6), check=False, mode='sliding_window', window=3)
    add('window_1', *qkv(s=3), check=False, mode='sliding_window', window=1)
    add('window_wide', *qkv(s=3), check=False, mode='sliding_window', window=100)
    add('packed', *qkv(b=2, s=3), pack=1)
    add('packed_grouped', *qkv(b=2, h=4, kv=2, s=3, t=5, dv=2), pack=1)
    add('packed_causal', *qkv(h=3, s=4), pack=1, mode='causal')
    add('packed_no_batch', *qkv(h=2, s=4, t=3), pack=2)
    full = rng.random((2, 2, 3, 5)) < 0.6
    full[..., 0] = True
    add('mask', *qkv(b=2, s=3, t=5), mask=full)
    add('mask_by_key', *qkv(b=2, s=3, t=5), mask=full[:, :1, :1])
    add('mask_rank_2', *qkv(b=2, s=3, t=5), mask=full[0, 0])
    add('mask_causal', *qkv(s=4), check=False, mask=np.array([[1, 1, 0, 1]], bool), mode='causal')
    add('mask_nothing', *qkv(s=2, t=3), check=False, mask=np.array([[0, 0, 0], [0, 1, 1]], bool))
    add('bias', *qkv(b=2, s=3, t=5), bias=eighths(2, 2, 3, 5))
    add('bias_broadcast', *qkv(b=2, s=3, t=5), bias=eighths(2, 1, 5))
    add('mask_and_bias', *qkv(s=3), check=False, mask=np.array([[1, 0, 1]], bool), bias=eighths(1, 3))
    add('bias_minus_infinity', *qkv(s=2), check=False, bias=np.float32([[0, -np.inf], [0, 0]]))
    q, k, v = qkv(s=3)
    want = attention(q, k, v)
    f.case('attention_f64', 'attention', [a.astype('f8') for a in (q, k, v)], want, tol=(1e-13, 1e-13))
    f.case('attention_f16', 'attention', [a.astype('f2') for a in (q, k, v)], want.astype('f2'), tol=(1e-4, 1e-3))
    f.case('attention_bf16', 'attention', [bf16(a) for a in (q, k, v)], bf16(want), tol=(1e-3, 8e-3))
    large = 1000 * np.ones((1, 1, 2, 4), 'f4')
    f.case('attention_large_scores', 'attention', [large, large, np.float32(np.arange(8)).reshape(1, 1, 2, 4)],
           np.float32([[[[2, 3, 4, 5]] * 2]]))
    hidden = np.float32([[[[1, 2], [np.nan, np.inf]]]])
    f.case('attention_mask_hides_what_is_no_number', 'attention',
           [eighths(1, 1, 1, 2), eighths(1, 1, 2, 2), hidden, np.array([True, False])], np.float32([[[[1, 2]]]]))
    f.case('attention_nan', 'attention', [np.float32([[[[np.nan, 0]]]]), eighths(1, 1, 2, 2), eighths(1, 1, 2, 2)],
           np.full((1, 1, 1, 2), np.nan, 'f4'))
    f.case('attention_no_keys', 'attention', [eighths(1, 1, 2, 2), eighths(1, 1, 0, 2), eighths(1, 1, 0, 3)],
           np.zeros((1, 1, 2, 3), 'f4'))
    f.case('attention_no_queries', 'attention', [eighths(1, 1, 0, 2), eighths(1, 1, 2, 2), eighths(1, 1, 2, 2)],
           np.zeros((1, 1, 0, 2), 'f4'))
    p = [packed(a) for a in (q, k, v)]
    f.error('attention_needs_heads', 'attention', p, '`heads` must say how many')
    f.error('attention_heads', 'attention', p, '8 elements, which do not split into 3 heads', heads=3)
    f.error('attention_kv_heads', 'attention', [eighths(1, 3, 3, 4), k, v], '3 heads of q do not share 2 heads')
    f.error('attention_heads_4d', 'attention', [q, k, v], 'operand 0 has 2 heads on axis 1, but `heads` is 4', heads=4)
    f.error('attention_window_0', 'attention', [q, k, v], 'of 1 or more, not 0', mode='sliding_window')
    f.error('attention_unknown_mode', 'attention', [q, k, v], 'is not one of none, causal and sliding_window',
            mode='upside')
    f.error('attention_head_size', 'attention', [q, eighths(1, 2, 3, 5), v],
            'head size of q and k: extents 4 and 5 differ')
    f.error('attention_rows', 'attention', [q, k, eighths(1, 2, 4, 4)], 'rows of k and v: extents 3 and 4 differ')
    f.error('attention_batch', 'attention', [q, eighths(2, 2, 3, 4), v], 'batch of q and k: extents 1 and 2 differ')
    f.error('attention_mask_type', 'attention', [q, k, v, eighths(3, 3)], 'operand 3 has type f32, expected bool')
    f.error('attention_mask_shape', 'attention', [q, k, v, np.ones((3, 4), bool)],
            'operand 3 has shape [3, 4], which does not broadcast to the scores [1, 2, 3, 3]')
    f.error('attention_bias_type', 'attention', [q, k, v, None, eighths(3, 3, dtype=np.float64)],
            'operand 4 has type f64')
    f.error('attention_ranks', 'attention', [q, p[1], v], 'operand 1 has shape')
    f.error('attention_ints', 'attention', [np.ones((1, 1, 1, 1), 'i4')] * 3, 'expected a float type')
    f.save()


def rope(x, cos, sin, dims, interleaved):
    """x [B, H, S, D]; cos and sin [S, dims / 2] or [B, 1, S, dims / 2]; f64."""
    out = x.astype('f8').copy()
    a = slice(0, dims, 2) if interleaved else slice(0, dims // 2)
    b = slice(1, dims, 2) if interleaved else slice(dims // 2, dims)
    out[..., a] = x[..., a] * cos - x[..., b] * sin
    out[..., b] = x[..., a] * sin + x[..., b] * cos
    return out


def rope_cases():
    f = open_file('rope')

    def add(name, x, positions, theta=10000.0, dims=0, interleaved=0, pack=0, tables=False):
        rotated = dims or x.shape[-1]
        angle = positions[..., None] * theta ** (-2 * np.arange(rotated // 2) / rotated)
        by_batch = angle if angle.ndim == 2 else angle[:, None]
        cos, sin = np.cos(by_batch), np.sin(by_batch)
        if tables:
            cos, sin = cos.astype('f4'), sin.astype('f4')
        want = rope(x, cos, sin, rotated, interleaved)
        cache = [np.broadcast_to(t if t.ndim == 2 else t[:, 0], (x.shape[0], x.shape[2], rotated // 2)).astype('f4')
                 for t in (cos, sin)]
        got = onnx_op('RotaryEmbedding', [x] + cache, opset=23, interleaved=interleaved, rotary_embedding_dim=dims)
        assert np.allclose(got, want, 1e-4, 1e-5), name
        attrs = dict(theta=theta) if theta != 10000.0 else {}
        attrs.update({key: value for key, value in (('dims', dims), ('interleaved', interleaved)) if value})
        want, given = want.astype('f4'), x
        if pack:
            want, given, attrs['heads'] = packed(want), packed(x), x.shape[1]
        if pack == 2:
            want, given = want[0], given[0]
        beside = [np.cos(angle).astype('f4'), np.sin(angle).astype('f4')] if tables else [positions]
        f.case('rope_' + name, 'rope', [given] + beside, want, tol=(1e-6, 1e-6), **attrs)

    row = np.int64([0, 1, 2, 7])
    batch = np.int32([[0, 1, 2], [5, 100, 3]])
    add('plain', eighths(1, 2, 4, 8), row)
    add('interleaved', eighths(1, 2, 4, 8), row, interleaved=1)
    add('batch_positions', eighths(2, 2, 3, 4), batch)
    add('theta', eighths(1, 1, 4, 6), row, theta=500000.0)
    add('some_dims', eighths(1, 2, 4, 8), row, dims=4)
    add('some_dims_interleaved', eighths(1, 2, 4, 8), row, dims=6, interleaved=1)
    add('packed', eighths(2, 3, 3, 4), batch, pack=1)
    add('packed_no_batch', eighths(1, 3, 4, 4), row, pack=2)
    add('tables', eighths(2, 2, 4, 8), row, tables=True)
    add('tables_by_batch', eighths(2, 2, 3, 8), batch, tables=True, interleaved=1)
    add('tables_packed', eighths(2, 2, 3, 8), batch, tables=True, dims=4, pack=1)
    x = eighths(1, 1, 2, 4)
    angle = np.int64([3, -4])[:, None] * 10000.0 ** (-2 * np.arange(2) / 4)
    want = rope(x, np.cos(angle), np.sin(angle), 4, 0)
    at = np.int64([3, -4])
    f.case('rope_f64', 'rope', [x.astype('f8'), at], want, tol=(1e-14, 1e-14))
    f.case('rope_f16', 'rope', [x.astype('f2'), at], want.astype('f2'), tol=(1e-4, 1e-3))
    f.case('rope_bf16', 'rope', [bf16(x), at], bf16(want), tol=(1e-3, 8e-3))
    f.case('rope_no_rows', 'rope', [eighths(1, 1, 0, 4), np.zeros(0, 'i8')], np.zeros((1, 1, 0, 4), 'f4'))
    f.error('rope_odd', 'rope', [eighths(1, 1, 2, 3), at], '3 rotated elements do not make pairs')
    f.error('rope_dims', 'rope', [x, at], '`dims` is 6, but a head has 4 elements', dims=6)
    f.error('rope_positions', 'rope', [x, np.int64([1])], 'rows of x and of its positions: extents 2 and 1 differ')
    f.error('rope_batch', 'rope', [x, np.ones((2, 2), 'i8')], 'batch of x and of its positions: extents 1 and 2 differ')
    f.error('rope_one_table', 'rope', [x, eighths(2, 2)], 'operand 1 has type f32: give positions')
    f.error('rope_table_pairs', 'rope', [x, eighths(2, 3), eighths(2, 3)],
            'pairs of x and of its tables: extents 2 and 3')
    f.error('rope_table_type', 'rope', [x, at, eighths(2, 2)], 'operand 1 has type i64, expected a float type')
    f.error('rope_heads', 'rope', [eighths(2, 4), at], '`heads` must say how many')
    f.error('rope_theta_negative', 'rope', [x, at], 'theta is -1', theta=-1.0)
    f.save()


if __name__ == '__main__':
    matmul_cases()
    conv_cases()
    conv_transpose_cases()
    pool_cases()
    attention_cases()
    rope_cases()
