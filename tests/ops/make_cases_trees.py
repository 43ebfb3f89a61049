#!/usr/bin/python3
"""Writes the cases of tree_ensemble and pairwise_coupling. Run by hand; see caselib.py for what it needs.

    /usr/bin/python3 tests/ops/make_cases_trees.py

Expected values come from walking the trees in plain Python over numpy's comparisons, with sums rounded at every tree,
and from the formulas of Wu, Lin and Weng (2004) in numpy's f32."""
import numpy as np

from caselib import NUMPY, CaseFile, Tensor

rng = np.random.default_rng(31)
NAN, BELOW, ABOVE, EQUAL = 1, 2, 4, 8  # outcomes that are a yes
LEQ = BELOW | EQUAL
MODES = {"leq": LEQ, "lt": BELOW, "gte": ABOVE | EQUAL, "gt": ABOVE, "eq": EQUAL, "neq": BELOW | ABOVE | NAN}


class Forest:
    """Random trees. Inner nodes are numbered so that they come before those that they lead to."""

    def __init__(self, kind, trees, depth, features, modes=("leq",), missing=False, grid=None):
        self.kind, self.features = kind, features
        self.nodes, self.splits, self.leaves, self.roots = [], [], 0, []
        self.modes, self.missing, self.grid = modes, missing, grid
        for _ in range(trees):
            self.roots.append(self.grow(depth))

    def grow(self, depth):
        if depth == 0 or rng.random() < 0.15:
            self.leaves += 1
            return ~(self.leaves - 1)
        at = len(self.nodes)
        table = MODES[self.modes[rng.integers(len(self.modes))]]
        if self.missing and rng.random() < 0.5:
            table |= NAN
        split = rng.normal() if self.grid is None else self.grid[rng.integers(len(self.grid))]
        self.nodes.append([int(rng.integers(self.features)) | (table ^ LEQ) << 24, None, None])
        self.splits.append(NUMPY[self.kind](split))
        self.nodes[at][1] = self.grow(depth - 1)
        self.nodes[at][2] = self.grow(depth - 1)
        return at

    def walk(self, row, at):
        while at >= 0:
            word, no, yes = self.nodes[at]
            x, split = row[word & 0xffffff], self.splits[at]
            outcome = NAN if np.isnan(x) or np.isnan(split) else BELOW if x < split else ABOVE if x > split else EQUAL
            at = yes if (word >> 24 ^ LEQ) & outcome else no
        return ~at

    def operands(self, x):
        nodes = np.array(self.nodes, dtype=np.int32).reshape(-1, 3)
        return [Tensor(self.kind, x), Tensor("i32", nodes), Tensor(self.kind, self.splits), Tensor("i32", self.roots)]


def aggregate(forest, x, targets, entries, how):
    """entries(leaf): pairs of a target and a weight."""
    of_type = NUMPY[forest.kind]
    out = np.zeros((len(x), targets), dtype=of_type)
    for r, row in enumerate(x):
        said = set()
        for root in forest.roots:
            for target, weight in entries(forest.walk(row, root)):
                old = out[r, target]
                if how in ("sum", "average"):
                    out[r, target] = of_type(old + weight)
                elif target not in said:
                    out[r, target] = weight
                else:
                    out[r, target] = min(old, weight) if how == "min" else max(old, weight)
                said.add(target)
    return out / of_type(len(forest.roots)) if how == "average" else out


def dense(f, name, forest, x, targets=1, how="sum", mixed=1):
    weights = rng.normal(size=(forest.leaves, targets)).astype(NUMPY[forest.kind])
    out = aggregate(forest, x, targets, lambda leaf: enumerate(weights[leaf]), how)
    f.add(name, "tree_ensemble", forest.operands(x) + [Tensor(forest.kind, weights)], [Tensor(forest.kind, out)],
          attrs={"aggregate": how, "mixed": mixed})


def sparse(f, name, forest, x, targets, how="sum", most=None):
    counts = [1] * forest.leaves if most is None else rng.integers(0, most + 1, size=forest.leaves)
    starts = np.concatenate([[0], np.cumsum(counts)])
    target = rng.integers(0, targets, size=starts[-1])
    weights = rng.normal(size=starts[-1]).astype(NUMPY[forest.kind])
    out = aggregate(forest, x, targets,
                    lambda leaf: [(target[i], weights[i]) for i in range(starts[leaf], starts[leaf + 1])], how)
    ins = forest.operands(x) + [Tensor(forest.kind, weights), Tensor("i32", target)]
    f.add(name, "tree_ensemble", ins + ([] if most is None else [Tensor("i32", starts)]), [Tensor(forest.kind, out)],
          attrs={"targets": targets, "aggregate": how})


def rows(kind, n, features, grid=None, nans=False):
    x = rng.normal(size=(n, features)) if grid is None else rng.choice(grid, size=(n, features))
    if nans:
        x[rng.random(size=x.shape) < 0.2] = np.nan
    return x.astype(NUMPY[kind])


def main():
    f = CaseFile("tree_ensemble", "make_cases_trees.py")
    for kind in ("f32", "f64"):
        for n in (1, 3, 9, 70):
            dense(f, "trees_%s_%d_rows" % (kind, n), Forest(kind, 5, 4, 6), rows(kind, n, 6), mixed=0)
        dense(f, "trees_%s_targets" % kind, Forest(kind, 11, 3, 4), rows(kind, 9, 4), targets=3)
        sparse(f, "trees_%s_one_entry" % kind, Forest(kind, 9, 3, 4), rows(kind, 10, 4), 3)
        sparse(f, "trees_%s_entries" % kind, Forest(kind, 9, 3, 4), rows(kind, 10, 4), 4, most=3)
    grid = [-1.0, 0.0, 0.5, 1.0, 2.0]
    for mode in MODES:
        for missing in (False, True):
            forest = Forest("f32", 4, 4, 3, (mode,), missing, grid)
            dense(f, "trees_%s%s" % (mode, "_missing" if missing else ""), forest, rows("f32", 12, 3, grid, True))
    forest = Forest("f64", 6, 5, 3, tuple(MODES), True, grid)
    dense(f, "trees_mixed_f64", forest, rows("f64", 20, 3, grid, True))
    for how in ("average", "min", "max"):
        dense(f, "trees_" + how, Forest("f32", 7, 3, 4), rows("f32", 10, 4), how=how)
        dense(f, "trees_%s_one_row" % how, Forest("f32", 17, 3, 4), rows("f32", 1, 4), targets=2, how=how)
        sparse(f, "trees_%s_entries" % how, Forest("f32", 3, 3, 4), rows("f32", 10, 4), 5, how=how, most=2)
    dense(f, "trees_leaves_alone", Forest("f32", 3, 0, 2), rows("f32", 4, 2), targets=2)
    dense(f, "trees_deep", Forest("f32", 2, 9, 5), rows("f32", 5, 5))
    dense(f, "trees_no_rows", Forest("f32", 2, 2, 3), rows("f32", 0, 3))
    shared = Forest("f32", 1, 0, 2)  # two ways to one node
    shared.nodes, shared.roots, shared.leaves = [[0, 2, 1], [1, ~0, 2], [0, ~1, ~2]], [0], 3
    shared.splits = [np.float32(0.5), np.float32(-0.5), np.float32(1)]
    dense(f, "trees_shared_node", shared, rows("f32", 10, 2))
    wrong(f)
    f.write()


def wrong(f):
    def case(name, message, kind="f32", nodes=((0, ~0, ~1),), splits=(0.5,), roots=(0,), weights=((1,), (2,)),
             rest=(), features=2, **attrs):
        ins = [Tensor(kind, np.zeros((2, features))), Tensor("i32", np.array(nodes).reshape(-1, len(nodes[0]))),
               Tensor("f32", splits), Tensor("i32", roots), Tensor("f32", weights)] + list(rest)
        f.error("trees_wrong_" + name, "tree_ensemble", ins, message, attrs)
    case("type", "expected f32 or f64", kind="i32")
    case("columns", "columns of nodes", nodes=((0, ~0),))
    case("splits", "nodes and splits", splits=(0.5, 1.0))
    case("cycle", "leads to a node before it", nodes=((0, 0, ~1),))
    case("ring", "leads to a node before it", nodes=((0, 1, ~1), (0, 0, ~1)), splits=(0.5, 0.5))
    case("leaf", "leads to a node before it, or to one that does not exist", nodes=((0, ~0, ~2),))
    case("node", "leads to a node before it, or to one that does not exist", nodes=((0, ~0, 1),))
    case("feature", "wants feature 2 of 2", nodes=((2, ~0, ~1),))
    case("negative_feature", "an unknown condition", nodes=((-1, ~0, ~1),))
    case("condition", "an unknown condition", nodes=((1 << 24, ~0, ~1),), mixed=0)
    case("root", "has no root", roots=(1,))
    case("aggregate", "not one of sum, average, min and max", aggregate="median")
    case("flat_weights", "weights of rank 1 go with targets", weights=(1, 2))
    case("target", "is for target 3 of 3", weights=(1, 2), rest=[Tensor("i32", [0, 3])], targets=3)
    case("n_targets", "as many targets as weights", weights=(1, 2), rest=[Tensor("i32", [0])], targets=3)
    case("starts", "are out of range", weights=(1, 2), rest=[Tensor("i32", [0, 1]), Tensor("i32", [0, 2, 1])],
         targets=3)


def couple(pairs, n):
    """The second method of Wu, Lin and Weng (2004), with the limits of libsvm."""
    one, r = np.float32(1), np.zeros((n, n), dtype=np.float32)
    r[np.triu_indices(n, 1)] = pairs
    r[np.tril_indices(n, -1)] = (one - r.T)[np.tril_indices(n, -1)]
    q = -r.T * r
    for i in range(n):
        q[i, i] = sum((r[j, i] * r[j, i] for j in range(n) if j != i), np.float32(0))
    p = np.full(n, one / np.float32(n))
    for _ in range(100):
        qp = q @ p
        pqp = p @ qp
        if np.max(np.abs(qp - pqp)) < np.float32(0.005) / np.float32(n):
            break
        for i in range(n):
            step = (pqp - qp[i]) / q[i, i]
            p[i] += step
            pqp = (pqp + step * (step * q[i, i] + 2 * qp[i])) / (one + step) / (one + step)
            qp = (qp + step * q[i]) / (one + step)
            p = p / (one + step)
    return p


def coupling():
    f = CaseFile("pairwise_coupling", "make_cases_trees.py")
    for n in (2, 3, 5, 12):
        x = np.clip(rng.random(size=(9, n * (n - 1) // 2)), 1e-7, 1 - 1e-7).astype(np.float32)
        x[0], x[1] = 0.5, np.float32(1 - 1e-7)
        out = np.array([couple(row, n) for row in x])
        f.add("coupling_%d" % n, "pairwise_coupling", [Tensor("f32", x)], [Tensor("f32", out)], {"classes": n},
              tol=(1e-4, 1e-5))
    f.add("coupling_no_rows", "pairwise_coupling", [Tensor("f32", np.zeros((0, 3)))], [Tensor("f32", np.zeros((0, 3)))],
          {"classes": 3})
    f.error("coupling_pairs", "pairwise_coupling", [Tensor("f32", np.zeros((2, 4)))], "pairs of classes", {"classes": 3})
    f.error("coupling_one", "pairwise_coupling", [Tensor("f32", np.zeros((2, 0)))], "expected 2 to", {"classes": 1})
    f.error("coupling_type", "pairwise_coupling", [Tensor("f64", np.zeros((2, 3)))], "f32", {"classes": 3})
    f.write()


if __name__ == "__main__":
    main()
    coupling()
