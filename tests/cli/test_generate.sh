#!/usr/bin/env bash
# berth generate and berth embed: what they print, what they refuse, and how they stop.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
. "$BERTH_SRC/tests/support/tool.sh"
tale=$BERTH_SRC/examples/tale/tale.gguf
export BERTH_SHADERC=${BERTH_SHADERC-$BERTH_BUILD/libberth_shaderc.so}

is() { # what, got, want
  check "$1" test "$2" = "$3"
}

# ---- Text ----
exits "a tale" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0
cp out tale.txt
check "it is told by heart" grep -qF ' there was a small boat.' tale.txt
check "what it took goes to stderr" grep -q 'tokens read in' err
exits "the same with --json" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --json
is "the text" "$(field text)" "$(cat tale.txt)"
is "stopped by the count" "$(field stopped_by)" count
is "as many tokens as asked for" "$(field tokens | tr ',' '\n' | wc -l)" 40
check "the arena has a size" test "$(field arena_size)" -gt 10000
check "times are there" sh -c 'grep -q "\"prompt_ms\"" out && grep -q "\"decode_ms_per_token\"" out'
field tokens >tokens.txt
for device in interp $("$BERTH_BIN" devices | sed '/ - not available: /d; s/ .*//' | grep -x vulkan); do
  exits "on $device" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --json --device "$device"
  check "$device gives the same tokens" test "$(field tokens)" = "$(cat tokens.txt)"
done
exits "one step by run" 0 run "$tale"
check "it points to generate" grep -qF "berth generate $tale -p TEXT" err
exits "one step over a longer cache" 0 run "$tale" --dim rows=4 --dim ctx=6
exits "one step is measured" 0 bench "$tale" --dim rows=4 --dim ctx=6
printf 'Once upon a time' >prompt.txt
exits "a prompt from a file" 0 generate "$tale" -f prompt.txt -n 40 --temp 0
check "gives the same" diff out tale.txt
exits "a prompt in chunks" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --chunk 3 --threads 1
check "gives the same in chunks" diff out tale.txt

exits "a cache of q8_0" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --kv q8_0
check "gives the same with it" diff out tale.txt
exits "its plan" 0 plan "$tale" --kv q8_0 --ctx 64 --json
q8=$(field state_size)
exits "that of f32" 0 plan "$tale" --kv f32 --ctx 64 --json
check "34 bytes instead of 128" test $((q8 * 128)) = $(($(field state_size) * 34))
exits "--fit takes q8_0 where others do not fit" 0 plan "$tale" --fit $(($(field arena_size) - $(field state_size) / 2 - 600)) --ctx 64 --json
check "it is q8_0" grep -q '"kv": *"q8_0"' out
exits "a cache of f32" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --kv f32
check "gives the same with that" diff out tale.txt

# ---- Choosing and stopping ----
exits "seed 1" 0 generate "$tale" -p 'The' -n 20 --temp 3 --top-k 0 --top-p 1 --min-p 0 --seed 1 --json
field tokens >one
exits "seed 1 again" 0 generate "$tale" -p 'The' -n 20 --temp 3 --top-k 0 --top-p 1 --min-p 0 --seed 1 --json
check "a seed gives the same again" test "$(field tokens)" = "$(cat one)"
exits "seed 2" 0 generate "$tale" -p 'The' -n 20 --temp 3 --top-k 0 --top-p 1 --min-p 0 --seed 2 --json
check "another seed gives something else" test "$(field tokens)" != "$(cat one)"
exits "--stop" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --stop 'no such' --stop ' small boat' --json
is "the text ends before it" "$(field text)" " there was a"
is "stopped by it" "$(field stopped_by)" stop
exits "--stop while it streams" 0 generate "$tale" -p 'Once upon a time' -n 40 --temp 0 --stop ' small boat'
is "nothing of it is shown" "$(cat out)" " there was a"
exits "a full context" 0 generate "$tale" -p 'Once upon a time' -n 100 --temp 0 --ctx 24 --json
is "is where it ends" "$(field stopped_by)" context
exits "a sliding one" 0 generate "$tale" -p 'Once upon a time' -n 60 --temp 0 --ctx 24 --slide --json
is "goes on" "$(field tokens | tr ',' '\n' | wc -l)" "$([ "$(field stopped_by)" = end ] && field tokens | tr ',' '\n' | wc -l || echo 60)"
refuses "a prompt that does not fit" 1 "the context is full" generate "$tale" -p 'Once upon a time there was' --ctx 4
refuses "and what would help is said" 1 "--slide" generate "$tale" -p 'Once upon a time there was' --ctx 4
refuses "one that does not slide, too" 1 "the context is full" generate "$tale" -p 'Once upon a time there was' --ctx 4 --slide
check "and is not told to" sh -c '! grep -q -- --slide err'
refuses "an empty stop text" 2 "--stop takes a text" generate "$tale" -p 'Once' --stop ''
exits "a full context, streamed" 0 generate "$tale" -p 'Once upon a time' -n 100 --temp 0 --ctx 24
check "says what would help" grep -q -- '--slide' err

# ---- Perplexity ----
# What the tale knows by heart costs next to nothing; the same words in another order cost more.
for i in 1 2 3 4 5 6; do cat prompt.txt tale.txt; done >heart.txt
tr ' ' '\n' <heart.txt | sort | tr '\n' ' ' >sorted.txt
exits "perplexity" 0 generate "$tale" --perplexity heart.txt --ctx 40
check "is a line" grep -qE '^perplexity: [0-9.]+ \([0-9]+ tokens scored in [0-9]+ windows of 40\)$' out
exits "perplexity as JSON" 0 generate "$tale" --perplexity heart.txt --ctx 40 --json
is "half of each window is scored, but for the last token" "$(field scored)" "$(($(field windows) * 19))"
heart=$(field perplexity)
exits "one token at a time" 0 generate "$tale" --perplexity heart.txt --ctx 40 --chunk 1 --json
check "gives the same" /usr/bin/env python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a / b - 1) < 1e-4' \
  "$heart" "$(field perplexity)"
exits "of a text that it does not know" 0 generate "$tale" --perplexity sorted.txt --ctx 40 --json
check "it is larger" /usr/bin/env python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert a > 2 * b' \
  "$(field perplexity)" "$heart"
refuses "perplexity of a short text" 2 "give a longer text" generate "$tale" --perplexity prompt.txt
refuses "perplexity and a prompt" 2 "there is nothing to continue" generate "$tale" --perplexity heart.txt -p a

# ---- What is refused ----
refuses "no model" 2 "needs MODEL" generate
refuses "a model that is not there" 1 "nowhere.gguf" generate nowhere.gguf
refuses "-p and -f" 2 "use one of them" generate "$tale" -p a -f prompt.txt
refuses "a cache that is none" 3 "a cache may be f32, f16, bf16 or q8_0, not q4_0" generate "$tale" --kv q4_0
refuses "a type that is none" 2 "--kv takes a type" generate "$tale" --kv f31
refuses "a temperature that is none" 2 "--temp takes a number, not 'warm'" generate "$tale" --temp warm
refuses "a temperature below 0" 2 "--temp takes a number of at least 0" generate "$tale" --temp=-1
refuses "--top-p over 1" 2 "--top-p takes a number over 0 and at most 1" generate "$tale" --top-p 2
refuses "--min-p below 0" 2 "--min-p takes a number from 0 to 1" generate "$tale" --min-p=-1
refuses "--repeat-penalty of 0" 2 "--repeat-penalty takes a number over 0" generate "$tale" --repeat-penalty 0
for option in "-n 5" "--temp 0" "--seed 3" "--top-k 1"; do
  refuses "perplexity with $option" 2 "--perplexity generates no text" generate "$tale" --perplexity heart.txt $option
done
refuses "--chat with --json" 2 "cannot be combined" generate "$tale" --chat --json
refuses "a device that is not there" 3 "abacus" generate "$tale" --device abacus
refuses "no text to embed" 2 "needs a text" embed "$tale"
refuses "embed with a model that generates" 3 "computes no embeddings" embed "$tale" -p a
exits "help" 0 help generate
check "help names Ctrl-C" grep -q 'Ctrl-C' out

# ---- A vector for each position ----
cat >gpt2.py <<'PY'
import struct
def text(s): return struct.pack("<Q", len(s)) + s.encode()
whole = {"context_length": 16, "block_count": 1, "embedding_length": 8, "feed_forward_length": 8,
         "attention.head_count": 1}
keys = text("general.architecture") + struct.pack("<I", 8) + text("gpt2")
keys += b"".join(text("gpt2." + k) + struct.pack("<II", 4, v) for k, v in whole.items())
keys += text("gpt2.attention.layer_norm_epsilon") + struct.pack("<If", 6, 1e-5)
tensors = {"token_embd.weight": (8, 4), "position_embd.weight": (8, 16), "output_norm.weight": (8,),
           "output_norm.bias": (8,), "blk.0.attn_qkv.weight": (8, 24), "blk.0.attn_output.weight": (8, 8),
           "blk.0.ffn_up.weight": (8, 8), "blk.0.ffn_down.weight": (8, 8)}
for norm in ("attn_norm", "ffn_norm"):
    tensors["blk.0.%s.weight" % norm] = tensors["blk.0.%s.bias" % norm] = (8,)
head, data = b"", b""
for name, dims in tensors.items():
    head += text(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, 0, len(data))
    count = 1
    for d in dims: count *= d
    data += bytes(4 * count)
begin = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(whole) + 2) + keys + head
open("gpt2.gguf", "wb").write(begin + bytes(-len(begin) % 32) + data)
PY
/usr/bin/env python3 gpt2.py
exits "plan as many tokens as there are positions" 0 plan gpt2.gguf --ctx 16
refuses "plan more" 1 "vectors for 16 positions, and a context of 17 tokens has more" plan gpt2.gguf --ctx 17
refuses "fit more" 1 "vectors for 16 positions" plan gpt2.gguf --ctx 17 --fit 1G
exits "fit all" 0 plan gpt2.gguf --fit 1G --json
is "is what the model was made with" "$(field ctx)" 16

# ---- Models that are not as they should be ----
# The tale with another template, or one string of bytes changed to one that is as long.
cat >change.py <<'PY'
import struct, sys
what, source, target = sys.argv[1:4]
data = open(source, "rb").read()
if what == "template":  # 64 bytes longer: the tensors stay aligned
    old = b"{% for message in messages %}{{ message['content'] }} {% endfor %}"
    new = sys.argv[4].encode()[:-2].ljust(len(old) + 62) + b"}}"  # filled up inside of the last expression
    assert len(new) == len(old) + 64
    old, new = (struct.pack("<Q", len(x)) + x for x in (old, new))
elif what == "pre":  # a key more and a shorter one: 64 bytes more
    model = struct.pack("<I", 8) + struct.pack("<Q", 5) + b"llama"
    old = b"tokenizer.ggml.model" + model
    name, value = b"tokenizer.ggml.pre", sys.argv[4].encode()
    new = b"tokenizer.ggml.model" + struct.pack("<IQ", 8, 4) + b"gpt2" + struct.pack("<Q", len(name)) + name
    new += struct.pack("<IQ", 8, len(value)) + value
    assert len(new) == len(old) + 64
    data = data[:16] + struct.pack("<Q", struct.unpack("<Q", data[16:24])[0] + 1) + data[24:]
else:
    old, new = (x.encode().decode("unicode_escape").encode("latin-1") for x in sys.argv[4:6])
    assert len(old) == len(new)
assert data.count(old) == 1, data.count(old)
open(target, "wb").write(data.replace(old, new))
PY
changed() { /usr/bin/env python3 change.py "$@"; }
key='llama.context_length'
changed bytes "$tale" zero.gguf "$key\\x04\\0\\0\\0\\0\\x01\\0\\0" "$key\\x04\\0\\0\\0\\0\\0\\0\\0"
changed bytes "$tale" below.gguf "$key\\x04\\0\\0\\0\\0\\x01\\0\\0" "$key\\x05\\0\\0\\0\\xfb\\xff\\xff\\xff"
for verb in plan generate; do
  refuses "$verb: a context of 0 tokens" 1 "context_length' is 0, and must be above 0" "$verb" zero.gguf
  refuses "$verb: a context of -5 tokens" 1 "which must not be negative" "$verb" below.gguf
done
changed pre "$tale" pre.gguf no-such-pretokenizer-at-all
exits "inspect: a pre-tokenizer that is not known" 0 inspect pre.gguf
check "it is what would not run" grep -q 'runs     no: the pre-tokenizer "no-such-pretokenizer-at-all" is not known' out
changed bytes "$tale" nul.gguf '\xe2\x96\x81was' '\xe2\x96\x81w\0s'
exits "a token with a zero in it" 0 generate nul.gguf -p 'Once upon a time' -n 40 --temp 0 --json
check "is in the text, with what comes after it" grep -q 'there w\\u0000s a small boat' out
exits "a stop text after it" 0 generate nul.gguf -p 'Once upon a time' -n 40 --temp 0 --json --stop ' small'
is "is found" "$(field stopped_by)" stop

# ---- A chat ----
sed 's/tokenizer.chat_template/tokenizer.chat_templatx/' "$tale" >plain.gguf
refuses "a chat without a template, before anything is asked" 3 "no chat template" generate plain.gguf --chat </dev/null
is "what to do without a template" "$("$BERTH_BIN" generate plain.gguf --chat 2>&1 </dev/null | tail -n 1)" \
  "hint: -p TEXT without --chat continues a text"
refuses "a chat that slides in one token" 1 "a context that slides needs room for 2 tokens" \
  generate "$tale" --chat --slide --ctx 1 </dev/null
check "a chat that slides in two" sh -c 'printf "Once upon a time\n" | "$0" generate "$1" --chat --slide --ctx 2 -n 3' \
  "$BERTH_BIN" "$tale"
# The second message fills the context, so that its answer is empty: it must not be the first one again.
changed template "$tale" again.gguf \
  "{% if messages|length == 5 and messages[3].content %}{{ raise_exception('again') }}{% endif %}{{ messages[-1].content }}"
full='Once upon a time there was a small boat by the harbour'
run generate "$tale" -p "$full" -n 1 --json
printf 'Once\n%s\nThe\n' "$full" | "$BERTH_BIN" generate again.gguf --chat -n 3 --temp 0 --ctx "$(field prompt_tokens)" >out 2>err
is "an empty answer is recorded as empty" "$?" 0
is "three messages, three answers" "$(wc -l <out)" 3
is "the second is empty" "$(sed -n 2p out)" ""
printf 'Once upon a time\n\nThe harbour\n' | "$BERTH_BIN" generate "$tale" --chat -n 6 --temp 0 >out 2>err
is "a chat: exit code" "$?" 0
is "an answer for each message" "$(wc -l <out)" 2

# ---- Ctrl-C ----
interrupted() { # a slow device takes its time, but a fast machine may be done before the signal
  local pid code
  for _ in 1 2 3 4 5; do
    : >out
    "$BERTH_BIN" generate "$tale" -p 'Once upon a time' --temp 0 --device interp >out 2>err &
    pid=$!
    while [ ! -s out ] && kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
    kill -INT "$pid" 2>/dev/null
    wait "$pid"
    code=$?
    [ "$code" = 130 ] && return 0
  done
  return 1
}
check "Ctrl-C stops it with what there was" interrupted
check "Ctrl-C: what there was is summed up" grep -q 'generated at' err
interrupted_early() { # while a long prompt is read; not before, when there is nothing to show
  local pid code
  for pause in 0.3 1 2 4 8 16 32; do
    : >out
    "$BERTH_BIN" generate "$tale" -f long.txt --ctx 20000 --device interp --json >out 2>err &
    pid=$!
    sleep "$pause"
    # Again and again: a signal that comes before the program waits for it is lost.
    while kill -INT "$pid" 2>/dev/null; do sleep 0.2; done
    wait "$pid"
    code=$?
    [ "$code" = 130 ] && [ -s out ] && return 0
  done
  return 1
}
for _ in $(seq 400); do printf 'Once upon a time there was a small boat. '; done >long.txt
check "Ctrl-C while the prompt is read" interrupted_early
is "says so" "$(field stopped_by)" interrupt
is "there are no tokens yet" "$(field tokens)" "[]"
tap_done
