#!/usr/bin/env python3
"""Writes tests/onnx/cases/growing.pack: loops that carry sequences or values that grow, as torch.onnx.export makes
them of scripted functions, where extents and counts are known when dimensions are bound, or only to a run. Run by hand like
make_cases.py, with the same needs; the outputs are ONNX Runtime's."""
import numpy as np
from onnx import TensorProto, helper

from make_cases import Pack, as_model, f32, value
from make_cases_control import graph, put

REAL, WHOLE, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def sequence(name):
    return helper.make_tensor_sequence_value_info(name, REAL, None)


def loop_body(nodes, carried, tag=""):
    """carried: (name, next name, whether it is a sequence)"""
    kind = {True: sequence, False: lambda n: value(n, REAL, None)}
    made = graph("body", nodes + [node("Identity", ["c" + tag], ["c_out" + tag])],
                 [("i" + tag, WHOLE, []), ("c" + tag, TRUTH, [])], [("c_out" + tag, TRUTH, [])])
    for old, new, is_sequence in carried:
        made.input.append(kind[is_sequence](old))
        made.output.append(kind[is_sequence](new))
    return made


FEW = {"zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "last": np.int64(-1), "at0": np.int64([0]),
       "at1": np.int64([1]), "flat": np.int64([-1])}


def extent(of, out, axis="zero"):
    return [node("Shape", [of], [out + "_all"]), node("Gather", [out + "_all", axis], [out])]


def count_of_positive(of, out):
    """A count that only a run knows, at most the extent of `of`."""
    return [node("Greater", [of, "nothing"], [out + "_is"]), node("NonZero", [out + "_is"], [out + "_at"])] + \
        extent(out + "_at", out, "one")


def lists_of_rows(p):
    """for i in range(len(x)): rows.append(tanh(x[i]) * w); torch.stack(rows)"""
    step = [node("Gather", ["x", "i"], ["row"]), node("Tanh", ["row"], ["t"]), node("Mul", ["t", "w"], ["y_i"]),
            node("SequenceInsert", ["s", "y_i"], ["s2"])]
    body = loop_body(step, [("s", "s2", True)])
    begin = [node("SequenceEmpty", [], ["none"])]
    ends = {"stacked": dict(axis=0, new_axis=1), "stacked_last": dict(axis=-1, new_axis=1),
            "stacked_1": dict(axis=1, new_axis=1), "joined": dict(axis=0), "joined_1": dict(axis=1)}
    for name, how in ends.items():
        nodes = extent("x", "n") + begin + [node("Loop", ["n", "", "none"], ["all"], body=body),
                                            node("ConcatFromSequence", ["all"], ["y"], **how)]
        put(p, "rows_" + name, nodes, [("x", REAL, ["t", 2, 3]), ("w", REAL, [2, 3])], [("y", REAL, None)],
            {"x": f32(5, 2, 3), "w": f32(2, 3)}, FEW)
    counted = {**FEW, "nothing": np.float32(0)}
    nodes = count_of_positive("m", "n") + begin + [
        node("Loop", ["n", "", "none"], ["all"], body=body), node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1),
        node("SequenceLength", ["all"], ["length"]), node("SequenceAt", ["all", "last"], ["at_last"])]
    put(p, "rows_counted", nodes, [("m", REAL, [6]), ("x", REAL, [6, 2, 3]), ("w", REAL, [2, 3])],
        [("y", REAL, None), ("length", WHOLE, []), ("at_last", REAL, None)],
        {"m": np.float32([1, 0, 2, 3, -1, 0]), "x": f32(6, 2, 3), "w": f32(2, 3)}, counted)
    joined = count_of_positive("m", "n") + begin + [
        node("Loop", ["n", "", "none"], ["all"], body=body), node("ConcatFromSequence", ["all"], ["y"], axis=1)]
    put(p, "rows_counted_joined", joined, [("m", REAL, [6]), ("x", REAL, ["t", 2, "k"]), ("w", REAL, [2, "k"])],
        [("y", REAL, None)], {"m": np.float32([1, 0, 2, 3, -1, 4]), "x": f32(6, 2, 3), "w": f32(2, 3)}, counted)
    nodes = [node("SequenceEmpty", [], ["none"]), node("SequenceConstruct", ["w", "w"], ["two_w"])] + extent("x", "n") + [
        node("Loop", ["n", "", "two_w"], ["all"], body=body), node("SequenceErase", ["all"], ["fewer"]),
        node("SequenceInsert", ["fewer", "w"], ["more"]), node("SequenceInsert", ["more", "v", "zero"], ["most"]),
        node("SequenceErase", ["most", "zero"], ["again"]), node("SequenceAt", ["again", "n"], ["y_n"]),
        node("ConcatFromSequence", ["again"], ["y"], axis=1)]
    put(p, "rows_after_others", nodes, [("x", REAL, ["t", 2, 3]), ("w", REAL, [2, 3]), ("v", REAL, [2, 3])],
        [("y", REAL, None), ("y_n", REAL, None)], {"x": f32(4, 2, 3), "w": f32(2, 3), "v": f32(2, 3)}, FEW)


def nested_lists(p):
    """for row in x: rows.append(row); for other in x: rows.append(row * other)"""
    inner = loop_body([node("Gather", ["x", "i_in"], ["other"]), node("Mul", ["row", "other"], ["m"]),
                       node("SequenceInsert", ["u", "m"], ["u2"])], [("u", "u2", True)], tag="_in")
    step = [node("Gather", ["x", "i"], ["row"]), node("SequenceInsert", ["s", "row"], ["s1"]),
            node("Loop", ["n", "", "s1"], ["s2"], body=inner)]
    nodes = extent("x", "n") + [node("SequenceEmpty", [], ["none"]),
                                node("Loop", ["n", "", "none"], ["all"], body=loop_body(step, [("s", "s2", True)])),
                                node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1)]
    put(p, "nested", nodes, [("x", REAL, ["t", 3])], [("y", REAL, None)], {"x": f32(4, 3)}, FEW)
    """Each row is added to the last of the sequence: read back, so unrolled."""
    step = [node("SequenceAt", ["s", "last"], ["before"]), node("Gather", ["x", "i"], ["row"]),
            node("Add", ["before", "row"], ["sum"]), node("SequenceInsert", ["s", "sum"], ["s2"])]
    nodes = extent("x", "n") + [node("SequenceConstruct", ["h0"], ["begin"]),
                                node("Loop", ["n", "", "begin"], ["all"], body=loop_body(step, [("s", "s2", True)])),
                                node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1)]
    put(p, "read_back", nodes, [("x", REAL, [20, 3]), ("h0", REAL, [3])], [("y", REAL, None)],
        {"x": f32(20, 3), "h0": f32(3)}, FEW)


def recurrent_lists(p):
    """for x_t in x.unbind(0): h = tanh(x_t + h); out.append(h)"""
    step = [node("SequenceAt", ["parts", "i"], ["x_t"]), node("Add", ["x_t", "h"], ["a"]), node("Tanh", ["a"], ["h2"]),
            node("SequenceInsert", ["s", "h2"], ["s2"])]
    body = loop_body(step, [("h", "h2", False), ("s", "s2", True)])
    for name, keeps, shape in (("recurrent", 0, ["t", 3]), ("recurrent_keeps", 1, ["t", 3]), ("recurrent_long", 0, [40, 3])):
        split = dict(axis=0) if keeps else dict(axis=0, keepdims=0)
        nodes = [node("SplitToSequence", ["x"], ["parts"], **split), node("SequenceLength", ["parts"], ["n"]),
                 node("SequenceEmpty", [], ["none"]),
                 node("Loop", ["n", "", "h0", "none"], ["h9", "all"], body=body),
                 node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1 - keeps)]
        h0 = f32(1, 3) if keeps else f32(3)
        length = shape[0] if shape[0] != "t" else 6
        put(p, name, nodes, [("x", REAL, shape), ("h0", REAL, list(h0.shape))], [("y", REAL, None), ("h9", REAL, None)],
            {"x": f32(length, 3), "h0": h0}, FEW)
    """Columns of an axis that is not the first, the last of which is taken."""
    nodes = [node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0), node("SequenceAt", ["parts", "last"], ["a"]),
             node("SequenceAt", ["parts", "one"], ["b"]), node("Sub", ["a", "b"], ["y"])]
    put(p, "columns", nodes, [("x", REAL, [2, "t", 3])], [("y", REAL, None)], {"x": f32(2, 4, 3)}, FEW)
    """A list of known length, of which a loop takes one after the other."""
    step = [node("SequenceAt", ["parts", "i"], ["x_t"]), node("Mul", ["h", "x_t"], ["h2"])]
    nodes = [node("SequenceConstruct", ["a", "b", "a"], ["parts"]), node("Loop", ["n", "", "h0"], ["y"],
             body=loop_body(step, [("h", "h2", False)]))]
    put(p, "list_by_round", nodes, [("n", WHOLE, []), ("a", REAL, [3]), ("b", REAL, [3]), ("h0", REAL, [3])],
        [("y", REAL, None)], {"n": np.int64(2), "a": f32(3), "b": f32(3), "h0": f32(3)}, FEW)


def grown_tensors(p):
    """y = torch.cat((y, f(x[i])), axis) with slices of more than one element, of an extent that has a name."""
    step = [node("Gather", ["x", "i"], ["row"]), node("Exp", ["row"], ["e"])]
    for name, axis in (("cat_0", 0), ("cat_1", 1)):
        nodes = extent("x", "n") + [node("Loop", ["n", "", "v0"], ["y"], body=loop_body(
            step + [node("Concat", ["v", "e"], ["v2"], axis=axis)], [("v", "v2", False)]))]
        v0 = f32(1, 3) if axis == 0 else f32(4, 2)
        put(p, name, nodes, [("x", REAL, ["t", "a", "b"]), ("v0", REAL, [1, "b"] if axis == 0 else ["a", 2])],
            [("y", REAL, None)], {"x": f32(5, 4, 3), "v0": v0}, FEW)
    """Two parts in every round; the first value is empty."""
    nodes = extent("x", "n") + [node("Loop", ["n", "", "v0"], ["y"], body=loop_body(
        step + [node("Concat", ["v", "e", "row"], ["v2"], axis=0)], [("v", "v2", False)]))]
    put(p, "cat_two", nodes, [("x", REAL, ["t", "a", 3])], [("y", REAL, None)], {"x": f32(5, 2, 3)},
        {**FEW, "v0": np.zeros((0, 3), np.float32)})
    """Rows that are read back: the mean of all so far is the next one."""
    step = [node("ReduceMean", ["v"], ["mean"], axes=[0], keepdims=1), node("Gather", ["x", "i"], ["row"]),
            node("Add", ["row", "mean"], ["a"]), node("Concat", ["v", "a"], ["v2"], axis=0)]
    nodes = extent("x", "n") + [node("Loop", ["n", "", "v0"], ["y"], body=loop_body(step, [("v", "v2", False)]))]
    put(p, "cat_read_back", nodes, [("x", REAL, ["t", 1, 3]), ("v0", REAL, [1, 3])], [("y", REAL, None)],
        {"x": f32(30, 1, 3), "v0": f32(1, 3)}, FEW)


class Script:
    """Nodes in a row, each with one result that gets a name."""
    def __init__(self, tag):
        self.nodes, self.tag = [], tag

    def __call__(self, op, *ins, **attrs):
        out = "%s%d" % (self.tag, len(self.nodes))
        self.nodes.append(node(op, list(ins), [out], **attrs))
        return out

    def at(self, x, *indices):
        for index in indices:
            x = self("Gather", x, index)
        return x

    def list(self, *parts):
        """Numbers, which may be lists of one, as a list."""
        return self("Concat", *[self("Reshape", part, "flat") for part in parts], axis=0)

    def extreme(self, op, *parts):
        return self(op, self.list(*parts), keepdims=0)

    def slice(self, x, begin, end, axis):
        return self("Slice", x, self.list(begin), self.list(end), axis)

    def zeros(self, *extents):
        return self("ConstantOfShape", self.list(*extents))

    def extent(self, x, axis):
        return self("Gather", self("Shape", x), axis)


def clipped_boxes(s, boxes, height, width):
    """torchvision's clip_boxes_to_image: x1, y1, x2, y2 between 0 and the image's size."""
    columns = []
    for k, most in zip(("zero", "one", "two", "three"), (width, height, width, height)):
        x = s("Max", s("Gather", boxes, k, axis=1), "nothing")
        columns.append(s("Unsqueeze", s("Min", x, s("Cast", most, to=REAL)), "at1"))
    return s("Concat", *columns, axis=1)


def expanded_boxes(s, boxes, factor):
    """torchvision's expand_boxes, as integers."""
    x1, y1, x2, y2 = (s("Gather", boxes, k, axis=1) for k in ("zero", "one", "two", "three"))
    sides = []
    for a, b in ((x1, x2), (y1, y2)):
        half = s("Mul", s("Mul", s("Sub", b, a), "half"), factor)
        middle = s("Mul", s("Add", b, a), "half")
        sides += [(s("Sub", middle, half), s("Add", middle, half))]
    (x1, x2), (y1, y2) = sides
    joined = s("Concat", *[s("Unsqueeze", v, "at1") for v in (x1, y1, x2, y2)], axis=1)
    return s("Cast", joined, to=WHOLE)


def pasted_mask(s, mask, box):
    """torchvision's _onnx_paste_mask_in_image."""
    b = [s.at(box, k) for k in ("zero", "one", "two", "three")]
    w = s.extreme("ReduceMax", s("Add", s("Sub", b[2], b[0]), "one"), "one")
    h = s.extreme("ReduceMax", s("Add", s("Sub", b[3], b[1]), "one"), "one")
    mask = s("Unsqueeze", s("Unsqueeze", mask, "at0"), "at0")
    sizes = s("Concat", s("Slice", s("Shape", mask), "at0", "at2", "at0"), s.list(h, w), axis=0)
    mask = s.at(s("Resize", mask, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
                "zero", "zero")
    x0, y0 = (s.extreme("ReduceMax", b[k], "zero") for k in (0, 1))
    x1 = s.extreme("ReduceMin", s("Add", b[2], "one"), "width")
    y1 = s.extreme("ReduceMin", s("Add", b[3], "one"), "height")
    part = s.slice(s.slice(mask, s("Sub", y0, b[1]), s("Sub", y1, b[1]), "at0"), s("Sub", x0, b[0]), s("Sub", x1, b[0]), "at1")
    rows = s("Concat", s.zeros(y0, s.extent(part, "one")), part, s.zeros(s("Sub", "height", y1), s.extent(part, "one")), axis=0)
    rows = s.slice(rows, "zero", "height", "at0")
    columns = s("Concat", s.zeros(s.extent(rows, "zero"), x0), rows, s.zeros(s.extent(rows, "zero"), s("Sub", "width", x1)), axis=1)
    return s.slice(columns, "zero", "width", "at1")


def detections(p):
    """The masks of Mask R-CNN: those with a good score, each resized to its box and pasted into an image."""
    constants = {**FEW, "three": np.int64(3), "at2": np.int64([2]), "nothing": np.float32(0), "half": np.float32(0.5),
                 "factor": np.float32(8 / 6)}
    s, b = Script("outer_"), Script("inner_")
    height, width = s.extent("image", "one"), s.extent("image", "two")
    s.nodes += [node("Identity", [height], ["height"]), node("Identity", [width], ["width"])]
    kept = s("Squeeze", s("Transpose", s("NonZero", s("Greater", "scores", "half")), perm=[1, 0]), "at1")
    boxes = expanded_boxes(s, clipped_boxes(s, s("Gather", "boxes", kept), "height", "width"), "factor")
    masks = s("Pad", s("Gather", "masks", kept), "pads")
    s.nodes += [node("Identity", [boxes], ["kept_boxes"]), node("Identity", [masks], ["kept_masks"])]
    one = pasted_mask(b, b.at(b("Gather", "kept_masks", "i"), "zero"), b("Gather", "kept_boxes", "i"))
    body = loop_body(b.nodes + [node("Unsqueeze", [one, "at0"], ["slice"]), node("Concat", ["v", "slice"], ["v2"], axis=0)],
                     [("v", "v2", False)])
    s.nodes += [node("Identity", [s.zeros("zero", "height", "width")], ["begin"])]
    s.nodes += [node("Loop", [s.extent("kept_masks", "zero"), "", "begin"], ["pasted"], body=body),
                node("Unsqueeze", ["pasted", "at1"], ["y"])]
    boxes = np.float32([[1, 2, 9, 7], [0, 0, 3, 3], [-4, 3, 12.5, 30], [8.2, 1.1, 8.4, 15], [5, 5, 5, 5], [2, 8, 14, 11]])
    put(p, "mask_rcnn", s.nodes, [("image", REAL, [3, "h", "w"]), ("scores", REAL, ["n"]), ("boxes", REAL, ["n", 4]),
                                  ("masks", REAL, ["n", 1, 6, 6])], [("y", REAL, None)],
        {"image": f32(3, 16, 18), "scores": np.float32([.9, .6, .8, .7, .1, .95]), "boxes": boxes,
         "masks": f32(6, 1, 6, 6)}, {**constants, "pads": np.int64([0, 0, 1, 1, 0, 0, 1, 1])})


def keypoints(p):
    """The keypoints of Keypoint R-CNN: each heatmap resized to its box, and the place of its largest element."""
    constants = {**FEW, "three": np.int64(3), "at2": np.int64([2]), "nothing": np.float32(0),
                 "half": np.float32(0.5), "unit": np.float32(1), "by_map": np.int64([2, -1])}
    s, b = Script("outer_"), Script("inner_")
    s.nodes += [node("Identity", [s.extent("image", k)], [name]) for k, name in (("one", "height"), ("two", "width"))]
    boxes = clipped_boxes(s, "boxes", "height", "width")
    x1, y1, x2, y2 = (s("Gather", boxes, k, axis=1) for k in ("zero", "one", "two", "three"))
    for name, (a, e) in {"widths": (x1, x2), "heights": (y1, y2)}.items():
        size = s("Max", s("Sub", e, a), "unit")
        s.nodes += [node("Identity", [size], [name]), node("Ceil", [size], [name + "_up"])]
    s.nodes += [node("Identity", [x1], ["left"])]
    heat = b("Gather", "maps", "i")
    up = {name: b("Gather", name + "_up", "i") for name in ("widths", "heights")}
    sizes = b("Concat", b("Slice", b("Shape", b("Unsqueeze", heat, "at1")), "at0", "at2", "at0"),
              b.list(*[b("Cast", up[k], to=WHOLE) for k in ("heights", "widths")]), axis=0)
    big = b("Resize", b("Unsqueeze", heat, "at1"), "", "", sizes, mode="cubic",
            coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75)
    big = b("Squeeze", big, "at1")
    w = b.extent(big, "two")
    place = b("ArgMax", b("Reshape", big, "by_map"), axis=1, keepdims=0)
    column = b("Mod", place, w)
    row = b("Div", b("Sub", place, column), w)
    scale = b("Div", b("Gather", "widths", "i"), up["widths"])
    x = b("Add", b("Mul", b("Add", b("Cast", column, to=REAL), "half"), scale), b("Gather", "left", "i"))
    pairs = b("Unsqueeze", b("Concat", b("Unsqueeze", x, "at0"), b("Unsqueeze", b("Cast", row, to=REAL), "at0"), axis=0), "at0")
    best = b("ReduceMax", b("Reshape", big, "by_map"), axes=[1], keepdims=0)
    body = loop_body(b.nodes + [node("Concat", ["v", pairs], ["v2"], axis=0),
                                node("Unsqueeze", [best, "at0"], ["best_slice"]),
                                node("Concat", ["u", "best_slice"], ["u2"], axis=0)],
                     [("v", "v2", False), ("u", "u2", False)])
    s.nodes += [node("Loop", [s.extent("maps", "zero"), "", "v0", "u0"], ["y", "scores"], body=body)]
    boxes = np.float32([[1, 2, 9, 7], [0, 0, 3, 3], [-4, 3, 12.5, 30], [8.2, 1.1, 8.4, 15]])
    put(p, "keypoint_rcnn", s.nodes, [("image", REAL, [3, "h", "w"]), ("boxes", REAL, ["n", 4]), ("maps", REAL, ["n", 2, 5, 5])],
        [("y", REAL, None), ("scores", REAL, None)], {"image": f32(3, 16, 18), "boxes": boxes, "maps": f32(4, 2, 5, 5)},
        {**constants, "v0": np.zeros((0, 2, 2), np.float32), "u0": np.zeros((0, 2), np.float32)})


def lists_read_back(p):
    """Each row is added to the last of the sequence, over an axis with a name: its tensors are carried."""
    step = [node("SequenceAt", ["s", "last"], ["before"]), node("Gather", ["x", "i"], ["row"]),
            node("Add", ["before", "row"], ["sum"]), node("SequenceInsert", ["s", "sum"], ["s2"])]
    nodes = extent("x", "n") + [node("SequenceConstruct", ["h0"], ["begin"]),
                                node("Loop", ["n", "", "begin"], ["all"], body=loop_body(step, [("s", "s2", True)])),
                                node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1)]
    put(p, "read_back_named", nodes, [("x", REAL, ["t", 3]), ("h0", REAL, [3])], [("y", REAL, None)],
        {"x": f32(7, 3), "h0": f32(3)}, FEW)


def main():
    pack = Pack("growing")
    for group in (lists_of_rows, nested_lists, recurrent_lists, grown_tensors, detections, keypoints,
                  lists_read_back):
        group(pack)
    pack.file.close()


if __name__ == "__main__":
    main()
