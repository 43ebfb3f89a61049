/** The network that reads digits learns a user's drawings, in the browser; and results of steps on a GPU are shown. */
import { BerthPage, launch, strokes } from './browser.mjs';
import { serve } from './server.mjs';
import { check, done, expect, expectEqual } from './tap.mjs';

const server = await serve(process.env.BERTH_WEB);
const browser = await launch();

const cross = [[[0.5, 0.15], [0.5, 0.85]], [[0.2, 0.5], [0.8, 0.5]]];
const smaller = cross.map((line) => line.map(([x, y]) => [0.1 + 0.75 * x, 0.15 + 0.75 * y]));

async function draw(own, lines) {
  await own.page.locator('#digit-clear').click();
  await own.verdict('–');
  await own.draw(lines);
  await own.page.waitForFunction(() => document.getElementById('digit-verdict').textContent !== '–');
}

const fact = async (own, name) => Number(await own.test('teach').getAttribute(`data-${name}`));

async function learn(own) {
  await own.page.evaluate(() => { document.getElementById('teach-says').textContent = ''; });
  await own.test('teach-learn').click();
  await own.page.waitForFunction(() => document.getElementById('teach-says').textContent !== ''
    || !document.getElementById('alert-digit').hidden);
  expect(await own.page.locator('#alert-digit').isHidden(), await own.text('alert-digit'));
}

async function checkSign() {
  const own = await BerthPage.open(browser, server.url, { viewport: { width: 1280, height: 800 } });
  await check('the memory that learning takes is there before it begins', async () => {
    await own.page.locator('#teach summary').click();
    await own.page.waitForSelector('#teach-memory[data-bytes]');
    const size = await own.bytes('teach-memory');
    expect(size > 500000 && size < 8e6, `${size} bytes`);
    expect((await own.text('teach-memory')).includes(`${size.toLocaleString('en')} bytes`), await own.text('teach-memory'));
    expect(await own.test('teach-learn').isDisabled(), 'it would learn nothing');
  });
  await check('nothing that is drawn is no example', async () => {
    await own.page.locator('#digit-clear').click();
    await own.verdict('–');
    await own.test('teach-10').click();
    expectEqual(await own.text('teach-says'), 'Draw something first.', 'it says');
  });
  await check('a sign of the user is learned: the loss falls, the verdict changes, the digits stay', async () => {
    await draw(own, smaller);
    await own.test('teach-10').click();
    await draw(own, cross);
    const before = await own.text('digit-verdict');
    await own.test('teach-10').click();
    await own.page.waitForFunction(() => document.querySelectorAll('#teach-examples li').length === 2);
    await learn(own);
    expect((await fact(own, 'last')) < 0.2 * (await fact(own, 'first')), await own.text('teach-says'));
    expectEqual(await fact(own, 'allocations'), 0, 'allocations');
    expect((await fact(own, 'after')) >= 190 && (await fact(own, 'before')) >= 190, await own.text('teach-says'));
    expect(before !== '★' && (await own.verdict('★')) === '★', `it was taken for ${before}, and now for ${await own.text('digit-verdict')}`);
    expectEqual((await own.probabilities()).length, 11, 'classes');
    await draw(own, strokes[7]);
    expectEqual(await own.verdict('7'), '7', 'a digit');
  });
  await check('a verdict is corrected, and what was learned before stays', async () => {
    await draw(own, strokes[7]);
    await own.test('teach-2').click();
    await own.page.waitForFunction(() => document.querySelectorAll('#teach-examples li').length === 3);
    await learn(own);
    expectEqual(await own.verdict('2'), '2', 'a 7 that is to be a 2');
    await draw(own, cross);
    expectEqual(await own.verdict('★'), '★', 'the sign');
  });
  await check('it forgets when it is told to', async () => {
    await own.test('teach-forget').click();
    await own.page.waitForFunction(() => document.querySelectorAll('#digit-bars li').length === 10);
    await draw(own, strokes[7]);
    expectEqual(await own.verdict('7'), '7', 'verdict');
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

async function checkPhone() {
  const own = await BerthPage.open(browser, server.url, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await check('on a phone, by keys alone, a digit is taught', async () => {
    await own.page.locator('#teach summary').focus();
    await own.page.keyboard.press('Enter');
    await own.page.locator('#digit-pad').focus();
    for (const key of ['Backspace', ' ', ...Array(13).fill('ArrowDown'), ...Array(8).fill('ArrowRight'), ' ']) await own.page.keyboard.press(key);
    await own.page.waitForFunction(() => document.getElementById('digit-verdict').textContent !== '–');
    await own.test('teach-5').focus();
    await own.page.keyboard.press('Enter');
    await own.page.locator('#teach-examples li').waitFor();
    await own.test('teach-learn').focus();
    await own.page.keyboard.press('Enter');
    await own.page.waitForFunction(() => document.getElementById('teach-says').textContent !== '');
    expectEqual(await own.verdict('5'), '5', 'verdict');
  });
  await check('nothing is wider than the phone', async () => {
    expect(await own.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it scrolls sideways');
  });
  await own.close();
}

/** The selection in the animation after keys, and the text below its picture. */
async function seenOn(own, device) {
  await own.device(device);
  await own.page.waitForFunction((on) => document.getElementById('digit-time').textContent.includes(` on ${on};`), device);
  await own.page.waitForSelector('#play[data-steps]:not([data-playing])');
  await own.test('play-scrubber').evaluate((range) => {
    range.value = range.max;
    range.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const words = {};
  await own.test('play-canvas').focus();
  for (let i = 0; i < 3; i++) {
    await own.page.keyboard.press('ArrowRight');
    const name = await own.page.locator('#play').getAttribute('data-chosen');
    await own.page.waitForSelector(`#play [data-name="${name}"]`);
    words[name] = await own.page.locator('#play figcaption').textContent();
  }
  return words;
}

async function checkGpu() {
  const own = await BerthPage.open(browser, server.url);
  await check('what steps made on the GPU is seen as on the CPU, integers too', async () => {
    await own.page.waitForSelector('[data-test=device-webgpu]');
    const [cpu, gpu] = [await seenOn(own, 'cpu'), await seenOn(own, 'webgpu')];
    expect('class' in gpu && 'probabilities' in gpu, JSON.stringify(gpu));
    expectEqual([gpu.class, gpu.probabilities], [cpu.class, cpu.probabilities], 'what is seen');
  });
  await check('a sign is learned on the GPU, too', async () => {
    await own.page.locator('#teach summary').click();
    await draw(own, cross);
    await own.test('teach-10').click();
    await own.page.locator('#teach-examples li').waitFor();
    await learn(own);
    expectEqual(await own.verdict('★'), '★', 'verdict');
  });
  await check('the browser complained about nothing, with a GPU', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

const only = process.argv[2]; // the name of a part, to run only that
try {
  for (const part of [checkSign, checkPhone, checkGpu]) if (!only || part.name === only) await part();
} finally {
  await browser.close();
  await server.close();
}
done();
