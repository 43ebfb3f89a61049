#!/usr/bin/env bash
# berth train: a net learns, goes on from a checkpoint as if nothing had been, and its weights are a model's.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
. "$BERTH_SRC/tests/support/tool.sh"

below() { /usr/bin/env python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]) + float(sys.argv[3]))' "$1" "$2" "${3:-0}"; }

# Points in a square, and whether they are in a circle; and their distance.
/usr/bin/env python3 - <<'DATA'
import random, struct
def save(name, kind, shape, values, code):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), code), *values))
random.seed(3)
points = [(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(200)]
save("x.npy", "<f4", (200, 2), [v for p in points for v in p], "f")
save("labels.npy", "<i8", (200,), [int(x * x + y * y < 0.5) for x, y in points], "q")
save("squares.npy", "<f4", (200, 2), [v for x, y in points for v in (x * x + y * y, x * y)], "f")
save("wide.npy", "<i4", (200, 2), [0] * 400, "i")
save("long.npy", "<f4", (200, 3), [0.0] * 600, "f")
save("third.npy", "<i8", (200,), [0] * 198 + [1, 2], "q")
save("numbers.npy", "<f4", (200,), [x + y for x, y in points], "f")
save("few.npy", "<i8", (3,), [0, 1, 1], "q")
save("bytes.npy", "|u1", (200, 2), [int(round((v + 1) * 100)) for p in points for v in p], "B")
def safetensors(name, tensors):
    import json
    head, data = {}, b""
    for key, (kind, shape, values, code) in tensors.items():
        more = struct.pack("<%d%s" % (len(values), code), *values)
        head[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)
safetensors("data.safetensors", {"x": ("F32", [200, 2], [v for p in points for v in p], "f"),
                                 "inside": ("I64", [200], [int(x * x + y * y < 0.5) for x, y in points], "q")})
safetensors("fine.safetensors", {"w": ("F64", [2, 2], [1 / 3, 0.1, 0.7, 1e-9], "d")})
safetensors("fine_data.safetensors", {"x": ("F64", [200, 2], [v for p in points for v in p], "d")})
open("text.txt", "w").write("the cat sat on the mat, and the dog sat on the log. " * 40)
open("strange.txt", "wb").write(b"the cat sat on the \xc3\xa9 mat. " * 40)
DATA
cat >net.berth <<'NET'
graph "net" {
  input %x : f32[batch, 2]
  param %w1 : f32[2, 16]
  param %b1 : f32[16]
  param %w2 : f32[16, 2]
  param %b2 : f32[2]
  %m1 = matmul(%x, %w1)
  %a1 = add(%m1, %b1)
  %h = tanh(%a1)
  %m2 = matmul(%h, %w2)
  %a2 = add(%m2, %b2)
  %y = softmax(%a2)
  output "y" = %y
}
NET
data="--input x=x.npy --labels labels.npy --rate 0.02 --batch 50"
train="train net.berth $data"

exits "a net learns" 0 $train --steps 300 --json --save trained.safetensors
check "its loss is low" below "$(field loss)" 0.25
check "it says how many steps" test "$(field steps)" = 300
check "the block has a size" test "$(field arena_size)" -gt "$(field state_size)"
check "it says that it began at random" grep -q 'start at random' err
exits "the weights are those of a model" 0 run net.berth --weights trained.safetensors --dim batch=3
exits "they can be trained on" 0 $train --weights trained.safetensors --steps 1 --json
check "from where they were" below "$(field loss)" 0.4
exits "in words" 0 $train --steps 40
check "with progress" grep -q 'step 40 of 40: loss' out
exits "squares" 0 train net.berth --input x=x.npy --labels squares.npy --loss mse --optimizer sgd --clip 1 --steps 50 --json
check "have a loss too" below "$(field loss)" 1

exits "60 steps" 0 $train --steps 60 --save whole.safetensors
exits "40 steps" 0 $train --steps 40 --checkpoint half.state --every 7 --save half.safetensors
check "are others" sh -c '! cmp -s whole.safetensors half.safetensors'
exits "20 more" 0 $train --steps 60 --checkpoint half.state --save resumed.safetensors
check "are the same, to the bit" cmp whole.safetensors resumed.safetensors
exits "no more" 0 $train --steps 60 --checkpoint half.state --save again.safetensors --json
check "are the same again" cmp whole.safetensors again.safetensors
check "and have no loss" test "$(field loss)" = None
check "nothing is left beside the files" sh -c '! ls *.new 2>/dev/null | grep -q .'


# Checkpoints that do not fit.
head -c 100 half.state >cut.state
refuses "half a checkpoint" 1 "cut.state" $train --steps 60 --checkpoint cut.state
refuses "one of another order" 1 "was made with another --seed (1, and now it is 2)" $train --steps 60 --checkpoint half.state --seed 2
refuses "one of other batches" 1 "was made with another --accumulate" $train --steps 60 --checkpoint half.state --accumulate 2
refuses "weights" 1 "is not a checkpoint of a training" $train --steps 60 --checkpoint whole.safetensors
refuses "one of another optimiser" 1 "it is a checkpoint of another model or optimiser" $train --steps 60 --checkpoint half.state --optimizer sgd
sed 's/16/17/g' net.berth >wider.berth
refuses "one of another model" 1 "it is a checkpoint of another model" train wider.berth --input x=x.npy --labels labels.npy --batch 50 --checkpoint half.state
check "the checkpoint is as it was" sh -c '"$0" train net.berth --input x=x.npy --labels labels.npy --rate 0.02 --batch 50 --steps 60 --checkpoint half.state --save once_more.safetensors >/dev/null && cmp whole.safetensors once_more.safetensors' "$BERTH_BIN"

# Ctrl-C: what there is by then is in the checkpoint, and the rest comes as if nothing had been.
# The first line comes after a tenth of the steps or less, so that there is time for a signal that comes late.
"$BERTH_BIN" $train --steps 200000 --every 200000 --checkpoint stopped.state >out 2>err &
pid=$!
while ! grep -q 'step' out && kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -TERM $pid # a shell has its jobs ignore Ctrl-C; the program takes both alike
code=0
wait $pid || code=$?
check "an interrupted training says so" test "$code" = 130
check "and where it goes on" grep -q 'goes on from stopped.state' err
more=$(($(sed -n 's/.*after step \([0-9]*\);.*/\1/p' err) + 5))
exits "an interrupted training leaves a checkpoint" 0 inspect stopped.state
exits "which goes on" 0 $train --steps $more --checkpoint stopped.state --save stopped.safetensors
exits "as without a break" 0 $train --steps $more --save unbroken.safetensors
check "to the bit" cmp stopped.safetensors unbroken.safetensors

# Schedules, accumulation, rows that are held out.
exits "a schedule" 0 $train --steps 400 --warmup 10 --schedule cosine --json --hold-out 20
check "rows are held out" test "$(field trained)" = 160
held() { /usr/bin/env python3 -c 'import json, sys; print(json.load(open("out"))["held_out"][sys.argv[1]])' "$1"; }
check "and measured" test "$(held count)" = 40
check "most of them are right" below 0.7 "$(held accuracy)"
exits "a step" 0 $train --steps 20 --json
size=$(field arena_size) rest=$(($(field arena_size) - $(field state_size)))
loss=$(field loss)
exits "a step in less" 0 $train --steps 20 --json --budget $((size - rest / 5))
check "takes no more" test "$(field arena_size)" -le $((size - rest / 5))
check "and learns as much" below "$(field loss)" "$loss" 0.001
refuses "a step in nothing" 1 "smallest plan found" $train --steps 20 --budget 1K
exits "steps of several runs" 0 $train --steps 60 --accumulate 2 --batch 25 --json --checkpoint sums.state --save sums.safetensors
check "say so" test "$(field accumulate)" = 2
exits "half of them" 0 $train --steps 30 --accumulate 2 --batch 25 --checkpoint sums2.state
exits "and the rest" 0 $train --steps 60 --accumulate 2 --batch 25 --checkpoint sums2.state --save sums2.safetensors
check "are the same, to the bit" cmp sums.safetensors sums2.safetensors

# Data of other kinds.
exits "tensors of a file" 0 train net.berth --input x=data.safetensors --labels data.safetensors:inside --rate 0.02 --batch 50 --steps 60 --save tensors.safetensors
check "are the same data" cmp whole.safetensors tensors.safetensors
refuses "a tensor that is not there" 1 "has no tensor 'z'" train net.berth --input x=data.safetensors:z --labels labels.npy
refuses "one of several" 1 "none is called 'labels'; say which" train net.berth --input x=x.npy --labels data.safetensors
exits "bytes that are scaled" 0 train net.berth --input x=bytes.npy --scale x=0.01 --labels labels.npy --rate 0.02 --steps 200 --json
check "are learned from" below "$(field loss)" 0.5
refuses "bytes that are not" 1 "input 'x' is f32, but bytes.npy holds u8" train net.berth --input x=bytes.npy --labels labels.npy
check "how to scale them is said" grep -q -- '--scale x=' err

# An output without axes.
cat >sum.berth <<'NET'
graph "sum" {
  input %x : f32[1, 2]
  param %w : f32[2, 1]
  %m = matmul(%x, %w)
  %y = reduce_mean(%m) {keepdims = 0}
  output "y" = %y
}
NET
exits "one number" 0 train sum.berth --input x=x.npy --labels numbers.npy --loss mse --batch 1 --steps 2 --hold-out 10 --json
check "is measured too" test "$(held count)" = 20

# Names of any length, which others are made of.
long=$(printf 'n%.0s' $(seq 230))
sed "s/%w1/%${long}1/g; s/%w2/%${long}2/g" net.berth >long.berth
exits "long names" 0 train long.berth $data --steps 5 --save long.safetensors
exits "long names with adapters" 0 train long.berth --weights long.safetensors $data --steps 5 --lora 2 --save adapted.safetensors
check "which are merged" sh -c '! cmp -s long.safetensors adapted.safetensors'

# Part of a model.
exits "one param alone" 0 $train --weights whole.safetensors --steps 5 --train w2 --save part.safetensors
exits "all but some" 0 $train --weights whole.safetensors --steps 5 --freeze 'w1' --freeze 'b*' --save part2.safetensors
check "are the same" cmp part.safetensors part2.safetensors
refuses "a name that is not there" 2 "--train w9: no param" $train --train w9
refuses "everything frozen" 1 "no param of a float type is left" $train --freeze '*'
exits "adapters" 0 $train --weights whole.safetensors --steps 20 --lora 2 --lora-on w1 --lora-alpha 4 --save merged.safetensors --adapters small.safetensors --json
adapted=$(field loss)
check "adapters take little" test "$(stat -c %s small.safetensors)" -lt "$(stat -c %s whole.safetensors)"
exits "the adapters are there" 0 inspect small.safetensors
check "by name" grep -q 'w1.lora_a' out
exits "merged weights are those of a model" 0 $train --weights merged.safetensors --steps 1 --json
check "and as good" below "$(field loss)" "$adapted" 0.1
# Weights of f64 keep all their digits: with a rate of 0 an adapter adds nothing.
printf 'graph "fine" { input %%x : f64[batch, 2] param %%w : f64[2, 2] %%y = matmul(%%x, %%w) output "y" = %%y }\n' >fine.berth
exits "adapters of f64" 0 train fine.berth --weights fine.safetensors --input x=fine_data.safetensors --labels fine_data.safetensors:x --loss mse --batch 50 --steps 1 --rate 0 --lora 1 --save fine_merged.safetensors
check "are merged without rounding" cmp <(tail -c 32 fine.safetensors) <(tail -c 32 fine_merged.safetensors)
refuses "adapters without a rank" 2 "need --lora" $train --adapters small.safetensors
refuses "adapters on a param that is not a matrix" 1 "cannot have an adapter" $train --lora 2 --lora-on b1

# A text, character by character.
cat >chars.berth <<'NET'
graph "chars" {
  input %text : i64[batch, time]
  param %table : f32[128, 24]
  param %w : f32[24, 128]
  %x = gather(%table, %text) {axis = 0}
  %y = matmul(%x, %w)
  output "y" = %y
}
NET
sed 's/128/256/g' chars.berth >bytes.berth
exits "a text" 0 train chars.berth --text text.txt --dim time=16 --rate 0.03 --steps 150 --hold-out 10 --json
check "is learned" below "$(field loss)" 1.5
check "and measured" below "$(held loss)" 1.5
exits "a text is written" 0 train chars.berth --text text.txt --dim time=16 --rate 0.03 --steps 100 --sample 40 --prompt "the "
check "from its prompt on" grep -q '^the ' out
refuses "no length of rows" 2 "--dim time=N says how many characters" train chars.berth --text text.txt
refuses "a character that is not a class" 1 "character 195 at byte 19 of strange.txt is not one of the model's 128 classes" train chars.berth --text strange.txt --dim time=16
refuses "a text and rows" 2 "takes the place of" train chars.berth --text text.txt --labels labels.npy --dim time=16
refuses "a text that is not there" 1 "nothing.txt" train chars.berth --text nothing.txt --dim time=16
refuses "a text for numbers" 1 "--text needs one input [batch, time]" train net.berth --text text.txt
refuses "a sample of rows" 2 "--sample needs --text" $train --sample 3
exits "bytes of all kinds" 0 train bytes.berth --text text.txt --dim time=4 --batch 2 --steps 1 --rate 0 --sample 900 --seed 5
check "are written as they are" /usr/bin/env python3 -c 'import sys; sys.exit(not (len(open("out", "rb").read()) > 900 and b"\0" in open("out", "rb").read()))'
exits "a text from a pipe" 0 train chars.berth --text <(cat text.txt) --dim time=16 --steps 1
refuses "a folder" 1 "Is a directory" train chars.berth --text . --dim time=16
refuses "a text that is too short" 1 "is shorter than one row" train chars.berth --text text.txt --dim time=5000

# An ONNX model: x -> Gemm(W1^T) -> Tanh -> MatMul(W2).
/usr/bin/env python3 - <<'DATA'
import random, struct
def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])
def field(number, data):
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data
def tensor(name, dims, values, beside=None):
    head = b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name)
    data = struct.pack("<%df" % len(values), *values)
    if beside is None:
        return head + field(9, data)
    at = beside.tell()
    beside.write(data)
    entries = {"location": "weights.bin", "offset": str(at), "length": str(len(data))}
    return head + b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries.items()) + field(14, 1)
def node(op, inputs, output, attrs=b""):
    return b"".join(field(1, i) for i in inputs) + field(2, output) + field(4, op) + attrs
def value(name, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
def model(beside):
    random.seed(5)
    w1, w2 = [random.uniform(-1, 1) for _ in range(80)], [random.uniform(-1, 1) for _ in range(80)]
    turned = field(5, field(1, "transB") + field(3, 1) + field(20, 2))
    graph = field(1, node("Gemm", ["x", "w1"], "h", turned)) + field(1, node("Tanh", ["h"], "t"))
    graph += field(1, node("MatMul", ["t", "w2"], "m")) + field(1, node("Add", ["m", "b"], "y")) + field(2, "net")
    graph += field(5, tensor("b", [2], [0.5, -0.5]))
    graph += field(5, tensor("w1", [40, 2], w1, beside)) + field(5, tensor("w2", [40, 2], w2, beside))
    graph += field(11, value("x", ["n", 2])) + field(12, value("y", ["n", 2]))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))
open("net.onnx", "wb").write(model(None))
with open("weights.bin", "wb") as beside:
    open("beside.onnx", "wb").write(model(beside))
DATA
# The bias, whose two elements lie in the file as they are.
has_moved() {
  /usr/bin/env python3 -c 'import struct, sys
bias = struct.pack("<2f", 0.5, -0.5)
before, after = (open(name, "rb").read() for name in sys.argv[1:])
sys.exit(not (bias in before and bias not in after))' "$1" "$2"
}
learn="--input x=x.npy --labels labels.npy --rate 0.02 --batch 50"
for file in net beside; do
  exits "$file.onnx is trained" 0 train $file.onnx $learn --steps 200 --save $file.trained.onnx --json
  loss=$(field loss)
  check "small weights are trained too" has_moved $file.onnx $file.trained.onnx
  exits "$file.trained.onnx is a model" 0 run $file.trained.onnx --dim n=3
  exits "$file.trained.onnx is as good" 0 train $file.trained.onnx $learn --steps 1 --json
  check "as it was" below "$(field loss)" "$loss" 0.1
  exits "$file.onnx with adapters" 0 train $file.onnx $learn --steps 200 --lora 1 --lora-alpha 2 --save $file.merged.onnx --json
  loss=$(field loss)
  exits "$file.merged.onnx has them merged" 0 train $file.merged.onnx $learn --steps 1 --json
  check "and is as good" below "$(field loss)" "$loss" 0.1
done
check "what lay beside lies beside" test -f beside.trained.onnx.data -a ! -f net.trained.onnx.data

# What make train-demo trains, for a few steps.
examples=$BERTH_SRC/examples
sed '/^  weights /d' "$examples/digits/digits.berth" >digits.berth
exits "the digits of the demo" 0 train digits.berth --input image="$examples/digits/images.npy" --scale image=0.0625 --labels "$examples/digits/labels.npy" --hold-out 20 --steps 40 --rate 0.003 --json
check "are learned" below 0.5 "$(held accuracy)"
exits "the characters of the demo" 0 train "$examples/chars/chars.berth" --text "$examples/chars/coriolanus.txt" --dim time=16 --batch 4 --steps 10 --rate 0.003 --json
check "are learned too" below "$(field loss)" 4.5
check "the demo gives only options that there are" sh -c 'for o in $(grep -o -- "--[a-z-]*" "$1/scripts/train-demo.sh" | sort -u); do "$0" train --help | grep -q -- "$o" || exit 1; done' "$BERTH_BIN" "$BERTH_SRC"

# Weights of 16 bits have a copy in f32.
sed 's/f32/bf16/g' net.berth >narrow.berth
exits "bf16" 0 train narrow.berth --input x=x.npy --labels labels.npy --rate 0.02 --batch 50 --steps 300 --json --checkpoint narrow.state --save narrow.safetensors
check "learns" below "$(field loss)" 0.35
exits "its checkpoint" 0 inspect narrow.state
check "has the copies" grep -q 'w1.master' out

refuses "no labels" 2 "--labels is missing" train net.berth --input x=x.npy
refuses "too few labels" 1 "has 3 rows" train net.berth --input x=x.npy --labels few.npy
refuses "no inputs" 2 "the model has 1 input, and 0 are given" train net.berth --labels labels.npy
refuses "an input that is not there" 2 "it has 'x', f32[batch,2]" train net.berth --input z=x.npy --labels labels.npy
refuses "numbers of another type" 1 "input 'x' is f32, but wide.npy holds i32" train net.berth --input x=wide.npy --labels labels.npy
refuses "rows of another shape" 1 "long.npy has rows of another shape than input 'x'" train net.berth --input x=long.npy --labels labels.npy
refuses "a class that is none" 1 "label 2 in row 199 of third.npy is not a class: there are 2" train net.berth --input x=x.npy --labels third.npy
refuses "several classes per row" 1 "squares.npy has 400 labels in 200 rows; there is 1 per row" train net.berth --input x=x.npy --labels squares.npy
refuses "labels of another type" 1 "labels.npy holds i64" train net.berth --input x=x.npy --labels labels.npy --loss mse
refuses "an unknown kind of product" 2 "--compute takes" $train --compute f8
for option in --rate --momentum --weight-decay --clip --lora-alpha; do
  refuses "$option below 0" 2 "$option takes a number of at least 0" $train --lora 1 $option=-1
done
refuses "a scale for no input" 2 "--scale z=2: no --input gives 'z'" $train --scale z=2
exits "no adapters" 0 $train --steps 1 --lora 0
refuses "a loss that is not there" 2 "takes cross_entropy or mse" $train --loss hinge
refuses "a rate that is too high" 1 "the loss is not a number" train net.berth --input x=x.npy --labels squares.npy --loss mse --optimizer sgd --rate 1e30 --steps 50
refuses "a schedule that is not there" 2 "takes constant, cosine or linear" $train --schedule steps
refuses "too many rows held out" 2 "--hold-out is a percentage" $train --hold-out 100
refuses "an ONNX file of something else" 2 "the model is not an ONNX file" $train --save net.onnx
refuses "files that are not there" 1 "nothing.npy" train net.berth --input x=nothing.npy --labels labels.npy
refuses "a place for checkpoints that is not there" 1 "cannot write nowhere/c.state: No such file" $train --checkpoint nowhere/c.state
refuses "a folder in the place of a file" 1 "cannot write .: Is a directory" $train --save .
check "before the first step" sh -c '! grep -q step out'
refuses "a file without a name" 2 "is empty" $train --save ''
refuses "one file for two things" 2 "w.safetensors is given twice" $train --save w.safetensors --checkpoint w.safetensors
refuses "a place that is not there" 1 "nowhere/w.safetensors" $train --steps 1 --save nowhere/w.safetensors
tap_done
