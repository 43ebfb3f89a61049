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


def main():
    pack = Pack("growing")
    for group in (lists_of_rows, nested_lists, recurrent_lists, grown_tensors):
        group(pack)
    pack.file.close()


if __name__ == "__main__":
    main()
