/**
 * The page in Firefox, driven by playwright-core through WebDriver BiDi: it loads, recognises a digit, opens files,
 * plans, runs and generates text; once as served by plain hosting, and once with threads.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthPage, patiently, require, strokes } from './browser.mjs';
import { expectOutputs, generateNative, runNative } from './native.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site, BERTH_FIREFOX: executablePath } = process.env;
const { firefox } = require('playwright-core');
const work = join(process.env.BERTH_WEB_TESTS, 'firefox');
mkdirSync(work, { recursive: true });

/** Animation, slider and search; BiDi does not report downloads, so the GIF is intercepted where it is made. */
async function checkExtras(own) {
  await check('Firefox: the harbour plays, shows a tensor, and becomes a GIF', async () => {
    await own.page.waitForSelector('#play[data-steps]:not([data-playing])');
    await own.test('play-scrubber').evaluate((range) => {
      range.value = 3;
      range.dispatchEvent(new Event('input', { bubbles: true }));
    });
    await own.test('play-canvas').focus();
    await own.page.keyboard.press('ArrowRight');
    await own.page.locator('#play .tensor').waitFor();
    await own.page.evaluate(() => {
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        window.savedType = blob.type;
        return make.call(URL, blob);
      };
    });
    await own.test('play-gif').click();
    await own.page.waitForFunction(() => window.savedType === 'image/gif');
  });
  await check('Firefox: the memory slider, the boards and the graph', async () => {
    await own.sample('keywords');
    await own.page.waitForSelector('#boards:not([data-asking])');
    expectEqual(await own.test('board-pico').getAttribute('data-state'), 'fits', 'on a Pico');
    await own.replanned(() => own.test('budget-slider').evaluate((range) => {
      range.value = 0;
      range.dispatchEvent(new Event('input', { bubbles: true }));
    }));
    expect((await own.text('budget-price')).length > 20, await own.text('budget-price'));
    await own.page.locator('#graph').scrollIntoViewIfNeeded();
    await own.page.waitForSelector('#graph[data-nodes]');
    await own.test('graph-search').fill('pool');
    await own.test('graph-search').press('Enter');
    expectEqual(await own.page.locator('#graph').getAttribute('data-chosen'), 'pool', 'found');
  });
}

/** Files that the page saves during `act`: Firefox does not report downloads over BiDi. */
async function savedBy(own, act) {
  await own.page.evaluate(() => {
    window.savedFiles = [];
    window.made ??= { make: URL.createObjectURL, click: HTMLAnchorElement.prototype.click };
    const blobs = new Map();
    URL.createObjectURL = (blob) => {
      const url = window.made.make.call(URL, blob);
      blobs.set(url, blob);
      return url;
    };
    HTMLAnchorElement.prototype.click = function click() {
      const blob = blobs.get(this.href);
      if (!this.download || !blob) return window.made.click.call(this);
      return blob.arrayBuffer().then((bytes) => window.savedFiles.push([this.download, blob.type, ...new Uint8Array(bytes.slice(0, 2000))]));
    };
  });
  await act();
  await own.page.waitForFunction(() => window.savedFiles.length > 0);
  const [[name, type, ...bytes]] = await own.page.evaluate(() => window.savedFiles);
  return { name, type, head: Buffer.from(bytes) };
}

async function checkSaving(own) {
  await own.sample('keywords');
  await own.run();
  const wanted = [
    ['save-svg', 'keywords.svg', /^<svg/], ['save-plan', 'keywords.json', /"model": "keywords"/],
    ['save-report', 'keywords.html', /<html/], ['save-card', 'keywords-fits.png', /^.PNG/], ['save-card-svg', 'keywords-fits.svg', /^<svg/],
    ['save-badge', 'memory.svg', /^<svg/], ['save-npy', /\.npy$/, /^.NUMPY/], ['save-json', /\.json$/, /"shape"/],
    ['play-gif', 'digits.gif', /^GIF89a/], ['play-video', /^digits\.(webm|mp4)$/, /webm|ftyp/],
  ];
  for (const [button, name, words] of wanted) {
    await check(`Firefox: ${button} gives a file`, async () => {
      const file = await savedBy(own, () => own.test(button).first().click());
      expect(name instanceof RegExp ? name.test(file.name) : name === file.name, `it is called ${file.name}`);
      expect(words.test(file.head.toString('latin1')), `${file.name} begins with ${file.head.toString('latin1').slice(0, 80)}`);
    });
  }
}

async function checkLink(browser, url) {
  const elsewhere = await serve(join(source, 'web/page/samples'), { 'Access-Control-Allow-Origin': '*' });
  const own = await BerthPage.open(browser, `${url}#model=${encodeURIComponent(`${elsewhere.url}lstm.berth`)}&dims=frames:10,batch:2&budget=4M`);
  await check('Firefox: a link opens a model of another server, and is the one to pass on', async () => {
    expect((await own.text('model-name')).includes('lstm.berth'), await own.text('model-name'));
    expectEqual([await own.test('dim-frames').inputValue(), await own.test('dim-batch').inputValue()], ['10', '2'], 'dimensions');
    await own.page.waitForFunction(() => document.getElementById('link').value.includes('#model='));
    expect((await own.test('link').inputValue()).includes('dims=frames:10,batch:2&budget=4096K'), await own.test('link').inputValue());
  });
  await check('Firefox: what was open is open again after a reload', async () => {
    await own.page.waitForSelector('html[data-kept]');
    await own.page.reload();
    await own.ready();
    expect((await own.text('model-name')).includes('lstm.berth'), await own.text('model-name'));
  });
  await own.close();
  await elsewhere.close();
}

async function checkCamera(own) {
  await check('Firefox: the camera is an input', async () => {
    await own.sample('unet');
    await own.bind({ height: 32, width: 32 });
    await own.test('input-image').locator('[data-test=fill]').selectOption('camera');
    await own.page.waitForFunction(() => document.querySelector('.camera')?.videoWidth > 0);
    const { mask } = await own.run();
    expectEqual(mask.shape, [1, 1, 32, 32], 'shape');
    await own.test('input-image').locator('[data-test=fill]').selectOption('zeros');
    expect(await own.page.evaluate(() => document.querySelector('.camera').srcObject === null), 'it still looks');
  });
}

/** Presses Tab until an element has the focus. */
async function tabTo(own, selector) {
  for (let i = 0; i < 80; i++) {
    if (await own.page.evaluate((what) => document.activeElement?.matches(what), selector)) return;
    await own.page.keyboard.press('Tab');
  }
  throw new Error(`Tab never gets to ${selector}`);
}

async function checkPhone(browser, url) {
  const own = await BerthPage.open(browser, url, { viewport: { width: 390, height: 844 } });
  const fits = () => own.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  await check('Firefox, as wide as a phone, by keys alone: a sign is taught', async () => {
    await own.page.locator('#digit-pad').focus();
    for (const key of ['Backspace', ' ', ...Array(13).fill('ArrowDown'), ...Array(8).fill('ArrowRight'), ' ']) await own.page.keyboard.press(key);
    await tabTo(own, '#teach summary');
    await own.page.keyboard.press('Enter');
    await tabTo(own, '[data-test=teach-10]');
    await own.page.keyboard.press('Enter');
    await own.page.locator('#teach-examples li').waitFor();
    await tabTo(own, '#teach-learn');
    await own.page.keyboard.press('Enter');
    expectEqual(await own.verdict('★'), '★', 'verdict');
    expect(await fits(), 'it scrolls sideways');
  });
  await check('Firefox, as wide as a phone, by keys alone: a sample is opened and run', async () => {
    await own.opened('keywords', async () => {
      await tabTo(own, '[data-test=sample-keywords]');
      await own.page.keyboard.press('Enter');
    });
    await own.test('repeats').focus();
    await own.page.keyboard.press('Shift+Tab');
    await own.page.keyboard.press('Enter');
    await own.page.waitForFunction(() => document.getElementById('run-live').textContent !== '');
    expect(await fits(), 'it scrolls sideways');
  });
  await own.close();
}

async function checkPage(own) {
  await check('Firefox: a digit is recognised', async () => {
    await own.draw(strokes[7]);
    expectEqual(await own.verdict('7'), '7', 'verdict');
  });
  await check('Firefox: a model that is chosen comes out as natively', async () => {
    const file = join(source, 'web/page/samples/unet.berth');
    await own.chooseModel(file);
    const dims = { height: 32, width: 48 };
    await own.bind(dims);
    expectOutputs(await own.run(), runNative([file, '--random-weights'], { dims }), 'cpu');
  });
  await check('Firefox: the page says why there is no GPU, or has one', async () => {
    await own.page.waitForSelector('[data-test=device-cpu]');
    const reason = own.test('device-reason-webgpu');
    const hasNone = (await reason.count()) > 0 && (await own.test('device-webgpu').isDisabled());
    diagnostic(hasNone ? await reason.textContent() : 'there is a GPU');
    if (hasNone) expect((await reason.textContent()).length > 15, 'no reason');
  });
  await check('Firefox: the language model that ships writes what it writes natively', async () => {
    await own.sample('tale');
    const prompt = 'Once upon a time';
    const native = generateNative(join(source, 'examples/tale/tale.gguf'), prompt, 12).text;
    expectEqual(await own.write({ prompt, tokens: 12 }), `${prompt}${native}`, 'the text');
  });
  await check('Firefox: a file that is no model is explained', async () => {
    const file = join(work, 'broken.onnx');
    writeFileSync(file, Buffer.from([8, 8, 58, 255, 255, 3]));
    await own.replanned(() => own.page.locator('#file').setInputFiles(file));
    expect((await own.text('alert-network')).includes('broken.onnx'), await own.text('alert-network'));
  });
}

const server = await serve(site);
const firefoxUserPrefs = { 'media.navigator.streams.fake': true, 'media.navigator.permission.disabled': true };
const browser = await patiently(firefox, { channel: 'moz-firefox', executablePath, firefoxUserPrefs });
diagnostic(`Firefox ${browser.version()}`);
try {
  const own = await BerthPage.open(browser, server.url, { viewport: { width: 1280, height: 800 } });
  await checkExtras(own);
  await checkPage(own);
  await checkCamera(own);
  await checkSaving(own);
  await checkLink(browser, server.url);
  await checkPhone(browser, server.url);
  await check('Firefox: after loading again it has threads, from what the service worker kept', async () => {
    await own.loadKept();
    const wanted = Math.min(8, await own.page.evaluate(() => navigator.hardwareConcurrency));
    if (wanted > 1) expect((await own.text('state')).includes(`${wanted} threads`), await own.text('state'));
    await own.sample('lstm');
    await own.run();
  });
  await check('Firefox complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
} finally {
  await browser.close();
  await server.close();
}
done();
