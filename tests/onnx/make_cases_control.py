#!/usr/bin/env python3
"""Writes tests/onnx/cases/control.pack: If, Loop and Scan whose conditions and counts are data, or whose rounds are too
many to unroll. Run by hand like make_cases.py, with the same needs; the outputs are ONNX Runtime's."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from make_cases import Pack, as_model, f32, value

REAL, WHOLE, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def graph(name, nodes, ins, outs, constants=None):
    given = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    return helper.make_graph(nodes, name, [value(*i) for i in ins], [value(*o) for o in outs], given)


def body(nodes, carried, scanned=(), constants=None, goes_on=None, round_shape=(), tag=""):
    """carried: (name, next name, shape); the condition is passed on unless goes_on names another."""
    i, c = "i" + tag, "c" + tag
    if goes_on is None:
        nodes, goes_on = nodes + [node("Identity", [c], [c + "_out"])], c + "_out"
    return graph("body", nodes, [(i, WHOLE, list(round_shape)), (c, TRUTH, [])] + [(n, REAL, s) for n, _, s in carried],
                 [(goes_on, TRUTH, [])] + [(n, REAL, s) for _, n, s in carried] + [(n, REAL, None) for n in scanned],
                 constants)


def put(p, name, nodes, ins, outs, inputs, constants=None):
    p.model(name, as_model(graph(name, nodes, ins, outs, constants)), inputs)


def branch(nodes, out):
    return graph("branch", nodes, [], [(out, REAL, None)])


def choices(p):
    up = branch([node("Exp", ["x"], ["a"]), node("Neg", ["a"], ["t"])], "t")
    down = branch([node("Sin", ["x"], ["b"]), node("Add", ["b", "x"], ["d"]), node("Abs", ["d"], ["e"])], "e")
    sign = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["p"])]
    zero = {"zero": np.float32(0)}
    for name, x in (("if_true", [1, 2, -1]), ("if_false", [1, -2, -1])):
        put(p, name, sign + [node("If", ["p"], ["y"], then_branch=up, else_branch=down)], [("x", REAL, [3])],
            [("y", REAL, [3])], {"x": np.float32(x)}, zero)
    inner = node("If", ["q"], ["m"], then_branch=up, else_branch=down)
    outer = branch([inner, node("Mul", ["m", "x"], ["t2"])], "t2")
    for name, p_is, q_is in (("if_nested_tt", True, True), ("if_nested_tf", True, False), ("if_nested_f", False, True)):
        put(p, name, [node("If", ["p"], ["y"], then_branch=outer, else_branch=down)],
            [("p", TRUTH, []), ("q", TRUTH, []), ("x", REAL, [3])], [("y", REAL, [3])],
            {"p": np.bool_(p_is), "q": np.bool_(q_is), "x": f32(3)})


def loops(p):
    step = body([node("Mul", ["v", "half"], ["w"]), node("Add", ["w", "x"], ["v2"])], [("v", "v2", [3])],
                constants={"half": np.float32(0.5)})
    ins = [("n", WHOLE, []), ("v0", REAL, [3]), ("x", REAL, [3])]
    for n in (0, 1, 7):
        put(p, "loop_trips_%d" % n, [node("Loop", ["n", "", "v0"], ["y"], body=step)], ins, [("y", REAL, [3])],
            {"n": np.int64(n), "v0": f32(3), "x": f32(3)})
    put(p, "loop_begins_false", [node("Loop", ["n", "go", "v0"], ["y"], body=step)], ins + [("go", TRUTH, [])],
        [("y", REAL, [3])], {"n": np.int64(5), "v0": f32(3), "x": f32(3), "go": np.bool_(False)})
    grow = [node("Add", ["v", "v"], ["v2"]), node("ReduceSum", ["v2"], ["s"], keepdims=0), node("Less", ["s", "limit"], ["go"])]
    put(p, "loop_while", [node("Loop", ["", "yes", "v0"], ["y"], body=body(grow, [("v", "v2", [3])], goes_on="go"))],
        [("v0", REAL, [3]), ("limit", REAL, []), ("yes", TRUTH, [])], [("y", REAL, [3])],
        {"v0": np.float32([1, 2, 3]), "limit": np.float32(1000), "yes": np.bool_(True)})
    swap = body([node("Add", ["a", "b"], ["b2"]), node("Identity", ["b"], ["a2"])], [("a", "a2", [2]), ("b", "b2", [2])])
    put(p, "loop_fibonacci", [node("Loop", ["n", "", "a0", "b0"], ["a9", "b9"], body=swap)],
        [("n", WHOLE, [1]), ("a0", REAL, [2]), ("b0", REAL, [2])], [("a9", REAL, [2]), ("b9", REAL, [2])],
        {"n": np.int64([9]), "a0": np.float32([0, 1]), "b0": np.float32([1, 3])})
    turn = body([], [("a", "b", [2]), ("b", "d", [2]), ("d", "a", [2])])
    put(p, "loop_turns", [node("Loop", ["n", "", "x", "y", "z"], ["x9", "y9", "z9"], body=turn)],
        [("n", WHOLE, [])] + [(k, REAL, [2]) for k in "xyz"], [(k + "9", REAL, [2]) for k in "xyz"],
        {"n": np.int64(4), "x": f32(2), "y": f32(2), "z": f32(2)})


def stacks(p):
    rows = body([node("Cast", ["i"], ["f"], to=1), node("Add", ["v", "f"], ["v2"]), node("Mul", ["v2", "x"], ["row"])],
                [("v", "v2", [2])], ["row"])
    for name, n in (("loop_rows_few", 4), ("loop_rows_many", 40), ("loop_rows_none", 0)):
        put(p, name, [node("Loop", ["n", "", "v0"], ["y", "rows"], body=rows)], [("v0", REAL, [2]), ("x", REAL, [2])],
            [("y", REAL, [2]), ("rows", REAL, None)], {"v0": f32(2), "x": f32(2)}, {"n": np.int64(n)})
        put(p, name + "_input", [node("Loop", ["n", "", "v0"], ["y", "rows"], body=rows)],
            [("n", WHOLE, []), ("v0", REAL, [2]), ("x", REAL, [2])], [("y", REAL, [2]), ("rows", REAL, None)],
            {"n": np.int64(n), "v0": f32(2), "x": f32(2)})
    count = graph("body", [node("Add", ["v", "one"], ["v2"]), node("Identity", ["c"], ["c2"])],
                  [("i", WHOLE, []), ("c", TRUTH, []), ("v", WHOLE, [1])], [("c2", TRUTH, []), ("v2", WHOLE, [1])],
                  {"one": np.int64([1])})
    put(p, "loop_makes_shape", [node("Loop", ["n", "", "none"], ["extent"], body=count), node("Expand", ["x", "extent"], ["y"])],
        [("x", REAL, [1])], [("y", REAL, None)], {"x": f32(1)}, {"n": np.int64(20), "none": np.int64([0])})
    longer = body([node("Concat", ["v", "x"], ["v2"], axis=0)], [("v", "v2", [None])])
    put(p, "loop_grows", [node("Loop", ["n", "", "v0"], ["y"], body=longer)], [("v0", REAL, [1]), ("x", REAL, [2])],
        [("y", REAL, None)], {"v0": f32(1), "x": f32(2)}, {"n": np.int64(20)})
    window = body([node("Add", ["i", "two"], ["end"]), node("Slice", ["x", "i", "end", "axis"], ["s"]),
                   node("Mul", ["v", "s"], ["v2"])], [("v", "v2", [2, 2])], ["s"],
                  {"two": np.int64([2]), "axis": np.int64([1])}, round_shape=[1])
    put(p, "loop_window", [node("Loop", ["n", "", "v0"], ["y", "all"], body=window)],
        [("n", WHOLE, []), ("v0", REAL, [2, 2]), ("x", REAL, [2, 6])], [("y", REAL, [2, 2]), ("all", REAL, None)],
        {"n": np.int64(5), "v0": f32(2, 2), "x": f32(2, 6)})


def nests(p):
    inner = body([node("Add", ["u", "x"], ["u2"])], [("u", "u2", [2])], tag="_in")
    outer = body([node("Neg", ["v"], ["w"]), node("Loop", ["m", "", "w"], ["t"], body=inner), node("Mul", ["t", "x"], ["v2"])],
                 [("v", "v2", [2])], ["t"])
    ins = [("n", WHOLE, []), ("m", WHOLE, []), ("v0", REAL, [2]), ("x", REAL, [2])]
    for n, m in ((3, 2), (2, 0)):
        put(p, "loop_in_loop_%d_%d" % (n, m), [node("Loop", ["n", "", "v0"], ["y", "all"], body=outer)], ins,
            [("y", REAL, [2]), ("all", REAL, None)], {"n": np.int64(n), "m": np.int64(m), "v0": f32(2), "x": f32(2)})
    run = branch([node("Loop", ["n", "", "v0"], ["t"], body=body([node("Mul", ["v", "x"], ["v2"])], [("v", "v2", [2])]))],
                 "t")
    keep = branch([node("Identity", ["x"], ["e"])], "e")
    for name, go in (("loop_in_if", True), ("loop_in_if_not", False)):
        put(p, name, [node("If", ["go"], ["y"], then_branch=run, else_branch=keep)],
            [("go", TRUTH, []), ("n", WHOLE, []), ("v0", REAL, [2]), ("x", REAL, [2])], [("y", REAL, [2])],
            {"go": np.bool_(go), "n": np.int64(3), "v0": f32(2), "x": f32(2)})
    odd = [node("Mod", ["i", "two"], ["r"]), node("Cast", ["r"], ["is_odd"], to=9),
           node("If", ["is_odd"], ["v2"], then_branch=branch([node("Add", ["v", "x"], ["t"])], "t"),
                else_branch=branch([node("Mul", ["v", "x"], ["e"])], "e"))]
    put(p, "if_in_loop", [node("Loop", ["n", "", "v0"], ["y"], body=body(odd, [("v", "v2", [2])], constants={"two": np.int64(2)}))],
        [("n", WHOLE, []), ("v0", REAL, [2]), ("x", REAL, [2])], [("y", REAL, [2])],
        {"n": np.int64(5), "v0": f32(2), "x": f32(2)})


def scans(p):
    cell = graph("body", [node("MatMul", ["h", "u"], ["a"]), node("Add", ["a", "s"], ["b"]), node("Tanh", ["b"], ["h2"]),
                          node("Neg", ["h2"], ["o"])], [("h", REAL, [1, 3]), ("s", REAL, [1, 3])],
                 [("h2", REAL, [1, 3]), ("o", REAL, [1, 3])], {"u": f32(3, 3)})
    for name, length, shape in (("scan_many", 24, [24, 1, 3]), ("scan_named", 6, ["t", 1, 3])):
        put(p, name, [node("Scan", ["h0", "x"], ["h9", "all"], body=cell, num_scan_inputs=1)],
            [("h0", REAL, [1, 3]), ("x", REAL, shape)], [("h9", REAL, [1, 3]), ("all", REAL, None)],
            {"h0": f32(1, 3), "x": f32(length, 1, 3)})
    two = graph("body", [node("Add", ["s", "a"], ["s2"]), node("Mul", ["a", "b"], ["o"])],
                [(n, REAL, [3]) for n in ("s", "a", "b")], [("s2", REAL, [3]), ("o", REAL, [3])])
    scan = node("Scan", ["s0", "a", "b"], ["last", "all"], body=two, num_scan_inputs=2, scan_input_axes=[0, 1],
                scan_input_directions=[0, 1], scan_output_axes=[1], scan_output_directions=[1])
    put(p, "scan_many_backwards", [scan], [("s0", REAL, [3]), ("a", REAL, [20, 3]), ("b", REAL, [3, 20])],
        [("last", REAL, [3]), ("all", REAL, [3, 20])], {"s0": f32(3), "a": f32(20, 3), "b": f32(3, 20)})


if __name__ == "__main__":
    pack = Pack("control")
    for group in (choices, loops, stacks, nests, scans):
        group(pack)
    pack.file.close()
