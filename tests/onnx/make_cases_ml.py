#!/usr/bin/env python3
"""Writes tests/onnx/cases/ml.pack: ai.onnx.ml as scikit-learn's converters write it. Run by hand like make_cases.py, with
the same needs; the outputs are ONNX Runtime's."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from make_cases import Pack, run

rng = np.random.default_rng(23)
ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def model(nodes, inputs, outputs, version=3, constants=None):
    """outputs: names; a name that ends in * is a sequence of maps, in + a tensor of strings."""
    shapes = [helper.make_tensor_value_info(n, onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype],
                                            (["N"] if a.ndim > 1 and n != "places" else list(a.shape[:1]))
                                            + list(a.shape[1:])) for n, a in inputs.items()]
    outs = []
    for name in outputs:
        info = onnx.ValueInfoProto(name=name.rstrip("*+"))
        if name.endswith("*"):
            info.type.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
            info.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        elif name.endswith("+"):
            info.type.tensor_type.elem_type = TensorProto.STRING
        outs.append(info)
    given = []
    for name, array in (constants or {}).items():
        array = np.asarray(array)
        if array.dtype.kind == "U":
            given.append(helper.make_tensor(name, TensorProto.STRING, array.shape, [s.encode() for s in array.ravel()]))
        else:
            given.append(numpy_helper.from_array(array, name))
    graph = helper.make_graph(nodes, "ml", shapes, outs, given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(ML, version)])
    made.ir_version = 8
    return made


def put(pack, name, op, ins, outs=1, version=3, **attrs):
    ins = [np.asarray(a) for a in ins]
    names = ["x%d" % i for i in range(len(ins))]
    if op == "ArrayFeatureExtractor":
        names[1] = "places"
    outputs = ["y%d" % i for i in range(outs)]
    made = model([helper.make_node(op, names, outputs, domain=ML, **attrs)], dict(zip(names, ins)), outputs, version)
    pack.model(name, made, dict(zip(names, ins)))


def put_as(pack, name, made, inputs, twin, kept):
    """A model whose other outputs are strings or maps; the expected ones come from a twin without these."""
    pack.put(name + "/model.onnx", made.SerializeToString())
    for kind, arrays in (("input", list(inputs.values())), ("output", [run(twin, inputs)[k] for k in kept])):
        for k, array in enumerate(arrays):
            pack.put("%s/test_data_set_0/%s_%d.pb" % (name, kind, k), numpy_helper.from_array(array).SerializeToString())


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def typed(kind, *shape):
    x = rng.normal(size=shape) * 5
    return x.astype(kind) if np.dtype(kind).kind == "f" else np.round(x).astype(kind)


def preprocessing(p):
    scale, offset = f32(4), f32(4)
    for kind in ("f4", "f8", "i4", "i8"):
        put(p, "scaler_" + kind, "Scaler", [typed(kind, 5, 4)], scale=scale, offset=offset)
    put(p, "scaler_one", "Scaler", [f32(5, 4)], scale=[0.5], offset=[0.25])
    put(p, "scaler_row", "Scaler", [f32(4)], scale=scale, offset=offset)
    for norm in ("MAX", "L1", "L2"):
        for kind in ("f4", "f8", "i4", "i8"):
            x = typed(kind, 5, 4)
            x[2] = 0
            put(p, "normalizer_%s_%s" % (norm, kind), "Normalizer", [x], norm=norm)
        put(p, "normalizer_row_" + norm, "Normalizer", [f32(6)], norm=norm)
    put(p, "binarizer", "Binarizer", [f32(3, 4)], threshold=0.25)
    put(p, "binarizer_default", "Binarizer", [np.float32([[0, -1, 1]])])
    holes = f32(4, 3)
    holes[1, 2] = holes[3, 0] = np.nan
    put(p, "imputer_nan", "Imputer", [holes], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    put(p, "imputer_nan_one", "Imputer", [holes], imputed_value_floats=[7.0], replaced_value_float=float("nan"))
    put(p, "imputer_number", "Imputer", [np.float32([[0, 1, -1], [-1, 2, 3]])], imputed_value_floats=[5.0, 6.0, 7.0],
        replaced_value_float=-1.0)
    put(p, "imputer_ints", "Imputer", [np.int64([[0, 1, -1], [-1, 2, 3]])], imputed_value_int64s=[5, 6, 7],
        replaced_value_int64=-1)
    put(p, "extractor", "ArrayFeatureExtractor", [f32(3, 5), np.int64([[4, 0, 0]])])
    put(p, "extractor_row", "ArrayFeatureExtractor", [f32(5), np.int64([3, 1])])
    put(p, "extractor_3d", "ArrayFeatureExtractor", [typed("i8", 2, 3, 4), np.int64([2, 3])])
    put(p, "vectorizer", "FeatureVectorizer", [f32(3, 2), typed("f4", 3, 4)], inputdimensions=[2, 4])
    put(p, "vectorizer_cut", "FeatureVectorizer", [typed("i8", 3, 3), typed("i8", 3, 1)], inputdimensions=[2, 3])
    for kind in ("f4", "f8", "i8"):
        put(p, "one_hot_" + kind, "OneHotEncoder", [typed(kind, 4, 3)], cats_int64s=[-3, 0, 1, 2, 7])
    put(p, "one_hot_list", "OneHotEncoder", [np.int64([1, 5, 2])], cats_int64s=[1, 2, 3], zeros=1)
    put(p, "one_hot_twice", "OneHotEncoder", [np.int64([1, 5, 2])], cats_int64s=[1, 2, 1])


def encoders(p):
    i, f = np.int64([[3, 1], [2, 9]]), np.float32([[0.5, -1], [2, 9]])
    put(p, "labels_i_i", "LabelEncoder", [i], version=2, keys_int64s=[1, 2, 3], values_int64s=[10, 2**40, 30])
    put(p, "labels_i_f", "LabelEncoder", [i], version=2, keys_int64s=[1, 2, 3], values_floats=[1.5, 2.5, 3.5],
        default_float=-7.0)
    put(p, "labels_f_i", "LabelEncoder", [f], version=2, keys_floats=[0.5, 2.0], values_int64s=[4, 5], default_int64=8)
    put(p, "labels_f_f", "LabelEncoder", [f], version=2, keys_floats=[0.5, 2.0], values_floats=[4.0, 5.0])
    put(p, "labels_twice", "LabelEncoder", [i], version=4, keys_int64s=[3, 1, 3], values_int64s=[1, 2, 4])
    holes = np.float32([1, np.nan, 3, -0.0])
    put(p, "labels_nan", "LabelEncoder", [holes], version=4, keys_floats=[3.0, float("nan"), 0.0],
        values_int64s=[1, 2, 3])

    def tensor(array):
        return numpy_helper.from_array(np.asarray(array))
    put(p, "labels_tensor_f8", "LabelEncoder", [np.float64([0.1, 0.2, 7])], version=4,
        keys_tensor=tensor(np.float64([0.1, 0.2])), values_tensor=tensor(np.float64([1e300, -1.0])),
        default_tensor=tensor(np.float64([0.125])))
    put(p, "labels_tensor_i8", "LabelEncoder", [np.int64([2**53 + 1, 2**53, 7])], version=4,
        keys_tensor=tensor(np.int64([2**53, 2**53 + 1])), values_tensor=tensor(np.int64([5, 6])),
        default_tensor=tensor(np.int64([-9])))
    keys = rng.permutation(1000)[:300] - 500
    x = rng.integers(-600, 600, size=(50, 2))
    put(p, "labels_many", "LabelEncoder", [x.astype(np.int64)], version=2, keys_int64s=[int(k) for k in keys],
        values_int64s=[int(k) * 3 for k in keys])
    put(p, "labels_many_floats", "LabelEncoder", [x.astype(np.float32) / 4], version=2,
        keys_floats=[float(k) / 4 for k in keys], values_floats=[float(k) * 3 for k in keys])


def linear(p):
    x = f32(6, 4)
    for transform in TRANSFORMS:
        spread = 0.1 if transform == "PROBIT" else 1
        middle = 0.5 if transform == "PROBIT" else 0
        for targets in (1, 3):
            put(p, "linear_regressor_%s_%d" % (transform, targets), "LinearRegressor", [x], targets=targets,
                coefficients=f32(4 * targets) * spread, intercepts=f32(targets) * spread + middle,
                post_transform=transform)
        put(p, "linear_classifier_" + transform, "LinearClassifier", [x], 2, coefficients=f32(12) * spread,
            intercepts=f32(3) * spread + middle, classlabels_ints=[5, 1, 9], post_transform=transform)
        if transform != "PROBIT":
            put(p, "linear_classifier_two_" + transform, "LinearClassifier", [x], 2, coefficients=f32(4),
                intercepts=f32(1), classlabels_ints=[0, 1], post_transform=transform)
    for kind in ("f8", "i4", "i8"):
        put(p, "linear_classifier_" + kind, "LinearClassifier", [typed(kind, 3, 2)], 2, coefficients=f32(6),
            intercepts=f32(3), classlabels_ints=[0, 1, 2], post_transform="SOFTMAX")
    put(p, "linear_classifier_row", "LinearClassifier", [f32(2)], 2, coefficients=f32(6), intercepts=f32(3),
        classlabels_ints=[0, 1, 2])
    put(p, "linear_regressor_plain", "LinearRegressor", [x], coefficients=f32(4))
    big = f32(5, 40)
    put(p, "linear_classifier_large", "LinearClassifier", [big], 2, coefficients=f32(400), intercepts=f32(10),
        classlabels_ints=list(range(10)), post_transform="SOFTMAX", multi_class=1)


class OldTrees:
    """Random trees in the form of TreeEnsembleRegressor and TreeEnsembleClassifier."""

    def __init__(self, trees, depth, features, modes=("BRANCH_LEQ",), missing=None, grid=None, first=0):
        self.n = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
        self.missing, self.leaves = [], []
        self.features, self.modes, self.tracks, self.grid = features, modes, missing, grid
        for tree in range(first, first + trees):
            self.ids = 0
            self.grow(tree, depth)

    def grow(self, tree, depth):
        at, node = len(self.n["treeids"]), self.ids
        self.ids += 1
        is_leaf = depth == 0 or (node != 0 and rng.random() < 0.15)
        split = rng.normal() if self.grid is None else self.grid[rng.integers(len(self.grid))]
        for key, value in (("treeids", tree), ("nodeids", node), ("truenodeids", 0), ("falsenodeids", 0),
                           ("featureids", 0 if is_leaf else int(rng.integers(self.features))),
                           ("modes", "LEAF" if is_leaf else self.modes[rng.integers(len(self.modes))]),
                           ("values", 0.0 if is_leaf else float(np.float32(split)))):
            self.n[key].append(value)
        self.missing.append(0 if is_leaf or self.tracks is None else int(rng.random() < self.tracks))
        if is_leaf:
            self.leaves.append((tree, node))
            return node
        for key in ("truenodeids", "falsenodeids"):
            self.n[key][at] = self.grow(tree, depth - 1)
        return node

    def attributes(self, kind, ids, weights, wide=False):
        """ids(tree): the targets that its leaves have weights for."""
        made = {"nodes_" + k: v for k, v in self.n.items()}
        if self.tracks is not None:
            made["nodes_missing_value_tracks_true"] = self.missing
        entries = [(t, n, i, weights(t, i)) for t, n in self.leaves for i in ids(t)]
        for part, column in (("treeids", 0), ("nodeids", 1), ("ids", 2), ("weights", 3)):
            made["%s_%s" % (kind, part)] = [e[column] for e in entries]
        if wide:
            for key in ("nodes_values", kind + "_weights"):
                made[key + "_as_tensor"] = numpy_helper.from_array(np.float64(made.pop(key)))
        return made


def number(tree, target):
    return float(np.float32(rng.normal()))


def share(tree, target):
    return float(np.float32(rng.random() / 8))


EVERY = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def regressors(p):
    x = f32(9, 5)
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        trees = OldTrees(7, 4, 5)
        put(p, "trees_regressor_" + aggregate, "TreeEnsembleRegressor", [x], n_targets=1, aggregate_function=aggregate,
            **trees.attributes("target", lambda t: [0], number))
        put(p, "trees_regressor_base_" + aggregate, "TreeEnsembleRegressor", [x], n_targets=3, base_values=[.5, -1, 2],
            aggregate_function=aggregate, **trees.attributes("target", lambda t: [0, 1, 2], number))
        put(p, "trees_regressor_some_" + aggregate, "TreeEnsembleRegressor", [x], n_targets=4,
            aggregate_function=aggregate, **trees.attributes("target", lambda t: [t % 3], number))
    for transform in TRANSFORMS:
        weight = share if transform == "PROBIT" else number
        for targets in (1, 3):
            put(p, "trees_regressor_%s_%d" % (transform, targets), "TreeEnsembleRegressor", [x], n_targets=targets,
                post_transform=transform, **OldTrees(4, 3, 5).attributes("target", lambda t: range(targets), weight))
    grid = [-1.0, 0.0, 0.5, 1.0, 2.0]
    rough = rng.choice(grid, size=(30, 3)).astype(np.float32)
    rough[rng.random(size=rough.shape) < 0.2] = np.nan
    for mode in EVERY:
        for missing in (None, 0.5):
            trees = OldTrees(3, 4, 3, (mode,), missing, grid)
            put(p, "trees_%s_%s" % (mode, missing), "TreeEnsembleRegressor", [rough], n_targets=1,
                **trees.attributes("target", lambda t: [0], number))
    trees = OldTrees(5, 5, 3, EVERY, 0.5, grid)
    put(p, "trees_every_mode", "TreeEnsembleRegressor", [rough], n_targets=1,
        **trees.attributes("target", lambda t: [0], number))
    put(p, "trees_regressor_f8", "TreeEnsembleRegressor", [typed("f8", 9, 5)], n_targets=2,
        **OldTrees(4, 4, 5).attributes("target", lambda t: [0, 1], number))
    put(p, "trees_regressor_wide", "TreeEnsembleRegressor", [typed("f8", 9, 5)], n_targets=1,
        base_values_as_tensor=numpy_helper.from_array(np.float64([0.1])),
        **OldTrees(4, 4, 5).attributes("target", lambda t: [0], number, wide=True))
    put(p, "trees_regressor_ids", "TreeEnsembleRegressor", [x], n_targets=1,
        **OldTrees(3, 3, 5, first=7).attributes("target", lambda t: [0], number))
    put(p, "trees_regressor_large", "TreeEnsembleRegressor", [f32(100, 5)], n_targets=1,
        **OldTrees(30, 6, 5).attributes("target", lambda t: [0], number))


def classifiers(p):
    x = f32(12, 5)
    many = {"classlabels_int64s": [4, 2, 9]}
    for transform in TRANSFORMS:
        weight = share if transform == "PROBIT" else number
        for base in (None, [0.25, -0.5, 0.125]):
            rest = {} if base is None else {"base_values": base}
            if base is not None and transform == "PROBIT":
                rest = {"base_values": [0.25, 0.5, 0.125]}
            name = "trees_classifier_%s%s" % (transform, "" if base is None else "_base")
            put(p, name, "TreeEnsembleClassifier", [x], 2, post_transform=transform, **many, **rest,
                **OldTrees(6, 3, 5).attributes("class", lambda t: [0, 1, 2], weight))
            put(p, name + "_boosted", "TreeEnsembleClassifier", [x], 2, post_transform=transform, **many, **rest,
                **OldTrees(9, 3, 5).attributes("class", lambda t: [t % 3], weight))
        for labels in ([0, 1], [7, 3]):
            for base in (0, 1, 2):
                for weight in (share, number):
                    if transform == "PROBIT" and (weight is number or base != 2):
                        continue
                    rest = {} if base == 0 else {"base_values": [0.25, 0.375][:base]}
                    put(p, "trees_two_%s_%d_%d_%s" % (transform, labels[0], base, weight.__name__),
                        "TreeEnsembleClassifier", [x], 2, post_transform=transform, classlabels_int64s=labels, **rest,
                        **OldTrees(6, 3, 5).attributes("class", lambda t: [0], weight))
    # classes that some rows have no weight for: a negative score beats what is not there
    trees = OldTrees(3, 3, 5)
    lost = trees.attributes("class", lambda t: [0, 1, 2], number)
    kept = [i for i in range(len(lost["class_ids"])) if lost["class_ids"][i] == 0 or i % 5]
    for key in ("treeids", "nodeids", "ids", "weights"):
        lost["class_" + key] = [lost["class_" + key][i] for i in kept]
    lost["class_weights"] = [-abs(w) for w in lost["class_weights"]]
    put(p, "trees_classifier_gaps", "TreeEnsembleClassifier", [x], 2, **many, **lost)
    for ids in ([1], [0, 1]):
        for weight in (share, number):
            for base in (0, 1, 2):
                rest = {} if base == 0 else {"base_values": [0.25, 0.375][:base]}
                put(p, "trees_second_%d_%d_%s" % (len(ids), base, weight.__name__), "TreeEnsembleClassifier", [x], 2,
                    classlabels_int64s=[7, 3], **rest, **OldTrees(6, 3, 5).attributes("class", lambda t: ids, weight))
    put(p, "trees_classifier_alone", "TreeEnsembleClassifier", [x], 2, classlabels_int64s=[1],
        **OldTrees(6, 3, 5).attributes("class", lambda t: [0], number))
    for kind in ("f8", "i4", "i8"):
        put(p, "trees_classifier_" + kind, "TreeEnsembleClassifier", [typed(kind, 9, 5)], 2, post_transform="SOFTMAX",
            **many, **OldTrees(4, 4, 5).attributes("class", lambda t: [0, 1, 2], number))
        put(p, "trees_two_" + kind, "TreeEnsembleClassifier", [typed(kind, 9, 5)], 2, post_transform="LOGISTIC",
            classlabels_int64s=[0, 1], **OldTrees(4, 4, 5).attributes("class", lambda t: [0], number))


def new_trees(p):
    def tensor(kind, values):
        return numpy_helper.from_array(np.asarray(values, dtype=kind))

    def attributes(kind, trees, depth, features, targets, modes, missing, grid=None):
        a = {k: [] for k in ("featureids", "splits", "modes", "truenodeids", "falsenodeids", "trueleafs", "falseleafs",
                             "missing_value_tracks_true")}
        leaves, members, roots = [], [], []

        def grow(level):
            if level == 0 or (level != depth and rng.random() < 0.15):
                leaves.append((int(rng.integers(targets)), rng.normal()))
                return len(leaves) - 1, 1
            at, mode = len(a["modes"]), modes[rng.integers(len(modes))]
            a["featureids"].append(int(rng.integers(features)))
            a["splits"].append(rng.normal() if grid is None else grid[rng.integers(len(grid))])
            a["modes"].append(mode)
            a["missing_value_tracks_true"].append(int(missing and rng.random() < 0.5))
            if mode == 6:
                members.extend(list(rng.choice(range(1, 12), size=rng.integers(1, 7), replace=False)) + [np.nan])
            for key in ("truenodeids", "falsenodeids", "trueleafs", "falseleafs"):
                a[key].append(None)
            for way in ("true", "false"):
                a[way + "nodeids"][at], a[way + "leafs"][at] = grow(level - 1)
            return at, 0
        for _ in range(trees):
            roots.append(grow(depth)[0])
        made = {"nodes_" + k: v for k, v in a.items() if k != "missing_value_tracks_true" or missing}
        made["nodes_splits"], made["nodes_modes"] = tensor(kind, a["splits"]), tensor("u1", a["modes"])
        made["leaf_targetids"] = [t for t, _ in leaves]
        made["leaf_weights"] = tensor(kind, [w for _, w in leaves])
        made["tree_roots"], made["n_targets"] = roots, targets
        if members:
            made["membership_values"] = tensor(kind, members)
        return made
    grid = [1.0, 2.0, 3.5, 5.0, 8.0]
    for kind in ("f4", "f8"):
        for targets in (1, 3):
            for aggregate in range(4):
                put(p, "trees_new_%s_%d_%d" % (kind, targets, aggregate), "TreeEnsemble", [f32(9, 4).astype(kind)],
                    version=5, aggregate_function=aggregate, **attributes(kind, 5, 4, 4, targets, [0], False))
        x = rng.integers(0, 12, size=(40, 4)).astype(kind)
        x[rng.random(size=x.shape) < 0.2] = np.nan
        for mode in range(7):
            put(p, "trees_new_%s_mode_%d" % (kind, mode), "TreeEnsemble", [x], version=5,
                **attributes(kind, 4, 4, 4, 2, [mode], False, grid))
        put(p, "trees_new_%s_missing" % kind, "TreeEnsemble", [x], version=5,
            **attributes(kind, 6, 4, 4, 2, [0, 1, 2, 3, 4, 5], True, grid))
    for transform, theirs in ((0, 0), (1, 2), (2, 1), (3, 3)):  # ONNX Runtime has SOFTMAX and LOGISTIC the other way round
        x, given = {"x": f32(9, 4)}, attributes("f4", 5, 4, 4, 3, [0], False)
        made, twin = [model([helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, post_transform=t, **given)], x,
                            ["y"], 5) for t in (transform, theirs)]
        put_as(p, "trees_new_transform_%d" % transform, made, x, twin, [0])


def machines(p):
    x = f32(7, 4)
    kernels = {"LINEAR": [0.0, 0.0, 3.0], "POLY": [0.3, 0.5, 3.0], "RBF": [0.4, 0.0, 3.0], "SIGMOID": [0.2, 0.1, 3.0]}

    def vectors(n, shift=0):
        return [float(v) for v in (f32(n * 4) + np.float32(shift))]
    for kernel, params in kernels.items():
        put(p, "svm_regressor_" + kernel, "SVMRegressor", [x], kernel_type=kernel, kernel_params=params, n_supports=6,
            support_vectors=vectors(6), coefficients=f32(6), rho=[0.25])
        put(p, "svm_one_class_" + kernel, "SVMRegressor", [x], kernel_type=kernel, kernel_params=params, n_supports=6,
            support_vectors=vectors(6), coefficients=f32(6), rho=[-0.25], one_class=1)
        for classes in (2, 4):
            pairs, sizes = classes * (classes - 1) // 2, [3, 2, 4, 1][:classes]
            put(p, "svm_classifier_%s_%d" % (kernel, classes), "SVMClassifier", [x], 2, kernel_type=kernel,
                kernel_params=params, vectors_per_class=sizes, support_vectors=vectors(sum(sizes)),
                coefficients=f32((classes - 1) * sum(sizes)), rho=f32(pairs), classlabels_ints=[5, 3, 8, 0][:classes])
    for degree in (2.0, 4.0):
        put(p, "svm_poly_%d" % degree, "SVMRegressor", [x], kernel_type="POLY", kernel_params=[0.3, 0.5, degree],
            n_supports=6, support_vectors=vectors(6), coefficients=f32(6), rho=[0.25])
    put(p, "svm_regressor_linear", "SVMRegressor", [x], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
        n_supports=0, coefficients=f32(4), rho=[0.25])
    # far from 0, where distances are small differences of large squares
    put(p, "svm_far", "SVMRegressor", [x + np.float32(1000)], kernel_type="RBF", kernel_params=[0.4, 0.0, 3.0],
        n_supports=6, support_vectors=vectors(6, 1000), coefficients=f32(6), rho=[0.25])
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        for classes in (2, 3):
            pairs, sizes = classes * (classes - 1) // 2, [3, 2, 4][:classes]
            put(p, "svm_%s_%d" % (transform, classes), "SVMClassifier", [x], 2, kernel_type="RBF",
                kernel_params=[0.4, 0.0, 3.0], vectors_per_class=sizes, support_vectors=vectors(sum(sizes)),
                post_transform=transform, coefficients=f32((classes - 1) * sum(sizes)), rho=f32(pairs),
                classlabels_ints=list(range(classes)))
    for classes in (2, 3, 5):
        pairs, sizes = classes * (classes - 1) // 2, [3, 2, 4, 2, 3][:classes]
        put(p, "svm_probabilities_%d" % classes, "SVMClassifier", [x], 2, kernel_type="RBF",
            kernel_params=[0.4, 0.0, 3.0], vectors_per_class=sizes, support_vectors=vectors(sum(sizes)),
            coefficients=f32((classes - 1) * sum(sizes)), rho=f32(pairs), classlabels_ints=list(range(classes)),
            prob_a=-np.abs(f32(pairs)), prob_b=f32(pairs))
    for classes in (2, 3):
        for coefficients in (f32(classes * 4), np.abs(f32(classes * 4))):
            put(p, "svm_linear_%d_%d" % (classes, (coefficients > 0).all()), "SVMClassifier", [x], 2,
                kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], coefficients=coefficients, rho=[0.125],
                classlabels_ints=[4, 6, 9][:classes])
    put(p, "svm_empty_class", "SVMClassifier", [x], 2, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 3.0],
        vectors_per_class=[2, 0, 2], support_vectors=vectors(4), coefficients=f32(8), rho=f32(3),
        classlabels_ints=[0, 1, 2])
    for kind in ("f8", "i4", "i8"):
        put(p, "svm_classifier_" + kind, "SVMClassifier", [typed(kind, 6, 4)], 2, kernel_type="RBF",
            kernel_params=[0.05, 0.0, 3.0], vectors_per_class=[2, 3], support_vectors=vectors(5), coefficients=f32(5),
            rho=f32(1), classlabels_ints=[0, 1])


def pipelines(p):
    """As skl2onnx writes a pipeline with its default options: a label, and a sequence of maps."""
    x = {"x": f32(5, 4)}
    scale, offset, weight, bias = f32(4), f32(4), f32(12), f32(3)

    def nodes(labels):
        first = helper.make_node("Scaler", ["x"], ["s"], domain=ML, scale=scale, offset=offset)
        second = helper.make_node("LinearClassifier", ["s"], ["label", "raw"], domain=ML, coefficients=weight,
                                  intercepts=bias, post_transform="LOGISTIC", multi_class=1, **labels)
        third = helper.make_node("Normalizer", ["raw"], ["tensor"], domain=ML, norm="L1")
        return [first, second, third]
    ints, strings = {"classlabels_ints": [2, 1, 7]}, {"classlabels_strings": ["a", "b", "c"]}
    zips = {"classlabels_int64s": [2, 1, 7]}, {"classlabels_strings": ["a", "b", "c"]}
    twin = model(nodes(ints), x, ["label", "tensor"])
    zipped = helper.make_node("ZipMap", ["tensor"], ["probabilities"], domain=ML, **zips[0])
    put_as(p, "pipeline_zipmap", model(nodes(ints) + [zipped], x, ["label", "probabilities*"]), x, twin, [0, 1])
    zipped = helper.make_node("ZipMap", ["tensor"], ["probabilities"], domain=ML, **zips[1])
    put_as(p, "pipeline_strings", model(nodes(strings) + [zipped], x, ["label+", "probabilities*"]), x, twin, [1])
    # classes as an initializer of strings, picked by the place of the largest score
    picked = [helper.make_node("ArgMax", ["tensor"], ["best"], axis=1, keepdims=0),
              helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["named"], domain=ML),
              helper.make_node("Reshape", ["named", "shape"], ["name"])]
    made = model(nodes(ints) + picked, x, ["name+", "tensor"], constants={"classes": ["a", "b", "c"],
                                                                          "shape": np.int64([-1])})
    put_as(p, "pipeline_string_classes", made, x, twin, [1])


if __name__ == "__main__":
    pack = Pack("ml")
    for group in (preprocessing, encoders, linear, regressors, classifiers, new_trees, machines, pipelines):
        group(pack)
    pack.file.close()
