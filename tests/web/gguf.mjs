/**
 * Language models in the package: their memory by the header alone, and their text, compared with the native program.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { generateNative, hasNative, planTextNative } from './native.mjs';
import { check, expect, expectEqual, skip } from './tap.mjs';

const tale = join(process.env.BERTH_SRC, 'examples/tale/tale.gguf');
const PROMPT = 'Once upon a time';
const greedy = { temperature: 0 };

/** `count` tokens, and their text. */
async function write(generator, count) {
  const tokens = [];
  let text = '';
  for await (const piece of generator.generate(count)) {
    tokens.push(piece.token);
    text += piece.text;
  }
  return { tokens, text };
}

async function checkWords(berth) {
  const model = await berth.gguf(tale);
  await check('a GGUF file says what it is', () => {
    const { name, architecture, context, generates, hasTemplate, nTensors, nParameters } = model;
    expectEqual({ name, architecture, context, generates, hasTemplate, nTensors, nParameters },
      { name: 'tale', architecture: 'llama', context: 256, generates: true, hasTemplate: true, nTensors: 20, nParameters: 98560 },
      'the model');
    expect(model.kv[0] === 'f32' && model.kv.includes('f16') && model.kv.includes('q8_0'), `caches: ${model.kv}`);
    expectEqual(model.defaultKv, 'f16', 'the cache that is taken');
    expectEqual(model.types, { q8_0: 104380, f32: 1280 }, 'types');
  });
  await check(`with ${berth.threads} threads it says what the native program says, and allocates nothing`, async () => {
    const native = generateNative(tale, PROMPT, 60);
    const seen = [];
    const generator = await model.generator({ sampling: greedy });
    await generator.feed(PROMPT, { onProgress: ({ stage, done, total }) => seen.push(`${stage} ${done} ${total}`) });
    const first = generator.info.nTokens;
    expectEqual(first, native.prompt_tokens, 'tokens of the prompt');
    expectEqual(seen.at(-1), `reading the text ${first} ${first}`, 'progress');
    const { tokens, text } = await write(generator, 60);
    expectEqual([tokens, text], [native.tokens, native.text], 'what it says');
    expectEqual(generator.tokens.slice(first), tokens, 'the conversation');
    expectEqual(generator.counters.allocations, 0, 'allocations');
    generator.close();
  });
  model.close();
}

const number = (name, type, bytes) => Buffer.concat([text(name), Buffer.from(Uint32Array.of(type).buffer), bytes]);

/**
 * Splits a GGUF file like llama.cpp: all keys in the first part, and `count` tensors in each. Returns the parts' paths.
 */
export async function writeParts(folder, file, name, count) {
  const { readHeader } = await import(`${process.env.BERTH_WEB}/package/parts.js`);
  const whole = readFileSync(file), header = await readHeader(new Blob([whole]));
  const ends = header.tensors.map(({ offset }, i) => header.tensors[i + 1]?.offset ?? whole.length - header.data);
  const each = Math.ceil(header.tensors.length / count);
  return Array.from({ length: count }, (_, part) => {
    const [first, end] = [part * each, Math.min((part + 1) * each, header.tensors.length)];
    const own = [number('split.no', 2, Buffer.from(Uint16Array.of(part).buffer)),
      number('split.count', 2, Buffer.from(Uint16Array.of(count).buffer)),
      number('split.tensors.count', 5, Buffer.from(Int32Array.of(header.tensors.length).buffer))];
    const keys = [...(part === 0 ? header.kept : []), ...own];
    const base = header.tensors[first].offset;
    const tensors = header.tensors.slice(first, end).flatMap(({ head, offset }) => [head, long(offset - base)]);
    const head = Buffer.concat([Buffer.from('GGUF'), Buffer.from(Uint32Array.of(header.version).buffer), long(end - first),
      long(keys.length), ...keys, ...tensors]);
    const data = whole.subarray(header.data + base, header.data + ends[end - 1]);
    const path = join(folder, `${name}-${String(part + 1).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`);
    writeFileSync(path, Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32), data]));
    return path;
  });
}

async function checkParts(berth, work) {
  const paths = await writeParts(work, tale, 'tale', 3), [first, second, third] = paths;
  await check('a model in three files is planned and writes as the whole does, whatever their order', async () => {
    const native = generateNative(first, PROMPT, 20);
    const model = await berth.gguf(third, { parts: [first, new Uint8Array(readFileSync(second))] });
    const whole = await berth.gguf(tale);
    expectEqual(await model.plan({ ctx: 64 }), await whole.plan({ ctx: 64 }), 'the plan');
    const generator = await model.generator({ sampling: greedy });
    await generator.feed(PROMPT);
    expectEqual((await write(generator, 20)).text, native.text, 'what it says');
    for (const thing of [generator, model, whole]) thing.close();
  });
  const bad = [
    ['a part that is missing', [first, [third]], /split over 3 files, and of these 2 is missing/],
    ['a part that is there twice', [first, [second, second]], /part 2 of 3 was given twice/],
    ['a whole model with another', [tale, [first]], /is a whole model/],
    ['a part that is cut off', [first, [second, readFileSync(third).subarray(0, 100)]], /ends early: the file is cut off/],
    ['a part that is something else', [first, [second, Buffer.from('hello, this is no model')]], /is not a GGUF file/],
    ['a part without its file', [first, [second, join(work, 'nowhere.gguf')]], /cannot read .*nowhere/],
    ['one part alone', [first, []], /is split over 3 files/],
  ];
  for (const [what, [source, parts], words] of bad) {
    await check(`${what} is an error that says so`, async () => {
      const error = await berth.gguf(source, { parts }).then(() => null, (e) => e);
      expect(error?.name === 'BerthError' && words.test(error.message), `${error?.name}: ${error?.message}`);
    });
  }
}

async function checkNativeGpu() {
  const name = 'the native program says the same through WebGPU';
  if (!hasNative('webgpu')) {
    skip(name, 'there is no device webgpu here');
    return;
  }
  await check(name, () => {
    const [cpu, gpu] = ['cpu', 'webgpu'].map((device) => generateNative(tale, PROMPT, 20, ['--device', device]).tokens);
    expectEqual(gpu, cpu, 'tokens');
  });
}

async function checkConversations(berth, expectError) {
  const model = await berth.gguf(new Blob([readFileSync(tale)]));
  const generator = await model.generator({ ctx: 96, sampling: greedy });
  await check('a conversation is marked, saved, forked and taken up again', async () => {
    await generator.feed(PROMPT);
    await generator.mark();
    const { tokens } = await write(generator, 10);
    const saved = await generator.save();
    const expected = (await write(generator, 5)).tokens;
    await generator.rewind();
    expectEqual((await write(generator, 10)).tokens, tokens, 'after going back');
    const fork = await generator.fork();
    expectEqual([(await write(fork, 5)).tokens, (await write(generator, 5)).tokens], [expected, expected], 'forked');
    fork.close();
    const other = await model.generator({ ctx: 64, sampling: greedy });
    await other.load(saved);
    expectEqual((await write(other, 5)).tokens, expected, 'after a restart');
    await other.reset();
    await other.feedTokens(generator.tokens.slice(0, -15));
    expectEqual((await write(other, 10)).tokens, tokens, 'by tokens');
    await expectError(other.load(new Uint8Array(100)), 'MALFORMED', 'are not a saved conversation');
    await expectError(other.feed('a long tale '.repeat(20)), 'INFEASIBLE', 'the context is full');
    other.close();
  });
  await check('a seed gives the same words again, and another one others', async () => {
    const say = async (seed) => {
      await generator.reset();
      await generator.sample({ temperature: 3, topK: 0, topP: 1, minP: 0, seed });
      await generator.feed('The');
      return (await write(generator, 20)).text;
    };
    const [a, b, c] = [await say(1), await say(1), await say(2n)];
    expect(a === b && a !== c, `"${a}", "${b}", "${c}"`);
  });
  await check('a chat goes by the template, and the best token has the best logit', async () => {
    await generator.sample(greedy);
    await generator.chat([{ role: 'user', content: PROMPT }]);
    const before = generator.info.nTokens;
    const logits = await generator.logits();
    expectEqual((await generator.next()).token, logits.indexOf(Math.max(...logits)), 'token');
    await generator.chat([{ role: 'user', content: PROMPT }, { role: 'assistant', content: ' there' }, { role: 'user', content: 'Go on.' }]);
    expect(generator.info.nTokens > before, 'the messages are added');
  });
  generator.close();
  await expectError(generator.next(), 'INVALID', 'the generator is closed');
  model.close();
}

async function checkPlans(berth) {
  const model = await berth.gguf(readFileSync(tale));
  await check('a plan of it is what `berth plan --ctx` says', async () => {
    for (const options of [{ ctx: 100, chunk: 16 }, { ctx: 31, chunk: 7, kv: 'f32' }, { ctx: 64, kv: 'q8_0' }, {}]) {
      const got = await model.plan(options), native = planTextNative(tale, options, berth.threads);
      for (const key of ['weights_size', 'state_size', 'activations_size', 'ctx', 'chunk', 'kv', 'n_steps'])
        expectEqual(got[key], native[key], key);
      expect(got.arena_size <= native.arena_size && got.arena_size > 0.99 * native.arena_size, // tables of pointers
        `${got.arena_size} bytes, and ${native.arena_size} natively`);
      const generator = await model.generator(options);
      expectEqual(generator.info.arenaSize, got.arena_size, 'what a generator takes');
      generator.close();
    }
  });
  await check('the longest context that fits takes no more, and a token more would', async () => {
    const whole = await model.plan();
    expectEqual((await model.fit(whole.arena_size)).ctx, 256, 'all of it');
    const bytes = whole.arena_size - 20000;
    const { ctx, arena_size: size } = await model.fit(bytes);
    expect(ctx > 100 && ctx < 256 && size <= bytes, `${ctx} tokens in ${size} bytes`);
    expect((await model.plan({ ctx: ctx + 1 })).arena_size > bytes, 'a token more fits');
    expectEqual(await model.fit(50000), null, 'too little');
  });
  await check('its graph is drawn like every plan', async () => {
    const graph = await model.model({ kv: 'f16' });
    const { report, svg } = await graph.plan({ dims: { rows: 64, ctx: 256 }, keepInputs: true });
    expectEqual(report.arena_size, (await model.plan({ kv: 'f16' })).arena_size, 'the arena');
    expect(svg().startsWith('<svg'), 'a picture');
    graph.close();
  });
  model.close();
}

const word = (n) => Buffer.from(new Uint32Array([n]).buffer);
const long = (n) => Buffer.from(new BigUint64Array([BigInt(n)]).buffer);
const text = (s) => Buffer.concat([long(s.length), Buffer.from(s)]);
const whole = (name, n) => Buffer.concat([text(name), word(4), word(n)]);
const real = (name, n) => Buffer.concat([text(name), word(6), Buffer.from(new Float32Array([n]).buffer)]);

/** A Llama of 7 billion parameters as f16, nominally 13 GB: a header, and a hole. */
export function writeLarge(path) {
  const [width, hidden, vocabulary, layers, F32, F16] = [4096, 11008, 32000, 32, 0, 1];
  const matrices = { attn_q: [width, width], attn_k: [width, width], attn_v: [width, width], attn_output: [width, width],
    ffn_gate: [width, hidden], ffn_up: [width, hidden], ffn_down: [hidden, width] };
  const list = [['token_embd', [width, vocabulary]], ['output', [width, vocabulary]], ['output_norm', [width]]];
  for (let i = 0; i < layers; i++) {
    for (const [name, dims] of Object.entries(matrices)) list.push([`blk.${i}.${name}`, dims]);
    for (const name of ['attn_norm', 'ffn_norm']) list.push([`blk.${i}.${name}`, [width]]);
  }
  let at = 0;
  const tensors = list.map(([name, dims]) => {
    const begin = at, type = dims.length === 1 ? F32 : F16;
    at += Math.ceil(dims.reduce((a, b) => a * b, 1) * (type === F32 ? 4 : 2) / 32) * 32;
    return Buffer.concat([text(`${name}.weight`), word(dims.length), ...dims.map(long), word(type), long(begin)]);
  });
  const keys = [Buffer.concat([text('general.architecture'), word(8), text('llama')]), whole('llama.context_length', 4096),
    whole('llama.embedding_length', width), whole('llama.block_count', layers), whole('llama.feed_forward_length', hidden),
    whole('llama.attention.head_count', 32), whole('llama.vocab_size', vocabulary),
    real('llama.attention.layer_norm_rms_epsilon', 1e-5)];
  const header = Buffer.concat([Buffer.from('GGUF'), word(3), long(tensors.length), long(keys.length), ...keys, ...tensors]);
  const size = Math.ceil(header.length / 32) * 32 + at, file = openSync(path, 'w');
  writeSync(file, header);
  ftruncateSync(file, size);
  closeSync(file);
  return size;
}

async function checkLarge(berth, folder, expectError) {
  const file = join(folder, 'large.gguf'), size = writeLarge(file);
  await check('a file of 13 GB is planned to the byte by its header', async () => {
    let read = 0;
    const before = berth.memory().used;
    const model = await berth.gguf(file, { onProgress: ({ done, total }) => {
      read = done;
      expectEqual(total, size, 'its size');
    } });
    expect(size > 13e9 && read <= 2 ** 20 && berth.memory().used - before < 2 ** 23, `${read} bytes of it were read`);
    const got = await model.plan({ ctx: 4096 }), native = planTextNative(file, { ctx: 4096 }, berth.threads);
    for (const key of ['weights_size', 'state_size', 'activations_size']) expectEqual(got[key], native[key], key);
    expect(got.arena_size > 15e9, `${got.arena_size} bytes`);
    expectEqual((await model.fit(16e9)).ctx, planTextNative(file, { fit: 16e9, kv: 'f16', chunk: 64 }, berth.threads).ctx, 'what fits');
    await expectError(model.generator({ ctx: 16 }), 'NOMEM', 'WebAssembly has at most 4 GiB');
    model.close();
  });
}

async function checkRefusals(berth, expectError) {
  const bytes = readFileSync(tale), model = await berth.gguf(bytes);
  await check('what is wrong with a GGUF file, or asked of it, is said', async () => {
    await expectError(berth.gguf(bytes.subarray(0, 5000)), 'MALFORMED', 'cut off');
    await expectError(berth.gguf(new Uint8Array(0)), 'UNSUPPORTED', 'not in a format that berth reads');
    await expectError(berth.gguf(new TextEncoder().encode('graph "x" { input %x : f32[2]\n output "y" = %x }')), 'UNSUPPORTED', 'not a GGUF file');
    await expectError(model.plan({ kv: 'f31' }), 'UNSUPPORTED', "'f31'");
    await expectError(model.plan({ ctx: 0 }), 'INVALID', 'ctx');
    await expectError(model.plan({ context: 5 }), 'INVALID', "no option 'context'");
    const { used } = berth.memory();
    await expectError(model.generator({ sampling: { temperature: -1 } }), 'INVALID', 'temperature');
    await expectError(model.generator({ sampling: { temprature: 1 } }), 'INVALID', "'temprature'");
    await expectError(model.generator({ sampling: { topP: 2 } }), 'INVALID', 'top');
    const more = berth.memory().used - used;
    expect(more < 2 ** 16, `${more} bytes stay behind`);
    await expectError(model.generator({ device: 'webgpu' }), 'UNSUPPORTED', 'navigator.gpu');
  });
  await check('what is closed gives its memory back', async () => {
    const use = async () => {
      const other = await berth.gguf(bytes);
      const generator = await other.generator({ ctx: 64 });
      await generator.feed(PROMPT);
      generator.close();
      other.close();
      await berth.devices(); // runs after the closing
      return berth.memory().used;
    };
    expectEqual(await use(), await use(), 'bytes in use');
  });
  model.close();
}

export async function checkGguf([one, two], { folder, expectError }) {
  for (const berth of [one, two]) await checkWords(berth);
  await checkParts(two, folder);
  await checkNativeGpu();
  await checkConversations(two, expectError);
  await checkPlans(one);
  await checkLarge(one, folder, expectError);
  await checkRefusals(one, expectError);
}
