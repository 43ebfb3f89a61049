#!/usr/bin/env bash
# berth train: a net learns, goes on from a checkpoint as if nothing had been, and its weights are a model's.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
. "$BERTH_SRC/tests/support/tool.sh"

below() { /usr/bin/env python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]))' "$1" "$2"; }

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
save("few.npy", "<i8", (3,), [0, 1, 1], "q")
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
train="train net.berth --input x=x.npy --labels labels.npy --rate 0.02 --batch 50"

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

head -c 100 half.state >cut.state
refuses "half a checkpoint" 1 "is no checkpoint of this training" $train --steps 60 --checkpoint cut.state
refuses "one of another order" 1 "was made with --seed 1" $train --steps 60 --checkpoint half.state --seed 2
refuses "no labels" 2 "--labels is missing" train net.berth --input x=x.npy
refuses "too few labels" 1 "has 3 rows" train net.berth --input x=x.npy --labels few.npy
refuses "no inputs" 2 "the model has 1 inputs" train net.berth --labels labels.npy
refuses "an input that is not there" 2 "no such input" train net.berth --input z=x.npy --labels labels.npy
refuses "numbers of another type" 1 "input 'x' is f32, but wide.npy holds i32" train net.berth --input x=wide.npy --labels labels.npy
refuses "rows of another shape" 1 "long.npy has rows of another shape than input 'x'" train net.berth --input x=long.npy --labels labels.npy
refuses "a class that is none" 1 "label 2 in row 199 of third.npy is no class: 'y' has 2" train net.berth --input x=x.npy --labels third.npy
refuses "several classes a row" 1 "squares.npy has 400 labels in 200 rows" train net.berth --input x=x.npy --labels squares.npy
refuses "labels of another type" 1 "labels.npy holds i64" train net.berth --input x=x.npy --labels labels.npy --loss mse
refuses "an unknown kind of product" 2 "--compute takes" $train --compute f8
refuses "a loss that is not there" 2 "none of cross_entropy and mse" $train --loss hinge
refuses "a rate that is too high" 1 "the loss is no number" train net.berth --input x=x.npy --labels squares.npy --loss mse --optimizer sgd --rate 1e30 --steps 50
refuses "a place that is not there" 1 "nowhere/w.safetensors" $train --steps 1 --save nowhere/w.safetensors
tap_done
