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
    for group in (preprocessing, encoders, linear, pipelines):
        group(pack)
    pack.file.close()
