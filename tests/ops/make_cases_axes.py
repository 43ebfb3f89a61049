#!/usr/bin/python3
"""Writes the cases of det and diagonal, and of the ops along axes that take their axes or counts as an operand. Run by
hand; see caselib.py for what it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_axes.py

Expected values come from ONNX Runtime, and from numpy where that has no such op or type."""
from fractions import Fraction

import numpy as np

from casearrays import Cases, bf16, onnx_op
from caselib import quantise

rng = np.random.default_rng(20261115)
TYPES = ['float32', 'float64', 'float16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'uint32', 'bool']


def open_file(family):
    return Cases(family, 'make_cases_axes.py')


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def counted(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def exact_det(matrix):
    """By elimination in fractions."""
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    product = Fraction(1)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return 0.0
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            product = -product
        product *= rows[k][k]
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k])]
    return float(product)


def exact_dets(x):
    return np.array([exact_det(m) for m in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape[:-2])


def det_cases():
    f = open_file('det')
    for order in (1, 2, 3, 7):
        x = f32(2, order, order)
        expected = exact_dets(x).astype(np.float32)
        np.testing.assert_allclose(expected, onnx_op('Det', [x]), rtol=1e-4)
        f.case('det_order_%d' % order, 'det', [x], expected, tol=(0, 1e-6))
    x = f32(4, 4)
    f.case('det_one_matrix', 'det', [x], exact_dets(x).astype(np.float32), tol=(0, 1e-6))
    x = f32(2, 3, 2, 2)
    f.case('det_batches', 'det', [x], exact_dets(x).astype(np.float32), tol=(0, 1e-6))
    x = rng.normal(size=(3, 3, 3))
    f.case('det_f64', 'det', [x], exact_dets(x), tol=(0, 1e-13))
    for kind in ('f16', 'bf16'):
        x = quantise(kind, rng.normal(size=(3, 3, 3)))
        f.case('det_' + kind, 'det', [x], quantise(kind, exact_dets(x.f64())))
    singular = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], np.float32)
    f.case('det_singular', 'det', [singular], np.float32(0))
    f.case('det_zeros', 'det', [np.zeros((2, 3, 3), np.float32)], np.zeros(2, np.float32))
    swapped = np.array([[0, 2, 0], [3, 0, 0], [0, 0, 4]], np.float32)
    f.case('det_pivots', 'det', [swapped], np.float32(-24))
    f.case('det_nan', 'det', [np.array([[1, np.nan], [2, 3]], np.float32)], np.float32(np.nan))
    f.case('det_order_0', 'det', [np.zeros((2, 0, 0), np.float32)], np.ones(2, np.float32))
    f.case('det_no_matrix', 'det', [np.zeros((0, 2, 2), np.float32)], np.zeros(0, np.float32))
    f.error('det_not_square', 'det', [f32(2, 3)], 'rows and columns')
    f.error('det_vector', 'det', [f32(3)], 'rank')
    f.error('det_integers', 'det', [np.eye(2, dtype=np.int32)], 'type i32')
    f.save()


def diagonal_cases():
    f = open_file('diagonal')
    usual = {'axis1': -2, 'axis2': -1}
    for name, shape, axes in (('matrix', (3, 3), {}), ('last', (2, 3, 3), {}),
                              ('first', (3, 3, 2), {'axis1': 0, 'axis2': 1}),
                              ('apart', (3, 2, 3, 2), {'axis1': 0, 'axis2': 2}),
                              ('swapped', (2, 3, 3), {'axis1': 2, 'axis2': 1}),
                              ('one', (1, 1), {}), ('empty', (2, 0, 0), {})):
        x = counted(*shape)
        f.case('diagonal_' + name, 'diagonal', [x], np.diagonal(x, **{**usual, **axes}), **axes)
    for kind in TYPES:
        x = counted(2, 3, 3).astype(kind) if kind != 'bool' else counted(2, 3, 3) % 3 == 1
        f.case('diagonal_' + kind, 'diagonal', [x], np.diagonal(x, axis1=1, axis2=2))
    x = counted(3, 3)
    f.case('diagonal_bf16', 'diagonal', [bf16(x)], bf16(np.diagonal(x)))
    f.error('diagonal_not_square', 'diagonal', [counted(2, 3)], 'extents of the two axes')
    f.error('diagonal_same_axis', 'diagonal', [counted(3, 3)], 'both are axis 1', axis1=1, axis2=-1)
    f.error('diagonal_vector', 'diagonal', [counted(3)], 'rank')
    f.error('diagonal_axis', 'diagonal', [counted(3, 3)], 'axis 2 is out of range', axis2=2)
    f.save()


def operand_cases():
    f = open_file('axes_operand')
    x = f32(2, 3, 4)
    for op, onnx in (('sum', 'ReduceSum'), ('mean', 'ReduceMean'), ('max', 'ReduceMax'), ('min', 'ReduceMin'),
                     ('prod', 'ReduceProd')):
        for name, axes, keep in (('one', i64(1), 1), ('two', i64(0, -1), 1), ('all', i64(2, 0, 1), 0),
                                 ('dropped', i64(-2), 0), ('empty', i64(), 1)):
            f.case('reduce_%s_operand_%s' % (op, name), 'reduce_' + op, [x, axes],
                   onnx_op(onnx, [x, axes], opset=18, keepdims=keep), tol=(1e-6, 1e-6), keepdims=keep)
    f.case('reduce_operand_i32', 'reduce_max', [x, np.array([1], np.int32)], x.max(1, keepdims=True))
    f.error('reduce_operand_range', 'reduce_sum', [x, i64(3)], 'axis 3 is out of range')
    f.error('reduce_operand_twice', 'reduce_sum', [x, i64(1, -2)], 'twice')
    f.error('reduce_operand_float', 'reduce_sum', [x, f32(1)], 'operand 1')
    f.error('reduce_operand_matrix', 'reduce_sum', [x, i64(1).reshape(1, 1)], 'operand 1')
    x = f32(3, 5)
    for axis, largest, k in ((0, 1, 2), (-1, 1, 5), (1, 0, 3), (1, 1, 0)):
        f.case('top_k_operand_%d_%d_%d' % (axis % 2, largest, k), 'top_k', [x, i64(k)],
               onnx_op('TopK', [x, i64(k)], 2, 11, axis=axis, largest=largest), axis=axis, largest=largest)
    f.case('top_k_operand_scalar', 'top_k', [x, np.array(2, np.int32)], onnx_op('TopK', [x, i64(2)], 2, 11))
    f.error('top_k_operand_large', 'top_k', [x, i64(6)], 'operand 1 is 6')
    f.error('top_k_operand_negative', 'top_k', [x, i64(-1)], 'operand 1 is -1')
    f.error('top_k_operand_list', 'top_k', [x, i64(1, 2)], 'has 2 elements')
    f.error('top_k_no_k', 'top_k', [x], "attribute 'k' is -1")
    for axis in (0, 1, -1):
        for flags in ({}, {'exclusive': 1}, {'reverse': 1}):
            name = 'cumsum_operand_%s%s' % (str(axis).replace('-', 'last_'), ''.join('_' + k for k in flags))
            at = np.array(axis, np.int64)
            f.case(name, 'cumsum', [x, at], onnx_op('CumSum', [x, at], opset=14, **flags), tol=(1e-6, 1e-6), **flags)
    f.case('cumsum_operand_i32', 'cumsum', [counted(2, 3, dtype=np.int64), np.array(1, np.int32)],
           np.cumsum(counted(2, 3, dtype=np.int64), 1))
    f.error('cumsum_operand_float', 'cumsum', [x, np.float32(1)], 'operand 1')
    f.save()


if __name__ == '__main__':
    det_cases()
    diagonal_cases()
    operand_cases()
