/** The page in Firefox, which playwright-core drives through WebDriver BiDi: it loads, recognises a digit, opens files,
 * plans, runs and writes; once as plain hosting serves it, and once with threads. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthPage, require, strokes } from './browser.mjs';
import { expectOutputs, generateNative, runNative } from './native.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site, BERTH_FIREFOX: executablePath } = process.env;
const { firefox } = require('playwright-core');
const work = join(process.env.BERTH_WEB_TESTS, 'firefox');
mkdirSync(work, { recursive: true });

/** What plays, slides, and is searched; downloads are not told of over BiDi, so the GIF is heard of where it is made. */
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
const browser = await firefox.launch({ channel: 'moz-firefox', executablePath });
diagnostic(`Firefox ${browser.version()}`);
try {
  const own = await BerthPage.open(browser, server.url, { viewport: { width: 1280, height: 800 } });
  await checkExtras(own);
  await checkPage(own);
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
