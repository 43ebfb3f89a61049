#!/usr/bin/python3
"""Writes the cases of the ops with channels last: conv_last, depthwise, pack_winograd, conv_winograd,
conv_transpose_last and pooling, and of conv with a tail. Run by hand; see caselib.py for what it needs (ONNX Runtime is not).

    /usr/bin/python3 tests/ops/make_cases_last.py

Expected values come from the formulas below in f64, with the channels first, as ONNX has them. Values are multiples of
1/8, so that sums of products are exact in f32 and most cases need no tolerance."""
import itertools
import os
import re

import numpy as np

from casearrays import Cases

rng = np.random.default_rng(7)
CHAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../src/ops/chain.def')
STEPS = re.findall(r'^BERTH__CHAIN\((\w+)', open(CHAIN, encoding='ascii').read(), re.M)


def step(name, *registers):
    return [STEPS.index(name), *registers, 0, 0, 0][:4]


def eighths(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype(np.float32)


def windows(x, kernel, strides, pads, dilations):
    """x [N, C, spatial...], padded, as {tap: its element of every window}."""
    n = len(kernel)
    x = np.pad(x.astype('f8'), [(0, 0), (0, 0)] + [(pads[k], pads[n + k]) for k in range(n)])
    out = [(x.shape[2 + k] - (kernel[k] - 1) * dilations[k] - 1) // strides[k] + 1 for k in range(n)]
    taps = {}
    for tap in itertools.product(*map(range, kernel)):
        at = tuple(slice(tap[k] * dilations[k], tap[k] * dilations[k] + (out[k] - 1) * strides[k] + 1, strides[k])
                   for k in range(n))
        taps[tap] = x[(slice(None), slice(None)) + at]
    return taps


def lists(spatial, strides=None, pads=None, dilations=None, **_):
    return strides or [1] * spatial, pads or [0] * 2 * spatial, dilations or [1] * spatial


def conv(x, w, bias=None, group=1, **attrs):
    """x [N, C, spatial...], w [O, C / group, kernel...]."""
    strides, pads, dilations = lists(x.ndim - 2, **attrs)
    taps = windows(x, w.shape[2:], strides, pads, dilations)
    outputs, channels = w.shape[0] // group, w.shape[1]
    parts = []
    for g in range(group):
        part = sum(np.einsum('nc...,oc->no...', rows[:, g * channels:(g + 1) * channels],
                             w[(slice(g * outputs, (g + 1) * outputs), slice(None)) + tap].astype('f8'))
                   for tap, rows in taps.items())
        parts.append(part)
    whole = np.concatenate(parts, 1)
    return whole if bias is None else whole + bias.reshape([-1] + [1] * (x.ndim - 2))


def conv_transpose(x, w, bias, strides, pads, output_pads, dilations):
    """x [N, C, spatial...], w [C, O, kernel...]."""
    n = x.ndim - 2
    kernel = w.shape[2:]
    extent = [(x.shape[2 + k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + output_pads[k] for k in range(n)]
    out = np.zeros([x.shape[0], w.shape[1]] + extent)
    for tap in itertools.product(*map(range, kernel)):
        at = tuple(slice(tap[k] * dilations[k], tap[k] * dilations[k] + (x.shape[2 + k] - 1) * strides[k] + 1,
                         strides[k]) for k in range(n))
        out[(slice(None), slice(None)) + at] += np.einsum('nc...,co->no...', x.astype('f8'),
                                                          w[(slice(None), slice(None)) + tap].astype('f8'))
    out = out[(slice(None), slice(None)) + tuple(slice(pads[k], extent[k] - pads[n + k]) for k in range(n))]
    return out if bias is None else out + bias.reshape([-1] + [1] * n)


def last(x):
    """Channels from the second axis to the last."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def packed(w, panel, group=1):
    """w [..., N] as pack_weights lays it out."""
    columns = w.shape[-1] // group
    rows = w.reshape(-1, group, columns)
    panels = -(-columns // panel)
    rows = np.pad(rows, [(0, 0), (0, 0), (0, panels * panel - columns)])
    return np.ascontiguousarray(rows.reshape(-1, group * panels, panel).transpose(1, 0, 2))


def pack_conv(w, panel, group=1):
    return packed(np.moveaxis(w, (0, 1), (-1, -2)), panel, group)


def f4(x):
    return np.asarray(x).astype(np.float32)


def conv_last_cases():
    f = Cases('conv_last', 'make_cases_last.py')
    cases = {
        '1d': ((2, 3, 7), (4, 3, 3), {}),
        '1d_strided': ((1, 2, 11), (2, 2, 3), dict(strides=[3], dilations=[2], pads=[1, 4])),
        '2d': ((1, 2, 5, 6), (3, 2, 3, 3), {}),
        '2d_same': ((2, 3, 5, 4), (7, 3, 3, 3), dict(pads=[1, 1, 1, 1])),
        '2d_uneven': ((1, 2, 6, 7), (2, 2, 2, 3), dict(pads=[1, 0, 2, 3], strides=[2, 3], dilations=[3, 2])),
        '2d_groups': ((1, 4, 4, 4), (6, 2, 3, 3), dict(pads=[1, 1, 1, 1], group=2)),
        '2d_pointwise': ((1, 9, 3, 3), (40, 9, 1, 1), {}),
        '2d_pointwise_strided': ((1, 5, 5, 6), (5, 5, 1, 1), dict(strides=[2, 2])),
        '2d_patches': ((1, 3, 8, 8), (4, 3, 4, 4), dict(strides=[4, 4])),
        '2d_wide_pads': ((1, 1, 2, 2), (1, 1, 2, 2), dict(pads=[3, 3, 3, 3])),
        '2d_stem': ((1, 3, 11, 11), (8, 3, 7, 7), dict(pads=[3, 3, 3, 3], strides=[2, 2])),
        '3d': ((1, 2, 3, 4, 4), (2, 2, 2, 3, 2), dict(pads=[0, 1, 0, 1, 1, 1], strides=[1, 2, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        x, w = eighths(*x), eighths(*w)
        for panel in (8, 16, 32) if name in ('2d_same', '2d_groups') else (8,):
            f.case('conv_last_%s_%d' % (name, panel), 'conv_last',
                   [last(x), pack_conv(w, panel, attrs.get('group', 1))], f4(last(conv(x, w, **attrs))),
                   kernel=list(w.shape[2:]), channels=w.shape[0], panel=panel, **attrs)
    x, w, b = eighths(1, 2, 4, 4), eighths(3, 2, 3, 3), eighths(3)
    same = last(conv(x, w, b))
    operands = [last(x), pack_conv(w, 4), b]
    given = dict(kernel=[3, 3], channels=3, panel=4)
    f.case('conv_last_bias', 'conv_last', operands, f4(same), **given)
    f.case('conv_last_relu', 'conv_last', operands, f4(np.maximum(same, 0)), code=step('relu', 0), **given)
    f.case('conv_last_clamp', 'conv_last', operands, f4(np.clip(same, -1, 2)), code=step('clamp', 0, 1, 2),
           numbers=[-1.0, 2.0], **given)
    residual, scale = eighths(1, 2, 2, 3), eighths(2, 1)
    f.case('conv_last_residual', 'conv_last', operands + [residual], f4(np.maximum(same + residual, 0)),
           code=step('add', 0, 1) + step('relu', 2), **given)
    f.case('conv_last_tail', 'conv_last', [operands[0], operands[1], None, residual, scale],
           f4((last(conv(x, w)) + 0.5) * residual - scale),
           code=step('add', 0, 3) + step('mul', 4, 1) + step('sub', 5, 2), numbers=[0.5], **given)
    f.case('conv_last_no_images', 'conv_last', [eighths(0, 5, 2), eighths(1, 6, 4)], np.zeros((0, 3, 4), 'f4'),
           kernel=[3], channels=4, panel=4)
    x, w = eighths(1, 5, 4), eighths(1, 12, 4)
    given = dict(kernel=[3], channels=4, panel=4)

    def wrong(name, message, ins=None, **attrs):
        f.error('conv_last_wrong_' + name, 'conv_last', ins or [x, w], message, **{**given, **attrs})
    wrong('groups', '4 channels do not split into 3 groups', group=3)
    wrong('output_groups', '5 output channels do not split into 2 groups', group=2, channels=5)
    wrong('group', '`group` is 0, expected 1 or more', group=0)
    wrong('channels', '`channels` is 0', channels=0)
    wrong('panel', '`panel` is -1', panel=-1)
    wrong('panels', 'panels of the output channels and of the weight: extents 2 and 1 differ', channels=5)
    wrong('rows', 'taps times channels and rows of the weight: extents 8 and 12 differ', kernel=[2])
    wrong('columns', '`panel` and columns of the weight', panel=8)
    wrong('kernels', '`kernel` has 2 entries, expected 1', kernel=[1, 3])
    wrong('kernel_0', 'entry 0 of `kernel` is 0', kernel=[0])
    wrong('kernel_large', 'the kernel covers 7 elements', dilations=[3])
    wrong('strides', '`strides` has 2 entries', strides=[1, 1])
    wrong('bias', 'output channels and bias: extents 4 and 3 differ', [x, w, eighths(3)])
    wrong('type', 'operand 0 has type f64', [x.astype('f8'), w])
    wrong('rank', 'operand 0 has shape [5, 4]', [x[0], w])
    wrong('extra', 'but its `code` is empty', [x, w, None, eighths(4)])
    wrong('extra_shape', 'do not broadcast', [x, w, None, eighths(5)], code=step('add', 0, 1))
    wrong('extra_large', 'which is more than the result', [x, w, None, eighths(2, 3, 4)], code=step('add', 0, 1))
    wrong('over', '`over` is 1; it is 0, or 1 with a window of one element', over=1)
    wrong('over_strides', '`over` is 1', [x, w[:, :4]], kernel=[1], strides=[2], over=1)
    wrong('over_value', '`over` is -1', [x, w[:, :4]], kernel=[1], over=-1)
    v = w[:, :4]
    f.case('conv_last_over', 'conv_last', [x, v], f4(np.einsum('nwc,co->nwo', x.astype('f8'), v[0].astype('f8'))),
           **{**given, 'kernel': [1], 'over': 1})
    wrong('extra_missing', 'operand 3 is left out', [x, w, None, None, eighths(4)], code=step('add', 0, 1))
    f.save()


def depthwise_cases():
    f = Cases('depthwise', 'make_cases_last.py')
    cases = {
        '1d': ((2, 5, 7), (3,), dict(pads=[1, 1])),
        '2d': ((1, 3, 5, 6), (3, 3), {}),
        '2d_same': ((2, 20, 5, 4), (3, 3), dict(pads=[1, 1, 1, 1])),
        '2d_stride': ((1, 17, 6, 7), (3, 3), dict(pads=[1, 1, 1, 1], strides=[2, 2])),
        '2d_five': ((1, 5, 7, 7), (5, 5), dict(pads=[2, 2, 2, 2])),
        '2d_five_stride': ((1, 4, 9, 8), (5, 5), dict(pads=[1, 2, 2, 1], strides=[2, 2])),
        '2d_uneven': ((1, 2, 6, 7), (2, 3), dict(pads=[1, 0, 2, 3], strides=[2, 3], dilations=[3, 2])),
        '2d_wide_pads': ((1, 1, 2, 2), (2, 2), dict(pads=[3, 3, 3, 3])),
        '2d_narrow': ((1, 3, 1, 1), (3, 3), dict(pads=[1, 1, 1, 1])),
        '3d': ((1, 2, 3, 4, 4), (2, 3, 2), dict(pads=[0, 1, 0, 1, 1, 1], strides=[1, 2, 1])),
    }
    for name, (x, kernel, attrs) in cases.items():
        x, w = eighths(*x), eighths(x[1], 1, *kernel)
        f.case('depthwise_' + name, 'depthwise', [last(x), last(w[:, 0][None])[0]],
               f4(last(conv(x, w, group=x.shape[1], **attrs))), kernel=list(kernel), **attrs)
    x, w, b = eighths(1, 18, 4, 5), eighths(18, 1, 3, 3), eighths(18)
    same = last(conv(x, w, b, group=18, pads=[1, 1, 1, 1]))
    operands = [last(x), last(w[:, 0][None])[0], b]
    given = dict(kernel=[3, 3], pads=[1, 1, 1, 1])
    f.case('depthwise_bias', 'depthwise', operands, f4(same), **given)
    f.case('depthwise_over', 'depthwise', operands, f4(same), over=1, **given)
    f.case('depthwise_clamp', 'depthwise', operands, f4(np.clip(same, 0, 6)), code=step('clamp', 0, 1, 2),
           numbers=[0.0, 6.0], **given)
    residual = eighths(1, 4, 5, 18)
    f.case('depthwise_tail', 'depthwise', operands + [residual, b], f4((same + residual) * b),
           code=step('add', 0, 1) + step('mul', 3, 2), **given)
    x, w = eighths(1, 5, 4), eighths(3, 4)
    f.error('depthwise_channels', 'depthwise', [x, eighths(3, 5)],
            "the weight's 5 outputs are no multiple of the input's 4 channels", kernel=[3])
    f.error('depthwise_over_strides', 'depthwise', [x, w],
            '`over` is 1; it is 0, or 1 with one or two spatial axes, strides of 1 and one output for each channel',
            kernel=[3], strides=[2], over=1)
    f.error('depthwise_over_value', 'depthwise', [x, w], '`over` is 2', kernel=[3], over=2)
    f.error('depthwise_kernel', 'depthwise', [x, w], '`kernel` and weight: extents 2 and 3 differ', kernel=[2])
    f.error('depthwise_kernels', 'depthwise', [x, w], '`kernel` has 2 entries, expected 1', kernel=[3, 3])
    f.error('depthwise_rank', 'depthwise', [x, eighths(3, 3, 4)], 'expected rank 2', kernel=[3])
    f.error('depthwise_bias_extent', 'depthwise', [x, w, eighths(3)], 'extents 4 and 3 differ', kernel=[3])
    f.save()


def conv_transpose_last_cases():
    f = Cases('conv_transpose_last', 'make_cases_last.py')
    cases = {
        '1d': ((2, 3, 4), (3, 5, 3), dict(strides=[2], pads=[1, 0], output_pads=[1])),
        '2d': ((1, 2, 3, 3), (2, 3, 2, 2), {}),
        '2d_shuffle': ((2, 3, 3, 4), (3, 10, 2, 2), dict(strides=[2, 2])),
        '2d_up': ((1, 2, 3, 4), (2, 2, 4, 4), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
        '2d_three': ((1, 4, 4, 5), (4, 9, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1], output_pads=[1, 1])),
        '2d_uneven': ((1, 2, 3, 2), (2, 1, 3, 2), dict(strides=[2, 3], pads=[0, 1, 1, 0], dilations=[1, 2],
                                                       output_pads=[1, 0])),
        '2d_gaps': ((1, 1, 2, 2), (1, 1, 1, 1), dict(strides=[3, 2])),
        '3d': ((1, 2, 2, 2, 3), (2, 2, 2, 3, 2), dict(strides=[1, 2, 2], pads=[0, 1, 0, 0, 1, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        x, w, n = eighths(*x), eighths(*w), len(x) - 2
        strides, pads, dilations = lists(n, **attrs)
        result = conv_transpose(x, w, None, strides, pads, attrs.get('output_pads', [0] * n), dilations)
        for panel in (8, 16, 32) if name == '2d_three' else (8,):
            f.case('conv_transpose_last_%s_%d' % (name, panel), 'conv_transpose_last',
                   [last(x), packed(np.moveaxis(w, (0, 1), (-2, -1)), panel)], f4(last(result)),
                   kernel=list(w.shape[2:]), channels=w.shape[1], panel=panel, **attrs)
    x, w, b = eighths(1, 2, 3, 3), eighths(2, 5, 2, 2), eighths(5)
    same = last(conv_transpose(x, w, b, [2, 2], [0] * 4, [0, 0], [1, 1]))
    operands = [last(x), packed(np.moveaxis(w, (0, 1), (-2, -1)), 8), b]
    given = dict(kernel=[2, 2], channels=5, panel=8, strides=[2, 2])
    f.case('conv_transpose_last_bias', 'conv_transpose_last', operands, f4(same), **given)
    f.case('conv_transpose_last_relu', 'conv_transpose_last', operands, f4(np.maximum(same, 0)),
           code=step('relu', 0), **given)
    residual = eighths(1, 6, 6, 5)
    f.case('conv_transpose_last_residual', 'conv_transpose_last', operands + [residual], f4(same + residual),
           code=step('add', 0, 1), **given)

    def wrong(name, message, ins=None, **attrs):
        f.error('conv_transpose_last_wrong_' + name, 'conv_transpose_last', ins or operands, message,
                **{**given, **attrs})
    wrong('rows', 'taps times channels and rows of the weight: extents 12 and 8 differ', kernel=[2, 3])
    wrong('pads', 'pads take 7 elements off spatial axis 0 of the output, which has 6', pads=[3, 0, 4, 0])
    wrong('output_pads', '`output_pads` has 1 entries, expected 2', output_pads=[1])
    wrong('channels', '`channels` is 0', channels=0)
    wrong('panel', '`panel` is 0', panel=0)
    wrong('bias', 'output channels and bias: extents 5 and 4 differ', operands[:2] + [eighths(4)])
    wrong('empty', 'spatial axis 1 of the input is empty', [eighths(1, 3, 0, 2)] + operands[1:])
    wrong('large', 'is too large', dilations=[9223372036854775807, 1])
    f.save()


def joined(w, strides, panel):
    """w [C, O, kernel...]: the taps that fall on one pixel of a cell, a stride large, are in the same column."""
    n = w.ndim - 2
    reach = [-(-w.shape[2 + k] // strides[k]) for k in range(n)]
    w = np.pad(w, [(0, 0), (0, 0)] + [(0, reach[k] * strides[k] - w.shape[2 + k]) for k in range(n)])
    w = w.reshape(list(w.shape[:2]) + [e for k in range(n) for e in (reach[k], strides[k])])
    w = w.transpose([2 + 2 * k for k in range(n)] + [0] + [3 + 2 * k for k in range(n)] + [1])
    return packed(w.reshape(reach + [w.shape[n], -1]), panel)


def conv_transpose_joined_cases():
    f = Cases('conv_transpose_joined', 'make_cases_last.py')
    cases = {
        '1d': ((2, 3, 4), (3, 5, 3), dict(strides=[2], pads=[1, 0], output_pads=[1])),
        '2d': ((1, 2, 3, 3), (2, 3, 2, 2), {}),
        '2d_touching': ((2, 3, 3, 4), (3, 10, 2, 2), dict(strides=[2, 2])),
        '2d_up': ((1, 2, 3, 4), (2, 2, 4, 4), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
        '2d_three': ((1, 4, 4, 5), (4, 1, 3, 3), dict(strides=[2, 2], pads=[1, 1, 1, 1], output_pads=[1, 1])),
        '2d_uneven': ((1, 2, 3, 2), (2, 1, 3, 7), dict(strides=[2, 3], pads=[0, 4, 1, 1], output_pads=[1, 0])),
        '2d_gaps': ((1, 1, 2, 2), (1, 1, 1, 1), dict(strides=[3, 2])),
        '3d': ((1, 2, 2, 2, 3), (2, 2, 2, 3, 2), dict(strides=[1, 2, 2], pads=[0, 1, 0, 0, 1, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        x, w, n = eighths(*x), eighths(*w), len(x) - 2
        strides, pads, dilations = lists(n, **attrs)
        result = conv_transpose(x, w, None, strides, pads, attrs.get('output_pads', [0] * n), dilations)
        for panel in (8, 16, 32) if name == '2d_three' else (8,):
            f.case('conv_transpose_joined_%s_%d' % (name, panel), 'conv_transpose_last',
                   [last(x), joined(w, strides, panel)], f4(last(result)),
                   kernel=list(w.shape[2:]), channels=w.shape[1], panel=panel, joined=1, **attrs)
    x, w, b = eighths(1, 2, 3, 3), eighths(2, 3, 4, 4), eighths(3)
    operands = [last(x), joined(w, [2, 2], 8), b]
    given = dict(kernel=[4, 4], channels=3, panel=8, strides=[2, 2], joined=1)
    f.case('conv_transpose_joined_relu', 'conv_transpose_last', operands,
           f4(np.maximum(last(conv_transpose(x, w, b, [2, 2], [0] * 4, [0, 0], [1, 1])), 0)),
           code=step('relu', 0), **given)

    def wrong(name, message, **attrs):
        f.error('conv_transpose_joined_wrong_' + name, 'conv_transpose_last', operands, message, **{**given, **attrs})
    wrong('rows', 'taps times channels and rows of the weight: extents 12 and 8 differ', kernel=[4, 5])
    wrong('columns', 'panels of the output channels and of the weight: extents 1 and 2 differ', channels=1)
    wrong('value', '`joined` is 2, expected 0 or 1', joined=2)
    wrong('dilations', 'weights cannot be `joined` with dilations', dilations=[1, 2])
    f.save()


def conv_transpose_each_cases():
    f = Cases('conv_transpose_each', 'make_cases_last.py')
    cases = {
        '1d': ((2, 3, 4), (3,), dict(strides=[2], pads=[1, 0], output_pads=[1])),
        '2d': ((1, 2, 3, 3), (2, 2), {}),
        '2d_up': ((2, 3, 3, 4), (4, 4), dict(strides=[2, 2], pads=[1, 1, 1, 1])),
        '2d_uneven': ((1, 2, 3, 2), (3, 2), dict(strides=[2, 3], pads=[0, 1, 1, 0], dilations=[1, 2],
                                                 output_pads=[1, 0])),
        '3d': ((1, 2, 2, 2, 3), (2, 3, 2), dict(strides=[1, 2, 2], pads=[0, 1, 0, 0, 1, 1])),
    }
    for name, (x, kernel, attrs) in cases.items():
        x, w, n = eighths(*x), eighths(*kernel, x[1]), len(kernel)
        strides, pads, dilations = lists(n, **attrs)
        result = [conv_transpose(x[:, [c]], w[..., c][None, None], None, strides, pads,
                                 attrs.get('output_pads', [0] * n), dilations) for c in range(x.shape[1])]
        f.case('conv_transpose_each_' + name, 'conv_transpose_last', [last(x), w],
               f4(last(np.concatenate(result, axis=1))), kernel=list(kernel), channels=x.shape[1], panel=1, each=1,
               **attrs)
    operands = [last(x), w]
    given = dict(kernel=list(kernel), channels=x.shape[1], panel=1, each=1)

    def wrong(name, message, ins=None, **attrs):
        f.error('conv_transpose_each_wrong_' + name, 'conv_transpose_last', ins or operands, message,
                **{**given, **attrs})
    wrong('value', '`each` is 2, expected 0 or 1', each=2)
    wrong('joined', 'weights of each channel by itself cannot be `joined`', joined=1)
    wrong('kernel', '`kernel` and weight: extents 3 and 2 differ', kernel=[3, 3, 2])
    wrong('channels', '`channels` and weight: extents 3 and 2 differ', channels=3)
    wrong('input', '`channels` and those of the input: extents 2 and 3 differ', [eighths(1, 2, 2, 3, 3), w])
    wrong('rank', 'expected rank 4', [operands[0], w[0]])
    f.save()


def toom_cook(tile):
    """The transforms for the points 0, +-a, +-1/a and infinity, from their definitions."""
    points = [0, 1, -1] if tile == 2 else [0, .5**.5, -.5**.5, 2**.5, -2**.5]
    n = len(points)
    others = [[p for p in points if p != q] for q in points]
    kernel = np.array([[q**k / np.prod([q - p for p in rest]) for k in range(3)]
                       for q, rest in zip(points, others)] + [[0, 0, 1]])
    inputs = np.zeros((n + 1, n + 1))
    for i, roots in enumerate(others + [points]):
        coefficients = np.poly(roots)[::-1]
        inputs[i, :len(coefficients)] = coefficients
    return kernel, inputs


def pack_winograd(w, panel, tile, scale=None):
    """w [O, C, 3, 3]."""
    kernel, _ = toom_cook(tile)
    u = np.einsum('ia,kb,ocab->ikco', kernel, kernel, w.astype('f8'))
    u = u.reshape(-1, w.shape[1], w.shape[0]) * (1 if scale is None else scale)
    return np.stack([packed(value, panel) for value in u])


def winograd_cases():
    f = Cases('winograd', 'make_cases_last.py')
    tol = (2e-5, 2e-6)
    for tile in (2, 4):
        w, scale = eighths(5, 3, 3, 3), eighths(5)
        view = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
        f.case('pack_winograd_%d' % tile, 'pack_winograd', [view], f4(pack_winograd(w, 4, tile)), tol=(1e-6, 1e-6),
               panel=4, tile=tile)
        f.case('pack_winograd_scale_%d' % tile, 'pack_winograd', [view, scale],
               f4(pack_winograd(w, 8, tile, scale)), tol=(1e-6, 1e-6), panel=8, tile=tile)
        for name, (x, pads) in {'whole': ((1, 3, 10, 6), [0, 0, 0, 0]), 'same': ((2, 3, 5, 7), [1, 1, 1, 1]),
                                'small': ((1, 3, 1, 2), [1, 1, 1, 1]), 'uneven': ((1, 3, 4, 6), [2, 0, 1, 3])}.items():
            x = eighths(*x)
            for panel in (8, 16, 32) if name == 'same' else (8,):
                f.case('conv_winograd_%s_%d_%d' % (name, tile, panel), 'conv_winograd',
                       [last(x), f4(pack_winograd(w, panel, tile))], f4(last(conv(x, w, pads=pads))), tol=tol,
                       channels=5, panel=panel, tile=tile, pads=pads)
        x, b = eighths(1, 3, 5, 5), eighths(5)
        residual = eighths(1, 5, 5, 5)
        f.case('conv_winograd_tail_%d' % tile, 'conv_winograd', [last(x), f4(pack_winograd(w, 4, tile)), b, residual],
               f4(np.maximum(last(conv(x, w, b, pads=[1] * 4)) + residual, 0)), tol=tol, channels=5, panel=4,
               tile=tile, pads=[1] * 4, code=step('add', 0, 1) + step('relu', 2))
    x, w = eighths(1, 5, 5, 3), eighths(16, 1, 3, 4)

    def wrong(name, message, ins=None, **attrs):
        f.error('conv_winograd_wrong_' + name, 'conv_winograd', ins or [x, w], message,
                **{**dict(channels=4, panel=4, tile=2), **attrs})
    wrong('tile', '`tile` is 3, expected 2 or 4', tile=3)
    wrong('tiles', '`tile` and weight: extents 36 and 16 differ', tile=4)
    wrong('panels', 'panels of the output channels and of the weight: extents 2 and 1 differ', channels=5)
    wrong('channels', 'channels of x and of the weight: extents 2 and 3 differ', [eighths(1, 5, 5, 2), w])
    wrong('panel', 'extents 8 and 4 differ', panel=8)
    wrong('rank', 'operand 0 has shape [5, 5, 3]', [x[0], w])
    wrong('extent', 'the kernel covers 3 elements', [x[:, :2], w])
    f.error('pack_winograd_kernel', 'pack_winograd', [eighths(3, 2, 4, 4)], 'extents 3 and 2 differ', panel=4)
    f.error('pack_winograd_tile', 'pack_winograd', [eighths(3, 3, 4, 4)], '`tile` is 5', panel=4, tile=5)
    f.error('pack_winograd_panel', 'pack_winograd', [eighths(3, 3, 4, 4)], '`panel` is 0', panel=0)
    f.error('pack_winograd_columns', 'pack_winograd', [eighths(3, 3, 4, 4), eighths(3)],
            'columns and scale: extents 4 and 3 differ', panel=4)
    f.save()


def pooled(op, x, kernel, include=False, p=2, **attrs):
    """x [N, C, spatial...]."""
    strides, pads, dilations = lists(x.ndim - 2, **attrs)
    empty = -np.inf if op == 'max_pool' else 0
    shifted = x.astype('f8') - (0 if op != 'max_pool' else 1e6)  # padding with zeros never is the largest then
    taps = np.stack(list(windows(shifted, kernel, strides, pads, dilations).values()))
    inside = np.stack(list(windows(np.ones_like(x), kernel, strides, pads, dilations).values()))
    if op == 'max_pool':
        return np.where(inside > 0, taps + 1e6, empty).max(0)
    if op == 'lp_pool':
        return (np.abs(taps)**p).sum(0)**(1 / p)
    return taps.sum(0) / (len(taps) if include else inside.sum(0))


def pool_cases():
    f = Cases('pool_last', 'make_cases_last.py')
    cases = {
        '1d': ((2, 5, 7), dict(kernel=[2], strides=[2])),
        '2d': ((1, 3, 5, 6), dict(kernel=[2, 2])),
        '2d_same': ((2, 20, 5, 4), dict(kernel=[3, 3], pads=[1, 1, 1, 1])),
        '2d_stride': ((1, 17, 6, 7), dict(kernel=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])),
        '2d_uneven': ((1, 2, 6, 7), dict(kernel=[2, 3], pads=[1, 0, 2, 3], strides=[2, 3], dilations=[3, 2])),
        '2d_global': ((2, 33, 3, 4), dict(kernel=[3, 4])),
        '3d': ((1, 2, 3, 4, 4), dict(kernel=[2, 3, 2], pads=[0, 1, 0, 1, 1, 1], strides=[1, 2, 1])),
    }
    for name, (shape, attrs) in cases.items():
        x = eighths(*shape)
        for op in ('max_pool', 'avg_pool', 'lp_pool'):
            tol = None if op == 'max_pool' else (1e-6, 1e-6)
            f.case('%s_last_%s' % (op, name), op, [last(x)], f4(last(pooled(op, x, **attrs))), tol=tol,
                   channels_last=1, **attrs)
        f.case('avg_pool_last_%s_include' % name, 'avg_pool', [last(x)],
               f4(last(pooled('avg_pool', x, include=True, **attrs))), tol=(1e-6, 1e-6), channels_last=1,
               count_include_pad=1, **attrs)
    x = eighths(1, 2, 4, 4).astype(np.int32)
    f.case('max_pool_last_i32', 'max_pool', [last(x)], last(pooled('max_pool', x, [2, 2])).astype(np.int32),
           kernel=[2, 2], channels_last=1)
    x = eighths(1, 2, 3, 3)
    x[0, 1, 1, 1] = np.nan
    f.case('max_pool_last_nan', 'max_pool', [last(x)], f4(last(pooled('max_pool', x, [2, 2]))), kernel=[2, 2],
           channels_last=1)
    f.save()


def adds_cases():
    f = Cases('conv_adds', 'make_cases_last.py')
    x, w, b, other, factor = eighths(1, 3, 5, 6), eighths(5, 3, 3, 3), eighths(5), eighths(1, 5, 6, 5), eighths(5)
    same = last(conv(x, w, b, pads=[1] * 4)) + other
    ops = {'conv_last': (pack_conv(w, 8), dict(kernel=[3, 3]), None),
           'conv_winograd': (f4(pack_winograd(w, 8, 4)), {}, (2e-5, 2e-6))}
    for op, (weight, more, tol) in ops.items():
        given = dict(channels=5, panel=8, pads=[1] * 4, adds=1, **more)
        operands = [last(x), weight, b, other]
        f.case(op + '_adds', op, operands, f4(same), tol=tol, **given)
        f.case(op + '_adds_relu', op, operands, f4(np.maximum(same, 0)), tol=tol, code=step('relu', 0), **given)
        f.case(op + '_adds_tail', op, operands + [factor], f4(same * factor), tol=tol, code=step('mul', 0, 1), **given)
        f.error(op + '_adds_nothing', op, operands[:3], '`adds` is set', **given)
        f.error(op + '_adds_other', op, operands[:3] + [factor], 'is added to the result but has another', **given)
    f.save()


def conv_tail_cases():
    """conv itself, channels first, with what is added and a tail behind it."""
    f = Cases('conv_tail', 'make_cases_last.py')
    x, w, b = eighths(2, 4, 5, 6), eighths(6, 2, 3, 3), eighths(6)
    given = dict(pads=[1] * 4, group=2)
    same, plain = conv(x, w, b, **given), conv(x, w, **given)
    other, factor, per_row = eighths(2, 6, 5, 6), eighths(6, 1, 1), eighths(5, 1)
    f.case('conv_tail_relu', 'conv', [x, w, b], f4(np.maximum(same, 0)), code=step('relu', 0), **given)
    f.case('conv_tail_clamp', 'conv', [x, w], f4(np.clip(plain, -1, 2)), code=step('clamp', 0, 1, 2),
           numbers=[-1.0, 2.0], **given)
    f.case('conv_tail_residual', 'conv', [x, w, b, other], f4(np.maximum(same + other, 0)),
           code=step('add', 0, 1) + step('relu', 2), **given)
    f.case('conv_tail_no_bias', 'conv', [x, w, None, factor, per_row], f4((plain + 0.5) * factor - per_row),
           code=step('add', 0, 3) + step('mul', 4, 1) + step('sub', 5, 2), numbers=[0.5], **given)
    f.case('conv_tail_adds', 'conv', [x, w, b, other], f4(same + other), adds=1, **given)
    f.case('conv_tail_adds_mul', 'conv', [x, w, None, other, factor], f4((plain + other) * factor), adds=1,
           code=step('mul', 0, 1), **given)
    one, narrow = eighths(1, 3, 9), eighths(4, 3, 2)
    f.case('conv_tail_1d', 'conv', [one, narrow], f4(np.maximum(conv(one, narrow, strides=[2]), 0)),
           code=step('relu', 0), strides=[2])
    f.case('conv_tail_no_images', 'conv', [eighths(0, 4, 5, 6), w], np.zeros((0, 6, 3, 4), 'f4'), code=step('relu', 0),
           group=2)

    def wrong(name, message, ins, **attrs):
        f.error('conv_tail_wrong_' + name, 'conv', ins, message, **{**given, **attrs})
    wrong('extra', 'there are 1 operands for the epilogue, but its `code` is empty', [x, w, b, other])
    wrong('lacks', 'operand 3 is left out', [x, w, b, None, other], code=step('add', 0, 2))
    wrong('register', 'reads register 2', [x, w, b, other], code=step('add', 0, 2))
    wrong('shape', 'which is more than the result', [x, w, b, eighths(3, 2, 6, 5, 6)], code=step('add', 0, 1))
    wrong('type', 'operand 0 has type i32, expected f32', [x.astype('i4'), w.astype('i4')], code=step('relu', 0))
    wrong('nothing', '`adds` is set', [x, w, b], adds=1)
    wrong('other', 'is added to the result but has another', [x, w, b, factor], adds=1)
    f.save()


def depthwise_multiple_cases():
    f = Cases('depthwise_multiple', 'make_cases_last.py')
    cases = {
        '1d': ((2, 3, 7), 2, (3,), dict(pads=[1, 1])),
        '2d': ((1, 5, 6, 5), 3, (3, 3), dict(pads=[1, 1, 1, 1], strides=[2, 1])),
        '2d_many': ((1, 2, 4, 4), 20, (2, 2), dict(dilations=[2, 1])),
    }
    for name, (x, times, kernel, attrs) in cases.items():
        x, w, b = eighths(*x), eighths(x[1] * times, 1, *kernel), eighths(x[1] * times)
        f.case('depthwise_multiple_' + name, 'depthwise', [last(x), last(w[:, 0][None])[0], b],
               f4(last(conv(x, w, b, group=x.shape[1], **attrs))), kernel=list(kernel), **attrs)
    f.save()


if __name__ == '__main__':
    conv_last_cases()
    depthwise_cases()
    winograd_cases()
    pool_cases()
    conv_transpose_last_cases()
    adds_cases()
    conv_tail_cases()
    depthwise_multiple_cases()
    conv_transpose_joined_cases()
    conv_transpose_each_cases()
