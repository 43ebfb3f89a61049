/** Parts of the page that need no browser: animated plans, GIFs, prices, links, the layout of graphs. */
import { join } from 'node:path';
import { check, done, expect, expectEqual } from './tap.mjs';

const part = (path) => import(join(process.env.BERTH_SRC, 'web/page', path));
const { fleet, framesOf } = await part('app/play_frames.js');
const { Gif, Palette, lzw } = await part('app/gif.js');
const { priceOf, priceWords, smallestIn } = await part('app/price.js');
const { boards, budgetFor, needOf, verdictOf } = await part('app/boards.js');
const { makeLink, nameOf, parseLink, sizeOf } = await part('app/link.js');
const { badgeMarkdown, badgeSvg, cardSvg } = await part('app/card.js');
const { labelsFor, takeLabels } = await part('app/labels.js');
const { layoutGraph, spread } = await part('common/graph_layout.js');

const value = (name, offset, size, birth, death, more = {}) =>
  ({ name, kind: 'value', offset, size, birth, death, shares: '', ...more });

/** Weights of 100 bytes, one prelude step, three steps of a run; c overwrites a. */
const plan = {
  report: { weights_size: 100, state_size: 0, activations_size: 48, scratch_size: 0 },
  steps: [{ op: 'pack', name: 'p', once: true }, ...['conv', 'relu', 'add'].map((op) => ({ op, name: op, once: false }))],
  values: [
    value('w', 0, 100, 0, 4, { kind: 'param' }),
    value('packed#scale', 132, 16, 0, 1),
    value('a', 100, 32, 1, 3),
    value('b', 132, 16, 2, 4),
    value('b.view', 132, 8, 2, 4, { shares: 'b' }),
    value('c', 100, 32, 3, 4),
  ],
};

await check('a plan plays its run alone, with the bytes that are covered', () => {
  const { frames, span, grown, peak } = framesOf(plan);
  expectEqual(frames.map(({ step, op }) => [step, op]), [[1, 'conv'], [2, 'relu'], [3, 'add']], 'frames');
  expectEqual(frames.map(({ alive }) => alive.map(({ name }) => name)), [['a'], ['a', 'b', 'b.view'], ['b', 'b.view', 'c']], 'alive');
  expectEqual(frames.map(({ bytes }) => bytes), [32, 48, 48], 'bytes that are covered: a view adds none');
  expectEqual([span, peak, grown], [48, 48, 88], 'span, peak, and with bytes of their own');
});
await check('buffers come while their step begins, and leave after it', () => {
  const scene = framesOf(plan);
  const at = (time) => fleet(scene, time).map(({ buffer, in: come, out }) => [buffer.name, come, out]);
  expectEqual(at(0.5), [['a', 0.5, 0]], 'coming');
  expectEqual(at(1.25), [['a', 1, 0], ['b', 0.25, 0], ['b.view', 0.25, 0]], 'one stays, two come');
  expectEqual(at(2.75), [['a', 1, 0.75], ['b', 1, 0], ['b.view', 1, 0], ['c', 0.75, 0]], 'one leaves');
  expectEqual(fleet(framesOf({ ...plan, steps: [] }), 0), [], 'nothing runs');
});

/** A GIF decoder for codes: blocks of up to 255 bytes, codes of increasing width. */
function unpack(blocks, depth) {
  const bytes = [];
  let at = 0;
  while (blocks[at] !== 0) {
    bytes.push(...blocks.slice(at + 1, at + 1 + blocks[at]));
    at += 1 + blocks[at];
  }
  expectEqual(at, blocks.length - 1, 'the end');
  const clear = 1 << depth;
  let table = [], width = depth + 1, bit = 0, before = null;
  const out = [];
  for (;;) {
    let code = 0;
    for (let i = 0; i < width; i++, bit++) code |= ((bytes[bit >> 3] >> (bit & 7)) & 1) << i;
    if (code === clear) {
      table = Array.from({ length: clear + 2 }, (_, i) => [i]);
      width = depth + 1;
      before = null;
      continue;
    }
    if (code === clear + 1) return out;
    const entry = table[code] ?? [...before, before[0]];
    out.push(...entry);
    if (before && table.length < 4096) table.push([...before, entry[0]]);
    if (table.length === 1 << width && width < 12) width++;
    before = entry;
  }
}

await check('what LZW packs is unpacked to the same, however long', () => {
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647);
  for (const [depth, length] of [[2, 1], [2, 7], [3, 300], [8, 5000], [8, 60000]]) {
    const noise = Uint8Array.from({ length }, () => random() % (1 << depth));
    const flat = new Uint8Array(length).fill(1);
    for (const given of [noise, flat]) expectEqual(unpack(lzw(given, depth), depth), [...given], `${length} of ${depth} bits`);
  }
});
await check('a GIF has its frames, its palette, and an end', () => {
  const gif = new Gif(4, 2, [[255, 0, 0], [0, 0, 255], [0, 255, 0]]);
  gif.add(Uint8Array.from([0, 0, 1, 1, 2, 2, 0, 0]), 100);
  gif.add(Uint8Array.from([0, 0, 1, 1, 2, 2, 0, 1]), 200);
  const file = gif.end().flatMap((piece) => [...piece]);
  expectEqual(String.fromCharCode(...file.slice(0, 6)), 'GIF89a', 'signature');
  expectEqual([file[6], file[8], file.at(-1)], [4, 2, 0x3b], 'size and end');
  expectEqual(file.slice(13, 22), [255, 0, 0, 0, 0, 255, 0, 255, 0], 'palette');
  expectEqual(file.filter((byte, i) => byte === 0x21 && file[i + 1] === 0xf9).length, 2, 'frames');
});
await check('the colours of most pixels stand for all', () => {
  const picture = Uint8Array.from([...[250, 0, 0, 255], ...[250, 0, 0, 255], ...[0, 0, 250, 255], ...[240, 8, 0, 255]]);
  const palette = new Palette();
  palette.see(picture);
  palette.settle(2);
  expectEqual(palette.list, [[250, 0, 0], [0, 0, 250]], 'the colours');
  const [a, b, , d] = palette.indices(picture);
  expect(a === 0 && b === 0 && d === 0, 'a colour that has no place takes the nearest');
});
await check('the price of less memory is told in words', () => {
  const made = (arena, slices, flops, twice = 0) => ({
    report: { arena_size: arena, weights_size: 1000, state_size: 0, n_slices: slices, n_recomputed: twice },
    steps: [{ once: true, flops: 5e6 }, { once: false, flops }],
  });
  const full = made(2000, 0, 100);
  const words = (plan) => priceWords(priceOf(full, plan));
  expectEqual(words(made(1240, 12, 104)), '76 % less memory beside the weights, 12 slices, 4.0 % more work', 'in slices');
  expectEqual(words(made(1500, 0, 100)), '50 % less memory beside the weights, another order, no more work', 'in another order');
  expectEqual(words(made(1500, 0, 150, 1)), '50 % less memory beside the weights, 1 node runs twice, 50 % more work', 'twice');
  expect(words(full).startsWith('All that'), words(full));
  const said = 'the budget is 1024 bytes but the smallest plan found needs 14989056 (weights 13951360, activations 1)';
  expectEqual([smallestIn(said), smallestIn('another error')], [14989056, NaN], 'the smallest');
});
await check('boards say what they have room for: weights in flash, the rest in memory', () => {
  const board = { id: 'b', name: 'B', memory: 1000, flash: 500 };
  const report = (arena, weights, state = 0) => ({ arena_size: arena, weights_size: weights, state_size: state });
  expectEqual(needOf(board, report(900, 400)), { memory: 500, flash: 400 }, 'need');
  expectEqual(verdictOf(board, report(1400, 400)).state, 'fits', 'just');
  expectEqual(verdictOf(board, report(1500, 400)).state, 'tight', 'too much for it as it is');
  expectEqual(budgetFor(board, report(1500, 400)), 1400, 'the budget');
  expectEqual(verdictOf(board, report(700, 600)).state, 'no', 'weights that do not fit the flash');
  expectEqual(verdictOf(board, report(1900, 400, 1200)).state, 'no', 'states that do not fit');
  const whole = { ...board, flash: 0 };
  expectEqual(verdictOf(whole, report(1000, 900)).state, 'fits', 'all in memory');
  expectEqual(verdictOf(whole, report(1200, 1000)).state, 'no', 'weights alone are too large');
  expect(boards.length === 4 && new Set(boards.map(({ id }) => id)).size === 4, 'boards');
});
await check('links are read as they are made, and say what is wrong', () => {
  const base = 'https://here.example/page/';
  for (const given of [
    { url: 'https://host.example/a b/model.onnx?x=1&y=2', dims: { batch: 2, 'odd&name': 3 }, budget: 320 * 1024 },
    { sample: 'unet', dims: { height: 128 }, budget: 0 },
  ]) {
    const link = parseLink(makeLink(given), base);
    expectEqual([link.url ? new URL(link.url).href : link.sample, link.dims, link.budget], [given.url ? new URL(given.url).href : given.sample, given.dims, given.budget], 'a link');
  }
  expectEqual(parseLink('#plan', base), null, 'a part of the page');
  expectEqual(parseLink('#model=x/y.onnx', base).url, 'https://here.example/page/x/y.onnx', 'beside the page');
  expectEqual(makeLink({}), null, 'a file');
  expectEqual(nameOf('https://host.example/a/model%201.onnx?download'), 'model 1.onnx', 'a name');
  expectEqual([sizeOf('320K'), sizeOf('1.5M'), sizeOf('4096'), sizeOf('2GiB')], [327680, 1572864, 4096, 2147483648], 'sizes');
  const wrong = (fragment) => {
    try {
      parseLink(fragment, base);
    } catch ({ message }) {
      return message;
    }
    return 'nothing';
  };
  expect(/dims=batch:x; it should be like/.test(wrong('#model=a.onnx&dims=batch:x')), wrong('#model=a.onnx&dims=batch:x'));
  expect(/budget=big; it should be like/.test(wrong('#sample=unet&budget=big')), wrong('#sample=unet&budget=big'));
  expect(/kind file:/.test(wrong('#model=file:///etc/passwd')), wrong('#model=file:///etc/passwd'));
});
await check('cards and badges are well-formed, whatever a model is called', () => {
  const card = cardSvg({
    name: 'a <b> & "c"', arena: 204480, unshared: 274048, line: 'weights', boxes: [{ group: 'input', box: [0, 0, 0.5, 1] }],
    tiles: [{ name: 'A board', state: 'fits', text: '1 of 2', share: 0.5 }],
  });
  expect(card.includes('204,480 bytes') && card.includes('a &#60;b&#62; &#38; &#34;c&#34;') && !card.includes('<b>'), card);
  expect(badgeSvg(204480).includes('200 KiB'), badgeSvg(204480));
  expectEqual(badgeMarkdown('memory.svg', 2048, 'https://x.example/#sample=unet'), '[![memory: 2 KiB](memory.svg)](https://x.example/#sample=unet)', 'a line');
});
await check('what stands in a row keeps its distance, and moves as little as it can', () => {
  expectEqual(spread([0, 200], [20, 20]), [0, 200], 'there is room');
  const close = spread([0, 0, 0], [20, 20, 20]);
  expectEqual(close.map((x) => Math.round(x)), [-38, 0, 38], 'around the middle');
});
await check('a graph stands from the top down, and nothing over anything', () => {
  const nodes = [
    { op: 'conv', in: ['x'], out: ['a'] },
    { op: 'relu', in: ['a'], out: ['b'] },
    { op: 'conv', in: ['b', 'w'], out: ['c'] },
    { op: 'add', in: ['a', 'c'], out: ['d'] },
  ];
  const { nodes: placed, edges } = layoutGraph({ nodes, inputs: ['x'], outputs: [{ name: 'y', value: 'd' }] });
  expectEqual(placed.map(({ kind }) => kind), ['input', 'node', 'node', 'node', 'node', 'output'], 'kinds');
  for (const { from, to } of edges) expect(placed[from].y < placed[to].y, `${from} is not above ${to}`);
  expectEqual(edges.length, 6, 'edges');
  const skip = edges.find(({ from, to }) => placed[from].index === 0 && placed[to].index === 3);
  expectEqual(skip.points.length, 4, 'the skip bends in every layer that it passes');
});
await check('a graph of thousands of nodes is laid out without overlaps', () => {
  const nodes = [];
  for (let i = 0; i < 4000; i++) nodes.push({ op: i % 3 ? 'add' : 'split', in: [`v${i}`, `v${Math.max(0, i - 1 - ((i * 7) % 30))}`], out: [`v${i + 1}`] });
  const { nodes: placed } = layoutGraph({ nodes, inputs: ['v0'], outputs: [{ name: 'y', value: 'v4000' }] });
  const rows = new Map();
  for (const node of placed) rows.set(node.y, [...(rows.get(node.y) ?? []), node]);
  for (const row of rows.values()) {
    row.sort((a, b) => a.x - b.x);
    row.forEach((node, i) => expect(i === 0 || node.x - row[i - 1].x >= (node.width + row[i - 1].width) / 2 - 0.01, 'two overlap'));
  }
});
await check('classes are named by the kind of model, or by a file', () => {
  const input = (shape, type = 'f32') => [{ name: 'x', type, shape }];
  const what = (inputs, shape) => labelsFor(inputs, { shape })?.what ?? null;
  expectEqual(what(input([1, 1, 28, 28]), [1, 10]), 'digits', 'digits');
  expectEqual(what(input([1, 3, 32, 32]), [1, 10]), 'CIFAR-10', 'CIFAR-10');
  expectEqual(what(input([1, 96, 96, 3], 'u8'), [1, 2]), 'visual wake words', 'persons');
  expectEqual(what(input([1, 49, 10, 1], 'i8'), [1, 12]), 'speech commands', 'words');
  expectEqual([what(input([1, 3, 32, 32]), [4, 10]), what(input([1, 3, 64, 64]), [1, 10])], [null, null], 'unknown');
  expectEqual(takeLabels('names.txt', 'a\r\n\nb\n c \n'), 3, 'lines');
  expectEqual(labelsFor(input([5]), { shape: [7, 3] }).labels, ['a', 'b', 'c'], 'of the file');
  takeLabels('names.txt', '');
});
done();
