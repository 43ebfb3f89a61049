#!/usr/bin/python3
"""Writes the cases of padding that follows from extents, of the places of maxima, of resizing and sampling, and of
quantising. Run by hand; see caselib.py for what it needs.

    NODE_PATH=<folder>/node_modules /usr/bin/python3 tests/ops/make_cases_sampling.py

Expected values come from ONNX Runtime, and from numpy for what it has not got."""
import numpy as np

from casearrays import Cases, bf16, onnx_op

rng = np.random.default_rng(7)
TOL = (1e-5, 1e-5)


def eighths(*shape, dtype=np.float32):
    return (rng.integers(-16, 17, shape) / 8).astype(dtype)


def open_file(family):
    return Cases(family, "make_cases_sampling.py")


def auto_pad_cases():
    f = open_file('auto_pad')
    for mode in ('same_upper', 'same_lower'):
        theirs = mode.upper()
        for name, size, kernel, stride in (('odd', (7,), (3,), (2,)), ('even', (5, 6), (4, 2), (1, 2)),
                                           ('wide', (4, 3, 5), (3, 2, 1), (2, 2, 2)), ('short', (5,), (1,), (3,))):
            x, w = eighths(1, 2, *size), eighths(3, 2, *kernel)
            f.case('conv_%s_%s' % (mode, name), 'conv', [x, w],
                   onnx_op('Conv', [x, w], auto_pad=theirs, strides=list(stride)), auto_pad=mode, strides=list(stride))
            if all(k >= s for k, s in zip(kernel, stride)):  # others it refuses
                f.case('max_pool_%s_%s' % (mode, name), 'max_pool', [x],
                       onnx_op('MaxPool', [x], auto_pad=theirs, strides=list(stride), kernel_shape=list(kernel)),
                       auto_pad=mode, strides=list(stride), kernel=list(kernel))
            w = eighths(2, 3, *kernel)
            f.case('conv_transpose_%s_%s' % (mode, name), 'conv_transpose', [x, w],
                   onnx_op('ConvTranspose', [x, w], opset=11, auto_pad=theirs, strides=list(stride)), auto_pad=mode,
                   strides=list(stride))
        x, w = eighths(1, 2, 4, 5), eighths(2, 3, 3, 3)
        f.case('conv_transpose_shape_' + mode, 'conv_transpose', [x, w],
               onnx_op('ConvTranspose', [x, w], opset=11, auto_pad=theirs, strides=[2, 2], output_shape=[8, 10]),
               auto_pad=mode, strides=[2, 2], output_shape=[8, 10])
    x, w, b = eighths(1, 1, 3, 3), eighths(1, 2, 3, 3), eighths(2)
    f.case('conv_transpose_shape', 'conv_transpose', [x, w, b],
           onnx_op('ConvTranspose', [x, w, b], opset=11, strides=[3, 2], output_shape=[8, 6]), strides=[3, 2],
           output_shape=[8, 6])
    whole = np.zeros((1, 2, 10, 8), 'f4')
    whole[:, :, :9, :7] = onnx_op('ConvTranspose', [x, w], opset=11, strides=[3, 2])
    f.case('conv_transpose_shape_larger', 'conv_transpose', [x, w], whole, strides=[3, 2], output_shape=[10, 8])
    x, w = eighths(1, 2, 5), eighths(3, 2, 3)
    f.error('auto_pad_name', 'conv', [x, w], 'is not one of none, same_upper', auto_pad='same')
    f.error('auto_pad_beside_pads', 'conv', [x, w], '`pads` are given beside auto_pad', auto_pad='same_upper',
            pads=[0, 0])
    w = eighths(2, 3, 3)
    f.error('output_shape_beside_pads', 'conv_transpose', [x, w], 'beside `output_shape`', output_shape=[5],
            pads=[0, 0])
    f.error('output_shape_length', 'conv_transpose', [x, w], '`output_shape` has 2 entries', output_shape=[5, 5])
    f.save()


def pool_cases():
    f = open_file('pool_places')
    shapes = {'1d': (dict(kernel=[3], strides=[2]), (2, 2, 9)), '2d': (dict(kernel=[2, 3], pads=[1, 1, 0, 2]),
                                                                    (1, 2, 5, 4)),
              '3d': (dict(kernel=[2, 2, 2], strides=[1, 2, 2]), (1, 2, 3, 4, 5)),
              'dilated': (dict(kernel=[2, 2], dilations=[2, 1], pads=[1, 0, 0, 1]), (1, 1, 6, 5)),
              'columns': (dict(kernel=[3, 2], storage_order=1, strides=[2, 1]), (2, 2, 6, 4))}
    for name, (attrs, shape) in shapes.items():
        x = rng.permutation(int(np.prod(shape))).reshape(shape).astype('f4')
        theirs = {('kernel_shape' if k == 'kernel' else k): v for k, v in attrs.items()}
        f.case('max_pool_places_' + name, 'max_pool', [x], onnx_op('MaxPool', [x], 2, opset=12, **theirs), **attrs)
    x = np.uint8([[[3, 3, 1, 0, 0, 7]]])
    f.case('max_pool_places_first', 'max_pool', [x], [np.uint8([[[3, 1, 7]]]), np.int64([[[0, 2, 5]]])], kernel=[2],
           strides=[2])
    x = np.float32([[[1, np.nan, np.nan, 2, -np.inf, -np.inf]]])
    f.case('max_pool_places_not_numbers', 'max_pool', [x],
           [np.float32([[[np.nan, np.nan, -np.inf]]]), np.int64([[[1, 2, 4]]])], kernel=[2], strides=[2])
    for p in (1, 2, 3):
        x = eighths(1, 2, 5, 6)
        attrs = dict(strides=[2, 1], pads=[1, 0, 0, 1], p=p)
        f.case('lp_pool_%d' % p, 'lp_pool', [x], onnx_op('LpPool', [x], opset=11, kernel_shape=[3, 2], **attrs),
               tol=TOL, kernel=[3, 2], **attrs)
    x = eighths(1, 1, 6)
    three_four = np.float32([[[3, 4, 0, 0, 6, 8]]])
    f.case('lp_pool_default', 'lp_pool', [three_four], np.float32([[[5, 0, 10]]]), kernel=[2], strides=[2])
    f.case('lp_pool_f16', 'lp_pool', [three_four.astype('f2')], np.float16([[[5, 0, 10]]]), kernel=[2], strides=[2])
    f.case('lp_pool_bf16', 'lp_pool', [bf16(three_four)], bf16(np.float32([[[5, 0, 10]]])), kernel=[2], strides=[2])
    f.case('lp_pool_none', 'lp_pool', [x[:0]], np.zeros((0, 1, 3), 'f4'), kernel=[2], strides=[2])
    f.error('lp_pool_p', 'lp_pool', [x], '`p` is 0', kernel=[2], p=0)
    f.error('lp_pool_int', 'lp_pool', [x.astype('i4')], 'operand 0 has type i32', kernel=[2])
    f.save()


def unpooled_in_order(values, places, shape):
    out = np.zeros(int(np.prod(shape)), values.dtype)
    for value, place in zip(values.reshape(-1), places.reshape(-1)):
        out[place] = value
    return out.reshape(shape)


def max_unpool_cases():
    f = open_file('max_unpool')
    for name, shape, attrs in (('1d', (1, 2, 6), dict(kernel=[2], strides=[2])),
                               ('2d', (2, 1, 4, 6), dict(kernel=[2, 3], strides=[2, 3])),
                               ('3d', (1, 1, 2, 4, 4), dict(kernel=[2, 2, 2], strides=[2, 2, 2]))):
        x = rng.permutation(int(np.prod(shape))).reshape(shape).astype('f4') + 1
        theirs = {('kernel_shape' if k == 'kernel' else k): v for k, v in attrs.items()}
        values, places = onnx_op('MaxPool', [x], 2, opset=12, **theirs)
        f.case('max_unpool_' + name, 'max_unpool', [values, places],
               onnx_op('MaxUnpool', [values, places], opset=11, **theirs), **attrs)
    # ONNX's own test: places count in the shape that was pooled, 4 x 4, also where 5 x 5 is asked for
    values, places = np.float32([[[[5, 6], [7, 8]]]]), np.int64([[[[5, 7], [13, 15]]]])
    whole = np.zeros((1, 1, 5, 5), 'f4')
    whole[0, 0, 1, 1], whole[0, 0, 1, 3], whole[0, 0, 3, 1], whole[0, 0, 3, 3] = 5, 6, 7, 8
    f.case('max_unpool_shape', 'max_unpool', [values, places, np.int64([1, 1, 5, 5])], whole, kernel=[2, 2],
           strides=[2, 2])
    f.case('max_unpool_i32', 'max_unpool', [values.astype('i4'), places], whole[:, :, :4, :4].astype('i4'),
           kernel=[2, 2], strides=[2, 2])
    f.case('max_unpool_none', 'max_unpool', [values[:0], places[:0]], np.zeros((0, 1, 4, 4), 'f4'), kernel=[2, 2],
           strides=[2, 2])
    # of several elements with one place the last counts: they come in order, in ONNX's reference and in ONNX Runtime
    for name, dtype, shape in (('f32', 'f4', (1, 2, 2, 4)), ('f16', 'f2', (1, 1, 3, 5)), ('u8', 'u1', (2, 1, 3, 3)),
                               ('many', 'f4', (1, 2, 8, 16))):
        n = int(np.prod(shape))
        x, at = (np.arange(n) + 1).astype(dtype).reshape(shape), (np.arange(n) * 7 % (n // 3)).reshape(shape).astype('i8')
        whole = unpooled_in_order(x, at, shape[:2] + (shape[2] * 2, shape[3] * 2))
        if dtype == 'f4':  # the one type that it has a kernel for
            assert (whole == onnx_op('MaxUnpool', [x, at], opset=11, kernel_shape=[2, 2], strides=[2, 2])).all()
        f.case('max_unpool_twice_' + name, 'max_unpool', [x, at], whole, kernel=[2, 2], strides=[2, 2])
    f.error('max_unpool_shapes', 'max_unpool', [values, places[:, :, :1]], 'elements and places: extents 2 and 1 differ',
            kernel=[2, 2])
    f.error('max_unpool_kernel', 'max_unpool', [values, places], '`kernel` has 1 entries, expected 2', kernel=[2])
    f.error('max_unpool_rank', 'max_unpool', [values, places, np.int64([5, 5])], 'has 2 dimensions, expected 4',
            kernel=[2, 2])
    f.error('max_unpool_pads', 'max_unpool', [values, places], 'pads take 4 elements', kernel=[2, 2],
            pads=[2, 0, 2, 0])
    f.save()


def resize_cases():
    f = open_file('resize')
    ours = {'coordinate_transformation_mode': 'coordinates', 'nearest_mode': 'nearest', 'cubic_coeff_a': 'cubic_a',
            'extrapolation_value': 'extrapolation', 'keep_aspect_ratio_policy': 'aspect'}

    def add(name, x, scales=None, sizes=None, roi=None, tol=None, opset=19, **attrs):
        target = scales if scales is not None else sizes
        ins = [x, roi, scales] + ([sizes] if sizes is not None else [])
        if opset < 13:  # operands that are not needed are empty
            ins = [np.float32([]) if i is None else i for i in ins]
        result = onnx_op('Resize', ins, opset=opset, **attrs)
        f.case('resize_' + name, 'resize', [x, target] + ([roi] if roi is not None else []), result, tol=tol,
               **{ours.get(k, k): v for k, v in attrs.items()})

    x = eighths(1, 2, 4, 5)
    up, down = np.float32([1, 1, 2, 1.75]), np.float32([1, 1, 0.6, 0.8])
    for mode in ('nearest', 'linear', 'cubic'):
        tol = None if mode == 'nearest' else TOL
        for way in ('half_pixel', 'half_pixel_symmetric', 'pytorch_half_pixel', 'align_corners', 'asymmetric'):
            add('%s_%s_up' % (mode, way), x, up, tol=tol, mode=mode, coordinate_transformation_mode=way)
            add('%s_%s_down' % (mode, way), x, down, tol=tol, mode=mode, coordinate_transformation_mode=way)
        add(mode + '_sizes', x, sizes=np.int64([1, 2, 7, 3]), tol=tol, mode=mode)
        add(mode + '_one', x, sizes=np.int64([1, 2, 1, 1]), tol=tol, mode=mode,
            coordinate_transformation_mode='pytorch_half_pixel')
        add(mode + '_crop', x, sizes=np.int64([1, 2, 3, 4]), roi=np.float32([0, 0, 0.25, -0.5, 1, 1, 0.75, 0.5]),
            tol=tol, mode=mode, coordinate_transformation_mode='tf_crop_and_resize', extrapolation_value=9.5)
    for nearest in ('round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil'):
        add('nearest_' + nearest, x, up, mode='nearest', nearest_mode=nearest)
    add('tf_half_pixel_for_nn', x, sizes=np.int64([1, 2, 3, 2]), mode='nearest', opset=11,
        coordinate_transformation_mode='tf_half_pixel_for_nn')
    add('cubic_a', x, up, tol=TOL, mode='cubic', cubic_coeff_a=-0.5, exclude_outside=1)
    for mode in ('linear', 'cubic'):
        add('antialias_' + mode, eighths(1, 1, 9, 12), sizes=np.int64([1, 1, 4, 5]), tol=TOL, mode=mode, antialias=1)
        add('antialias_%s_up' % mode, x, up, tol=TOL, mode=mode, antialias=1)
    add('antialias_exclude', eighths(1, 1, 9, 12), sizes=np.int64([1, 1, 4, 5]), tol=TOL, mode='cubic', antialias=1,
        exclude_outside=1)
    add('axes', x, sizes=np.int64([6, 3]), axes=[3, 2], tol=TOL, mode='linear')
    for aspect in ('not_larger', 'not_smaller'):
        add(aspect, x, sizes=np.int64([7, 6]), axes=[2, 3], mode='nearest', keep_aspect_ratio_policy=aspect)
    f.case('resize_linear_f64', 'resize', [x.astype('f8'), up],
           onnx_op('Resize', [x, None, up], mode='linear').astype('f8'), tol=TOL, mode='linear')
    add('linear_u8', rng.integers(0, 64, (1, 1, 3, 4)).astype('u1') * 4, np.float32([1, 1, 2, 2]), mode='linear')
    add('nearest_i32', rng.integers(-9, 9, (1, 1, 3, 4)).astype('i4'), np.float32([1, 1, 2, 2]), mode='nearest')
    line = np.float32([1, 2, 4])
    f.case('resize_simple_up', 'resize', [line, np.float32([1.5])], np.float32([1, 1, 2, 4]), coordinates='asymmetric',
           nearest='simple')
    f.case('resize_simple_down', 'resize', [line, np.float32([0.7])], np.float32([1, 4]), coordinates='asymmetric',
           nearest='simple')
    f.case('resize_bool', 'resize', [line > 1, np.int64([6])], np.repeat(line > 1, 2))
    f.case('resize_i64_exact', 'resize', [np.int64([2**62 + 1, -1]), np.int64([4])],
           np.int64([2**62 + 1, 2**62 + 1, -1, -1]))
    f.case('resize_none', 'resize', [x[:0], up], np.zeros((0, 2, 8, 8), 'f4'), mode='linear')
    f.case('resize_to_none', 'resize', [line, np.int64([0])], line[:0])
    f.error('resize_mode', 'resize', [line, np.int64([6])], 'which is not one of its values; they start with', mode='bilinear')
    f.error('resize_coordinates', 'resize', [line, np.int64([6])], '`coordinates` is ', coordinates='none')
    f.error('resize_count', 'resize', [x, np.int64([6])], 'operand 1 has 1 entries, expected 4')
    f.error('resize_scale', 'resize', [line, np.float32([0])], 'scale 0 is 0')
    f.error('resize_negative', 'resize', [line, np.int64([-1])], 'extent 0 is -1')
    f.error('resize_empty', 'resize', [line[:0], np.int64([2])], 'axis 0 is empty')
    f.error('resize_no_region', 'resize', [line, np.int64([2])], 'needs operand 2',
            coordinates='tf_crop_and_resize')
    f.error('resize_blended_bool', 'resize', [line > 1, np.int64([6])], 'operand 0 has type bool', mode='linear')
    f.error('resize_too_large', 'resize', [line, np.float32([3e38])], 'is too large')
    f.save()


def grid_sample_cases():
    f = open_file('grid_sample')
    theirs = {'nearest': 'nearest', 'linear': 'bilinear', 'cubic': 'bicubic'}
    grid = rng.uniform(-1.5, 1.5, (1, 3, 3, 2)).astype('f4')
    x = eighths(1, 2, 4, 3)
    for mode in theirs:
        for padding in ('zeros', 'border', 'reflection'):
            for corners in (0, 1):
                f.case('grid_sample_%s_%s_%d' % (mode, padding, corners), 'grid_sample', [x, grid],
                       onnx_op('GridSample', [x, grid], mode=theirs[mode], padding_mode=padding,
                               align_corners=corners), tol=TOL, mode=mode, padding=padding, align_corners=corners)
    x, grid = eighths(2, 1, 2, 3, 4), rng.uniform(-1.2, 1.2, (2, 2, 1, 2, 3)).astype('f4')
    for mode in ('linear', 'nearest'):
        f.case('grid_sample_3d_' + mode, 'grid_sample', [x, grid], onnx_op('GridSample', [x, grid], opset=20, mode=mode),
               tol=TOL, mode=mode)
    x, grid = eighths(1, 1, 5), np.float32([[[-1], [-0.5], [0], [1]]])
    f.case('grid_sample_1d', 'grid_sample', [x, grid], x[:, :, [0, 1, 2, 4]], align_corners=1)
    f.case('grid_sample_f64', 'grid_sample', [x.astype('f8'), grid], x[:, :, [0, 1, 2, 4]].astype('f8'),
           align_corners=1)
    f.case('grid_sample_nowhere', 'grid_sample', [x, np.float32([[[np.nan], [np.inf], [-np.inf]]])],
           np.zeros((1, 1, 3), 'f4'))
    f.case('grid_sample_no_points', 'grid_sample', [x, grid[:, :0]], x[:, :, :0])
    f.error('grid_sample_mode', 'grid_sample', [x, grid], 'is not one of nearest, linear and cubic', mode='bilinear')
    f.error('grid_sample_padding', 'grid_sample', [x, grid], 'is not one of zeros, border and reflection', padding='edge')
    f.error('grid_sample_coordinates', 'grid_sample', [x, np.zeros((1, 4, 2), 'f4')], 'coordinates of a point')
    f.error('grid_sample_images', 'grid_sample', [x, np.zeros((2, 4, 1), 'f4')], 'images and grids')
    f.error('grid_sample_empty', 'grid_sample', [x[:, :, :0], grid], 'axis 2 of the image is empty')
    f.save()


def roi_align_cases():
    f = open_file('roi_align')
    x = eighths(2, 2, 6, 7)
    rois = np.float32([[0, 0, 5, 5], [1.5, 2, 9, 4.25], [3, 3, 3.25, 3.5], [-4, -4, -3, -2]])
    images = np.int64([0, 1, 1, 0])
    for mode in ('avg', 'max'):
        for half in (0, 1):
            for ratio in (0, 2):
                attrs = dict(mode=mode, output_height=2, output_width=3, sampling_ratio=ratio, spatial_scale=0.75)
                way = 'half_pixel' if half else 'output_half_pixel'
                f.case('roi_align_%s_%d_%d' % (mode, half, ratio), 'roi_align', [x, rois, images],
                       onnx_op('RoiAlign', [x, rois, images], coordinate_transformation_mode=way, **attrs), tol=TOL,
                       half_pixel=half, **attrs)
    f.case('roi_align_default', 'roi_align', [x, rois, images], onnx_op('RoiAlign', [x, rois, images]), tol=TOL)
    f.case('roi_align_i32', 'roi_align', [x, rois, images.astype('i4')], onnx_op('RoiAlign', [x, rois, images]),
           tol=TOL)
    f.case('roi_align_none', 'roi_align', [x, rois[:0], images[:0]], np.zeros((0, 2, 1, 1), 'f4'))
    f.error('roi_align_mode', 'roi_align', [x, rois, images], 'is not one of avg and max', mode='sum')
    f.error('roi_align_bins', 'roi_align', [x, rois, images], 'a grid of 0 x 1 bins', output_height=0)
    f.error('roi_align_regions', 'roi_align', [x, rois, images[:2]], 'regions and their images: extents 4 and 2')
    f.error('roi_align_corners', 'roi_align', [x, rois[:, :3], images], 'corners of a region')
    f.save()


def max_roi_pool_cases():
    f = open_file('max_roi_pool')
    x = eighths(2, 2, 6, 7)
    rois = np.float32([[0, 0, 0, 5, 5], [1, 1.5, 2, 9, 4.25], [1, 3, 3, 3.25, 3.5], [0, 12, 12, 14, 14]])
    for name, attrs in (('plain', dict(spatial_scale=1.0)), ('scaled', dict(spatial_scale=0.5))):
        f.case('max_roi_pool_' + name, 'max_roi_pool', [x, rois],
               onnx_op('MaxRoiPool', [x, rois], pooled_shape=[2, 3], **attrs), pooled=[2, 3], **attrs)
    f.case('max_roi_pool_none', 'max_roi_pool', [x, rois[:0]], np.zeros((0, 2, 1, 1), 'f4'), pooled=[1, 1])
    f.error('max_roi_pool_bins', 'max_roi_pool', [x, rois], '`pooled` must have two entries', pooled=[0, 1])
    f.error('max_roi_pool_regions', 'max_roi_pool', [x, rois[:, 1:]], 'entries of a region', pooled=[1, 1])
    f.save()


def deform_conv_cases():
    f = open_file('deform_conv')

    def add(name, channels, outputs, groups, bias, mask, **attrs):
        size, kernel = (5, 6), (3, 2)
        strides, pads = attrs.get('strides', [1, 1]), attrs.get('pads', [0, 0, 0, 0])
        dilations = attrs.get('dilations', [1, 1])
        out = [(size[i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
               for i in range(2)]
        taps = attrs.get('offset_group', 1) * 6
        ins = [eighths(2, channels, *size), eighths(outputs, channels // groups, *kernel), eighths(2, 2 * taps, *out),
               eighths(outputs) if bias else None, eighths(2, taps, *out) if mask else None]
        ins = ins if mask else ins[:4] if bias else ins[:3]
        result = onnx_op('DeformConv', ins, group=groups, **attrs)
        f.case('deform_conv_' + name, 'deform_conv', ins, result, tol=TOL, group=groups, **attrs)

    add('plain', 2, 3, 1, False, False)
    add('bias', 1, 2, 1, True, False)
    add('mask', 2, 2, 1, True, True)
    add('mask_alone', 2, 2, 1, False, True)
    add('groups', 4, 4, 2, False, True, offset_group=2)
    add('window', 2, 2, 1, False, False, strides=[2, 1], pads=[1, 0, 1, 2], dilations=[2, 1])
    x, w, offset = eighths(1, 2, 4, 4), eighths(2, 2, 2, 2), eighths(1, 8, 3, 3)
    f.case('deform_conv_still', 'deform_conv', [x, w, offset * 0], onnx_op('Conv', [x, w]))
    f.case('deform_conv_none', 'deform_conv', [x[:0], w, offset[:0]], np.zeros((0, 2, 3, 3), 'f4'))
    f.error('deform_conv_offset', 'deform_conv', [x, w, offset[:, :4]], 'taps and what moves them: extents 8 and 4')
    f.error('deform_conv_offset_groups', 'deform_conv', [x, w, offset], 'do not split into 3 offset groups', offset_group=3)
    f.error('deform_conv_rank', 'deform_conv', [x[0], w[0], offset[0]], 'operand 0 has shape [2, 4, 4]')
    f.save()


def quantize_cases():
    f = open_file('quantize')
    x = np.float32([[-1000, -2.5, -1.5, -0.5], [0, 0.5, 1.5, 1000]])
    scale = np.float32(0.5).reshape(())
    for name, kind in (('u8', 'u1'), ('i8', 'i1'), ('i16', 'i2')):
        zero = np.array(100 if kind != 'i1' else -3, kind)
        f.case('quantize_' + name, 'quantize', [x, scale, zero], onnx_op('QuantizeLinear', [x, scale, zero], opset=21),
               to=name)
        q = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (2, 3), endpoint=True).astype(kind)
        f.case('dequantize_' + name, 'dequantize', [q, scale, zero],
               onnx_op('DequantizeLinear', [q, scale, zero], opset=21))
    f.case('quantize_no_zero', 'quantize', [x, scale], onnx_op('QuantizeLinear', [x, scale]))
    f.case('quantize_not_numbers', 'quantize', [np.float32([np.nan, np.inf, -np.inf]), scale], np.uint8([0, 255, 0]))
    q = rng.integers(-2**20, 2**20, (2, 3)).astype('i4')
    f.case('dequantize_i32', 'dequantize', [q, scale], onnx_op('DequantizeLinear', [q, scale]))
    f.case('quantize_of_i32', 'quantize', [q // 4096, scale, np.array(3, 'i1')],
           np.clip(np.rint(q // 4096 / 0.5) + 3, -128, 127).astype('i1'), to='i8')
    x = (rng.standard_normal((2, 3, 4)) * 20).astype('f4')
    scales, zeros = rng.uniform(0.1, 0.5, 3).astype('f4'), rng.integers(0, 200, 3).astype('u1')
    q = onnx_op('QuantizeLinear', [x, scales, zeros], axis=1)
    f.case('quantize_axis', 'quantize', [x, scales.reshape(3, 1), zeros.reshape(3, 1)], q)
    f.case('dequantize_axis', 'dequantize', [q, scales.reshape(3, 1), zeros.reshape(3, 1)],
           onnx_op('DequantizeLinear', [q, scales, zeros], axis=1))
    long = (rng.standard_normal(700) * 20).astype('f4')
    f.case('quantize_long', 'quantize', [long, scale, np.uint8(7).reshape(())],
           onnx_op('QuantizeLinear', [long, scale, np.uint8(7).reshape(())]))
    f.case('dequantize_f16', 'dequantize', [np.int8([-128, 127]), np.float16(0.5).reshape(())],
           np.float16([-64, 63.5]))
    f.case('dequantize_f64', 'dequantize', [np.int8([-128, 127]), np.float64(0.25).reshape(())], np.float64([-32, 31.75]))
    f.case('dequantize_bf16', 'dequantize', [np.int8([-128, 127]), bf16(np.float32(0.5))], bf16(np.float32([-64, 63.5])))
    f.case('quantize_none', 'quantize', [long[:0], scale], np.uint8([]))
    f.error('quantize_to', 'quantize', [long, scale], "attribute 'to' is 'f32'", to='f32')
    f.error('quantize_zero_type', 'quantize', [long, scale, np.int8(1).reshape(())], 'operand 2 has type i8, expected u8')
    f.error('quantize_scale_type', 'quantize', [long, np.int32(1).reshape(())], 'operand 1 has type i32')
    f.error('quantize_scale_shape', 'quantize', [long[:1], np.float32([1, 2])], 'does not broadcast to [1]')
    f.error('dequantize_bool', 'dequantize', [long > 0, scale], 'operand 0 has type bool')
    f.save()


if __name__ == "__main__":
    auto_pad_cases()
    pool_cases()
    max_unpool_cases()
    resize_cases()
    grid_sample_cases()
    roi_align_cases()
    max_roi_pool_cases()
    deform_conv_cases()
    quantize_cases()
