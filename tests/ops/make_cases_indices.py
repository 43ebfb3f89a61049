#!/usr/bin/python3
"""Writes the cases of the ops that pick and place by tuples of indices, of those whose results depend on elements, and of
the ops that move elements with their lists as operands. Run by hand; see caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_indices.py

Expected values come from numpy."""
import itertools

import numpy as np

from casearrays import Cases, bf16

TYPES = ['float32', 'float64', 'float16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'uint32', 'bool']
MOST, LEAST = 9223372036854775807, -9223372036854775808


def open_file(family):
    return Cases(family, 'make_cases_indices.py')


def counted(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def i64(*values):
    return np.array(values, np.int64)


def i32(*values):
    return np.array(values, np.int32)


def all_types(f, name, op, extents, move, beside=(), **attrs):
    for kind in TYPES:
        x = counted(*extents).astype(kind) if kind != 'bool' else counted(*extents) % 3 == 1
        f.case('%s_%s' % (name, kind), op, [x, *beside], move(x), **attrs)
    x = counted(*extents)
    f.case('%s_bf16' % name, op, [bf16(x), *beside], bf16(move(x)), **attrs)


def shape_cases():
    f = open_file('shape')
    x = counted(2, 3, 4)
    f.case('shape', 'shape', [x], i64(2, 3, 4))
    f.case('shape_scalar', 'shape', [counted()], np.zeros(0, np.int64))
    f.case('shape_empty', 'shape', [counted(2, 0)], i64(2, 0))
    for name, start, end in (('start', 1, None), ('end', 0, -1), ('both', -2, 2), ('nothing', 2, 1), ('far', -9, 9)):
        attrs = {'start': start} if end is None else {'start': start, 'end': end}
        f.case('shape_' + name, 'shape', [x], i64(*x.shape[start:end]), **attrs)
    f.case('size', 'size', [x], np.array(24, np.int64))
    f.case('size_scalar', 'size', [counted()], np.array(1, np.int64))
    f.case('size_empty', 'size', [counted(2, 0)], np.array(0, np.int64))
    f.save()


def list_cases():
    """Lists as operands."""
    f = open_file('lists')
    x = counted(2, 3, 4)
    for kind in (i64, i32):
        end = kind.__name__
        f.case('reshape_operand_' + end, 'reshape', [x, kind(0, -1)], x.reshape(2, 12))
        f.case('expand_operand_' + end, 'expand', [counted(3, 1), kind(2, 1, 4)],
               np.broadcast_to(counted(3, 1), (2, 3, 4)))
        f.case('squeeze_operand_' + end, 'squeeze', [counted(1, 3, 1), kind(-1)], counted(1, 3))
        f.case('unsqueeze_operand_' + end, 'unsqueeze', [counted(2, 3), kind(0, -1)], counted(1, 2, 3, 1))
        f.case('narrow_operand_' + end, 'narrow', [x, kind(1, -1), kind(3, -9), kind(2, 1), kind(1, -2)],
               x[:, -1:-9:-2, 1:3])
        f.case('pad_operand_' + end, 'pad', [x, kind(1, 0, 0, 0, 2, -1)],
               np.pad(x, ((1, 0), (0, 2), (0, 0)))[..., :-1])
        f.case('split_operand_' + end, 'split', [x, kind(1, 3)], [x[..., :1], x[..., 1:]], axis=2)
        f.case('tile_operand_' + end, 'tile', [x, kind(1, 2, 3)], np.tile(x, (1, 2, 3)))
    f.case('reshape_operand_scalar', 'reshape', [counted(1, 1), np.zeros(0, np.int64)], counted())
    f.case('reshape_operand_zero', 'reshape', [counted(0, 3), i64(3, 0)], counted(3, 0), allowzero=1)
    f.case('narrow_operand_first_axes', 'narrow', [x, i64(1), i64(MOST)], x[1:])
    f.case('narrow_operand_steps_alone', 'narrow', [x, i64(0, 0), i64(MOST, MOST), None, i64(1, 2)], x[:, ::2])
    f.case('narrow_operand_backwards', 'narrow', [x, i64(MOST), i64(LEAST), i64(0), i64(-1)], x[::-1])
    f.case('narrow_operand_nothing', 'narrow', [x, i64(5), i64(9), i64(1)], x[:, 5:9])
    f.case('narrow_operand_and_attribute', 'narrow', [x, i64(1), i64(2)], x[:, :, 1:2], axes=[2])
    f.case('pad_operand_value', 'pad', [x, i64(0, 1), np.float32(7).reshape(()), i64(-1)],
           np.pad(x, ((0, 0), (0, 0), (0, 1)), constant_values=7))
    f.case('pad_operand_value_exact', 'pad', [i64(1), i64(0, 1), i64(MOST)], i64(1, MOST))
    f.case('pad_operand_axes', 'pad', [x, i64(1, 0, 0, 2), None, i64(2, 0)], np.pad(x, ((0, 2), (0, 0), (1, 0))))
    f.case('pad_axes', 'pad', [x], np.pad(x, ((0, 2), (0, 0), (1, 0))), pads=[1, 0, 0, 2], axes=[-1, 0])
    f.case('pad_operand_edge', 'pad', [x, i64(1, 1), None, i64(1)], np.pad(x, ((0, 0), (1, 1), (0, 0)), mode='edge'),
           mode='edge')
    f.case('tile', 'tile', [counted(2, 3)], np.tile(counted(2, 3), (2, 2)), repeats=[2, 2])
    f.case('tile_scalar', 'tile', [counted()], counted(), repeats=[])
    f.case('tile_nothing', 'tile', [counted(2, 3)], np.zeros((0, 3), np.float32), repeats=[0, 1])
    f.case('tile_of_nothing', 'tile', [counted(0, 3)], np.zeros((0, 6), np.float32), repeats=[5, 2])
    all_types(f, 'tile', 'tile', (2, 2), lambda v: np.tile(v, (1, 2)), repeats=[1, 2])
    f.error('tile_few', 'tile', [x], '`repeats` has 2 entries for an operand of rank 3', repeats=[1, 2])
    f.error('tile_negative', 'tile', [counted(2)], 'axis 0 is to be repeated -1 times', repeats=[-1])
    f.error('reshape_operand_float', 'reshape', [x, counted(1)], 'operand 1 is f32 of rank 1, expected a list')
    f.error('reshape_operand_matrix', 'reshape', [x, np.zeros((1, 1), np.int64)], 'operand 1 is i64 of rank 2')
    f.error('reshape_operand_long', 'reshape', [x, i64(*[1] * 9)], 'has 9 entries, and at most 8 are possible')
    f.error('expand_operand_negative', 'expand', [x, i64(-1)], 'extents are 0 or more')
    f.error('squeeze_operand_long', 'squeeze', [x, i64(0)], 'axis 0 has extent 2')
    f.error('narrow_operand_step', 'narrow', [x, i64(0), i64(1), i64(0), i64(0)], 'step 0 is 0')
    f.error('narrow_operand_lengths', 'narrow', [x, i64(0), i64(1, 2)], 'their lengths must be equal')
    f.error('pad_operand_count', 'pad', [x, i64(1, 1)], '`pads` has 2 entries, expected 6')
    f.error('pad_operand_type', 'pad', [x, i64(1, 1), i64(1), i64(0)], 'operand 2 has type i64')
    f.error('pad_operand_values', 'pad', [x, i64(1, 1), counted(2), i64(0)], 'has more than one element')
    f.error('split_operand_sum', 'split', [x, i64(1)], 'the parts have 1 elements together, but the axis has 2')
    f.save()


def range_cases():
    f = open_file('range')
    for name, start, limit, delta in (('up', 2, 9, 3), ('down', 5, -4, -2), ('whole', 0, 4, 1), ('nothing', 3, 3, 1),
                                      ('wrong_way', 3, 0, 1)):
        for kind in ('i16', 'i32', 'i64', 'f32', 'f64'):
            dtype = {'i': 'int', 'f': 'float'}[kind[0]] + kind[1:]
            f.case('range_%s_%s' % (name, kind), 'range', [np.array(v, dtype) for v in (start, limit, delta)],
                   np.arange(start, limit, delta).astype(dtype))
    f.case('range_fractions', 'range', [np.array(v, np.float32) for v in (0.5, 2, 0.25)],
           np.arange(0.5, 2, 0.25).astype(np.float32))
    f.case('range_far', 'range', [np.array(v, np.int64) for v in (MOST - 2, MOST, 1)], i64(MOST - 2, MOST - 1))
    f.case('range_lists', 'range', [i64(0), i64(3), i64(1)], i64(0, 1, 2))
    f.error('range_delta', 'range', [np.array(v, np.int64) for v in (0, 3, 0)], 'the delta is 0')
    f.error('range_vast', 'range', [np.array(v, np.int64) for v in (LEAST, MOST, 1)], 'more elements than memory')
    f.error('range_types', 'range', [np.array(0, np.int64), np.array(1, np.int32), np.array(1, np.int64)], 'type')
    f.error('range_several', 'range', [i64(0, 1), i64(3), i64(1)], 'operand 0 has more than one element')
    f.save()


def gather_nd(x, indices, batch):
    """By its definition, one tuple at a time."""
    rows = [x[tuple(place[:batch]) + tuple(indices[place])] for place in np.ndindex(indices.shape[:-1])]
    rest = x.shape[batch + indices.shape[-1]:]
    return np.array(rows, x.dtype).reshape(indices.shape[:-1] + rest)


def gather_cases():
    f = open_file('gather_nd')
    x = counted(3, 4)
    f.case('gather_elements_0', 'gather_elements', [x, i64(2, 0, 1, 1, 0, 0, 2, 2).reshape(2, 4)],
           np.take_along_axis(x, i64(2, 0, 1, 1, 0, 0, 2, 2).reshape(2, 4), 0))
    picks = i64(-1, 0, 3, 2, 1, -4).reshape(3, 2)
    f.case('gather_elements_1', 'gather_elements', [x, picks], np.take_along_axis(x, picks % 4, 1), axis=1)
    f.case('gather_elements_last', 'gather_elements', [x, picks.astype(np.int32)],
           np.take_along_axis(x, picks % 4, 1), axis=-1)
    f.case('gather_elements_fewer', 'gather_elements', [x, i64(1).reshape(1, 1)], x[:1, 1:2], axis=1)
    f.case('gather_elements_none', 'gather_elements', [x, np.zeros((3, 0), np.int64)], x[:, :0], axis=1)
    all_types(f, 'gather_elements', 'gather_elements', (2, 2), lambda v: v[:, [1]], [i64(1, 1).reshape(2, 1)], axis=1)
    f.error('gather_elements_more', 'gather_elements', [x, np.zeros((4, 1), np.int64)], 'more than the operand',
            axis=1)
    f.error('gather_elements_rank', 'gather_elements', [x, i64(0)], 'rank')
    f.error('gather_elements_type', 'gather_elements', [x, x], 'indices have type i32 or i64')
    x = counted(2, 3, 4)
    for name, indices, batch in (('elements', [[0, 1, 2], [1, -1, 0]], 0), ('rows', [[0, 1], [1, 2]], 0),
                                 ('planes', [[1], [-2]], 0), ('deep', [[[0], [1]], [[1], [0]]], 0),
                                 ('batch', [[1], [2]], 1), ('batch_pairs', [[[1, 3]], [[-3, 0]]], 1),
                                 ('batch_2', [[[3], [2], [1]], [[0], [1], [-1]]], 2)):
        index = np.array(indices, np.int64)
        f.case('gather_nd_' + name, 'gather_nd', [x, index], gather_nd(x, index, batch), batch_dims=batch)
    f.case('gather_nd_none', 'gather_nd', [x, np.zeros((0, 2), np.int64)], np.zeros((0, 4), np.float32))
    all_types(f, 'gather_nd', 'gather_nd', (2, 2), lambda v: v[[1, 0]], [i32(1, 0).reshape(2, 1)])
    f.error('gather_nd_tuple', 'gather_nd', [x, np.zeros((1, 4), np.int64)], 'the indices hold tuples of 4')
    f.error('gather_nd_batch_dims', 'gather_nd', [x, np.zeros((2, 1), np.int64)], '`batch_dims` is 2', batch_dims=2)
    f.error('gather_nd_batches', 'gather_nd', [x, np.zeros((3, 1), np.int64)], 'batch axes', batch_dims=1)
    f.save()


COMBINE = {'none': lambda a, b: b, 'add': lambda a, b: a + b, 'mul': lambda a, b: a * b, 'max': max, 'min': min}


def scatter_nd(x, indices, updates, reduction):
    out = x.copy()
    for place in np.ndindex(indices.shape[:-1]):
        to = tuple(indices[place])
        for inner in np.ndindex(x.shape[len(to):]):
            out[to + inner] = COMBINE[reduction](out[to + inner], updates[place + inner])
    return out


def scatter_cases():
    f = open_file('scatter_nd')
    x = counted(3, 4) + 1
    rows = i64(2, 0, 2).reshape(3, 1)
    pairs = i64(0, 1, 2, -1, 0, 1).reshape(3, 2)
    for reduction, dtype in itertools.product(COMBINE, (np.float32, np.int32, np.float16)):
        for name, indices, updates in (('rows', rows, counted(3, 4) - 3), ('pairs', pairs, i64(9, -1, 2))):
            f.case('scatter_nd_%s_%s_%s' % (name, reduction, np.dtype(dtype).name), 'scatter_nd',
                   [x.astype(dtype), indices, updates.astype(dtype)],
                   scatter_nd(x.astype(dtype), indices, updates.astype(dtype), reduction), reduction=reduction)
    f.case('scatter_nd_nothing', 'scatter_nd', [x, np.zeros((0, 1), np.int64), np.zeros((0, 4), np.float32)], x)
    f.case('scatter_nd_into_nothing', 'scatter_nd', [x[:, :0], rows, np.zeros((3, 0), np.float32)], x[:, :0])
    f.case('scatter_nd_grid', 'scatter_nd', [x, i32(0, 1).reshape(2, 1, 1), counted(2, 1, 4)],
           scatter_nd(x, i32(0, 1).reshape(2, 1, 1), counted(2, 1, 4), 'none'))
    for kind in TYPES:
        f.case('scatter_nd_' + kind, 'scatter_nd', [np.array([0, 1]).astype(kind), i64(0).reshape(1, 1),
                                                    np.array([1]).astype(kind)], np.array([1, 1]).astype(kind))
    # So many that GPUs sort them: in range from the front and from the end, many of them equal.
    many = ((np.arange(601) ** 2 * 7919) % 400 - 200).reshape(601, 1)
    for reduction in ('none', 'add'):
        f.case('scatter_nd_many_' + reduction, 'scatter_nd', [counted(700), many, counted(601)],
               scatter_nd(counted(700), many, counted(601), reduction), reduction=reduction)
    f.error('scatter_nd_tuple', 'scatter_nd', [x, np.zeros((1, 3), np.int64), counted(1)], 'hold tuples of 3')
    f.error('scatter_nd_updates', 'scatter_nd', [x, rows, counted(3, 5)], 'updates and the operand')
    f.error('scatter_nd_reduction', 'scatter_nd', [x, rows, counted(3, 4)], 'is not one of none', reduction='mean')
    f.error('scatter_nd_bool_max', 'scatter_nd', [np.array([True]), i64(0).reshape(1, 1), np.array([True])],
            'operand 0 has type bool', reduction='max')
    f.save()


def element_cases():
    """Results whose extents depend on elements."""
    f = open_file('elements')
    for kind in TYPES:
        x = (counted(2, 3) % 2).astype(kind)
        f.case('non_zero_' + kind, 'non_zero', [x], np.array(np.nonzero(x), np.int64))
    f.case('non_zero_bf16', 'non_zero', [bf16(counted(3))], i64(1, 2).reshape(1, 2))
    f.case('non_zero_nan', 'non_zero', [np.array([0, np.nan, -0.0], np.float32)], i64(1).reshape(1, 1))
    f.case('non_zero_none', 'non_zero', [np.zeros((2, 2), np.int32)], np.zeros((2, 0), np.int64))
    f.case('non_zero_empty', 'non_zero', [np.zeros((0, 2), np.int32)], np.zeros((2, 0), np.int64))
    f.case('non_zero_scalar', 'non_zero', [np.array(3, np.int32)], np.zeros((0, 1), np.int64))

    def unique(name, x, axis=None, in_order=True):
        values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
        if not in_order:  # by first appearance
            order = np.argsort(first)
            values = np.take(values, order, axis or 0)
            first, counts = first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        attrs = {'sorted': int(in_order)}
        if axis is not None:
            attrs.update(axis=axis, flat=0)
        f.case('unique_' + name, 'unique', [x], [values] + [v.ravel().astype(np.int64) for v in (first, inverse, counts)],
               **attrs)

    x = np.array([[2, 1, 1], [3, 4, 3]], np.float32)
    rows = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4], [0, 9, 9]], np.int32)
    unique('flat', x)
    unique('first_seen', x, in_order=False)
    unique('rows', rows, 0)
    unique('rows_first_seen', rows, 0, False)
    unique('columns', rows, 1)
    unique('middle', counted(2, 3, 2) % 2, 1)
    unique('none', np.zeros(0, np.int64))
    unique('signs', np.array([-1, 1, -1, 0], np.int8))
    f.save()


if __name__ == '__main__':
    shape_cases()
    list_cases()
    range_cases()
    gather_cases()
    scatter_cases()
    element_cases()
