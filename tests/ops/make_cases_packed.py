#!/usr/bin/python3
"""Writes the cases of pack_weights and product, and of lstm with packed weights. Run by hand: /usr/bin/python3 tests/ops/make_cases_packed.py

Expected values come from numpy in f64. Values are multiples of 1/8, so that sums of products are exact in f32."""
import numpy as np

from caselib import round_bf16
from casearrays import Cases, bf16

rng = np.random.default_rng(11)
CODE = {'add': 1, 'mul': 3, 'clamp': 8, 'relu': 22}  # src/ops/chain.def


def eighths(*shape, dtype=np.float32):
    return (rng.integers(-16, 17, shape) / 8).astype(dtype)


def packed(w, panel, groups=1):
    """The definition, literally: columns in equal groups, groups in panels, zeros at the end of each."""
    w = w.reshape(-1, w.shape[-1])
    panels = []
    for group in np.split(w, groups, axis=1):
        for at in range(0, group.shape[1], panel):
            part = group[:, at:at + panel]
            panels.append(np.pad(part, ((0, 0), (0, panel - part.shape[1]))))
    return np.array(panels, 'f4').reshape(len(panels), w.shape[0], panel)


def pack_cases():
    f = Cases('pack_weights', 'make_cases_packed.py')
    for name, shape, panel, groups in (('whole', (3, 8), 4, 1), ('padded', (3, 6), 4, 1), ('narrow', (2, 3), 8, 1),
                                       ('kernel', (2, 2, 3, 5), 4, 1), ('groups', (2, 10), 4, 2), ('one', (1, 1), 1, 1)):
        w = eighths(*shape)
        attrs = dict(panel=panel, groups=groups) if groups > 1 else dict(panel=panel)
        f.case('pack_weights_' + name, 'pack_weights', [w], packed(w, panel, groups), **attrs)
    w, scale = eighths(2, 3, 6), eighths(6)
    f.case('pack_weights_scaled', 'pack_weights', [w, scale], packed(w * scale, 4), panel=4)
    w = eighths(3, 5, dtype=np.float16)
    f.case('pack_weights_f16', 'pack_weights', [w], packed(w, 4), panel=4)
    f.case('pack_weights_no_rows', 'pack_weights', [eighths(0, 5)], np.zeros((2, 0, 4), 'f4'), panel=4)
    f.case('pack_weights_no_columns', 'pack_weights', [eighths(3, 0)], np.zeros((0, 3, 4), 'f4'), panel=4)
    f.error('pack_weights_panel', 'pack_weights', [eighths(3, 5)], '`panel` is 0, expected 1 or more', panel=0)
    f.error('pack_weights_no_groups', 'pack_weights', [eighths(3, 5)], '`groups` is 0', panel=4, groups=0)
    f.error('pack_weights_uneven', 'pack_weights', [eighths(3, 5)], '5 columns do not split into 2 groups', panel=4,
            groups=2)
    f.error('pack_weights_scale', 'pack_weights', [eighths(3, 5), eighths(4)], 'columns and scale', panel=4)
    f.error('pack_weights_rank', 'pack_weights', [eighths(3)], 'operand 0 has shape [3]', panel=4)
    f.error('pack_weights_zero', 'pack_weights', [np.ones((2, 3), 'i1'), np.ones(3, 'f4'), np.ones(2, 'i1')],
            'columns and zero', panel=4)
    f.error('pack_weights_zero_type', 'pack_weights', [np.ones((2, 3), 'i1'), np.ones(3, 'f4'), np.ones(3, 'u1')],
            'operand 2 has type u8', panel=4)
    w, scale = np.arange(-7, 8).reshape(3, 5), np.array([0.5, 2, -1, 0.25, 3], 'f4')
    for kind, first in (('i1', 0), ('u1', 100)):
        bytes, zero = (w * 7 + first).astype(kind), np.array([1, 3, 5, 100, 9], kind)
        less = bytes.astype('f4') - zero.astype('f4')
        f.case('pack_weights_bytes_' + kind, 'pack_weights', [bytes, scale, zero], packed(less * scale, 4), panel=4)
        less = bytes.astype('f4') - zero[1].astype('f4')
        f.case('pack_weights_bytes_of_all_' + kind, 'pack_weights', [bytes, scale[:1], zero[1:2]],
               packed(less * scale[0], 1), panel=1)
    f.case('pack_weights_scale_of_all', 'pack_weights', [w.astype('f4'), scale[3:4]], packed(w * scale[3], 4), panel=4)
    f.error('pack_weights_type', 'pack_weights', [np.ones((2, 2), 'i4')], 'operand 0 has type i32', panel=4)
    f.save()


def product_cases():
    f = Cases('product', 'make_cases_packed.py')
    for name, shape, n, panel in (('packed', (3, 4), 6, 4), ('packed_batch', (2, 2, 3), 5, 4), ('packed_one', (1, 7), 3, 8),
                                  ('packed_whole', (2, 1, 3, 2), 8, 4)):
        x, w, bias = eighths(*shape), eighths(shape[-1], n), eighths(n)
        f.case('product_' + name, 'product', [x, packed(w, panel)], x @ w, columns=n, panel=panel)
        f.case('product_%s_bias' % name, 'product', [x, packed(w, panel), bias], x @ w + bias, columns=n, panel=panel)
    for name, a, b in (('plain', (3, 4), (4, 5)), ('plain_batch', (2, 3, 4), (2, 4, 5)),
                       ('plain_broadcast', (2, 1, 3, 4), (3, 4, 2)), ('plain_wider', (3, 4), (2, 4, 3))):
        x, w, bias = eighths(*a), eighths(*b), eighths(b[-1])
        f.case('product_' + name, 'product', [x, w, bias], x @ w + bias, columns=b[-1])
    tails(f)
    x, w = eighths(2, 0), np.zeros((2, 0, 4), 'f4')
    bias = eighths(5)
    f.case('product_no_inner', 'product', [x, w, bias], np.broadcast_to(bias, (2, 5)).copy(), columns=5, panel=4)
    errors(f)
    x, w = (np.arange(54).reshape(2, 3, 9) % 7 - 3).astype('f4'), (np.arange(27).reshape(9, 3) % 5 - 2).astype('f4')
    f.case('product_columns_apart', 'product', [x, packed(w, 1), bias[:3]], x @ w + bias[:3], columns=3, panel=1)
    f.save()


def tails(f):
    x, w, bias = eighths(3, 4), eighths(4, 5), eighths(5)
    y = x @ w + bias
    f.case('product_relu', 'product', [x, packed(w, 4), bias], np.maximum(y, 0), columns=5, panel=4,
           code=[CODE['relu'], 0, 0, 0])
    f.case('product_clamp', 'product', [x, packed(w, 4), bias], np.clip(y, -1, 2.5).astype('f4'), columns=5, panel=4,
           code=[CODE['clamp'], 0, 1, 2], numbers=[-1.0, 2.5])
    other, factor = eighths(3, 5), eighths(3, 1)
    f.case('product_residual', 'product', [x, packed(w, 4), bias, other, factor], y * factor + other, columns=5,
           panel=4, code=[CODE['mul'], 0, 2, 0, CODE['add'], 3, 1, 0])
    f.case('product_residual_plain', 'product', [x, w, None, other], x @ w + other, columns=5,
           code=[CODE['add'], 0, 1, 0])
    f.case('product_adds', 'product', [x, packed(w, 4), bias, other], y + other, columns=5, panel=4, adds=1)
    f.case('product_adds_relu', 'product', [x, w, None, other], np.maximum(x @ w + other, 0), columns=5, adds=1,
           code=[CODE['relu'], 0, 0, 0])
    f.case('product_adds_tail', 'product', [x, packed(w, 4), bias, other, factor], (y + other) * factor, columns=5,
           panel=4, adds=1, code=[CODE['mul'], 0, 1, 0])
    f.error('product_adds_nothing', 'product', [x, w], '`adds` is set', columns=5, adds=1)
    f.error('product_adds_other', 'product', [x, w, None, eighths(5)], 'has another shape', columns=5, adds=1)
    f.error('product_adds_wider', 'product', [x, w, None, eighths(3, 6)], 'result and what is added to it', columns=5,
            adds=1)


def errors(f):
    x, w = eighths(3, 4), eighths(4, 5)
    f.error('product_inner', 'product', [eighths(3, 5), packed(w, 4)], 'extents 5 and 4 differ', columns=5, panel=4)
    f.error('product_columns', 'product', [x, packed(w, 4)], 'panels of `columns` and of operand 1', columns=9, panel=4)
    f.error('product_panel', 'product', [x, packed(w, 4)], 'panel', columns=5, panel=3)
    f.error('product_plain_columns', 'product', [x, w], '`columns` and columns of operand 1', columns=4)
    f.error('product_plain_inner', 'product', [eighths(3, 5), w], 'columns of operand 0 and rows', columns=5)
    f.error('product_batches', 'product', [eighths(2, 3, 4), eighths(3, 4, 5)], 'do not broadcast', columns=5)
    f.error('product_bias', 'product', [x, packed(w, 4), eighths(4)], '`columns` and bias', columns=5, panel=4)
    f.error('product_rank', 'product', [eighths(4), packed(w, 4)], 'operand 0 has shape [4]', columns=5, panel=4)
    f.error('product_type', 'product', [eighths(3, 4, dtype=np.float64), packed(w, 4)], 'operand 0 has type f64',
            columns=5, panel=4)
    f.error('product_negative', 'product', [x, w], '`columns` is negative', columns=-1)
    f.error('product_extra', 'product', [x, w, None, eighths(2, 3, 5)], 'more than the result', columns=5,
            code=[CODE['add'], 0, 1, 0])


def paired(w, panel):
    """Packed panels with two rows of a column beside each other."""
    p = packed(np.pad(w, ((0, w.shape[0] % 2), (0, 0))), panel)
    return p.reshape(p.shape[0], -1, 2, panel).transpose(0, 1, 3, 2)


def bf16_cases():
    """Weights with more digits than bf16 has, so that rounding is seen."""
    f = Cases('bf16_weights', 'make_cases_packed.py')
    for name, shape, panel in (('even', (4, 6), 4), ('odd', (3, 5), 8), ('no_rows', (0, 5), 4)):
        w = rng.standard_normal(shape).astype('f4')
        f.case('pack_weights_bf16_' + name, 'pack_weights', [w], bf16(round_bf16(paired(w, panel).astype('f8'))),
               panel=panel, to='bf16')
    f.error('pack_weights_to', 'pack_weights', [eighths(3, 5)], "attribute 'to' is 'i32', expected f32, f16 or bf16",
            panel=4, to='i32')
    x, w, bias = rng.standard_normal((2, 3, 5)).astype('f4'), eighths(5, 6), eighths(6)
    p, exact = bf16(paired(w, 4)), dict(tol=(1e-6, 1e-6), columns=6, panel=4)
    f.case('product_bf16', 'product', [x, p], (x.astype('f8') @ w).astype('f4'), **exact)
    rounded = round_bf16(x.astype('f8')).astype('f8')
    f.case('product_bf16_rounds', 'product', [x, p, bias], np.maximum(rounded @ w + bias, 0).astype('f4'), rounds=1,
           code=[CODE['relu'], 0, 0, 0], **exact)
    f.error('product_bf16_pairs', 'product', [eighths(3, 7), p], 'pairs of columns of operand 0', columns=6, panel=4)
    f.error('product_bf16_plain', 'product', [eighths(3, 4), bf16(eighths(4, 5))], 'operand 1 has type bf16', columns=5)
    f.error('product_rounds', 'product', [eighths(3, 4), packed(eighths(4, 5), 4)],
            '`rounds` is set, but operand 1 is f32, expected bf16', columns=5, panel=4, rounds=1)
    f.save()


def f16_cases():
    """Likewise, with rows that lie as those of f32 do."""
    f = Cases('f16_weights', 'make_cases_packed.py')
    for name, shape, panel in (('even', (4, 6), 4), ('odd', (3, 5), 8), ('no_rows', (0, 5), 4)):
        w = rng.standard_normal(shape).astype('f4')
        f.case('pack_weights_f16_' + name, 'pack_weights', [w], packed(w, panel).astype('f2'), panel=panel, to='f16')
    w = rng.standard_normal((5, 6)).astype('f2')
    f.case('pack_weights_f16_as_it_is', 'pack_weights', [w], packed(w, 4).astype('f2'), panel=4, to='f16')
    x, bias = (300 * rng.standard_normal((2, 3, 5))).astype('f4'), eighths(6)
    w = (300 * w).astype('f2')  # sums that an f16 does not hold
    p, exact = packed(w, 4).astype('f2'), dict(tol=(1e-3, 1e-6), columns=6, panel=4)
    f.case('product_f16', 'product', [x, p], (x.astype('f8') @ w.astype('f8')).astype('f4'), **exact)
    f.case('product_f16_relu', 'product', [x, p, bias],
           np.maximum(x.astype('f8') @ w.astype('f8') + bias, 0).astype('f4'), code=[CODE['relu'], 0, 0, 0], **exact)
    f.error('product_f16_rows', 'product', [eighths(3, 7), p], 'columns of operand 0 and rows', columns=6, panel=4)
    f.error('product_f16_plain', 'product', [eighths(3, 4), eighths(4, 5).astype('f2')], 'operand 1 has type f16',
            columns=5)
    f.save()


def lstm(x, w, r, bias):
    """Gates in the order i, o, f, c; a second direction goes from the end."""
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[2]
    y = np.zeros((steps, len(w), batch, hidden))
    for d in range(len(w)):
        h = c = np.zeros((batch, hidden))
        for t in range(steps) if d == 0 else reversed(range(steps)):
            g = x[t].astype('f8') @ w[d].T + h @ r[d].T + bias[d, :4 * hidden] + bias[d, 4 * hidden:]
            i, o, f = (1 / (1 + np.exp(-part)) for part in np.split(g, 4, axis=1)[:3])
            c = f * c + i * np.tanh(g[:, 3 * hidden:])
            h = y[t, d] = o * np.tanh(c)
    return y.astype('f4')


def rows_packed(w, panel):
    """w [D, rows, K]: the rows are columns of panels, in which directions are next to each other."""
    p = packed(np.ascontiguousarray(w.transpose(2, 0, 1)), panel)
    return p.reshape(len(p), w.shape[2], w.shape[0], panel)


def lstm_cases():
    f = Cases('lstm_packed', 'make_cases_packed.py')
    for name, directions, hidden, panel in (('whole', 1, 2, 4), ('padded', 1, 3, 8), ('both', 2, 3, 8)):
        x, w, r = eighths(3, 2, 5), eighths(directions, 4 * hidden, 5), eighths(directions, 4 * hidden, hidden)
        bias, attrs = eighths(directions, 8 * hidden), dict(direction='bidirectional') if directions == 2 else {}
        want = lstm(x, w, r, bias)
        f.case('lstm_packed_' + name, 'lstm', [x, rows_packed(w, panel), rows_packed(r, panel), bias], [want], **attrs)
        f.case('lstm_packed_weight_' + name, 'lstm', [x, rows_packed(w, panel), r, bias], [want], **attrs)
    f.error('lstm_packed_panels', 'lstm', [x, rows_packed(w, 4), rows_packed(r, 8)[:1], bias],
            'axis 0 of operand 2 and what the others need: extents 1 and 2 differ', direction='bidirectional')
    f.error('lstm_packed_no_panel', 'lstm', [x, w, np.zeros((2, 3, 2, 0), 'f4'), bias],
            'the panels of operand 2 have no columns', direction='bidirectional')
    f.error('gru_packed', 'gru', [x, rows_packed(w[:, :9], 8), r[:, :9]], 'operand 1', direction='bidirectional')
    f.save()


pack_cases()
product_cases()
bf16_cases()
f16_cases()
lstm_cases()
