#!/usr/bin/env bash
# The command line from outside: every verb, exit codes, what goes to stdout and what to stderr, JSON, files.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
digits=$BERTH_SRC/examples/digits
export NO_COLOR=1

# Runs berth; its exit code, stdout and stderr are in $code, out and err.
berth() {
  "$BERTH_BIN" "$@" >out 2>err </dev/null
  code=$?
}

explain() { # what went wrong, for a check that failed
  echo "exit code $code"
  echo "stdout:"
  head -c 2000 out
  echo "stderr:"
  head -c 2000 err
}

exits() { # name code arguments...
  local name=$1 want=$2
  shift 2
  berth "$@"
  if [ "$code" = "$want" ]; then ok "$name"; else not_ok "$name" "wanted exit code $want; $(explain)"; fi
}

# An error: this exit code, nothing on stdout, a first line "berth: ..." with the part in it.
refuses() { # name code part arguments...
  local name=$1 want=$2 part=$3
  shift 3
  berth "$@"
  if [ "$code" = "$want" ] && [ ! -s out ] && grep -v '^berth: note: ' err | head -n 1 | grep '^berth: ' | grep -qF -- "$part"; then
    ok "$name"
  else
    not_ok "$name" "wanted exit code $want and '$part' on stderr; $(explain)"
  fi
}

has() { # name file part: the file of the last run has the part
  if grep -qF -- "$3" "$2"; then ok "$1"; else not_ok "$1" "no '$3' in $2; $(explain)"; fi
}

lacks() { # name file part
  if grep -qF -- "$3" "$2"; then not_ok "$1" "'$3' in $2; $(explain)"; else ok "$1"; fi
}

valid_json() { # name
  if ! command -v python3 >/dev/null; then
    skip_test "$1" "no python3"
  elif python3 -c 'import json, sys; o = json.load(open("out")); sys.exit(not isinstance(o, dict))' 2>py.err; then
    ok "$1"
  else
    not_ok "$1" "$(cat py.err; explain)"
  fi
}

json_holds() { # name file expression: Python, of the object o in the file
  if ! command -v python3 >/dev/null; then
    skip_test "$1" "no python3"
  elif python3 -c "import json, sys; o = json.load(open(sys.argv[1])); sys.exit(not ($3))" "$2" 2>py.err; then
    ok "$1"
  else
    not_ok "$1" "does not hold: $3; $(cat py.err; explain)"
  fi
}

field() { # key: the value of a JSON field with a plain value, from out
  sed -n "s/.*\"$1\":\([^,}\[{]*\).*/\1/p" out | head -n 1
}

has_fields() { # name key...
  local name=$1 key missing=""
  shift
  for key in "$@"; do grep -q "\"$key\":" out || missing="$missing $key"; done
  if [ -z "$missing" ]; then ok "$name"; else not_ok "$name" "missing:$missing; $(explain)"; fi
}

holds() { # name expression: awk arithmetic
  if awk "BEGIN { exit !($2) }"; then ok "$1"; else not_ok "$1" "does not hold: $2; $(explain)"; fi
}

# ---- help, version, usage

exits "the version" 0 --version
if grep -Eq '^berth [0-9]+\.[0-9]+\.[0-9]+$' out; then ok "the version's line"; else not_ok "the version's line" "$(explain)"; fi
exits "help --help" 0 help --help
exits "help" 0 help
for verb in run plan pack bench train generate embed kernels inspect devices; do
  has "help names $verb" out "  $verb "
done
for verb in run plan pack bench train generate embed kernels inspect devices; do
  exits "$verb --help" 0 "$verb" --help
  cp out help.text
  has "$verb --help has examples" out "examples:"
  exits "help $verb" 0 help "$verb"
  if cmp -s out help.text; then ok "help $verb is $verb --help"; else not_ok "help $verb is $verb --help" "$(explain)"; fi
done
berth
holds "no arguments: exit code 2" "$code == 2"
has "no arguments: short help on stderr" err "usage: berth VERB"
if [ -s out ]; then not_ok "no arguments: nothing on stdout" "$(explain)"; else ok "no arguments: nothing on stdout"; fi

refuses "an unknown verb" 2 "no verb 'rnu'" rnu
has "an unknown verb: a suggestion" err 'berth run'
refuses "an option before the verb" 2 "the verb comes first" --json run
refuses "help on an unknown verb" 2 "no verb 'x'" help x
refuses "help on two verbs" 2 "one verb" help run plan
refuses "train wants a model" 2 "MODEL" train
refuses "an unknown option" 2 "no option '--jsno'" run --jsno
has "an unknown option: a suggestion" err "--json"
refuses "an option that is a prefix" 2 "no option '--out'" run --out=x
has "a prefix: a suggestion" err "--output-dir"
refuses "an unknown short option" 2 "no option '-x'" run -x
refuses "an option without its value" 2 "--threads needs a value" run --threads
refuses "an option in place of a value" 2 "--threads needs a value" run --threads --json
refuses "a value for a flag" 2 "--json takes no value" run --json=yes
refuses "a number that is none" 2 "--threads takes a whole number" run --threads two
refuses "a number out of range" 2 "--runs takes a number from 1" bench --runs 0
refuses "two models" 2 "too many" run a.berth b.berth
refuses "an argument where none is taken" 2 "takes no argument" devices cpu
refuses "a missing operand" 2 "needs BUFFERS.csv" pack
refuses "a wrong --dim" 2 "--dim takes NAME=N" run --dim batch
refuses "a --dim that is no number" 2 "takes a whole number" run --dim batch=many
refuses "a --dim that the model does not have" 2 "no named dimension 'bacth'" run --dim bacth=3
has "a --dim that the model does not have: which it has" err "batch"
refuses "a --dim given twice" 2 "dimension 'batch' is given twice" run --dim batch=3 --dim batch=2
refuses "a wrong --input" 2 "--input takes NAME=FILE.npy" run --input image
refuses "an input that the model does not have" 2 "no input 'picture'" run --input picture=x.npy
for target in foo "" sm_ sm_9x gfx90a sm_80, sm_0 sm_40 sm_1000 compute; do
  refuses "kernels for '$target'" 2 "is not a target: --target takes a list of sm_N" kernels -o pack --target "$target"
done
if [ -e pack ]; then not_ok "kernels for no target: no file" "$(explain)"; else ok "kernels for no target: no file"; fi
refuses "an unknown device" 3 "no device 'abacus'" run --device abacus
refuses "a model that is not there" 1 "nowhere.berth" run nowhere.berth

# ---- run

exits "run" 0 run
has "run: a digit is recognised" out "recognised as"
has "run: the memory" out "one arena of"
has "run: the default dimension is announced" err "dimension 'batch' is not given and becomes 1"
exits "run --dim batch=10" 0 run --dim batch=10
has "run: all ten digits are right" out "10 of 10 recognised"
lacks "run: no note for a dimension that is given" err "not given"
exits "run --dim=batch=12: digits repeat" 0 run --dim=batch=12
has "run: all twelve digits are right" out "12 of 12 recognised"

exits "run --json" 0 run --dim batch=2 --json
valid_json "run --json is valid"
has_fields "run --json has its fields" outputs name dtype shape file ms arena_size
has "run --json: no file" out '"file":null'
holds "run --json: one line" "$(wc -l <out) == 1"
holds "run --json: an arena" "$(field arena_size) > 0"

exits "run with an input and an output folder" 0 run --input "image=$digits/samples.npy" --output-dir made --json
has "run: the dimension follows from the input" err "batch=10, from the shape of input 'image'"
valid_json "run with files: the JSON is valid"
has "run with files: the JSON names them" out '"file":"made/probabilities.npy"'
check "run with files: the file is there" test -s made/probabilities.npy
exits "inspect what was written" 0 inspect made/probabilities.npy --json
has "inspect: the shape" out '"shape":[10,10]'
has "inspect: the type" out '"dtype":"f32"'
exits "inspect what was written, as text" 0 inspect made/class.npy
has "inspect: the type and shape as text" out "i64[10]"
exits "run with text output names the files" 0 run --dim batch=2 --output-dir made/again
has "run: where the output went" out "written to made/again/class.npy"
refuses "an output folder that cannot be made" 1 "cannot make" run --output-dir none/of/this

refuses "an input and a dimension that do not agree" 1 "dimension 'batch' is 10" run --dim batch=3 --input "image=$digits/samples.npy"
refuses "an input of the wrong shape" 1 "has the shape" run --input "image=$digits/samples_labels.npy"
refuses "an input file that is not there" 1 "nothing.npy" run --input image=nothing.npy
refuses "an input given twice" 2 "given twice" run --input "image=$digits/samples.npy" --input "image=$digits/samples.npy"
printf 'this is no array' >broken.npy
refuses "an input file that is broken" 1 "broken.npy" run --input image=broken.npy

exits "run --check" 0 run --check --dim batch=3
has "run --check: a table" out "max abs"
has "run --check: the verdict" out "all within tolerance"
has "run --check: every node is there" out "softmax"
has "run --check: views are named" out "view"
exits "run --check --json" 0 run --check --json
valid_json "run --check --json is valid"
has_fields "run --check --json has its fields" check max_abs max_rel worst_node ok nodes
has "run --check --json: it holds" out '"ok":true'
exits "run --threads 1" 0 run --threads 1
has "run --threads 1: said" out "1 thread"

# ---- models from files

exits "a model from a file, with its weights" 0 run "$digits/digits.berth" --input "image=$digits/samples.npy" --output-dir from_file
if cmp -s from_file/probabilities.npy made/probabilities.npy; then
  ok "the file and the built-in model give the same"
else
  not_ok "the file and the built-in model give the same" "the files differ"
fi

cat >small.berth <<'MODEL'
graph "small" {
  input %x : f32[n, 4]
  input %y : f32[n, 4]
  param %w : f32[4]
  %s = add(%x, %y)
  %p = mul(%s, %w)
  output "the sum/1" = %s
  output "product" = %p
}
MODEL
refuses "a model without its weights" 1 "no weights for its param 'w'" run small.berth
has "a model without its weights: what helps" err "--random-weights"
exits "a model with random weights" 0 run small.berth --random-weights --dim n=3 --output-dir small --json
has "inputs that are not given are announced" err "input 'x' is not given"
check "names become file names" test -s small/the_sum_1.npy
cp small/the_sum_1.npy first.npy
berth run small.berth --random-weights --dim n=3 --output-dir small
if cmp -s small/the_sum_1.npy first.npy; then ok "the pseudo-random inputs are fixed"; else not_ok "the pseudo-random inputs are fixed"; fi
exits "an output goes back in as an input" 0 run small.berth --random-weights --input x=first.npy --input y=first.npy --output-dir twice
has "the dimension follows once" err "n=3, from the shape of input 'x'"
printf 'graph "flat" {\n  input %%x : f32[n]\n  %%a = relu(%%x)\n  output "a" = %%a\n}\n' >flat.berth
refuses "an input of another type" 1 "input 'x' is f32, but made/class.npy holds i64" run flat.berth --input x=made/class.npy
exits "check on a model with random weights" 0 run small.berth --random-weights --check

cat >narrow.berth <<'MODEL'
graph "narrow" {
  input %x : bf16[n, 4]
  input %h : f16[n, 4]
  input %i : i32[n]
  input %b : bool[n]
  %r = relu(%x)
  %s = add(%r, %x)
  %k = tanh(%h)
  %l = add(%k, %h)
  %j = add(%i, %i)
  %c = not(%b)
  %d = and(%c, %b)
  output "wide" = %s
  output "half" = %l
  output "int" = %j
  output "bool" = %d
}
MODEL
exits "inputs and outputs of other types" 0 run narrow.berth --input x=first.npy --output-dir narrow --check --json
valid_json "inputs and outputs of other types: the JSON is valid"
has "a bf16 output is written as f32, and said" err "output 'wide' is bf16"
berth inspect narrow/wide.npy
has "a bf16 output: f32 in the file" out "f32[3,4]"
berth inspect narrow/half.npy
has "an f16 output: f16 in the file" out "f16[3,4]"
berth inspect narrow/int.npy
has "an i32 output" out "i32[3]"
berth inspect narrow/bool.npy
has "a bool output" out "bool[3]"

cat >clash.berth <<'MODEL'
graph "clash" {
  input %x : f32[4]
  %a = relu(%x)
  %b = neg(%a)
  output "o/1" = %a
  output "o_1" = %b
}
MODEL
refuses "outputs whose file names clash" 1 "would both be written" run clash.berth --output-dir clash
check "outputs whose file names clash: nothing is written" test ! -e clash

# ---- ONNX

onnx=$BERTH_SRC/tests/onnx/models
{ # [3, -1] of i64: what small.onnx reshapes to
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"
  printf '\x03\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff'
} >shape.npy
exits "run onnx" 0 run "$onnx/small.onnx" --dim batch=2 --input shape=shape.npy --json --output-dir onnx
has "run onnx: shapes follow from the input" out '"shape":[3,2]'
has "run onnx: said" err "shapes or branches depend on input 'shape'"
exits "run onnx --check" 0 run "$onnx/small.onnx" --input shape=shape.npy --dim batch=4 --check
exits "plan onnx" 0 plan "$onnx/small.onnx" --dim batch=2 --input shape=shape.npy --json
valid_json "plan onnx --json is valid"
exits "bench onnx" 0 bench "$onnx/small.onnx" --input shape=shape.npy --runs 2 --warmup 0 --json
holds "bench onnx: no allocation" "$(field allocations_per_run) == 0"
for verb in run plan bench; do
  berth $verb "$onnx/small.onnx" --dim batch=2
  holds "$verb onnx without an input that shapes depend on: exit code" "$code != 0"
  has "$verb onnx without an input that shapes depend on: what helps" err "so it must be given: --input shape=FILE.npy"
done
refuses "run onnx with an op that berth lacks" 3 "the op Frobnicate is not supported" run "$onnx/unknown.onnx"
exits "inspect onnx" 0 inspect "$onnx/small.onnx"
has "inspect onnx: versions" out "IR version 8"
has "inspect onnx: named dimensions" out "f32[batch,4]"
has "inspect onnx: params" out "1 of 12 elements, 48 bytes"
has "inspect onnx: it runs" out "runs     yes"
has "inspect onnx: what must be given" out "shapes depend on its values"
exits "inspect onnx --json" 0 inspect "$onnx/small.onnx" --json
valid_json "inspect onnx --json is valid"
has_fields "inspect onnx --json has its fields" format file name ir_version opsets producer producer_version n_nodes \
  n_functions n_params param_elements param_bytes files inputs outputs ops unsupported dims needs runs reason
has "inspect onnx --json: what must be given" out '"needs":["shape"]'
exits "inspect onnx that does not run" 0 inspect "$onnx/unknown.onnx" --json
has "inspect onnx: every op that berth lacks" out '"unsupported":{"Frobnicate":2,"com.example.Gadget":1}'
has "inspect onnx: why it does not run" out '"runs":false,"reason":"ONNX node'
cp "$onnx/small.onnx" disguised.bin
exits "inspect onnx by its content" 0 inspect disguised.bin

# ---- extents that depend on data

cat >points.berth <<'MODEL'
graph "points" {
  input %x : i32[6]
  %nz = non_zero(%x)
  %at = transpose(%nz) {perm = [1, 0]}
  %v = gather_nd(%x, %at)
  %shape = shape(%at)
  output "at" = %at
  output "v" = %v
  output "shape" = %shape
}
MODEL
{ # 0 7 0 0 8 9
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }"
  printf '\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\x09\0\0\0'
} >points.npy
exits "run with extents that depend on data" 0 run points.berth --input x=points.npy --json --output-dir points
has "run with extents that depend on data: the true ones" out '"name":"at","dtype":"i64","shape":[3,1]'
lacks "run with extents that depend on data: the input stays data" err "part of the plan"
exits "an output with its true extents as a file" 0 inspect points/v.npy
has "an output with its true extents as a file: its shape" out "i32[3]"
exits "run --check with extents that depend on data" 0 run points.berth --input x=points.npy --check
exits "plan with extents that depend on data" 0 plan points.berth
has "plan: bounds" out "bound: output at i64[<=6,1]"
lacks "plan: what has no bounds" out "bound: output shape"
exits "plan --json with extents that depend on data" 0 plan points.berth --json
valid_json "plan --json with bounds is valid"
has "plan --json: bounds" out '"bounds":[{"name":"at","shape":[6,1],"axes":[0]},{"name":"v"'
exits "bench with extents that depend on data" 0 bench points.berth --runs 2 --warmup 0 --json
holds "bench with extents that depend on data: no allocation" "$(field allocations_per_run) == 0"

cat >counted.berth <<'MODEL'
graph "counted" {
  input %limit : i64[1]
  const %zero : i64[1] = [0]
  const %one : i64[1] = [1]
  %r = range(%zero, %limit, %one)
  output "r" = %r
}
MODEL
{ # 3
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"
  printf '\x03\0\0\0\0\0\0\0'
} >limit.npy
exits "an extent without a bound is part of the plan" 0 run counted.berth --input limit=limit.npy --json
has "an extent without a bound is part of the plan: said" err "part of the plan"
has "an extent without a bound is part of the plan: its shape" out '"shape":[3]'
sed 's/%one)/%one) {most = [n]}/' counted.berth >bounded.berth
exits "a bound that is given" 0 run bounded.berth --input limit=limit.npy --dim n=4 --json
has "a bound that is given: the true extent" out '"shape":[3]'
refuses "a bound that is too small" 1 "at most 2 was planned" run bounded.berth --input limit=limit.npy --dim n=2
exits "a device that wants every extent known" 0 run bounded.berth --input limit=limit.npy --dim n=4 --device loops
has "a device that wants every extent known: said" err "part of the plan"

# ---- broken models

printf 'graph "broken" {\n  %%a = frobnicate(%%x)\n}\n' >broken.berth
berth run broken.berth
if [ "$code" != 0 ] && [ "$code" != 2 ] && grep -q '^berth: ' err; then ok "a broken model is refused"; else not_ok "a broken model is refused" "$(explain)"; fi

# ---- plan

exits "plan" 0 plan --dim batch=10
has "plan: the arena" out "one arena of"
has "plan: the lower bound" out "lower bound"
has "plan: a picture of the load" out "over time"
# ---- states ----
cat >count.berth <<'GRAPH'
graph "count" {
  state %n : i64[] = [40]
  state %still : f32[2] = [1, 2]
  const %one : i64[] = [1]
  %next = add(%n, %one)
  update %n = %next
  output "next" = %next
}
GRAPH
exits "run with states" 0 run count.berth
has "run with states: the output" out 'output next: i64[]  min 41  max 41'
has "run with states: what is updated" out 'state n: i64[]  min 41  max 41'
has "run with states: what is not" out 'state still: f32[2]  min 1  max 2'
has "run with states: its line of memory" out '  state        128 bytes'
exits "run --runs" 0 run count.berth --runs 3
has "run --runs: the first" out '  state n: i64[]  min 41'
has "run --runs: the last" out '  state n: i64[]  min 43'
has "run --runs: the output is the last one's" out 'output next: i64[]  min 43'
exits "run --runs --json" 0 run count.berth --runs 4 --json
valid_json "run --runs --json is valid"
has_fields "run --json with states has its fields" outputs states runs ms arena_size
has "run --json: states" out '"states":[{"name":"n","dtype":"i64","shape":[],"file":null},{"name":"still"'
exits "run --runs 0" 2 run count.berth --runs 0
exits "run --check with states" 0 run count.berth --runs 3 --check
exits "bench with states" 0 bench count.berth --runs 3
exits "plan with states" 0 plan count.berth --json --report states.txt
valid_json "plan with states is valid"
holds "plan --json: state_size" "$(field state_size) == 128"
holds "plan --json: sizes add up" \
  "$(field arena_size) == $(field weights_size) + 128 + $(field activations_size) + $(field scratch_size)"
check "plan --report with states" grep -q ' state_size=128$' states.txt
exits "inspect of a graph with states" 0 inspect count.berth
has "inspect: a state" out '  state    n                        i64[]'
has "inspect: all states" out '  states   2, 16 bytes'
exits "inspect --json of a graph with states" 0 inspect count.berth --json
valid_json "inspect --json with states is valid"
has "inspect --json: states" out '"states":[{"name":"n","dtype":"i64","shape":[]},{"name":"still"'

exits "plan --json for a GPU" 0 plan --dim batch=10 --device interp --json
json_holds "plan --json for a GPU: kernels of the device, but for steps on the host" out \
  "any(s['device'] == 'interp' and s['kind'] == 'fast' and s['kernel'] != '' for s in o['steps']) and \
   all(s['device'] in ('interp', 'cpu') for s in o['steps'])"
printf 'graph "f" { input %%x : f64[4, 4] %%y = tan(%%x) output "y" = %%y }\n' >slow.berth
exits "plan with a reference kernel" 0 plan slow.berth
has "plan: a reference kernel is named" out "reference kernels: 1 of 1 steps: y (tan)"
exits "plan --json with a reference kernel" 0 plan slow.berth --json
json_holds "plan --json: it is marked" out \
  "o['reference_steps'] == 1 and o['steps'][0]['reference'] and o['steps'][0]['kind'] == 'reference'"
exits "bench --profile with a reference kernel" 0 bench slow.berth --runs 1 --profile
has "bench --profile: it is marked" out "REFERENCE"
exits "plan --json" 0 plan --dim batch=10 --json
json_holds "plan --json: every step has its kernel" out \
  "len(o['steps']) == o['n_steps'] and o['reference_steps'] == 0 and \
   all((s['kind'] == 'none') == (s['kernel'] == '') and s['kind'] in ('none', 'fast') for s in o['steps']) and \
   {'softmax'} <= {s['kernel'] for s in o['steps']} and any(s['prelude'] for s in o['steps'])"
holds "plan --json: no states" "$(field state_size) == 0"
valid_json "plan --json is valid"
has_fields "plan --json has its fields" arena_size weights_size activations_size activations_lower_bound scratch_size \
  preparation_size preparation_peak total_unshared saved optimal n_values n_buffers n_steps plan_ms device dims
has "plan --json: the dimensions" out '"dims":{"batch":10}'
has "plan --json: the device" out '"device":"cpu"'
arena=$(field arena_size)
unshared=$(field total_unshared)
holds "plan: saved is what is not needed" "$(field saved) == $unshared - $arena"
holds "plan: the bound is a bound" "$(field activations_lower_bound) <= $(field activations_size)"
holds "plan: weights, activations and scratch are in the arena" \
  "$arena >= $(field weights_size) + $(field activations_size) + $(field scratch_size)"
holds "plan: so is what preparation adds" \
  "$arena == $(field weights_size) + $(field activations_size) + $(field scratch_size) + $(field preparation_size)"

berth plan --dim batch=10 --no-reuse --json
holds "plan --no-reuse takes more" "$(field arena_size) > $arena"
berth plan --dim batch=10 --no-inplace --json
holds "plan --no-inplace takes no less" "$(field arena_size) >= $arena"
exits "plan with weights of bf16" 0 plan --bf16 --json
exits "run with weights of bf16" 0 run --bf16
exits "plan with every option" 0 plan --dim batch=10 --align 256 --order memory --effort 10 --device cpu --f32-uniform --json
refuses "an alignment that is no power of two" 2 "power of two" plan --align 48
refuses "an order that is none" 2 "source or memory" plan --order random
# A Squeeze without axes: which of [batch, width] are 1 decides the rank, so the file is read with these extents.
printf '\010\010:8\012\017\012\001x\022\001y\042\007Squeeze\022\001gZ\035\012\001x\022\030\012\026\010\001\022\022\012\007\022\005batch\012\007\022\005width' >rank.onnx
printf 'b\003\012\001yB\002\020\021' >>rank.onnx
refuses "a rank that a dimension decides" 1 "('batch') is bound after loading" run rank.onnx
refuses "with one of its dimensions" 1 "('width') is bound after loading" run rank.onnx --dim batch=1
exits "with both" 0 run rank.onnx --dim batch=1 --dim width=4
has "the rank that they decide" out "output y: f32[4]"
exits "a plan of it" 0 plan rank.onnx --dim width=1 --dim batch=3 --json
json_holds "names the dimensions" out "o['dims'] == {'width': 1, 'batch': 3}"
refuses "with one that it lacks" 2 "no named dimension 'bacth'" plan rank.onnx --dim bacth=1 --dim width=4
refuses "with one twice" 2 "dimension 'batch' is given twice" plan rank.onnx --dim batch=1 --dim batch=1
refuses "with no number" 2 "--dim batch takes a whole number" plan rank.onnx --dim batch=one
exits "a benchmark of it" 0 bench rank.onnx --dim batch=1 --dim width=4 --runs 2

# What GPUs get: on the device that interprets their kernels, which every build has.
berth plan --dim batch=10 --f32-uniform --json
uniform=$(field arena_size)
berth plan --dim batch=10 --device loops --json
holds "plan: a GPU takes what --f32-uniform says" "$(field arena_size) == $uniform"
has "plan: a segment" out '"segments":[{"device":"loops","first_step":'
holds "plan: one segment" "$(grep -o '"first_step":' out | wc -l) == 1"
berth plan --dim batch=10 --device loops --f16-weights --json
holds "plan: f16 weights are smaller" "$(field arena_size) < $uniform"
exits "run: f16 weights" 0 run --device loops --f16-weights --check
exits "run: fallback where there is nothing to fall back from" 0 run --device loops --fallback cpu --check
refuses "a fallback that is none" 2 "--fallback takes 'cpu'" run --device loops --fallback gpu
refuses "f16 weights on the cpu" 3 "for GPUs" run --f16-weights
refuses "bf16 weights on a GPU" 3 "--f16-weights" plan --device loops --bf16
exits "run: products as tf32x3" 0 run --device loops --compute tf32x3 --check
berth plan --device loops --compute bf16 --json
has "plan: how products may be computed" out '"compute":"bf16"'
refuses "products as bf16 on the cpu" 3 "no matrix units for bf16" run --compute bf16
refuses "products as bf16 on a GPU without matrix units" 3 "no matrix units" plan --device loops --gpu-profile minimal --compute bf16
refuses "products as what there is not" 2 "--compute takes" run --device loops --compute f8
# One of a thing is no plural.
printf 'graph "one" {\n  input %%x : u8[1]\n  %%y = reshape(%%x) {shape = [1]}\n  output "y" = %%y\n}\n' >one.berth
exits "a graph of one node" 0 inspect one.berth
has "inspect: one node" out "1 node, 2 values"
exits "a plan of one step" 0 plan one.berth
has "plan: one step, one buffer" out "1 step, 2 values in 1 buffer,"
exits "a benchmark of one run" 0 bench one.berth --runs 1 --threads 1
has "bench: one run" out "over 1 run"
lacks "bench: not one runs" out "over 1 runs"
exits "a context of one token" 0 plan "$BERTH_SRC/examples/tale/tale.gguf" --ctx 1 --chunk 1
has "plan gguf: one token" out "context: 1 token of keys"
has "plan gguf: one token at a time" out "text is read 1 token at a time"
exits "plan --kernels" 0 plan --device loops --kernels kernels.txt
has "the kernels of a GPU" kernels.txt "kernel conv"
refuses "kernels of the cpu" 1 "four bytes" plan --kernels -
echo before >kept.txt
refuses "kernels that cannot be written" 1 "four bytes" plan --kernels kept.txt
check "leave the file that was there" grep -qx before kept.txt
ln -s behind.txt dangling.txt
exits "plan --report through a link to nothing" 0 plan --report dangling.txt
check "writes what it leads to" grep -q arena_size behind.txt
check "and stays a link" test -L dangling.txt
refuses "and make none" 1 "four bytes" plan --kernels never.txt
check "where there was none" test ! -e never.txt
refuses "a part of the cpu" 3 "there is one device 'cpu'" run --device cpu:1
exits "a budget that is enough" 0 plan --dim batch=10 --budget "$arena"
refuses "a budget that is too small" 1 "the smallest plan found needs" plan --dim batch=10 --budget 1K
berth plan --dim batch=64 --threads 1 --json
has "plan: the order is proven" out '"order_optimal":true'
budget=$(($(field weights_size) + ($(field arena_size) - $(field weights_size)) / 2))
berth plan --dim batch=64 --threads 1 --json --budget "$budget"
holds "plan: a budget is met" "$(field arena_size) <= $budget"
holds "plan: by splitting" "$(field slices) >= 2"
exits "plan says how a budget was met" 0 plan --dim batch=64 --threads 1 --budget "$budget"
has "plan: the line about the budget" out "budget: met by splitting"
berth run --dim batch=64 --threads 1 --json --budget "$budget" --check
holds "run: a budget is met" "$(field arena_size) <= $budget"
exits "bench takes a budget" 0 bench --dim batch=64 --threads 1 --runs 1 --budget "$budget" --json
refuses "run: a budget that is too small" 1 "the smallest plan found needs" run --budget 1K
refuses "a budget that is no size" 2 "--budget takes" plan --budget 1Q

exits "plan writes its files" 0 plan --dim batch=2 --report r.txt --csv r.csv --picture r.svg
has "plan: the report's first line" r.txt "# arena_size="
if [ "$(sed -n 2p r.txt)" = "$(printf '# offset\tsize\tnode')" ]; then ok "plan: the report's second line"; else not_ok "plan: the report's second line" "$(head -n 3 r.txt)"; fi
if tail -n +3 r.txt | sort -c -t"$(printf '\t')" -k1,1n -k2,2n; then ok "plan: the report is sorted"; else not_ok "plan: the report is sorted"; fi
holds "plan: the CSV's header" "\"$(head -n 1 r.csv)\" == \"id,lower,upper,size,offset\""
has "plan: the picture is SVG" r.svg "<svg"
exits "plan --picture as a page" 0 plan --picture r.html
has "plan: the page is HTML" r.html "<html"
refuses "a picture of another kind" 2 ".svg or .html" plan --picture r.png
check "a picture of another kind: no file" test ! -e r.png
refuses "a report that cannot be written" 1 "cannot write nowhere/r.txt" plan --report nowhere/r.txt
refuses "JSON and a report on stdout" 2 "cannot be combined" plan --json --report -
if [ -e /dev/full ]; then
  refuses "a full disk is seen" 1 "cannot write /dev/full" plan --csv /dev/full
  "$BERTH_BIN" plan --json >/dev/full 2>err </dev/null
  code=$?
  holds "a full disk behind stdout is seen" "$code == 1"
else
  skip_test "a full disk is seen" "no /dev/full"
fi
"$BERTH_BIN" plan --json >&- 2>err </dev/null
code=$?
holds "a closed stdout is seen" "$code == 1"
"$BERTH_BIN" help 2>err </dev/null | true
holds "a pipe that is closed early is no crash" "${PIPESTATUS[0]} <= 1"

# ---- dimensions and ids that nobody gives

cat >audio.berth <<'GRAPH'
graph "audio" {
  input %x : f32[batch, 1, samples]
  param %w : f32[4, 1, 256]
  param %v : f32[2, 4, 3]
  %c = conv(%x, %w) {strides = [4]}
  %d = conv(%c, %v)
  output "d" = %d
}
GRAPH
exits "run: dimensions as small as the model takes" 0 run audio.berth --random-weights --json
has "run: a dimension that stays 1" err "dimension 'batch' is not given and becomes 1;"
has "run: a dimension that must be larger" err "dimension 'samples' is not given and becomes 264, the least that the model takes; --dim samples=N sets it"
exits "plan: dimensions as small as the model takes" 0 plan audio.berth --json
has "plan: the same dimensions" out '"dims":{"batch":1,"samples":264}'
exits "run: a dimension that is given is not changed" 1 run audio.berth --random-weights --dim samples=263
has "run: why it is refused" err "the kernel covers"
cat >image.berth <<'GRAPH'
graph "image" {
  input %x : f32[n, 3, h, w]
  param %k : f32[2, 3, 7, 9]
  %c = conv(%x, %k)
  output "c" = %c
}
GRAPH
exits "plan: two dimensions that must be larger" 0 plan image.berth --json
has "plan: each is as small as it can be" out '"dims":{"n":1,"h":7,"w":9}'
cat >never.berth <<'GRAPH'
graph "never" {
  input %x : f32[n, 4]
  input %y : f32[n, 5]
  %z = add(%x, %y)
  output "z" = %z
}
GRAPH
refuses "a graph that no dimension helps" 1 "never" run never.berth
cat >ids.berth <<'GRAPH'
graph "ids" {
  input %i : i32[n, 64]
  param %t : f32[3, 5]
  %j = cast(%i) {to = "i64"}
  %l = reshape(%j) {shape = [-1]}
  %y = gather(%t, %l)
  output "y" = %y
}
GRAPH
exits "run: ids lie in their table" 0 run ids.berth --random-weights
cat >mask.berth <<'GRAPH'
graph "mask" {
  input %mask : i64[n, 4]
  const %one : f32[] = [1]
  const %low : f32[] = [-3.4028235e+38]
  %m = cast(%mask) {to = "f32"}
  %o = sub(%one, %m)
  %y = mul(%o, %low)
  output "y" = %y
}
GRAPH
exits "run: a mask hides nothing" 0 run mask.berth --json
has "run: what a mask becomes" err "input 'mask' is not given and becomes 1, which the model asks for; --input mask=FILE.npy sets it"
lacks "run: with a mask of ones" out inf
cat >rate.berth <<'GRAPH'
graph "rate" {
  input %sr : i64[]
  input %x : f32[8]
  const %known : i64[] = [16000]
  %is = eq(%sr, %known)
  %y = neg(%x)
  %z = where(%is, %x, %y)
  output "z" = %z
}
GRAPH
exits "run: a setting" 0 run rate.berth
has "run: what a setting becomes" err "input 'sr' is not given and becomes 16000, which the model asks for"
cat >padded.berth <<'GRAPH'
graph "padded" {
  input %i : i64[n, 6]
  param %t : f32[5, 2]
  const %pad : i64[] = [0]
  %is = ne(%i, %pad)
  %y = gather(%t, %i)
  output "y" = %y
  output "is" = %is
}
GRAPH
exits "run: ids that are compared with a padding are no mask" 0 run padded.berth --random-weights
has "run: they stay random" err "input 'i' is not given and gets pseudo-random values"
cat >spectrum.berth <<'GRAPH'
graph "spectrum" {
  input %x : f32[n, bins]
  param %w : f32[80, 3]
  %y = matmul(%x, %w)
  output "y" = %y
}
GRAPH
exits "plan: one extent alone is taken" 0 plan spectrum.berth --json
has "plan: which one that is" out '"dims":{"n":1,"bins":80}'

# ---- pack

cat >b.csv <<'CSV'
id,lower,upper,size
a,0,3,4
b,3,9,4
c,0,9,4
d,9,21,4
e,0,21,4
CSV
exits "pack" 0 pack b.csv
has "pack: the size" out "5 buffers in 12 bytes"
has "pack: proven" out "optimal (proven)"
exits "pack --json" 0 pack b.csv --json
valid_json "pack --json is valid"
has_fields "pack --json has its fields" size lower_bound optimal n nodes ms
holds "pack: size, bound and count" "$(field size) == 12 && $(field lower_bound) == 12 && $(field n) == 5"
has "pack: optimal" out '"optimal":true'
lacks "pack: no fits without a capacity" out '"fits"'

# Every pair that is alive at one time must lie apart.
placement_is_right() { # file size
  awk -F, -v size="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { n++; l[n] = $at["lower"]; u[n] = $at["upper"]; s[n] = $at["size"]; o[n] = $at["offset"] }
    END {
      for (i = 1; i <= n; i++) {
        if (o[i] == "" || o[i] + s[i] > size) exit 1
        for (k = 1; k < i; k++)
          if (l[i] < u[k] && l[k] < u[i] && o[i] < o[k] + s[k] && o[k] < o[i] + s[i]) exit 1
      }
      exit n == 0
    }' "$1"
}
exits "pack -o" 0 pack b.csv -o placed.csv
check "pack -o: nothing overlaps" placement_is_right placed.csv 12
holds "pack -o: the header" "\"$(head -n 1 placed.csv)\" == \"id,lower,upper,size,offset\""
exits "pack -o -: the CSV goes to stdout" 0 pack b.csv -o -
if cmp -s out placed.csv; then ok "pack -o - is pack -o FILE"; else not_ok "pack -o - is pack -o FILE" "$(explain)"; fi
has "pack -o -: the summary goes to stderr" err "5 buffers in 12 bytes"
refuses "pack: JSON and CSV on stdout" 2 "both want standard output" pack b.csv -o - --json
"$BERTH_BIN" pack - --json <b.csv >out 2>err
code=$?
holds "pack from stdin" "$code == 0 && $(field size) == 12"

exits "pack: what fits" 0 pack b.csv --capacity 12 --json
has "pack: fits" out '"fits":true'
exits "pack: what does not fit" 1 pack b.csv --capacity 11 --json -o not_placed.csv
valid_json "pack: the JSON is there also when it does not fit"
has "pack: fits not" out '"fits":false'
has "pack: said on stderr" err "berth: no placement of these buffers in 11 bytes"
check "pack: no CSV when it does not fit" test ! -e not_placed.csv
exits "pack: what does not fit, as text" 1 pack b.csv --capacity 11
exits "pack: a capacity with a suffix" 0 pack b.csv --capacity 1K

exits "pack --align" 0 pack b.csv --align 8 -o aligned.csv --json
holds "pack --align: the size" "$(field size) == 20"
if awk -F, 'NR > 1 && $5 % 8 { exit 1 }' aligned.csv; then ok "pack --align: every offset"; else not_ok "pack --align: every offset" "$(cat aligned.csv)"; fi
printf 'size,id,lower,alignment,upper,offset\r\n4,a,0,16,5,\r\n4,"b,1",0,1,5,32\r\n\r\n' >mixed.csv
exits "pack: columns in any order, CRLF, fixed offsets" 0 pack mixed.csv -o mixed_out.csv
has "pack: a fixed offset is announced" err "1 of 2 buffers has an offset"
has "pack: a fixed offset stays" mixed_out.csv '4,"b,1",0,1,5,32'
exits "pack --repack" 0 pack mixed.csv --repack --json
holds "pack --repack: the offset is free" "$(field size) < 36"
# Ctrl-C in a search that would take days. A signal that comes before the program is ready ends it without a word: then
# it is given more time.
awk -v s=8 'function r(n) { s = (s * 16807) % 2147483647; return s % n }
  BEGIN { print "id,lower,upper,size"; for (i = 0; i < 600; i++) { t = r(60); print i "," t "," t + 1 + r(12) "," 1 + r(1000) } }' >hard.csv
for seconds in 1 5 20 60; do
  perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' timeout --preserve-status -s INT $seconds "$BERTH_BIN" pack hard.csv --effort 100000000000000 --json -o interrupted.csv >out 2>err
  code=$?
  [ -s out ] && break
done
holds "pack: Ctrl-C has an exit code" "$code == 130"
has "pack: Ctrl-C is said in JSON" out '"interrupted":true'
has "pack: Ctrl-C is said on stderr" err "interrupted: this is the best placement so far"
check "pack: what is written after Ctrl-C is right" placement_is_right interrupted.csv "$(field size)"
exits "pack: a device without an end" 1 pack /dev/zero
has "pack: a device without an end is refused" err "larger than 268435456 bytes"
: >nothing.csv
refuses "pack: an empty file is called empty" 1 "the file is empty" pack nothing.csv
mkfifo pipe.onnx
refuses "inspect: a pipe is refused without waiting" 1 "not a regular file" inspect pipe.onnx
rm -f pipe.onnx
truncate -s 20G sparse.csv
exits "pack: a huge file" 1 pack sparse.csv
has "pack: a huge file is refused" err "larger than 268435456 bytes"
rm -f sparse.csv
exits "pack --seed --effort" 0 pack b.csv --seed 7 --effort 1
exits "pack --picture" 0 pack b.csv --picture p.svg
has "pack: the picture is SVG" p.svg "<svg"
exits "pack --picture as a page" 0 pack b.csv --picture p.html
refuses "pack: a picture of another kind" 2 ".svg or .html" pack b.csv --picture p.pdf

exits "what plan writes, pack reads" 0 pack r.csv --json
exits "what plan writes, pack can place again" 0 pack r.csv --repack --json -o again.csv
check "what was placed again does not overlap" placement_is_right again.csv "$(field size)"

printf 'id,lower,upper,size\n' >none.csv
exits "pack: no buffers" 0 pack none.csv --json
holds "pack: no buffers take nothing" "$(field size) == 0"
refuses "pack: no such file" 1 "cannot read no.csv" pack no.csv
: >empty.csv
refuses "pack: an empty file" 1 "empty.csv line 1: there is no header" pack empty.csv
printf 'id,lower,upper\na,0,1\n' >bad.csv
refuses "pack: a missing column" 1 "bad.csv line 1: the header has no column 'size'" pack bad.csv
printf 'id,lower,upper,size,gaps\na,0,1,1,\n' >bad.csv
refuses "pack: a column that is not supported" 3 "gaps" pack bad.csv
printf 'id,lower,upper,size\na,0,1,1\nb,0,1,x\n' >bad.csv
refuses "pack: a number that is none" 1 "bad.csv line 3: size is 'x'" pack bad.csv
printf 'id,lower,upper,size\na,5,1,1\n' >bad.csv
refuses "pack: a reversed lifetime" 1 "bad.csv line 2: lower is 5" pack bad.csv
printf 'id,lower,upper,size\na,0,1,1\na,0,1,1\n' >bad.csv
refuses "pack: an id that is there twice" 1 "bad.csv line 3: the id 'a'" pack bad.csv

# ---- bench

exits "bench" 0 bench --runs 5 --warmup 1
has "bench: the median" out "median"
exits "bench --json" 0 bench --runs 5 --warmup 1 --threads 1 --json
valid_json "bench --json is valid"
has_fields "bench --json has its fields" median_ms min_ms p90_ms runs first_ms load_ms compile_ms arena_size peak_rss \
  allocations_per_run device threads
holds "bench: a run allocates nothing" "$(field allocations_per_run) == 0"
holds "bench: the times are in order" "$(field min_ms) <= $(field median_ms) && $(field median_ms) <= $(field p90_ms)"
holds "bench: loading and compiling take time" "$(field load_ms) > 0 && $(field compile_ms) > 0 && $(field first_ms) > 0"
holds "bench: runs and threads as asked" "$(field runs) == 5 && $(field threads) == 1"
holds "bench: the peak is in bytes" "$(field peak_rss) > 500000"
exits "bench --profile" 0 bench --runs 2 --profile
has "bench --profile: by op" out "by op"
has "bench --profile: by node" out "slowest nodes"
has "bench --profile: an op" out "softmax"
exits "bench --profile --json" 0 bench --runs 2 --profile --json
valid_json "bench --profile --json is valid"
json_holds "bench --profile: nodes and ops add up to the same" out \
  "all(abs(sum(n[k] for n in o['profile']['nodes']) - sum(n[k] for n in o['profile']['ops'])) \
       <= 1e-6 * sum(n[k] for n in o['profile']['ops']) for k in ('ms', 'bytes', 'flops', 'share'))"
json_holds "bench --profile: the sums are those of the whole" out \
  "abs(sum(n['ms'] for n in o['profile']['nodes']) / o['profile']['kernels_ms'] - 1) < 1e-6 and \
   0 < o['profile']['kernels_ms'] <= o['profile']['run_ms'] and \
   sum(n['flops'] for n in o['profile']['nodes']) == o['profile']['flops'] > 900000"
json_holds "bench --profile: whose clock it is" out "o['profile']['clock'] == 'host'"
json_holds "bench --profile: rates follow from time and work" out \
  "all(abs(n['gflops'] * n['ms'] * 1e6 - n['flops']) <= 1e-5 * n['flops'] for n in o['profile']['nodes'])"
json_holds "bench --profile: every node stands there once" out \
  "sum(n['nodes'] for n in o['profile']['ops']) == len({n['name'] for n in o['profile']['nodes']}) == \
   len(o['profile']['nodes'])"
json_holds "bench --profile: the machine is measured" out \
  "o['profile']['peak']['gflops'] > 0 and all(c['gb_per_s'] > 0 for c in o['profile']['peak']['copies'])"
json_holds "bench --profile: a view costs nothing" out \
  "all(n['bytes'] == n['flops'] == n['of_peak'] == 0 for n in o['profile']['nodes'] if n['ms'] == 0)"
json_holds "bench --profile: every node has its kernel, and none is a reference kernel" out \
  "all(n['device'] == 'cpu' and not n['reference'] and (n['kind'] == 'none') == (n['kernel'] == '') \
       for n in o['profile']['nodes']) and o['profile']['reference_nodes'] == 0 and \
   all(n['reference_nodes'] == 0 for n in o['profile']['ops'])"
exits "bench --trace" 0 bench --runs 2 --trace trace.json
cp trace.json out
valid_json "bench --trace: the trace is valid"
has "bench --trace: events" trace.json '"ph":"X"'
json_holds "bench --trace: runs do not overlap, and nodes lie inside of them" trace.json \
  "(lambda x: (lambda runs, nodes: len(runs) == 2 and runs[0]['ts'] + runs[0]['dur'] <= runs[1]['ts'] and \
    all(any(r['ts'] - 0.5 <= n['ts'] and n['ts'] + n['dur'] <= r['ts'] + r['dur'] + 0.5 for r in runs) for n in nodes) \
    and len(nodes) > 4)([e for e in x if e['cat'] == 'run'], [e for e in x if e['cat'] != 'run'])) \
   ([e for e in o['traceEvents'] if e['ph'] == 'X'])"
json_holds "bench --trace: shapes stand with a node" trace.json \
  "[e['args']['out'] for e in o['traceEvents'] if e['name'] == 'probabilities'] == [['f32[1,10]']] * 2"
refuses "bench: a trace that cannot be written" 1 "cannot write nowhere/t.json" bench --runs 1 --trace nowhere/t.json

# ---- inspect

exits "inspect safetensors" 0 inspect "$digits/digits.safetensors"
has "inspect safetensors: a tensor" out "conv1.weight"
has "inspect safetensors: totals" out "total f32"
exits "inspect safetensors --json" 0 inspect "$digits/digits.safetensors" --json
valid_json "inspect safetensors --json is valid"
has_fields "inspect safetensors --json has its fields" format n_tensors bytes types tensors n_metadata
exits "inspect a graph" 0 inspect "$digits/digits.berth"
has "inspect a graph: an input" out "f32[batch,1,8,8]"
has "inspect a graph: ops" out "conv"
exits "inspect a graph --json" 0 inspect "$digits/digits.berth" --json
valid_json "inspect a graph --json is valid"
has "inspect a graph --json: named dimensions" out '"dims":["batch"]'
/usr/bin/env python3 - <<'PY'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"
head += " " * (-(len(head) + 11) % 64) + "\n"
open("none.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
PY
exits "inspect npy without elements" 0 inspect none.npy --json
json_holds "its JSON has all fields" out "o['min'] is None and o['max'] is None and o['mean'] is None"
exits "inspect npy" 0 inspect "$digits/samples.npy" --json
valid_json "inspect npy --json is valid"
cp "$digits/samples.npy" disguised.txt
exits "inspect goes by content" 0 inspect disguised.txt
has "inspect goes by content: npy" out "npy array, f32[10,1,8,8]"
odd=$(printf 'quote" back\\slash tab\t byte\377.npy')
cp "$digits/samples.npy" "$odd"
exits "a file with an odd name" 0 inspect "$odd" --json
valid_json "a file with an odd name: the JSON is valid"
refuses "a file name with a line break" 1 "cannot read a?b" inspect "$(printf 'a\nb')"
holds "a file name with a line break: one line" "$(wc -l <err) == 1"
printf 'GGUF\003\000\000\000' >m.gguf
refuses "run gguf: a file that is cut off" 1 "m.gguf: the file ends at byte 8, within the header" run m.gguf
refuses "run an array" 3 "is an npy array" run "$digits/samples.npy"
refuses "run an empty file" 1 "empty.csv is empty" run empty.csv
printf 'grph "x" {' >m.berth
refuses "inspect a graph with a mistake" 1 "m.berth" inspect m.berth
mkdir -p alone && cp "$digits/digits.berth" alone/
refuses "a graph without the weights that it names" 1 "digits.safetensors" run alone/digits.berth
exits "--weights in place of those that a graph names" 0 run alone/digits.berth --weights "$digits/digits.safetensors" --input "image=$digits/samples.npy"
refuses "--weights that is not there" 1 "nowhere.safetensors" run "$digits/digits.berth" --weights nowhere.safetensors
refuses "inspect gguf: a file that is cut off" 1 "the file ends at byte 8, within the header" inspect m.gguf
cp "$BERTH_SRC/tests/fuzz/corpus/gguf/kinds" kinds.gguf
cp "$BERTH_SRC/tests/fuzz/corpus/gguf/tensors" tensors.gguf
exits "inspect gguf: keys" 0 inspect kinds.gguf
has "inspect gguf: the architecture" out 'arch     "llama"'
has "inspect gguf: a key" out "  key      llama.block_count                        u32            22"
has "inspect gguf: an array of strings" out 'string[3]      "a", "", "ccc"'
has "inspect gguf: the tokenizer" out "tokens   none"
exits "inspect gguf --json" 0 inspect kinds.gguf --json
valid_json "inspect gguf --json is valid"
has_fields "inspect gguf --json has its fields" format file name version architecture tokenizer n_tokens chat_template \
  n_tensors param_elements bytes files keys types unsupported tensors runs reason
has "inspect gguf --json: a number" out '"llama.block_count":22'
has "inspect gguf --json: an array" out '"numbers":{"type":"i16","count":3,"first":[1,-2,3]}'
exits "inspect gguf: tensors" 0 inspect tensors.gguf
has "inspect gguf: a tensor" out "f32      [2,4]"
has "inspect gguf: a type that berth lacks" out "1 tensor, 0 bytes  not supported"
exits "inspect gguf: tensors as JSON" 0 inspect tensors.gguf --json
valid_json "inspect gguf: the JSON of tensors is valid"
has "inspect gguf --json: a type that berth lacks" out '"unsupported":["type 99"]'
printf '\010\007\022\004' >m.onnx
refuses "inspect onnx: a file that is broken" 1 "runs past the end" inspect m.onnx
printf '\001\002\003' >m.bin
refuses "inspect something else" 3 "is not in a format that berth reads" inspect m.bin
printf '\223NUMPY' >cut.npy
berth inspect cut.npy
holds "inspect a cut array" "$code == 1 || $code == 3"
refuses "inspect an empty file" 1 "is empty" inspect empty.csv
refuses "inspect what is not there" 1 "cannot read nowhere" inspect nowhere
refuses "inspect a folder" 1 "cannot read" inspect "$work"

# ---- plans of GGUF models

tale=$BERTH_SRC/examples/tale/tale.gguf
exits "inspect gguf: a model that runs" 0 inspect "$tale"
has "inspect gguf: it runs" out "runs     yes"
has "inspect gguf: its tokenizer" out "tokens   SPM of 383"
has "inspect gguf: its chat template" out "template for chat"
if command -v python3 >/dev/null; then
  python3 -c 'import sys
data = open(sys.argv[1], "rb").read()
name = b"tokenizer.ggml.model\x08\0\0\0\x05\0\0\0\0\0\0\0"
open("other.gguf", "wb").write(data.replace(name + b"llama", name + b"other"))' "$tale"
  exits "inspect gguf: another tokenizer" 0 inspect other.gguf --json
  has "inspect gguf: a tokenizer that berth lacks" out '"runs":false,"reason":"the tokenizer \"other\" is not known'
fi
exits "plan gguf" 0 plan "$tale" --ctx 100
has "plan gguf: the cache is a line of its own" out "state"
has "plan gguf: a token's share of it" out "context: 100 tokens of keys and values as f16, 256 bytes a token"
has "plan gguf: the chunk" out "text is read 64 tokens at a time"
exits "plan gguf --json" 0 plan "$tale" --ctx 100 --chunk 16 --picture tale.svg --json
valid_json "plan gguf --json is valid"
has_fields "plan gguf --json has its fields" arena_size weights_size state_size activations_size scratch_size ctx chunk \
  kv token
json_holds "plan gguf --json: sizes" out "o['ctx'] == 100 and o['chunk'] == 16 and o['state_size'] == 100 * 2 * 2 * 32 * 2 and o['kv'] == 'f16'"
json_holds "plan gguf --json: the parts are the whole" out \
  "o['arena_size'] == sum(o[k] for k in ('weights_size', 'state_size', 'activations_size', 'scratch_size', 'preparation_size'))"
json_holds "plan gguf --json: dims" out "o['dims'] == {'rows': 16, 'ctx': 100}"
has "plan gguf: drawn like every plan" tale.svg "<svg"
exits "plan gguf: what the model was made for" 0 plan "$tale" --json
json_holds "plan gguf: its context and chunk" out "o['ctx'] == 256 and o['chunk'] == 64"
cp out whole.json
exits "plan gguf: --dim says the same" 0 plan "$tale" --dim ctx=256 --dim rows=64 --json
json_holds "plan gguf: the same arena" out "o['arena_size'] == json.load(open('whole.json'))['arena_size']"
exits "plan gguf: options that agree" 0 plan "$tale" --ctx 100 --dim ctx=100 --chunk 16 --dim rows=16
refuses "plan gguf: a context that contradicts" 2 "--ctx 100 and --dim ctx=256 contradict each other" \
  plan "$tale" --ctx 100 --dim ctx=256
refuses "plan gguf: a context of 0 is another" 2 "contradict each other" plan "$tale" --ctx 100 --dim ctx=0
refuses "plan gguf: a chunk that contradicts" 2 "--chunk 16 and --dim rows=4 contradict each other" \
  plan "$tale" --chunk 16 --dim rows=4 --fit 1G
refuses "kernels gguf: a context that contradicts" 2 "--ctx 100 and --dim ctx=256 contradict each other" \
  kernels "$tale" -o pack --target sm_90 --ctx 100 --dim ctx=256
for sizes in "--ctx 100" "--ctx 200 --chunk 1" "--ctx 31 --chunk 7" "--ctx 100 --kv f32"; do
  exits "plan gguf $sizes" 0 plan "$tale" $sizes --threads 2 --json
  cp out planned.json
  exits "generate $sizes" 0 generate "$tale" -p "The" -n 2 --temp 0 $sizes --threads 2 --json
  json_holds "generate $sizes takes what was planned, to the byte" out "o['arena_size'] == json.load(open('planned.json'))['arena_size']"
done
exits "plan gguf --fit: more than enough" 0 plan "$tale" --fit 1G --json
valid_json "plan gguf --fit --json is valid"
json_holds "plan gguf --fit: all of it, with larger chunks" out \
  "o['fit']['fits'] and o['fit']['bytes'] == 1 << 30 and o['ctx'] == 256 and o['chunk'] == 256 and o['kv'] == 'f32' and o['fit']['arena_size'] == o['arena_size']"
most=$(python3 -c "import json; print(json.load(open('whole.json'))['arena_size'])" 2>/dev/null || echo 0)
exits "plan gguf --fit: exactly what the default takes" 0 plan "$tale" --kv f16 --fit "$most" --json
json_holds "plan gguf --fit: which is its context" out "o['ctx'] == 256 and o['chunk'] == 64 and o['arena_size'] == $most"
exits "plan gguf --fit: some bytes less" 0 plan "$tale" --kv f16 --chunk 64 --fit "$((most - 20000))" --json
json_holds "plan gguf --fit: is a smaller context" out "100 < o['ctx'] < 256 and o['arena_size'] <= $most - 20000"
fitted=$(field ctx)
exits "plan gguf --fit: a token more" 0 plan "$tale" --ctx "$((fitted + 1))" --json
json_holds "plan gguf --fit: a token more does not fit" out "o['arena_size'] > $most - 20000"
exits "plan gguf --fit: or a smaller chunk" 0 plan "$tale" --kv f16 --fit "$((most - 20000))" --json
json_holds "plan gguf --fit: which leaves room for the whole context" out "o['ctx'] == 256 and 1 < o['chunk'] < 64"
exits "plan gguf: the least for all tokens" 0 plan "$tale" --ctx 256 --kv q8_0 --chunk 1 --json
least=$(python3 -c "import json; print(json.load(open('out'))['arena_size'])" 2>/dev/null || echo 0)
exits "plan gguf --fit --ctx: exactly what is needed" 0 plan "$tale" --ctx 256 --fit "$least" --json
json_holds "plan gguf --fit --ctx: with the chunk that leaves room" out "o['ctx'] == 256 and o['chunk'] == 1 and o['arena_size'] == $least"
exits "plan gguf --fit --ctx: a byte less" 1 plan "$tale" --ctx 256 --fit "$((least - 1))" --json
json_holds "plan gguf --fit --ctx: says what is needed" out "o['fit']['ctx'] == 256 and o['fit']['arena_size'] == $least"
exits "plan gguf --fit: token by token" 0 plan "$tale" --fit 120000 --json
json_holds "plan gguf --fit: where that leaves room for far more tokens" out "o['chunk'] == 1 and o['ctx'] > 30"
exits "plan gguf --fit: what cannot be had" 1 plan "$tale" --fit 50000
has "plan gguf --fit: what would be needed" out "does not fit in 50,000 bytes"
has "plan gguf --fit: with which sizes" out "would need"
exits "plan gguf --fit: what cannot be had, as JSON" 1 plan "$tale" --fit 50000 --json
json_holds "plan gguf --fit: what would be needed, as JSON" out \
  "not o['fit']['fits'] and o['fit']['arena_size'] > 50000 and o['fit']['ctx'] == 1 and o['fit']['chunk'] == 1"
exits "plan gguf --fit: a cache that is asked for" 0 plan "$tale" --fit 1G --kv bf16 --json
json_holds "plan gguf --fit: it is the one that is planned" out "o['fit']['kv'] == 'bf16' and o['kv'] == 'bf16'"
refuses "plan gguf --fit: a cache that is not there" 3 "a cache may be f32, f16, bf16 or q8_0, not q4_0" plan "$tale" --fit 1G --kv q4_0
refuses "plan gguf: a cache of no type" 2 "--kv takes f32, f16, bf16 or q8_0, not 'fp8'" plan "$tale" --kv fp8
refuses "plan --ctx of another model" 2 "--ctx, --chunk, --kv and --fit are for GGUF models" plan --ctx 10

# A model of 5 GB that is all hole: whoever plans it without touching the weights stays small.
if command -v python3 >/dev/null; then
  python3 - <<'PY'
import struct
text = lambda t: struct.pack("<Q", len(t)) + t.encode()
keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
for name, value in (("context_length", 2048), ("embedding_length", 4096), ("block_count", 5), ("vocab_size", 32000),
                    ("feed_forward_length", 11008), ("attention.head_count", 32), ("rope.dimension_count", 128)):
    keys.append(text("llama." + name) + struct.pack("<II", 4, value))
keys.append(text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5))
shapes = {"token_embd": (4096, 32000), "output_norm": (4096,), "output": (4096, 32000)}
for i in range(5):
    for name in ("attn_norm", "ffn_norm"):
        shapes["blk.%d.%s" % (i, name)] = (4096,)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        shapes["blk.%d.%s" % (i, name)] = (4096, 4096)
    shapes["blk.%d.ffn_gate" % i] = shapes["blk.%d.ffn_up" % i] = (4096, 11008)
    shapes["blk.%d.ffn_down" % i] = (11008, 4096)
infos, at = b"", 0
for name, shape in shapes.items():
    infos += text(name + ".weight") + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, at)
    at += 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys)) + b"".join(keys) + infos
with open("hole.gguf", "wb") as f:
    f.write(head)
    f.truncate((len(head) + 31) // 32 * 32 + at)
PY
  exits "plan gguf: five gigabytes" 0 plan hole.gguf --ctx 2048 --json
  json_holds "plan gguf: five gigabytes of weights" out "o['weights_size'] > 5e9 and o['state_size'] == 5 * 2 * 2048 * 4096 * 2"
  python3 -c 'import resource, subprocess, sys
subprocess.run([sys.argv[1], "plan", "hole.gguf", "--ctx", "2048", "--json"], stdout=subprocess.DEVNULL, check=True)
sys.exit(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > (1 << 20 if sys.argv[2] else 1 << 16))' \
    "$BERTH_BIN" "$(grep -c asan <(ldd "$BERTH_BIN" 2>/dev/null) | grep -v '^0$')" 2>err
  holds "plan gguf: without touching them" "$? == 0"
  rm -f hole.gguf
fi

# ---- devices

exits "devices" 0 devices
has "devices: the cpu" out "cpu"
exits "devices --json" 0 devices --json
valid_json "devices --json is valid"
has_fields "devices --json has its fields" devices name description available reason memory

tap_done
