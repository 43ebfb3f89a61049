/** The page: it loads, works without a network, recognises drawings, and computes the same as the native program. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { BerthPage, launch, strokes } from './browser.mjs';
import { models } from './models.mjs';
import { writeLarge, writeParts } from './gguf.mjs';
import { expectOutputs, generateNative, hasNative, planNative, planTextNative, runNative } from './native.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual, skip } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site } = process.env;
const out = join(process.env.BERTH_WEB_TESTS, 'files');
mkdirSync(out, { recursive: true });
const devices = ['cpu', 'webgpu'];
const digitsModel = [join(source, 'examples/digits/digits.berth')];

async function checkSizes() {
  for (const name of ['berth.wasm', 'berth-threads.wasm']) {
    await check(`${name} is under 1.5 MB compressed`, () => {
      const size = gzipSync(readFileSync(join(site, 'package', name)), { level: 9 }).length;
      diagnostic(`${name}: ${size} bytes with gzip`);
      expect(size > 1000 && size < 1.5e6, `${size} bytes`);
    });
  }
}

/** Draws as soon as there is a pad: measures when the first digit appears, from the navigation on. */
async function firstDigit(browser, url) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.firstDigit = new Promise((resolve) => {
      const isThere = () => /^\d$/.test(document.getElementById('digit-verdict')?.textContent);
      const look = () => (isThere() ? resolve(performance.now()) : requestAnimationFrame(look));
      look();
    });
  });
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  const drawer = Object.assign(new BerthPage(), { page });
  await drawer.draw(strokes[7]);
  const ms = await page.evaluate(() => window.firstDigit);
  const verdict = await drawer.verdict('7');
  await context.close();
  return { ms, verdict };
}

/**
 * The bytes of a first visit to a server that compresses, including what the service worker stores for the next one.
 */
async function checkFirstVisit(browser) {
  const server = await serve(site, {}, true);
  let asked;
  await check('a first visit takes at most 1.5 MB, the module once', async () => {
    const own = await BerthPage.open(browser, server.url);
    asked = own.asked;
    await own.page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
    diagnostic(`${server.sent} bytes in all`);
    expect(server.sent > 1e5 && server.sent <= 1.5e6, `${server.sent} bytes`);
    await own.close();
  });
  // The rest of the page follows after the module: what is requested before it is what a first digit waits for.
  // Requests use six connections and may arrive in any order, so the page itself reports its order; a file that every
  // thread requests may have come once or several times by then: files are counted, not requests.
  await check('the first digit waits for the module, which is asked for first, and for little beside it', () => {
    const paths = server.log.map(({ path }) => path), rest = paths.indexOf('/app/main.js');
    const before = new Map(server.log.slice(0, rest).map(({ path, bytes }) => [path, bytes]));
    before.delete('/icon.svg');
    const size = [...before.values()].reduce((sum, bytes) => sum + bytes, 0);
    diagnostic(`${before.size} files and ${size} bytes before the rest of the page`);
    expect(rest > 0 && asked.slice(0, 3).includes('/package/berth-threads.wasm'), asked.slice(0, 8).join(' '));
    expect(before.size <= 52, `${before.size} files: ${[...before.keys()].join(' ')}`);
    expect(size <= 1.2e6, `${size} bytes`);
    for (const part of ['plan', 'graph', 'talk', 'run']) expect(!before.has(`/app/${part}.js`), part);
  });
  await server.close();
}

async function checkFirstDigit(browser, url) {
  await check('a digit drawn while the page loads is recognised', async () => {
    const { ms, verdict } = await firstDigit(browser, url);
    diagnostic(`first digit after ${ms.toFixed(0)} ms`);
    expect(verdict === '7', `it is taken for ${verdict}`);
  });
}

async function checkOffline(browser) {
  const server = await serve(site);
  const own = await BerthPage.open(browser, server.url);
  await check('without a network it loads again, and recognises a digit', async () => {
    await own.page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
    await server.close();
    await own.context.setOffline(true);
    await own.page.reload();
    await own.ready();
    await own.draw(strokes[4]);
    expectEqual(await own.verdict('4'), '4', 'verdict');
  });
  await check('the service worker gives it shared memory, and with it threads', async () => {
    expect(await own.page.evaluate(() => crossOriginIsolated), 'it is not cross-origin isolated');
    const wanted = Math.min(8, await own.page.evaluate(() => navigator.hardwareConcurrency));
    if (wanted > 1) expect((await own.text('state')).includes(`${wanted} threads`), await own.text('state'));
  });
  await check('samples come from what was kept', async () => {
    await own.sample('lstm');
    await own.run();
  });
  await own.close();
}

async function checkDigits(own) {
  for (const device of devices) {
    for (const [digit, lines] of Object.entries(strokes)) {
      await check(`a ${digit} drawn with the mouse is recognised on ${device}`, async () => {
        await own.device(device);
        await own.page.locator('#digit-clear').click();
        await own.verdict('–');
        await own.draw(lines);
        expectEqual(await own.verdict(digit), digit, 'verdict');
      });
    }
    await check(`a 1 drawn by keys is recognised on ${device}`, async () => {
      await own.page.locator('#digit-pad').focus();
      for (const key of ['Backspace', ' ', ...Array(13).fill('ArrowDown'), ' ']) await own.page.keyboard.press(key);
      expectEqual(await own.verdict('1'), '1', 'verdict');
    });
    await check(`the digits that ship come out as natively on ${device}`, async () => {
      const given = { dims: { batch: 10 }, inputs: { image: join(source, 'examples/digits/samples.npy') } };
      await own.sample('digits');
      await own.bind(given.dims);
      await own.giveInputs(given.inputs);
      expectOutputs(await own.run(), runNative(digitsModel, given), device);
    });
  }
}

async function checkSamples(own) {
  const dims = { encoder: { seq: 24 }, unet: { height: 32, width: 48 }, lstm: { frames: 10, batch: 2 } };
  const small = { mobilenet: { height: 32, width: 32 }, keywords: {}, resnet: {} }; // on the CPU alone: GPUs are slow
  for (const [name, bound] of Object.entries({ ...dims, ...small })) {
    const model = [join(source, `web/page/samples/${name}.berth`), '--random-weights'];
    for (const device of name in small ? ['cpu'] : devices) {
      await check(`the sample ${name} comes out as natively on ${device}`, async () => {
        await own.device(device);
        await own.sample(name);
        await own.bind(bound);
        expectOutputs(await own.run(), runNative(model, { dims: bound }), device);
      });
    }
  }
}

async function checkModels(own) {
  for (const { title, missing, file, inputs, dims } of models) {
    for (const device of devices) {
      const how = device === 'cpu' ? 'dropped' : 'chosen';
      const name = `${title}: ${how}, it comes out as natively on ${device}`;
      if (missing) {
        skip(name, missing);
        continue;
      }
      await check(name, async () => {
        await own.device(device);
        if (device === 'cpu') await own.dropModel(file);
        else await own.chooseModel(file);
        await own.bind(dims);
        await own.giveInputs(inputs);
        expectOutputs(await own.run(), runNative([file], { dims, inputs }), device);
      });
    }
  }
}

function badFiles() {
  const small = join(source, 'tests/onnx/models/small.onnx');
  const whole = readFileSync(small);
  const put = (name, bytes) => {
    writeFileSync(join(out, name), bytes);
    return join(out, name);
  };
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  return {
    'an ONNX file that ends early': put('early.onnx', whole.subarray(0, whole.length >> 1)),
    'a picture': put('picture.onnx', Buffer.from(png, 'base64')),
    'an empty file': put('empty.onnx', ''),
    'a model with an op that nobody knows': join(source, 'tests/onnx/models/unknown.onnx'),
  };
}

/** The alert, once there is one. */
async function alertOf(own) {
  const shown = own.page.locator('.alert:not([hidden]) .alert-what');
  await shown.first().waitFor({ state: 'visible' });
  return shown.first().textContent();
}

async function checkBadFiles(own) {
  await own.device('cpu');
  for (const [what, file] of Object.entries(badFiles())) {
    await check(`${what} gets a sentence, and the page goes on`, async () => {
      await own.sample('digits');
      await own.drop(file);
      const words = await alertOf(own);
      diagnostic(words);
      expect(/^[A-Z“].{15,400}[.!?]$/s.test(words), `no sentence: ${words}`);
      expect(!/undefined|\[object|RuntimeError|unreachable|NaN/.test(words), words);
      await own.sample('digits');
      expect(await own.page.locator('.alert:not([hidden])').count() === 0, 'the alert stays');
      await own.run();
    });
  }
}

const figures = {
  'bar-arena': ({ arena_size: size }) => size,
  'bar-unshared': ({ total_unshared: size }) => size,
  'bar-weights': ({ weights_size: size }) => size,
  'bar-activations': ({ activations_size: size }) => size,
  'bar-scratch': ({ scratch_size: size }) => size,
  'bar-bound': ({ weights_size: weights, activations_lower_bound: bound }) => weights + bound,
};

/** On the CPU scratch may have tables of pointers, which have half the width here; nothing else differs. */
async function expectFigures(own, report, device) {
  for (const [test, figure] of Object.entries(figures)) {
    const [got, expected] = [await own.bytes(test), figure(report)];
    const isLess = device === 'cpu' && test !== 'bar-weights' && got <= expected && got >= 0.999 * expected;
    expect(got === expected || isLess, `${test}: got ${got}, expected ${expected}`);
  }
}

async function checkPlans(own) {
  const file = join(source, 'web/page/samples/unet.berth');
  const threads = Number(/(\d+) threads/.exec(await own.text('state'))?.[1] ?? 1);
  for (const device of devices) {
    const name = `the plan is what the native program plans for ${device}, with other dimensions too`;
    if (!hasNative(device)) {
      skip(name, `there is no device ${device} here`);
      continue;
    }
    await check(name, async () => {
      await own.device(device);
      await own.sample('unet');
      const seen = [];
      for (const dims of [{ height: 128, width: 128 }, { height: 64, width: 96 }]) {
        await own.bind(dims);
        await expectFigures(own, planNative([file], { dims, device, threads }), device);
        seen.push(await own.bytes('bar-arena'));
      }
      expect(seen[0] > seen[1], `the arena took ${seen.join(' and ')} bytes`);
    });
  }
  await check('a dimension that is no number is said', async () => {
    await own.device('cpu');
    await own.test('dim-height').fill('0');
    expect(/height/.test(await alertOf(own)), 'the alert does not name it');
    await own.bind({ height: 32 });
    expect(await own.page.locator('.alert:not([hidden])').count() === 0, 'the alert stays');
  });
  await check('the picture and the table have every tensor', async () => {
    const buffers = Number(await own.page.locator('#picture').getAttribute('data-buffers'));
    const rows = await own.page.locator('#tensors tbody tr').count();
    expect(buffers > 10 && rows > 10, `${buffers} buffers, ${rows} rows`);
    await own.page.locator('#filter').fill('there is no such thing');
    await own.page.waitForFunction(() => document.querySelectorAll('#tensors tbody tr[data-name]').length === 0);
    await own.page.locator('#filter').fill('');
  });
}

const tale = join(source, 'examples/tale/tale.gguf');
const PROMPT = 'Once upon a time';
const TRIES = 5;

/** A real model, if there is one, dropped as a file. */
async function checkStories(own) {
  const folder = process.env.BERTH_MODELS ?? join(source, '../shared/data/models');
  const file = join(folder, 'stories260K/stories260K_q8_0.gguf');
  for (const device of devices) {
    const name = `stories260K, dropped, says on ${device} what it says natively`;
    if (!existsSync(file)) {
      skip(name, 'there are no real models; BERTH_MODELS names a folder of them');
      continue;
    }
    await check(name, async () => {
      await own.device(device);
      await own.dropModel(file);
      expectEqual(await own.write({ prompt: PROMPT, tokens: 12 }), `${PROMPT}${generateNative(file, PROMPT, 12).text}`, 'the text');
    });
  }
  await own.sample('tale');
}

async function checkTalk(own) {
  const { text } = generateNative(tale, PROMPT, 24);
  for (const device of devices) {
    await check(`the model that ships says on ${device} what it says natively`, async () => {
      await own.device(device);
      await own.sample('tale');
      expectEqual(await own.write({ prompt: PROMPT, tokens: 8 }) + await own.write({ tokens: 16, button: 'go-on' }),
        `${PROMPT}${generateNative(tale, PROMPT, 8).text}${PROMPT}${text}`, 'the text');
      expectEqual(await own.test('talk-token-allocations').textContent(), '0', 'allocations');
    });
  }
  await checkStories(own);
  await check('a model in parts is opened by dropping all of them, and one alone says so', async () => {
    const parts = await writeParts(out, join(source, 'examples/tale/tale.gguf'), 'split', 3);
    await own.replanned(() => own.drop(parts[1]));
    const words = await own.text('alert-network');
    expect(/split/.test(words) && /all of its parts together/.test(words), words);
    await own.opened('split-00001-of-00003.gguf', () => own.drop([parts[2], parts[0], parts[1]]));
    await own.fitted();
    const native = generateNative(parts[0], PROMPT, 10).text;
    expectEqual(await own.write({ prompt: PROMPT, tokens: 10 }), `${PROMPT}${native}`, 'the text');
  });
  await check('it is stopped, and goes on', async () => {
    await own.test('prompt').fill(PROMPT);
    await own.test('tokens').fill('90');
    const stopAtOnce = () => own.page.evaluate((words) => { // a mouse may be too late
      const story = document.getElementById('story');
      const seen = new MutationObserver(() => {
        if (story.textContent.length <= words) return;
        seen.disconnect();
        document.getElementById('stop').click();
      });
      seen.observe(story, { childList: true, subtree: true, characterData: true });
    }, PROMPT.length);
    for (let i = 0; i < TRIES && await own.text('talk-end') !== 'Stopped.'; i++) { // a page that waits is too late
      await stopAtOnce();
      await own.test('write').click();
      await own.page.waitForSelector('html:not([data-talking])');
    }
    expectEqual(await own.text('talk-end'), 'Stopped.', 'what it says of it');
    expect((await own.write({ tokens: 3, button: 'go-on' })).length > PROMPT.length, 'it does not go on');
  });
  await check('it chats by its template, and says when its context is full', async () => {
    await own.device('cpu');
    await own.test('talk-chat').click();
    const story = await own.write({ prompt: PROMPT, tokens: 5 });
    expect(story.startsWith(PROMPT) && story.length > PROMPT.length, story);
    await own.test('talk-continue').click();
    await own.replanned(() => own.test('fit-ctx').fill('24'));
    await own.write({ prompt: PROMPT, tokens: 60 });
    expect(/context is full/.test(await own.text('talk-end')), await own.text('talk-end'));
  });
}

async function checkFit(own) {
  await check('what a model takes is what the native program says, as the context and its cache change', async () => {
    await own.device('cpu');
    await own.sample('tale');
    const threads = Number(/(\d+) threads/.exec(await own.text('state'))?.[1] ?? 1);
    for (const [ctx, kv] of [[256, 'f16'], [96, 'f16'], [96, 'f32']]) {
      if (await own.test('fit-ctx').inputValue() !== String(ctx)) await own.replanned(() => own.test('fit-ctx').fill(String(ctx)));
      if (await own.test(`kv-${kv}`).getAttribute('aria-pressed') !== 'true') await own.replanned(() => own.test(`kv-${kv}`).click());
      await own.fitted();
      const native = planTextNative(tale, { ctx, kv }, threads);
      expectEqual([await own.bytes('fit-weights'), await own.bytes('fit-cache')], [native.weights_size, native.state_size], 'sizes');
      const size = await own.bytes('fit-size');
      expect(size <= native.arena_size && size > 0.99 * native.arena_size, `${size} bytes, and ${native.arena_size} natively`);
      expectEqual(await own.bytes('arena'), size, 'the plan below');
    }
    await own.test('fit-slider').focus();
    await own.replanned(() => own.page.keyboard.press('End'));
    expectEqual(await own.test('fit-ctx').inputValue(), '256', 'the slider at its end');
  });
  await check('a file of 13 GB shows what it takes, and what fits', async () => {
    const file = join(out, 'large.gguf');
    const size = writeLarge(file);
    await own.chooseModel(file);
    await own.fitted();
    await own.test('fit-budget').fill('16');
    await own.page.waitForFunction(() => document.getElementById('fit-verdict').textContent.includes('16 GiB'));
    const fitting = planTextNative(file, { fit: 2 ** 34, kv: 'f16', chunk: 64 }, 1).ctx;
    expect(Math.abs(Number(await own.test('fit-verdict').getAttribute('data-ctx')) - fitting) <= 1, await own.text('fit-verdict'));
    expect(await own.bytes('fit-size') > size && await own.bytes('fit-weights') > 13e9, 'its sizes');
    expect(Number(await own.test('fit-chart').getAttribute('data-points')) > 5, 'the chart has points');
    expect(await own.test('write').isDisabled() && /too many/.test(await own.text('talk-end')), await own.text('talk-end'));
    rmSync(file);
  });
}

const server = await serve(site);
const browser = await launch();
try {
  await checkSizes();
  await checkFirstVisit(browser);
  await checkFirstDigit(browser, server.url);
  await checkOffline(browser);
  const own = await BerthPage.open(browser, server.url);
  await own.loadKept();
  await checkDigits(own);
  await checkSamples(own);
  await checkModels(own);
  await checkBadFiles(own);
  await checkPlans(own);
  await checkTalk(own);
  await checkFit(own);
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
} finally {
  await browser.close();
  await server.close();
}
done();
