/* The device "webgpu" in Chromium: it computes what the CPU does, runs leave nothing behind, and what is wrong is said. */
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual, skip } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: built } = process.env;
const models = process.env.BERTH_MODELS ?? join(source, '../shared/data/models');

// ---- A page without anything, and what is done in it ----

const site = mkdtempSync(join(tmpdir(), 'berth-webgpu-'));
writeFileSync(join(site, 'index.html'), '<!doctype html><link rel=icon href="data:,">');
symlinkSync(resolve(built, 'package'), join(site, 'package'));
symlinkSync(fileURLToPath(new URL('.', import.meta.url)), join(site, 'tests'));
symlinkSync(resolve(models), join(site, 'models'));
const isolated = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
const server = await serve(site, isolated), browser = await launch();

const call = (page, name, ...args) =>
  page.evaluate(async ([name, args]) => (await import('/tests/webgpu_page.js'))[name](...args), [name, args]);

const callInWorker = (page, name, ...args) => page.evaluate(([name, args]) => new Promise((resolve, reject) => {
  const worker = new Worker('/tests/webgpu_page.js', { type: 'module' });
  worker.onmessage = ({ data: { result, error } }) => (error === undefined ? resolve(result) : reject(new Error(error)));
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage([name, ...args]);
}), [name, args]);

async function inPage(use) {
  const page = await browser.newPage(), thrown = [];
  page.on('pageerror', (error) => thrown.push(error.message));
  try {
    await page.goto(server.url);
    await use(page);
    expectEqual(thrown, [], 'what was thrown');
  } finally {
    await page.close();
  }
}

const webgpuOf = (devices) => devices.find(({ name }) => name === 'webgpu');
const say = (name, { ms }) =>
  diagnostic(`${name}: ${Object.entries(ms).map(([device, { first, run }]) =>
    `${device} ${run.toFixed(2)} ms a run, first result ${first.toFixed(0)} ms`).join('; ')}`);

// ---- Numbers ----

await check('the browser has a GPU that berth uses', () => inPage(async (page) => {
  const device = webgpuOf(await call(page, 'devices'));
  diagnostic(`${device.description}`);
  expectEqual([device.available, device.reason], [true, ''], 'available, and why not');
}));

await check('digits are as on the CPU, in a page and in a worker', () => inPage(async (page) => {
  for (const where of [call, callInWorker]) {
    const result = await where(page, 'digits', { threads: 1 });
    say(where === call ? 'digits in a page' : 'digits in a worker', result);
    expect(result.off <= 1e-5, `they are ${result.off} off`);
  }
}));

await check('digits are as on the CPU in memory that threads share', () => inPage(async (page) => {
  const { off, threads } = await callInWorker(page, 'digits', { threads: 2 });
  expectEqual(threads, 2, 'threads');
  expect(off <= 1e-5, `they are ${off} off`);
}));

const CASES = [
  ['a convolutional network', 'mnist_8', 'mnist_8/mnist_8.onnx'],
  ['a deeper convolutional network', 'ultraface_rfb320', 'ultraface_rfb320/ultraface_rfb320.onnx'],
  ['with attention', 'stories260K/kv.prefill64', 'stories260K/stories260K_kv.onnx'],
  ['with LSTMs', 'dtln_model_1', 'dtln_model_1/dtln_model_1.onnx'],
  ['with conditions', 'silero_vad_16k_op15', 'silero_vad_16k_op15/silero_vad_16k_op15.onnx'],
];
for (const [what, folder, file] of CASES) {
  const name = `as on the CPU: ${folder}, ${what}`;
  if (!existsSync(join(models, file))) skip(name, 'there are no real models; BERTH_MODELS names a folder of them');
  else await check(name, () => inPage(async (page) => {
    const result = await callInWorker(page, 'model', `/models/${file}`, `/models/${folder}`);
    say(folder, result);
    expect(result.off <= 1e-3, `they are ${result.off} off`);
  }));
}

await check('an arena that is larger than a binding', () => inPage(async (page) => {
  const { off } = await call(page, 'digitsInWindows', 140_000);
  expect(off <= 1e-5, `they are ${off} off`);
}));

// ---- What a run leaves behind ----

async function heapOf(page) {
  const tools = await page.context().newCDPSession(page);
  await tools.send('HeapProfiler.collectGarbage');
  const { usedSize, embedderHeapUsedSize, backingStorageSize } = await tools.send('Runtime.getHeapUsage');
  await tools.detach();
  return usedSize + embedderHeapUsedSize + backingStorageSize;
}

await check('a thousand runs leave nothing behind, and 200 more no memory of JavaScript', () => inPage(async (page) => {
  const { gpuObjects } = await call(page, 'open');
  expect(gpuObjects > 4, `${gpuObjects} objects are too few to be counted right`);
  const seen = await call(page, 'runs', 1000);
  expectEqual(seen.length, 1, 'states');
  expect(seen[0].startsWith(`0 allocations, ${gpuObjects} objects,`), seen[0]);

  const grown = [];
  for (let round = 0; round < 4; round++) { // what leaks does so in each; what the browser compiles again, in one
    const before = await heapOf(page);
    await call(page, 'runs', 200);
    grown.push(await heapOf(page) - before);
  }
  diagnostic(`${seen[0]}; bytes of JavaScript more, in 200 runs each: ${grown.join(', ')}`);
  expect(Math.min(...grown) < 200 * 20, `${grown} bytes more`);
  expectEqual(await call(page, 'closeAll'), 0, 'objects');
}));

// ---- What can go wrong ----

for (const [what, name, reason] of [
  ['no navigator.gpu', 'withoutGPU', /no WebGPU here \(navigator\.gpu\)/],
  ['no way to wait', 'withoutWaiting', /WebAssembly\.Suspending/],
  ['no adapter', 'withoutAdapter', /finds no usable GPU \(the browser offers none/],
]) {
  await check(`${what} is a reason`, () => inPage(async (page) => {
    const devices = await call(page, name), device = webgpuOf(devices);
    expectEqual(device.available, false, 'available');
    expect(reason.test(device.reason), device.reason);
    expectEqual(devices.find(({ name }) => name === 'cpu').available, true, 'cpu');
  }));
}

for (const [what, name, status, message] of [
  ['a kernel that the browser refuses', 'withBadShaders', 'INTERNAL', /compiling a kernel: .*WGSL/],
  ['a GPU without memory', 'withoutMemory', 'DEVICE_NOMEM', /has no memory left for .*: not a byte is left/],
  ['an end in the middle of a run', 'closedMeanwhile', 'INVALID', /berth is closed/],
]) {
  await check(`${what} is an error of berth's`, () => inPage(async (page) => {
    const said = await call(page, name);
    expectEqual([said?.name, said?.status], ['BerthError', status], 'the error');
    expect(message.test(said.message), said.message);
  }));
}

await check('what the browser says of commands is an error, and over when it was told', () => inPage(async (page) => {
  const [said, ...after] = await call(page, 'withBadCopies');
  expectEqual([said?.name, said?.status], ['BerthError', 'INTERNAL'], 'the error');
  expect(/while .*: .*[Cc]opy/.test(said.message), said.message);
  expectEqual(after.at(-1), null, 'a later run');
}));

await check('a GPU that is lost is an error, and a new session works', () => inPage(async (page) => {
  await call(page, 'open');
  await (await browser.newBrowserCDPSession()).send('Browser.crashGpuProcess');
  const said = await call(page, 'failure');
  expectEqual([said?.name, said?.status], ['BerthError', 'DEVICE_LOST'], 'the error');
  await call(page, 'open');
  expectEqual(await call(page, 'failure'), null, 'the new session');
}));

await browser.close();
await server.close();
rmSync(site, { recursive: true });
done();
