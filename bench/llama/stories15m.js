'use strict';
// stories15M, a llama of 15 million weights in f32, from the file of llama2.c (header, weights, then the tokenizer) as
// GGUF: node stories15m.js llama2.data stories15M.gguf
const fs = require('fs');

const WEIGHTS_END = 60816028; // beginning of the tokenizer
const ALIGNMENT = 32;

const u32 = (x) => { const b = Buffer.alloc(4); b.writeUInt32LE(x); return b; };
const u64 = (x) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(x)); return b; };
const f32 = (x) => { const b = Buffer.alloc(4); b.writeFloatLE(x); return b; };
const string = (x) => { const b = Buffer.from(x); return Buffer.concat([u64(b.length), b]); };

const TYPE = {u32: 4, i32: 5, f32: 6, string: 8, array: 9};
const key = (name, type, bytes) => Buffer.concat([string(name), u32(type), bytes]);
const array = (name, type, items) => key(name, TYPE.array, Buffer.concat([u32(type), u64(items.length), ...items]));

function readHeader(data) {
  const names = ['width', 'hidden', 'layers', 'heads', 'kvHeads', 'vocabulary', 'context'];
  const header = Object.fromEntries(names.map((name, i) => [name, data.readInt32LE(4 * i)]));
  return {...header, vocabulary: Math.abs(header.vocabulary)};
}

// The tensors in file order; those of all layers are contiguous.
function readTensors(data, h) {
  let at = 28;
  const take = (...shape) => {
    const bytes = data.subarray(at, at += 4 * shape.reduce((a, b) => a * b, 1));
    return {shape, bytes};
  };
  const kv = h.width / h.heads * h.kvHeads, tensors = {'token_embd.weight': take(h.vocabulary, h.width)};
  const layered = (name, ...shape) => {
    for (let i = 0; i < h.layers; i++) tensors[`blk.${i}.${name}.weight`] = take(...shape);
  };
  layered('attn_norm', h.width);
  layered('attn_q', h.width, h.width);
  layered('attn_k', kv, h.width);
  layered('attn_v', kv, h.width);
  layered('attn_output', h.width, h.width);
  layered('ffn_norm', h.width);
  layered('ffn_gate', h.hidden, h.width);
  layered('ffn_down', h.width, h.hidden);
  layered('ffn_up', h.hidden, h.width);
  tensors['output_norm.weight'] = take(h.width);
  return tensors;
}

function readTokens(data, count) {
  const tokens = [];
  for (let at = WEIGHTS_END + 4, i = 0; i < count; i++) {
    const size = data.readInt32LE(at + 4);
    tokens.push({score: data.readFloatLE(at), text: data.toString('utf8', at + 8, at + 8 + size)});
    at += 8 + size;
  }
  return tokens;
}

// Unknown, begin, end, 256 bytes, then pieces in which a space is written as a lower block.
function nameToken({text}, i) {
  if (i < 3) return {text: ['<unk>', '<s>', '</s>'][i], type: i === 0 ? 2 : 3};
  if (i < 259) return {text: `<0x${(i - 3).toString(16).toUpperCase().padStart(2, '0')}>`, type: 6};
  return {text: text.replaceAll(' ', '\u2581'), type: 1};
}

function keysOf(h, tokens) {
  const named = tokens.map(nameToken), number = (name, x) => key(name, TYPE.u32, u32(x));
  return [
    key('general.architecture', TYPE.string, string('llama')),
    number('llama.context_length', h.context),
    number('llama.embedding_length', h.width),
    number('llama.feed_forward_length', h.hidden),
    number('llama.attention.head_count', h.heads),
    number('llama.attention.head_count_kv', h.kvHeads),
    number('llama.block_count', h.layers),
    number('llama.rope.dimension_count', h.width / h.heads),
    key('llama.attention.layer_norm_rms_epsilon', TYPE.f32, f32(1e-5)),
    key('llama.rope.freq_base', TYPE.f32, f32(10000)),
    key('tokenizer.ggml.model', TYPE.string, string('llama')),
    array('tokenizer.ggml.tokens', TYPE.string, named.map((token) => string(token.text))),
    array('tokenizer.ggml.scores', TYPE.f32, tokens.map((token) => f32(token.score))),
    array('tokenizer.ggml.token_type', TYPE.i32, named.map((token) => u32(token.type))),
    number('tokenizer.ggml.bos_token_id', 1),
    number('tokenizer.ggml.eos_token_id', 2),
  ];
}

const padding = (size) => Buffer.alloc((ALIGNMENT - size % ALIGNMENT) % ALIGNMENT);

function convert(from, to) {
  const data = fs.readFileSync(from), h = readHeader(data), tensors = Object.entries(readTensors(data, h));
  const keys = keysOf(h, readTokens(data, h.vocabulary)), list = [], bytes = [];
  let offset = 0;
  for (const [name, tensor] of tensors) {
    list.push(string(name), u32(tensor.shape.length), ...[...tensor.shape].reverse().map(u64), u32(0), u64(offset));
    bytes.push(tensor.bytes, padding(tensor.bytes.length));
    offset += tensor.bytes.length + padding(tensor.bytes.length).length;
  }
  const head = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(keys.length), ...keys, ...list]);
  fs.writeFileSync(to, Buffer.concat([head, padding(head.length), ...bytes]));
}

convert(process.argv[2], process.argv[3]);
