#!/usr/bin/python3
"""Writes the cases of the products of bytes, of quantize_range and of attention with merged heads. Run by hand:
/usr/bin/python3 tests/ops/make_cases_bytes.py

Expected values come from numpy: sums of integers are exact, scales are powers of two, so that results are too."""
import numpy as np

from casearrays import Cases

rng = np.random.default_rng(23)
CODE = {'add': 1, 'mul': 3, 'clamp': 8, 'relu': 22}  # src/ops/chain.def
SOURCE = 'make_cases_bytes.py'


def some(kind, *shape):
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def eighths(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype('f4')


def packed(w, panel, groups=1):
    """The definition, literally: groups of four rows of a column, then the column's sum as four bytes."""
    w = w.reshape(-1, w.shape[-1]).astype('i4') - (128 if w.dtype == np.uint8 else 0)
    rows = -(-w.shape[0] // 4)
    panels = []
    for group in np.split(w, groups, axis=1):
        for at in range(0, group.shape[1], panel):
            part = group[:, at:at + panel]
            part = np.pad(part, ((0, 4 * rows - part.shape[0]), (0, panel - part.shape[1])))
            four = part.reshape(rows, 4, panel).transpose(0, 2, 1).astype('i1')
            sums = part.sum(axis=0).astype('<i4').view('i1').reshape(1, panel, 4)
            panels.append(np.concatenate([four, sums]))
    return np.array(panels, 'i1').reshape(len(panels), rows + 1, panel, 4)


def finish(sums, scale, bias, attrs):
    """sum * scale + bias, the tail where it is a relu, and the result's bytes."""
    x = sums.astype('f8') * scale + (0 if bias is None else bias)
    if attrs.get('code', [0])[0] == CODE['relu']:
        x = np.maximum(x, 0)
    if 'to' not in attrs:
        return x.astype('f4')
    info = np.iinfo('u1' if attrs['to'] == 'u8' else 'i1')
    x = np.rint(x / attrs.get('out_scale', 1)) + attrs.get('out_zero', 0)
    return np.clip(x, info.min, info.max).astype(info.dtype)


RELU = dict(code=[CODE['relu'], 0, 0, 0])


def pack_cases():
    f = Cases('pack_weights_i8', SOURCE)
    for name, kind, shape, panel, groups in (('whole', 'i1', (8, 4), 4, 1), ('padded', 'i1', (5, 6), 4, 1),
                                             ('u8', 'u1', (4, 3), 2, 1), ('kernel', 'i1', (2, 2, 3, 5), 4, 1),
                                             ('groups', 'i1', (3, 10), 4, 2), ('one', 'u1', (1, 1), 1, 1)):
        w = some(kind, *shape)
        attrs = dict(panel=panel, groups=groups) if groups > 1 else dict(panel=panel)
        f.case('pack_weights_i8_' + name, 'pack_weights_i8', [w], packed(w, panel, groups), **attrs)
    f.case('pack_weights_i8_no_rows', 'pack_weights_i8', [some('i1', 0, 3)], np.zeros((1, 1, 4, 4), 'i1'), panel=4)
    f.error('pack_weights_i8_panel', 'pack_weights_i8', [some('i1', 3, 5)], '`panel` is 0, expected 1 or more', panel=0)
    f.error('pack_weights_i8_uneven', 'pack_weights_i8', [some('i1', 3, 5)], '5 columns do not split into 2 groups',
            panel=4, groups=2)
    f.error('pack_weights_i8_type', 'pack_weights_i8', [eighths(3, 5)], 'operand 0 has type f32, expected u8 or i8',
            panel=4)
    f.error('pack_weights_i8_rank', 'pack_weights_i8', [some('i1', 3)], 'operand 0 has shape [3]', panel=4)
    f.save()


def centred(x, zero):
    return x.astype('i8') - (0 if zero is None else zero.astype('i8'))


def product_cases():
    f = Cases('qproduct', SOURCE)

    def add(name, x, w, panel, scale, x_zero=None, w_zero=None, bias=None, **attrs):
        want = finish(centred(x, x_zero) @ centred(w, w_zero), scale, bias, attrs)
        ins = [x, packed(w, panel), scale, x_zero, w_zero, bias]
        while ins[-1] is None:
            ins.pop()
        if w.dtype == np.uint8:
            attrs['weights'] = 'u8'
        f.case('qproduct_' + name, 'qproduct', ins, want, columns=w.shape[1], panel=panel, **attrs)
    one, each = np.float32(0.125), np.float32([2.0**-k for k in range(6)])
    add('plain', some('u1', 3, 8), some('i1', 8, 6), 4, one)
    add('signed', some('i1', 2, 3, 7), some('i1', 7, 5), 4, one, bias=eighths(5))
    add('zeros', some('u1', 4, 5), some('u1', 5, 6), 4, each, np.uint8(113), np.uint8(131), eighths(6))
    add('zero_each', some('i1', 4, 5), some('u1', 5, 6), 8, each, np.int8(-7), some('u1', 6))
    add('unsigned_weight', some('u1', 2, 3), some('u1', 3, 6), 8, np.float32([0.5]))
    add('to_u8', some('u1', 4, 9), some('i1', 9, 6), 4, each, np.uint8(100), bias=eighths(6), to='u8', out_scale=512.0,
        out_zero=30)
    add('to_i8_relu', some('u1', 4, 9), some('i1', 9, 6), 4, each, to='i8', out_scale=256.0, out_zero=-20, **RELU)
    add('relu', some('u1', 2, 4), some('i1', 4, 3), 4, one, **RELU)
    x, w, extra = some('u1', 2, 4), some('i1', 4, 3), eighths(2, 3)
    f.case('qproduct_tail', 'qproduct', [x, packed(w, 4), one, None, None, None, extra],
           (centred(x, None) @ centred(w, None) * one + extra).astype('f4'), columns=3, panel=4,
           code=[CODE['add'], 0, 1, 0])
    p = packed(w, 4)
    f.error('qproduct_x', 'qproduct', [eighths(2, 4), p, one], 'operand 0 has type f32, expected u8 or i8', columns=3,
            panel=4)
    f.error('qproduct_scale', 'qproduct', [x, p, eighths(2)], 'entries of a scale or zero point', columns=3, panel=4)
    f.error('qproduct_zero', 'qproduct', [x, p, one, np.int8(3)], 'operand 3 has type i8', columns=3, panel=4)
    f.error('qproduct_weight_zero', 'qproduct', [x, p, one, None, np.uint8(3)], 'operand 4 has type u8', columns=3,
            panel=4)
    f.error('qproduct_bias', 'qproduct', [x, p, one, None, None, eighths(2)], 'columns of the result and bias', columns=3,
            panel=4)
    f.error('qproduct_groups', 'qproduct', [some('u1', 2, 5), p, one], 'groups of four rows', columns=3, panel=4)
    f.error('qproduct_columns', 'qproduct', [x, p, one], 'panels of the result', columns=5, panel=4)
    f.error('qproduct_to', 'qproduct', [x, p, one], "attribute 'to' is 'i16', expected u8 or i8", columns=3, panel=4,
            to='i16')
    f.error('qproduct_out_scale', 'qproduct', [x, p, one], '`out_scale` is 0', columns=3, panel=4, to='u8', out_scale=0.0)
    f.save()


def windows(x, zero, kernel, strides, dilations, pads):
    """[N, out..., taps, C] of [N, H, W, C], padded with the zero point."""
    x = np.pad(centred(x, zero), ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    out = [(x.shape[1 + a] - reach[a]) // strides[a] + 1 for a in range(2)]
    taps = []
    for ty in range(kernel[0]):
        for tx in range(kernel[1]):
            y, z = ty * dilations[0], tx * dilations[1]
            taps.append(x[:, y:y + (out[0] - 1) * strides[0] + 1:strides[0],
                          z:z + (out[1] - 1) * strides[1] + 1:strides[1]])
    return np.stack(taps, axis=3)


def window_attrs(kernel, strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0)):
    return dict(kernel=list(kernel), strides=list(strides), dilations=list(dilations), pads=list(pads))


def conv_cases():
    f = Cases('qconv_last', SOURCE)

    def add(name, x, w, panel, scale, window, x_zero=None, w_zero=None, bias=None, group=1, **attrs):
        taps = windows(x, x_zero, **window)
        flat = centred(w, w_zero).reshape(-1, w.shape[-1])
        sums = [np.moveaxis(part, 3, 3).reshape(part.shape[:3] + (-1,)) @ weight for part, weight in
                zip(np.split(taps, group, axis=4), np.split(flat, group, axis=1))]
        want = finish(np.concatenate(sums, axis=3), scale, bias, attrs)
        ins = [x, packed(w, panel, group), scale, x_zero, w_zero, bias]
        while ins[-1] is None:
            ins.pop()
        if w.dtype == np.uint8:
            attrs['weights'] = 'u8'
        if group > 1:
            attrs['group'] = group
        f.case('qconv_last_' + name, 'qconv_last', ins, want, channels=w.shape[-1], panel=panel, **window, **attrs)
    one, each = np.float32(0.25), np.float32([2.0**-k for k in range(4)])
    add('1x1', some('u1', 1, 3, 2, 4), some('i1', 1, 1, 4, 4), 4, each, window_attrs((1, 1)), bias=eighths(4))
    add('3x3', some('u1', 1, 4, 5, 3), some('i1', 3, 3, 3, 4), 4, each, window_attrs((3, 3), pads=(1, 1, 1, 1)),
        np.uint8(77), bias=eighths(4))
    add('signed', some('i1', 2, 5, 4, 2), some('u1', 2, 3, 2, 3), 8, one,
        window_attrs((2, 3), strides=(2, 1), pads=(0, 1, 1, 2)), np.int8(-9), np.uint8(120))
    add('dilated', some('u1', 1, 6, 6, 2), some('i1', 2, 2, 2, 3), 4, one,
        window_attrs((2, 2), strides=(1, 2), dilations=(3, 2)), to='i8', out_scale=128.0, **RELU)
    add('groups', some('u1', 1, 3, 3, 4), some('i1', 2, 2, 2, 4), 4, each, window_attrs((2, 2)), np.uint8(5), group=2,
        to='u8', out_scale=64.0, out_zero=128)
    x, w = some('u1', 1, 3, 3, 4), packed(some('i1', 2, 2, 4, 4), 4)
    f.error('qconv_last_kernel', 'qconv_last', [x, w, one], '`kernel` has 1 entries, expected 2', channels=4, panel=4,
            kernel=[2])
    f.error('qconv_last_weight', 'qconv_last', [x, w, one], 'groups of four rows', channels=4, panel=4, kernel=[3, 3])
    f.error('qconv_last_group', 'qconv_last', [x, w, one], 'channels do not split into 3 groups', channels=4, panel=4,
            kernel=[2, 2], group=3)
    f.save()


def depthwise_cases():
    f = Cases('qdepthwise', SOURCE)

    def add(name, x, w, scale, window, x_zero=None, w_zero=None, bias=None, **attrs):
        taps = windows(x, x_zero, **window)
        sums = (taps * centred(w, w_zero).reshape(-1, w.shape[-1])).sum(axis=3)
        want = finish(sums, scale, bias, attrs)
        ins = [x, w, scale, x_zero, w_zero, bias]
        while ins[-1] is None:
            ins.pop()
        f.case('qdepthwise_' + name, 'qdepthwise', ins, want, **window, **attrs)
    each = np.float32([2.0**-k for k in range(5)])
    add('3x3', some('u1', 1, 4, 5, 5), some('i1', 3, 3, 5), each, window_attrs((3, 3), pads=(1, 1, 1, 1)), np.uint8(90),
        bias=eighths(5))
    add('strided', some('i1', 2, 6, 5, 3), some('u1', 2, 3, 3), np.float32(0.5),
        window_attrs((2, 3), strides=(2, 2), dilations=(2, 1), pads=(1, 0, 0, 1)), np.int8(11), some('u1', 3))
    add('to_u8', some('u1', 1, 4, 4, 5), some('i1', 3, 3, 5), each, window_attrs((3, 3)), np.uint8(128), to='u8',
        out_scale=256.0, out_zero=9, **RELU)
    f.error('qdepthwise_channels', 'qdepthwise', [some('u1', 1, 4, 4, 5), some('i1', 3, 3, 4), each],
            'channels of x and of the weight', kernel=[3, 3])
    f.error('qdepthwise_weight', 'qdepthwise', [some('u1', 1, 4, 4, 5), eighths(3, 3, 5), each],
            'operand 1 has type f32, expected i8', kernel=[3, 3])
    f.save()


def range_cases():
    f = Cases('quantize_range', SOURCE)

    def add(name, x):
        low, high = min(0, x.min(initial=0)), max(0, x.max(initial=0))
        reach = np.float32(high) - np.float32(low)
        scale = np.float32(1) if reach == 0 else np.float32(reach / np.float32(255))
        zero = np.uint8(np.clip(np.rint(np.float32(-low) / scale), 0, 255))
        f.case('quantize_range_' + name, 'quantize_range', [x], [scale, zero])
    add('both', np.float32([[-1, 0.5, 2], [0.25, -0.75, 1]]))
    add('above', np.float32([3, 5, 4]))
    add('below', np.float32([-3, -5, -4]))
    add('zeros', np.zeros((2, 3), 'f4'))
    add('nothing', np.zeros((0, 3), 'f4'))
    add('many', eighths(5, 37))
    f.error('quantize_range_type', 'quantize_range', [some('i1', 3)], 'operand 0 has type i8, expected f32')
    f.save()


def merged_cases():
    f = Cases('attention_merged', SOURCE)
    for name, b, h, kv, s, t, d in (('plain', 1, 2, 2, 3, 3, 4), ('grouped', 2, 4, 2, 3, 5, 2)):
        q, k, v = eighths(b, h, s, d), eighths(b, kv, t, d), eighths(b, kv, t, d + 1)
        wide = [np.repeat(a.astype('f8'), h // kv, axis=1) for a in (k, v)]
        scores = q.astype('f8') @ wide[0].swapaxes(2, 3) / np.sqrt(d)
        weights = np.exp(scores - scores.max(axis=3, keepdims=True))
        out = weights / weights.sum(axis=3, keepdims=True) @ wide[1]
        f.case('attention_merged_' + name, 'attention', [q, k, v],
               out.transpose(0, 2, 1, 3).reshape(b, s, -1).astype('f4'), tol=(1e-6, 1e-6), merged=1)
    f.save()


def adds_cases():
    """A sum before the tail, which has an operand of its own."""
    f = Cases('bytes_adds', SOURCE)
    tail = dict(adds=1, code=[CODE['relu'], 0, 0, 0, CODE['mul'], 2, 1, 0])
    one, bias, factor = np.float32(0.125), eighths(3), eighths(3)

    def add(op, x, weight, sums, **attrs):
        extra = eighths(*sums.shape)
        want = np.maximum(sums * one + bias + extra, 0) * factor
        f.case(op + '_adds', op, [x, weight, one, None, None, bias, extra, factor], want.astype('f4'), **tail, **attrs)
        return extra
    x, w = some('u1', 2, 4), some('i1', 4, 3)
    p = packed(w, 4)
    extra = add('qproduct', x, p, centred(x, None) @ centred(w, None), columns=3, panel=4)
    f.error('qproduct_adds_nothing', 'qproduct', [x, p, one], '`adds` is set, but operand 6 is not there', columns=3,
            panel=4, adds=1)
    f.error('qproduct_adds_to_bytes', 'qproduct', [x, p, one, None, None, None, extra],
            '`adds` is set, but the result is u8', columns=3, panel=4, adds=1, to='u8')
    f.error('qproduct_adds_shape', 'qproduct', [x, p, one, None, None, None, bias],
            'operand 6 is added to the result but has another shape', columns=3, panel=4, adds=1)
    x, w, window = some('u1', 1, 3, 4, 2), some('i1', 2, 2, 2, 3), window_attrs((2, 2))
    taps = windows(x, None, **window)
    add('qconv_last', x, packed(w, 4), taps.reshape(taps.shape[:3] + (-1,)) @ centred(w, None).reshape(-1, 3), channels=3,
        panel=4, **window)
    x, w = some('u1', 1, 3, 4, 3), some('i1', 2, 2, 3)
    add('qdepthwise', x, w, (windows(x, None, **window) * centred(w, None).reshape(-1, 3)).sum(axis=3), **window)
    f.save()


def rounded_cases():
    """Every step in f32, one after the other, with scales that are no powers of two: no byte may be another one."""
    f = Cases('bytes_rounded', SOURCE)
    scale = rng.uniform(0.001, 0.002, 7).astype('f4')
    bias, counts = rng.normal(0, 3, 7).astype('f4'), rng.integers(-3000, 3000, 7).astype('i4')

    def steps(sums, numbers, relu, unit, zero):
        x = sums.astype('i4')
        x = ((x + numbers if numbers.dtype == np.int32 else x).astype('f4') * scale).astype('f4')
        x = x if numbers.dtype == np.int32 else (x + numbers).astype('f4')
        x = np.maximum(x, np.float32(0)) if relu else x
        if unit is None:
            return x
        return np.clip(np.rint(x / np.float32(unit)) + zero, 0, 255).astype('u1')

    def add(op, name, x, weight, sums, **attrs):
        for what, numbers in (('bias', bias), ('counts', counts)):
            ins = [x, weight, scale, None, None, numbers]
            f.case(f'{op}_{name}_{what}', op, ins, steps(sums, numbers, False, None, 0), **attrs)
            f.case(f'{op}_{name}_{what}_u8', op, ins, steps(sums, numbers, True, 0.173, 5), to='u8', out_scale=0.173,
                   out_zero=5, **RELU, **attrs)
    x, w = some('u1', 9, 37), some('i1', 37, 7)
    add('qproduct', 'rounded', x, packed(w, 4), centred(x, None) @ centred(w, None), columns=7, panel=4)
    x, w, window = some('u1', 1, 5, 4, 6), some('i1', 2, 2, 6, 7), window_attrs((2, 2))
    taps = windows(x, None, **window)
    add('qconv_last', 'rounded', x, packed(w, 4), taps.reshape(taps.shape[:3] + (-1,)) @ centred(w, None).reshape(-1, 7),
        channels=7, panel=4, **window)
    x, w, window = some('u1', 1, 7, 6, 7), some('i1', 3, 3, 7), window_attrs((3, 3))
    add('qdepthwise', 'rounded', x, w, (windows(x, None, **window) * centred(w, None).reshape(-1, 7)).sum(axis=3),
        **window)
    f.error('qproduct_counts_type', 'qproduct', [some('u1', 9, 37), packed(some('i1', 37, 7), 4), scale, None, None,
                                                 np.zeros(7, 'i8')], 'operand 5 has type i64, expected f32', columns=7,
            panel=4)
    f.save()


def sum_cases():
    f = Cases('reduce_bytes', SOURCE)
    for name, x, axes, keep in (('rows', some('u1', 3, 70), [1], 1), ('columns', some('i1', 9, 37), [0], 0),
                                ('places', some('u1', 2, 5, 7, 3), [1, 2], 0), ('all', some('i1', 3, 4, 5), [], 1),
                                ('outer', some('u1', 2, 3, 4), [0, 2], 1), ('long', some('i1', 2, 300), [-1], 0)):
        want = x.sum(axis=tuple(axes) if axes else None, keepdims=bool(keep), dtype='i4')
        f.case('reduce_bytes_' + name, 'reduce_bytes', [x], want, axes=axes, keepdims=keep)
    f.error('reduce_bytes_type', 'reduce_bytes', [eighths(3)], 'operand 0 has type f32, expected i8')
    f.save()


if __name__ == '__main__':
    pack_cases()
    product_cases()
    conv_cases()
    depthwise_cases()
    range_cases()
    merged_cases()
    adds_cases()
    rounded_cases()
    sum_cases()
