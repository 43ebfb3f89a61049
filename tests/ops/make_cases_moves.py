#!/usr/bin/python3
"""Writes the cases of the ops that move elements: reshape and its kin, transpose, narrow, split, expand, concat, pad,
gather, embedding, scatter. Run by hand; see caselib.py for what it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_moves.py

Expected values come from ONNX Runtime, and from numpy where that has no such op or type."""
import numpy as np

from casearrays import Cases, bf16, onnx_op

rng = np.random.default_rng(3)
MOST, LEAST = 9223372036854775807, -9223372036854775808
TYPES = ['float32', 'float64', 'float16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'uint32', 'bool']


def counted(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def i64(*values):
    return np.array(values, np.int64)


def open_file(family):
    return Cases(family, 'make_cases_moves.py')


def all_types(f, name, op, extents, move, beside=(), **attrs):
    """One small case a type; move is numpy's form of the op."""
    for kind in TYPES:
        x = counted(*extents).astype(kind) if kind != 'bool' else counted(*extents) % 3 == 1
        f.case('%s_%s' % (name, kind), op, [x, *beside], move(x), **attrs)
    x = counted(*extents)
    f.case('%s_bf16' % name, op, [bf16(x), *beside], bf16(move(x)), **attrs)


def reshape_cases():
    f = open_file('reshape')
    for name, shape, target in (
            ('split', (6, 4), [2, 3, 4]),
            ('join', (2, 3, 4), [6, 4]),
            ('mixed', (4, 6), [3, 8]),
            ('infer', (2, 3, 4), [-1, 4]),
            ('copy', (2, 3, 4), [0, -1]),
            ('copy_all', (2, 3), [0, 0]),
            ('flat', (2, 3), [-1]),
            ('units', (2, 1, 3), [1, 2, 3, 1]),
            ('infer_1', (2, 3), [6, -1]),
            ('to_scalar', (1, 1), []),
            ('from_scalar', (), [1, 1]),
            ('same', (2, 3), [2, 3]),
            ('rank_8', (16,), [2, 1, 2, 1, 2, 1, 2, 1])):
        x = counted(*shape)
        f.case('reshape_' + name, 'reshape', [x], onnx_op('Reshape', [x, i64(*target)]), shape=target)
    f.case('reshape_empty', 'reshape', [counted(0, 3)], counted(3, 0), shape=[3, 0], allowzero=1)
    f.case('reshape_empty_copy', 'reshape', [counted(0, 4)], counted(0, 2, 2), shape=[0, 2, 2])
    f.case('reshape_empty_infer', 'reshape', [counted(0, 4)], counted(0, 2), shape=[-1, 2])
    all_types(f, 'reshape', 'reshape', (2, 3), lambda x: x.reshape(3, 2), shape=[3, 2])
    x = counted(2, 3)
    f.error('reshape_count', 'reshape', [x], '6 elements cannot take a shape of 8 elements', shape=[2, 4])
    f.error('reshape_uneven', 'reshape', [x], '6 elements do not split into parts of 4', shape=[4, -1])
    f.error('reshape_twice', 'reshape', [x], 'more than one -1', shape=[-1, -1])
    f.error('reshape_negative', 'reshape', [x], 'dimension 1 of the target shape is -2', shape=[3, -2])
    f.error('reshape_copy_none', 'reshape', [x], 'dimension 2 of the target shape is 0 (copy)', shape=[2, 3, 0])
    f.error('reshape_infer_empty', 'reshape', [counted(0, 3)], 'have no elements', shape=[0, -1], allowzero=1)
    f.error('reshape_rank_9', 'reshape', [counted(1)], 'has 9 dimensions', shape=[1] * 9)
    f.error('reshape_overflow', 'reshape', [x], 'too large', shape=[MOST, 2])
    f.save()


def shape_cases():
    f = open_file('flatten')
    for axis in (0, 1, 2, 3, -1, -3):
        x = counted(2, 3, 4)
        f.case('flatten_%d' % axis, 'flatten', [x], onnx_op('Flatten', [x], axis=axis), axis=axis)
    f.case('flatten_default', 'flatten', [counted(2, 3, 2)], counted(2, 6))
    f.case('flatten_scalar', 'flatten', [counted()], counted(1, 1), axis=0)
    f.case('flatten_empty', 'flatten', [counted(2, 0, 3)], counted(2, 0))
    all_types(f, 'flatten', 'flatten', (2, 2, 2), lambda x: x.reshape(2, 4))
    f.error('flatten_axis', 'flatten', [counted(2, 3)], 'axis 3 is out of range', axis=3)
    f.save()
    f = open_file('squeeze')
    x = counted(1, 2, 1, 3, 1)
    for name, axes in (('one', [2]), ('some', [0, -1]), ('all', [0, 2, 4])):
        f.case('squeeze_' + name, 'squeeze', [x], onnx_op('Squeeze', [x, i64(*axes)]), axes=axes)
    f.case('squeeze_empty', 'squeeze', [counted(1, 0)], counted(0), axes=[0])
    all_types(f, 'squeeze', 'squeeze', (1, 3), lambda x: x[0], axes=[0])
    f.error('squeeze_wide', 'squeeze', [x], 'axis 1 has extent 2', axes=[1])
    f.error('squeeze_twice', 'squeeze', [x], 'axis 4 is named twice in `axes`', axes=[4, -1])
    f.error('squeeze_axis', 'squeeze', [x], 'axis 5 is out of range', axes=[5])
    f.save()
    f = open_file('unsqueeze')
    x = counted(2, 3)
    for name, axes in (('first', [0]), ('last', [-1]), ('some', [1, 3]), ('order', [3, 0]), ('three', [0, 2, -1])):
        f.case('unsqueeze_' + name, 'unsqueeze', [x], onnx_op('Unsqueeze', [x, i64(*axes)]), axes=axes)
    f.case('unsqueeze_scalar', 'unsqueeze', [counted()], counted(1), axes=[0])
    all_types(f, 'unsqueeze', 'unsqueeze', (3,), lambda x: x[None], axes=[0])
    f.error('unsqueeze_twice', 'unsqueeze', [x], 'axis 1 is named twice', axes=[1, 1])
    f.error('unsqueeze_axis', 'unsqueeze', [x], 'axis 3 is out of range', axes=[3])
    f.error('unsqueeze_rank', 'unsqueeze', [counted(*[1] * 8)], '1 axes added to rank 8 make more than 8', axes=[0])
    f.save()


def transpose_cases():
    f = open_file('transpose')
    for name, shape, perm in (
            ('2d', (2, 3), [1, 0]),
            ('heads', (2, 3, 2, 4), [0, 2, 1, 3]),
            ('3d', (2, 3, 4), [2, 0, 1]),
            ('same', (2, 3), [0, 1]),
            ('negative', (2, 3, 4), [-1, 0, 1]),
            ('units', (1, 3, 1), [2, 1, 0]),
            ('rank_8', (2, 1, 2, 1, 2, 1, 2, 3), [7, 6, 5, 4, 3, 2, 1, 0])):
        x = counted(*shape)
        f.case('transpose_' + name, 'transpose', [x], onnx_op('Transpose', [x], perm=[p % len(shape) for p in perm]),
               perm=perm)
    f.case('transpose_default', 'transpose', [counted(2, 3, 4)], counted(2, 3, 4).transpose())
    f.case('transpose_scalar', 'transpose', [counted()], counted())
    f.case('transpose_empty', 'transpose', [counted(2, 0)], counted(0, 2))
    all_types(f, 'transpose', 'transpose', (2, 3), lambda x: x.T)
    f.error('transpose_count', 'transpose', [counted(2, 3)], '`perm` has 1 axes but the operand has rank 2', perm=[0])
    f.error('transpose_twice', 'transpose', [counted(2, 3)], 'axis 0 is named twice', perm=[0, -2])
    f.error('transpose_axis', 'transpose', [counted(2, 3)], 'axis 2 is out of range', perm=[0, 2])
    f.save()


def narrow_cases():
    f = open_file('narrow')
    for name, shape, starts, ends, axes, steps in (
            ('first', (5, 2), [1], [3], [0], []),
            ('last', (2, 5), [2], [5], [1], []),
            ('both', (4, 5), [1, 2], [3, 4], [], []),
            ('steps', (7, 2), [1], [7], [0], [3]),
            ('negative', (6,), [-4], [-1], [0], []),
            ('far', (4,), [1], [MOST], [0], []),
            ('whole', (3, 2), [0], [MOST], [0], [1]),
            ('reverse', (4, 2), [-1], [LEAST], [0], [-1]),
            ('reverse_2', (2, 7), [5], [0], [1], [-2]),
            ('clamped', (4,), [-100], [100], [0], []),
            ('reverse_clamped', (4,), [100], [-100], [0], [-3]),
            ('order', (3, 4), [1, 0], [3, 2], [-1, 0], [1, 1]),
            ('nothing', (4,), [3], [1], [0], []),
            ('past', (4,), [10], [12], [0], []),
            ('reverse_nothing', (4,), [0], [3], [0], [-1]),
            ('huge_step', (4,), [1], [MOST], [0], [MOST]),
            ('huge_back', (4,), [2], [LEAST], [0], [LEAST + 1]),
            ('reverse_before', (4,), [-100], [LEAST], [0], [-1]),
            ('none', (2, 2), [], [], [], []),
            ('one', (3, 3), [2], [3], [0], [-1])):
        x = counted(*shape)
        slices = [slice(None)] * len(shape)
        for k, (start, end) in enumerate(zip(starts, ends)):
            slices[axes[k] if axes else k] = slice(start, end, steps[k] if steps else 1)
        want = x[tuple(slices)]
        if name == 'reverse_before':  # numpy takes nothing where ONNX starts at the first element
            want = x[:1]
        if starts and name not in ('huge_step', 'huge_back'):
            given = [x, i64(*starts), i64(*ends), i64(*(axes or range(len(starts))))] + ([i64(*steps)] if steps else [])
            assert np.array_equal(onnx_op('Slice', given), want), name
        attrs = dict(starts=starts, ends=ends, **({'axes': axes} if axes else {}),
                     **({'steps': steps} if steps else {}))
        f.case('narrow_' + name, 'narrow', [x], want, **attrs)
    f.case('narrow_empty', 'narrow', [counted(0, 2)], counted(0, 2), starts=[1], ends=[3])
    f.case('narrow_empty_back', 'narrow', [counted(0, 2)], counted(0, 2), starts=[-1], ends=[LEAST], steps=[-1])
    all_types(f, 'narrow', 'narrow', (5,), lambda x: x[1:4:2], starts=[1], ends=[4], steps=[2])
    x = counted(3, 4)
    f.error('narrow_lists', 'narrow', [x], '`starts` has 2 entries, `ends` 1', starts=[0, 0], ends=[1])
    f.error('narrow_step_0', 'narrow', [x], 'step 0 is 0', starts=[0], ends=[1], steps=[0])
    f.error('narrow_axis', 'narrow', [x], 'axis 2 is out of range', starts=[0], ends=[1], axes=[2])
    f.error('narrow_twice', 'narrow', [x], 'axis 1 is named twice', starts=[0, 0], ends=[1, 1], axes=[1, -1])
    f.error('narrow_too_many', 'narrow', [x], '3 slices for an operand of rank 2', starts=[0] * 3, ends=[1] * 3)
    f.save()


def split_cases():
    f = open_file('split')
    for name, shape, axis, parts in (
            ('rows', (6, 2), 0, [2, 3, 1]),
            ('columns', (2, 6), 1, [2, 2, 2]),
            ('middle', (2, 4, 3), -2, [1, 3]),
            ('empty_part', (4, 2), 0, [0, 4]),
            ('one', (3, 2), 0, [3])):
        x = counted(*shape)
        outs = onnx_op('Split', [x, i64(*parts)], len(parts), axis=axis)
        f.case('split_' + name, 'split', [x], outs if len(parts) > 1 else [outs], axis=axis, parts=parts)
    for name, shape, axis, n in (
            ('equal', (6, 2), 0, 3),
            ('equal_columns', (2, 9), 1, 3),
            ('uneven', (7, 2), 0, 3),
            ('uneven_columns', (2, 5), -1, 2),
            ('four', (8,), 0, 4),
            ('short_last', (8,), 0, 3)):
        x = counted(*shape)
        f.case('split_' + name, 'split', [x], list(onnx_op('Split', [x], n, opset=18, axis=axis, num_outputs=n)),
               axis=axis)
    f.case('split_nothing', 'split', [counted(0, 2)], [counted(0, 2), counted(0, 2)])
    for kind in TYPES:
        x = counted(4).astype(kind)
        f.case('split_' + kind, 'split', [x], [x[:1], x[1:]], parts=[1, 3])
    x = counted(6)
    f.error('split_sum', 'split', [x], 'the parts have 5 elements together, but the axis has 6', parts=[5])
    f.error('split_count', 'split', [x], '`parts` has 2 entries for 1 outputs', parts=[3, 3])
    f.error('split_negative', 'split', [x], 'part 0 is -1', parts=[-1])
    f.error('split_axis', 'split', [x], 'axis 1 is out of range', axis=1)
    f.error('split_scalar', 'split', [counted()], 'scalar')
    f.save()


def expand_cases():
    f = open_file('expand')
    for name, shape, target in (
            ('rows', (1, 3), [2, 3]),
            ('columns', (2, 1), [2, 3]),
            ('first_axes', (3,), [2, 2, 3]),
            ('both_ways', (3, 1), [2, 1, 4]),
            ('keeps', (2, 3), [1, 1]),
            ('scalar', (), [2, 2]),
            ('same', (2, 3), [2, 3]),
            ('shorter', (2, 1, 3), [4, 1])):
        x = counted(*shape)
        f.case('expand_' + name, 'expand', [x], onnx_op('Expand', [x, i64(*target)]), shape=target)
    f.case('expand_to_nothing', 'expand', [counted(1, 2)], counted(0, 2), shape=[0, 2])
    all_types(f, 'expand', 'expand', (2, 1), lambda x: np.broadcast_to(x, (2, 3)), shape=[2, 3])
    f.error('expand_shapes', 'expand', [counted(2, 3)], 'do not broadcast', shape=[2, 4])
    f.error('expand_negative', 'expand', [counted(2, 3)], 'dimension 0 of the target shape is -1', shape=[-1, 3])
    f.error('expand_rank_9', 'expand', [counted(1)], 'has 9 dimensions', shape=[1] * 9)
    f.save()


def concat_cases():
    f = open_file('concat')
    for name, shapes, axis in (
            ('rows', ((2, 3), (1, 3)), 0),
            ('columns', ((2, 3), (2, 1), (2, 2)), 1),
            ('middle', ((2, 1, 3), (2, 2, 3)), -2),
            ('one', ((2, 3),), 0),
            ('empty_part', ((0, 2), (3, 2)), 0),
            ('vectors', ((3,), (2,)), 0),
            ('ten', ((1, 2),) * 10, 1)):
        xs = [counted(*shape) + 100 * k for k, shape in enumerate(shapes)]
        f.case('concat_' + name, 'concat', xs, onnx_op('Concat', xs, axis=axis), axis=axis)
    f.case('concat_nothing', 'concat', [counted(2, 0), counted(2, 0)], counted(2, 0), axis=1)
    all_types(f, 'concat', 'concat', (1, 2), lambda x: np.concatenate([x], 0), axis=0)
    x = counted(2, 3)
    f.error('concat_extents', 'concat', [x, counted(3, 3)], 'axis 0 of operands 0 and 1: extents 2 and 3 differ',
            axis=1)
    f.error('concat_ranks', 'concat', [x, counted(2)], 'operand 1 has shape [2]', axis=0)
    f.error('concat_types', 'concat', [x, counted(2, 3, dtype=np.int32)], 'operand 1 has type i32', axis=0)
    f.error('concat_axis', 'concat', [x, x], 'axis -3 is out of range', axis=-3)
    f.error('concat_scalars', 'concat', [counted(), counted()], 'operand 0 has shape []', axis=0)
    f.save()


def pad_cases():
    f = open_file('pad')
    for name, shape, pads, mode in (
            ('constant', (2, 3), [1, 0, 2, 1], 'constant'),
            ('vector', (3,), [2, 1], 'constant'),
            ('3d', (2, 2, 2), [0, 1, 2, 1, 0, 1], 'constant'),
            ('crop', (4, 5), [-1, 0, 0, -2], 'constant'),
            ('crop_and_pad', (4, 3), [-1, 2, 1, -1], 'constant'),
            ('reflect', (4, 3), [2, 1, 1, 2], 'reflect'),
            ('reflect_full', (4,), [3, 3], 'reflect'),
            ('edge', (2, 3), [2, 1, 1, 3], 'edge'),
            ('edge_crop', (3, 3), [-1, 1, 2, 0], 'edge'),
            ('wrap', (3, 4), [1, 2, 2, 3], 'wrap'),
            ('nothing_to_do', (2, 2), [0, 0, 0, 0], 'constant')):
        x = counted(*shape) + 1
        f.case('pad_' + name, 'pad', [x], onnx_op('Pad', [x, i64(*pads)], mode=mode), pads=pads, mode=mode)
    x = counted(2, 2)
    f.case('pad_value', 'pad', [x], onnx_op('Pad', [x, i64(1, 0, 0, 1), np.float32(2.5).reshape(())]),
           pads=[1, 0, 0, 1],
           value=2.5)
    f.case('pad_infinity', 'pad', [counted(1)], np.float32([-np.inf, 0]), pads=[1, 0], value=-np.inf)
    f.case('pad_wrap_twice', 'pad', [counted(2)], np.pad(counted(2), (5, 3), 'wrap'), pads=[5, 3], mode='wrap')
    f.case('pad_reflect_twice', 'pad', [counted(3)], np.pad(counted(3), (5, 4), 'reflect'), pads=[5, 4], mode='reflect')
    f.case('pad_reflect_one', 'pad', [counted(1) + 7], np.float32([7] * 4), pads=[1, 2], mode='reflect')
    f.case('pad_from_nothing', 'pad', [counted(0, 2)], np.zeros((2, 2), 'f4'), pads=[1, 0, 1, 0])
    f.case('pad_to_nothing', 'pad', [counted(2, 2)], counted(0, 2), pads=[-1, 0, -1, 0])
    f.case('pad_scalar', 'pad', [counted() + 3], counted() + 3, pads=[])
    for kind in TYPES:
        x, value = (counted(3) % 2).astype(kind), np.ones(1, kind)
        f.case('pad_' + kind, 'pad', [x], np.concatenate([value, x]), pads=[1, 0], value=1.0)
    f.case('pad_bf16', 'pad', [bf16(counted(2))], bf16([0, 1, 1.5]), pads=[0, 1], value=1.5)
    x = counted(2, 3)
    f.error('pad_count', 'pad', [x], '`pads` has 2 entries, expected 4', pads=[1, 1])
    f.error('pad_mode', 'pad', [x], 'is not one of constant, reflect, edge and wrap', pads=[0] * 4, mode='mirror')
    f.error('pad_crops', 'pad', [x], 'pads -2 and -1 crop more off axis 0 than its 2 elements', pads=[-2, 0, -1, 0])
    f.error('pad_crops_far', 'pad', [x], 'crop more off axis 1', pads=[0, LEAST, 0, LEAST])
    f.error('pad_empty', 'pad', [counted(0)], 'has nothing to repeat on axis 0', pads=[1, 1], mode='edge')
    f.error('pad_overflow', 'pad', [x], 'too large', pads=[MOST, 0, 1, 0])
    f.save()


def gather_cases():
    f = open_file('gather')
    for name, shape, indices, axis in (
            ('rows', (4, 2), i64(3, 0, 0), 0),
            ('columns', (2, 5), i64(4, 1), 1),
            ('negative', (4, 2), i64(-1, -4), 0),
            ('matrix', (3, 2), i64(0, 1, 2, 2).reshape(2, 2), 0),
            ('middle', (2, 3, 2), i64(2, 0).reshape(2, 1), 1),
            ('last', (2, 3), i64(1), -1),
            ('scalar', (3, 2), i64(1).reshape(()), 0),
            ('i32', (3, 2), np.int32([2, 1]), 0),
            ('vector', (5,), i64(3, 3, -2), 0)):
        x = counted(*shape)
        f.case('gather_' + name, 'gather', [x, indices], onnx_op('Gather', [x, indices], axis=axis), axis=axis)
    f.case('gather_nothing', 'gather', [counted(3, 2), np.zeros(0, np.int64)], counted(0, 2))
    f.case('gather_no_slices', 'gather', [counted(3, 0), i64(1, 2)], counted(2, 0))
    all_types(f, 'gather', 'gather', (3, 2), lambda x: x[[2, 0]], [i64(2, 0)])
    x = counted(3, 2)
    f.error('gather_type', 'gather', [x, counted(2)], 'operand 1 has type f32, and indices have type i32 or i64')
    f.error('gather_axis', 'gather', [x, i64(0)], 'axis 2 is out of range', axis=2)
    f.error('gather_scalar_operand', 'gather', [counted(), i64(0)], 'operand 0 has shape []')
    f.error('gather_rank', 'gather', [counted(1, 1, 1, 1, 1), np.zeros((1,) * 5, np.int64)], 'give a rank over 8')
    f.save()
    f = open_file('embedding')
    table = counted(5, 3)
    for name, ids in (
            ('ids', i64(4, 0, 4)),
            ('batch', np.int32([[1, 2], [3, 0]])),
            ('one', i64(2).reshape(())),
            ('negative', i64(-1))):
        f.case('embedding_' + name, 'embedding', [table, ids], onnx_op('Gather', [table, ids]))
    f.case('embedding_wide', 'embedding', [counted(2, 2, 2), i64(1)], counted(2, 2, 2)[[1]])
    all_types(f, 'embedding', 'embedding', (3, 2), lambda x: x[[1, 1, 2]], [i64(1, 1, 2)])
    f.error('embedding_type', 'embedding', [table, np.uint8([1])], 'indices have type i32 or i64')
    f.error('embedding_scalar_table', 'embedding', [counted(), i64(0)], 'operand 0 has shape []')
    f.save()


def scatter_cases():
    f = open_file('scatter')
    x = counted(3, 4)
    for name, indices, updates, axis in (
            ('rows', i64(2, 0, 1, 2, 0, 0, 0, 1).reshape(2, 4), counted(2, 4) + 100, 0),
            ('columns', i64(3, 1, 0, 2, -1, 0).reshape(3, 2), counted(3, 2) + 100, 1),
            ('corner', i64(1, -1).reshape(1, 2), counted(1, 2) + 100, -1),
            ('few_columns', i64(2, 0).reshape(2, 1), counted(2, 1) + 100, 0)):
        f.case('scatter_' + name, 'scatter', [x, indices, updates],
               onnx_op('ScatterElements', [x, indices, updates], axis=axis), axis=axis)
    small, updates = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[2, 8, -1], [0.5, 3, 7]])
    indices = i64(0, 0, 2, 1, 1, 1).reshape(2, 3)
    for reduction in ('add', 'mul', 'max', 'min'):
        f.case('scatter_' + reduction, 'scatter', [small, indices, updates],
               onnx_op('ScatterElements', [small, indices, updates], opset=18, axis=1, reduction=reduction), axis=1,
               reduction=reduction)
    twice = i64(1, 1, 1)
    for kind in ('float64', 'float16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'uint32'):
        base, add = np.array([1, 100, 3], kind), np.array([100, 90, 3], kind)
        want = base.copy()
        np.add.at(want, twice, add)  # wraps
        f.case('scatter_add_' + kind, 'scatter', [base, twice, add], want, reduction='add')
        want = base.copy()
        want[1] = 3
        f.case('scatter_last_wins_' + kind, 'scatter', [base, twice, add], want)
    f.case('scatter_bool', 'scatter', [np.array([True, False]), i64(0, 1), np.array([False, True])],
           np.array([False, True]))
    f.case('scatter_bf16', 'scatter', [bf16([1, 2]), i64(0, 0), bf16([3, 0.5])], bf16([4.5, 2]), reduction='add')
    f.case('scatter_i32_indices', 'scatter', [counted(3), np.int32([2]), np.float32([9])], np.float32([0, 1, 9]))
    n = np.float32([np.nan, 1])
    f.case('scatter_max_nan', 'scatter', [n, i64(0, 1), np.float32([1, np.nan])], np.float32([np.nan, np.nan]),
           reduction='max')
    f.case('scatter_min_nan', 'scatter', [n, i64(0, 1), np.float32([1, np.nan])], np.float32([np.nan, np.nan]),
           reduction='min')
    f.case('scatter_nothing', 'scatter', [counted(2, 2), np.zeros((0, 2), np.int64), counted(0, 2)], counted(2, 2))
    f.case('scatter_into_nothing', 'scatter', [counted(0, 2), np.zeros((0, 2), np.int64), counted(0, 2)], counted(0, 2))
    one = np.zeros((1, 4), np.int64)
    f.error('scatter_index_type', 'scatter', [x, counted(1, 4), counted(1, 4)], 'indices have type i32 or i64')
    f.error('scatter_types', 'scatter', [x, one, counted(1, 4, dtype=np.float64)], 'operand 2 has type f64')
    f.error('scatter_shapes', 'scatter', [x, one, counted(1, 3)], 'indices and updates: extents 4 and 3 differ')
    f.error('scatter_ranks', 'scatter', [x, i64(0), counted(1)], 'operand 1 has shape [1]')
    f.error('scatter_extents', 'scatter', [x, np.zeros((1, 5), np.int64), counted(1, 5)],
            'the indices have 5 elements on axis 1')
    f.error('scatter_reduction', 'scatter', [x, one, counted(1, 4)], 'is not one of none, add, mul, max and min',
            reduction='mean')
    f.error('scatter_bool_add', 'scatter', [np.array([True])] + [i64(0), np.array([True])], 'operand 0 has type bool',
            reduction='add')
    f.error('scatter_axis', 'scatter', [x, one, counted(1, 4)], 'axis 2 is out of range', axis=2)
    f.save()


if __name__ == '__main__':
    reshape_cases()
    shape_cases()
    transpose_cases()
    narrow_cases()
    split_cases()
    expand_cases()
    concat_cases()
    pad_cases()
    gather_cases()
    scatter_cases()
