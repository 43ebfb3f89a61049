/** Two hundred runs, each started by the button: memory does not grow, on either side of the worker. */
import { BerthPage, launch } from './browser.mjs';
import { Heaps } from './heaps.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual } from './tap.mjs';

const HEAPS = ['page', 'worker'];
const BEFORE = 20; // runs for warming up
const RUNS = 200;
const REPEATS = 1000;
const MOST = 400 * RUNS; // bytes that a heap may grow: the browser learns about the code, but nothing stays of a run
const WINDOWS = 3; // of `RUNS` runs: a leak grows in each of them, the browser's own data does not

/** Presses the button `times` times, one run after the other. */
const press = (own, times) => own.page.evaluate(async (n) => {
  const go = document.getElementById('go');
  const live = document.getElementById('run-live');
  for (let i = 0; i < n; i++) {
    live.textContent = '';
    go.click();
    const isOver = () => live.textContent !== '' && !go.hasAttribute('aria-disabled');
    while (!isOver()) await new Promise((resolve) => setTimeout(resolve));
  }
}, times);

/** The graph is requested when the user comes near it: ensures that it exists before anything is measured. */
async function seeGraph(own) {
  await own.page.locator('#graph').scrollIntoViewIfNeeded();
  await own.page.waitForSelector('#graph[data-nodes]');
}

async function measure(own) {
  const { total, used } = await own.test('memory').evaluate((element) => ({ ...element.dataset }));
  const gpuObjects = await own.test('gpu-objects').count() ? Number(await own.test('gpu-objects').textContent()) : 0;
  const allocations = Number(await own.test('allocations').textContent());
  return { ...(await own.heaps.measure()), wasm: Number(total), used: Number(used), gpuObjects, allocations };
}

async function checkRuns(own, device) {
  let before, after;
  await check(`${RUNS} runs on ${device} end`, async () => {
    await own.sample('digits');
    await own.device(device);
    await seeGraph(own);
    await press(own, BEFORE);
    after = await measure(own);
    diagnostic(`${device} after ${BEFORE} runs: ${JSON.stringify(after)}`);
    for (let i = 0; i < WINDOWS && (!before || HEAPS.some((heap) => after[heap] - before[heap] >= MOST)); i++) {
      before = after;
      await press(own, RUNS);
      after = await measure(own);
      diagnostic(`after ${RUNS} more: ${JSON.stringify(after)}`);
    }
  });
  if (!after) return;
  await check(`memory of WebAssembly, nodes and listeners of the page are as many on ${device}`, () => {
    for (const key of ['wasm', 'used']) expectEqual(after[key], before[key], key);
    for (const key of ['nodes', 'listeners']) { // a long run shows a bar once; none leaves one behind
      expect(after[key] - before[key] < RUNS / 10, `${key}: ${before[key]} before ${RUNS} runs, ${after[key]} after`);
    }
  });
  for (const heap of HEAPS) {
    await check(`the heap of the ${heap} does not grow on ${device}`, () => {
      const growth = after[heap] - before[heap];
      expect(growth < MOST, `it grew by ${growth} bytes: ${growth / RUNS} a run`);
    });
  }
  await check(`the library allocates nothing in runs on ${device}`, () =>
    expectEqual(after.allocations, 0, 'allocations'));
}

async function checkObjects(own) {
  await check(`the number of WebGPU objects is constant over ${REPEATS} runs`, async () => {
    const before = await measure(own);
    await own.run(REPEATS);
    const after = await measure(own);
    diagnostic(`${before.gpuObjects} objects, then ${after.gpuObjects}`);
    expect(before.gpuObjects > 0, 'there are none');
    expectEqual(after.gpuObjects, before.gpuObjects, 'objects');
    expectEqual(after.used, before.used, 'memory in use');
  });
}

const server = await serve(process.env.BERTH_WEB);
const browser = await launch();
try {
  const own = await BerthPage.open(browser, server.url);
  await own.loadKept();
  own.heaps = await Heaps.of(own);
  await checkRuns(own, 'cpu');
  await checkRuns(own, 'webgpu');
  await checkObjects(own);
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
} finally {
  await browser.close();
  await server.close();
}
done();
