/** Two hundred runs, each of them asked for by the button: no memory grows, on either side of the worker. */
import { readdirSync, readFileSync } from 'node:fs';
import { BerthPage, launch, withGpu } from './browser.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual, skip } from './tap.mjs';

const KIB = 1024;
const BEFORE = 20; // runs until everything is warm
const RUNS = 200;
const REPEATS = 1000;

/** Presses the button so often, one run after the other. */
const press = (own, times) => own.page.evaluate(async (n) => {
  const go = document.getElementById('go');
  const live = document.getElementById('run-live');
  for (let i = 0; i < n; i++) {
    live.textContent = '';
    go.click();
    while (live.textContent === '' || go.hasAttribute('aria-disabled')) await new Promise((resolve) => setTimeout(resolve));
  }
}, times);

/** What the page, its worker and its DOM hold, after a collection: the browser's own sum. */
const heapOf = (own) => own.page.evaluate(async () => {
  const { bytes } = await performance.measureUserAgentSpecificMemory();
  return bytes;
});

async function measure(own) {
  const heap = await heapOf(own);
  const { total, used } = await own.test('memory').evaluate((element) => ({ ...element.dataset }));
  const gpuObjects = await own.test('gpu-objects').count() ? await own.test('gpu-objects').textContent() : '0';
  const nodes = await own.page.evaluate(() => document.querySelectorAll('*').length);
  return { heap, wasm: Number(total), used: Number(used), gpuObjects, nodes, allocations: await own.test('allocations').textContent() };
}

async function checkRuns(own, device) {
  let before, after;
  await check(`${RUNS} runs on ${device} end`, async () => {
    await own.sample('digits');
    await own.device(device);
    await press(own, BEFORE);
    before = await measure(own);
    await press(own, RUNS);
    after = await measure(own);
    diagnostic(`${device}: ${JSON.stringify(before)} after ${BEFORE} runs, ${JSON.stringify(after)} after ${RUNS} more`);
  });
  if (!after) return;
  await check(`memory of WebAssembly and elements of the page stay as they are on ${device}`, () => {
    for (const key of ['wasm', 'used', 'nodes']) expectEqual(after[key], before[key], key);
  });
  await check(`the tab does not grow on ${device}`, () => {
    const growth = after.heap - before.heap;
    expect(growth < 300 * KIB, `it grew by ${growth} bytes: ${growth / RUNS} a run`);
  });
  await check(`the library allocates nothing in runs on ${device}`, () => expectEqual(after.allocations, '0', 'allocations'));
}

async function checkObjects(own) {
  await check(`the number of WebGPU objects is constant over ${REPEATS} runs`, async () => {
    const before = await measure(own);
    await own.run(REPEATS);
    const after = await measure(own);
    diagnostic(`${before.gpuObjects} objects, then ${after.gpuObjects}`);
    expect(Number(before.gpuObjects) > 0, 'there are none');
    expectEqual(after.gpuObjects, before.gpuObjects, 'objects');
    expectEqual(after.used, before.used, 'memory in use');
  });
}

const server = await serve(process.env.BERTH_WEB);
const browser = await launch([...withGpu, '--enable-blink-features=ForceEagerMeasureMemory']);
try {
  const own = await BerthPage.open(browser, server.url);
  await own.loadKept();
  await checkRuns(own, 'cpu');
  await checkRuns(own, 'webgpu');
  await checkObjects(own);
  await check('the browser complained about nothing', () => expect(own.errors.length === 0, own.errors.join('\n')));
} finally {
  await browser.close();
  await server.close();
}
done();
