/** What makes the page worth passing on: a plan that plays, its memory as a slider, and what comes of both. */
import { readFileSync } from 'node:fs';
import { BerthPage, launch, strokes } from './browser.mjs';
import { serve } from './server.mjs';
import { check, done, expect, expectEqual } from './tap.mjs';

const server = await serve(process.env.BERTH_WEB);
const browser = await launch([]);

const stepOf = (own, id) => own.page.locator(`#${id}`).getAttribute('data-step').then(Number);

/** Goes to a step by the scrubber, as keys do. */
const scrub = (own, id, step) =>
  own.test(`${id}-scrubber`).evaluate((range, value) => {
    range.value = value;
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }, step);

/** What a click on a button saves. */
async function saved(own, act) {
  const [download] = await Promise.all([own.page.waitForEvent('download'), act()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

async function checkHero() {
  const own = await BerthPage.open(browser, server.url);
  await check('a digit is there at once, and the harbour plays while it is recognised', async () => {
    await own.page.waitForSelector('#play[data-playing]');
    expectEqual(await own.verdict('3'), '3', 'verdict');
    await own.page.waitForFunction(() => Number(document.getElementById('play').dataset.step) > 2);
    await own.page.waitForSelector('#play:not([data-playing])');
    const steps = Number(await own.page.locator('#play').getAttribute('data-steps'));
    expectEqual(await stepOf(own, 'play'), steps - 1, 'it ends at the last step');
  });
  await check('the first screen has the block in bytes, and the harbour in sight', async () => {
    const [size, box] = [await own.bytes('harbour-size'), await own.test('play-canvas').boundingBox()];
    expect(size > 0 && size < Number(await own.page.locator('#play').getAttribute('data-grown')), `${size} bytes`);
    expect(box.y + box.height <= 800 || box.y < 500, `the harbour is at ${JSON.stringify(box)}`);
  });
  await check('the scrubber goes to a step, and says what is alive there', async () => {
    await scrub(own, 'play', 2);
    expectEqual(await stepOf(own, 'play'), 2, 'step');
    expect((await own.test('play-says').textContent()).startsWith('step 3 of'), await own.test('play-says').textContent());
    expect(await own.page.locator('#play[data-playing]').count() === 0, 'it plays on');
  });
  await check('keys alone choose a buffer, and its tensor is shown', async () => {
    await own.test('play-canvas').focus();
    await own.page.keyboard.press('ArrowRight');
    const name = await own.page.locator('#play').getAttribute('data-chosen');
    expect(name !== '' && (await own.test('play-detail').textContent()).includes(name), `'${name}' is chosen`);
    await own.page.waitForSelector('#play .tensor, #play[data-seen=""]');
  });
  await check('a buffer that a step made is seen with its numbers', async () => {
    const steps = Number(await own.page.locator('#play').getAttribute('data-steps'));
    await scrub(own, 'play', steps - 1);
    await own.test('play-canvas').focus();
    await own.page.keyboard.press('ArrowRight');
    await own.page.locator('#play .tensor').waitFor();
    expect(/\d.* to .*\d/.test(await own.page.locator('#play figcaption').textContent()), 'it has no range');
  });
  await check('what a user draws takes the place of the digit that was shown', async () => {
    await own.draw(strokes[7]);
    expectEqual(await own.verdict('7'), '7', 'verdict');
  });
  await check('it is saved as a GIF that a browser reads, with a frame for every step', async () => {
    const { name, bytes } = await saved(own, () => own.test('play-gif').click());
    expectEqual(name, 'digits.gif', 'name');
    const frames = await own.page.evaluate(async (base64) => {
      const data = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      const decoder = new ImageDecoder({ data, type: 'image/gif' });
      await Promise.all([decoder.tracks.ready, decoder.completed]);
      const { image } = await decoder.decode({ frameIndex: decoder.tracks.selectedTrack.frameCount - 1 });
      return { count: decoder.tracks.selectedTrack.frameCount, width: image.displayWidth, height: image.displayHeight };
    }, bytes.toString('base64'));
    const steps = Number(await own.page.locator('#play').getAttribute('data-steps'));
    expect(frames.count >= steps && frames.width === 720 && frames.height === 400, JSON.stringify(frames));
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

/** Drags the memory slider to a thousandth of its way, and waits for the plan. */
const dragTo = (own, at) =>
  own.replanned(() =>
    own.test('budget-slider').evaluate((range, value) => {
      range.focus();
      range.value = value;
      range.dispatchEvent(new Event('input', { bubbles: true }));
    }, at));

async function checkSlider() {
  const own = await BerthPage.open(browser, server.url);
  const fact = async (name) => Number(await own.page.locator('#budgeter').getAttribute(`data-${name}`));
  await check('the plan follows the memory slider, with its price in words', async () => {
    await own.sample('mobilenet');
    await own.bind({ height: 96, width: 96 });
    const whole = await own.bytes('arena');
    expectEqual(await fact('arena'), whole, 'the whole');
    await dragTo(own, 500);
    const half = await own.bytes('arena');
    expect(half < whole && (await fact('less')) > 0 && (await fact('slices')) > 0, `${half} of ${whole} bytes`);
    const words = await own.text('budget-price');
    expect(/^\d+ % less memory beside the weights, \d+ slices?, [\d.]+ % more work$/.test(words), words);
  });
  await check('a budget that no plan meets goes to the smallest that there is', async () => {
    await dragTo(own, 0);
    const least = await own.bytes('arena');
    expect(await own.page.locator('#alert-plan').isHidden(), await own.text('alert-plan'));
    expect((await own.text('budget-ends')).includes('smallest found'), await own.text('budget-ends'));
    await dragTo(own, 1000);
    expect(await own.bytes('arena') > least, 'without a limit it takes no more');
  });
  await check('what was planned with less memory gives the same numbers', async () => {
    const outputs = await own.run();
    await dragTo(own, 300);
    const sliced = await own.run();
    outputs.probabilities.data.forEach((element, i) =>
      expect(Math.abs(element - sliced.probabilities.data[i]) <= 1e-6, `element ${i} differs`));
  });
  await check('the time of each op is shown, and sums up', async () => {
    await own.test('profile-go').click();
    await own.page.waitForSelector('#profile[data-total]');
    const rows = await own.page.locator('#profile tr[data-op]').evaluateAll((all) => all.map(({ dataset }) => [dataset.op, Number(dataset.ms)]));
    const total = Number(await own.page.locator('#profile').getAttribute('data-total'));
    expect(rows.some(([op]) => /conv/.test(op)), `ops: ${rows}`);
    expect(Math.abs(rows.reduce((sum, [, ms]) => sum + ms, 0) - total) < 1e-6 * total + 1e-9, `${rows} of ${total} ms`);
  });
  await check('the plan that is open plays too, and a click shows a tensor of it', async () => {
    await own.sample('lstm');
    await own.page.locator('#plan-play-box summary').click();
    await own.page.waitForSelector('#plan-play[data-steps]');
    await scrub(own, 'plan-play', 3);
    await own.test('plan-play-canvas').focus();
    await own.page.keyboard.press('ArrowRight');
    await own.page.waitForSelector('#plan-play[data-seen]');
    const name = await own.page.locator('#plan-play').getAttribute('data-chosen');
    expectEqual(await own.page.locator('#picture').getAttribute('data-selected'), name, 'in the picture');
  });
  await check('another model has its whole memory again', async () => {
    await own.sample('unet');
    expectEqual(await own.page.locator('#budget').inputValue(), '', 'budget');
    expectEqual(await fact('less'), 0, 'less');
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

async function checkStill() {
  const own = await BerthPage.open(browser, server.url, { reducedMotion: 'reduce' });
  await check('who asked for less motion sees it stand still until it is played', async () => {
    await own.verdict('3');
    await own.page.waitForSelector('#play[data-step]');
    await own.idle();
    expectEqual(await own.page.locator('#play[data-playing]').count(), 0, 'playing');
    await own.test('play-button').click();
    await own.page.waitForSelector('#play[data-playing]');
  });
  await own.close();
}

await checkHero();
await checkSlider();
await checkStill();
await browser.close();
await server.close();
done();
