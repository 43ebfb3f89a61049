#!/usr/bin/env bash
# The types of the Python package: mypy finds nothing in it, takes a program that uses it right, and finds what is wrong
# in one that does not; and the types of the C part name what that part has.
. "$BERTH_SRC/tests/support/tap.sh"
if ! command -v mypy >/dev/null; then
  skip_test "the types of the Python package" "mypy is not installed"
  tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MYPYPATH=$BERTH_SRC/python
cat >"$work/right.py" <<'PYTHON'
import berth

session = berth.InferenceSession("model.onnx", dims={"batch": 1}, budget="64M", threads=1)
size: int = session.plan.arena_size
names: "list[str]" = [arg.name for arg in session.get_inputs()]
view: berth.Tensor = session.view(names[0])
graph = berth.Graph()
x = graph.input("x", "f32", ["n", 2])
y: berth.Value = x @ [[1.0], [2.0]] + 1
packed: berth.Packing = berth.pack([(4, 0, 1), berth.Buffer(4, 0, 2)])
text: str = "".join(berth.Generator("model.gguf", ctx=64).generate("a", n=3))


@berth.op("mine.same")
def same(a: object, b: object) -> None:
    pass
PYTHON
cat >"$work/wrong.py" <<'PYTHON'
import berth

berth.InferenceSession(3)
berth.Graph().input("x", "f32", 4)
size: str = berth.Graph().plan().arena_size
berth.Generator("model.gguf", ctx="many")
PYTHON
# Once for all three, as most of the time goes into what numpy's types are.
found=$(cd "$work" && mypy --strict --cache-dir "$work/cache" "$BERTH_SRC/python/berth" right.py wrong.py 2>&1)
errors_in() { grep -c "$1.*: error:" <<<"$found"; }
is_clean() { # FILE
  [ "$(errors_in "$1")" = 0 ] && grep -q '^Found 4 errors in 1 file' <<<"$found" || { echo "$found"; return 1; }
}
check "mypy finds nothing in the package" is_clean python/berth/
check "mypy finds nothing in a program that uses it right" is_clean right.py
check "mypy finds what is wrong in another" test "$(errors_in wrong.py)" = 4

python=$(sed -n 's/^BERTH_PYTHON_EXECUTABLE:[A-Z]*=//p' "$BERTH_BUILD/CMakeCache.txt")
if [ -f "$BERTH_BUILD/python/berth/_berth.abi3.so" ] && [ -n "$python" ]; then
  cat >"$work/names.py" <<'PYTHON'
import ast, sys
import berth._berth as module
def public(names):
    return {name for name in names if not name.startswith("__") or name in ("__dlpack__", "__dlpack_device__")}
tree = ast.parse(open(sys.argv[1]).read())
declared = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
assert set(declared) == public(vars(module)), set(declared) ^ public(vars(module))
for name, node in declared.items():
    if isinstance(node, ast.ClassDef) and not issubclass(getattr(module, name), Exception):
        methods = public(item.name for item in node.body if isinstance(item, ast.FunctionDef))
        assert methods == public(vars(getattr(module, name))), (name, methods ^ public(vars(getattr(module, name))))
PYTHON
  check "the types name what the C part has" env PYTHONPATH="$BERTH_BUILD/python" "$python" "$work/names.py" \
    "$BERTH_SRC/python/berth/_berth.pyi"
else
  skip_test "the types name what the C part has" "the extension is not built"
fi
tap_done
