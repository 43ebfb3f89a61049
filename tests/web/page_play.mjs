/** Features for sharing: an animated plan, the memory slider, and files made from both. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthPage, launch, strokes } from './browser.mjs';
import { serve } from './server.mjs';
import { check, done, expect, expectEqual } from './tap.mjs';

const only = process.argv[2]; // the name of a part, to run only that
const server = await serve(process.env.BERTH_WEB);
const browser = await launch([]);

const stepOf = (own, id) => own.page.locator(`#${id}`).getAttribute('data-step').then(Number);

/** Moves to a step with the scrubber, like keys do. */
const scrub = (own, id, step) =>
  own.test(`${id}-scrubber`).evaluate((range, value) => {
    range.value = value;
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }, step);

/** The file that a click on a button saves. */
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
  await check('it is saved as a video that a browser plays', async () => {
    const { name, bytes } = await saved(own, () => own.test('play-video').click());
    expect(/^digits\.(webm|mp4)$/.test(name), name);
    const blank = await own.context.newPage(); // the page's own policy blocks videos
    const film = await blank.evaluate(async (base64) => {
      const video = document.createElement('video');
      video.muted = true;
      video.src = `data:video/webm;base64,${base64}`;
      await new Promise((resolve, reject) => {
        video.onended = resolve;
        video.onerror = () => reject(new Error(video.error.message));
        video.playbackRate = 8;
        video.play().catch(reject);
      });
      return { width: video.videoWidth, height: video.videoHeight, seconds: video.currentTime };
    }, bytes.toString('base64'));
    await blank.close();
    expect(film.width === 720 && film.height === 400 && film.seconds > 2, JSON.stringify(film));
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

/** Drags the memory slider to a position in thousandths, and waits for the plan. */
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
    expect(/^\d+ % less memory beside the weights, \d+ slices?, ([\d.]+ %|no) more work$/.test(words), words);
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

/** A server of another origin, because of another port. */
async function checkLinks() {
  const open = await serve(join(process.env.BERTH_SRC, 'web/page/samples'), { 'Access-Control-Allow-Origin': '*' });
  const closed = await serve(join(process.env.BERTH_SRC, 'web/page/samples'));
  const link = (address, rest = '') => `${server.url}#model=${encodeURIComponent(address)}${rest}`;
  const own = await BerthPage.open(browser, link(`${open.url}lstm.berth`, '&dims=frames:10,batch:2&budget=4M'));
  await check('a link opens a model of another server, with its dimensions and its budget', async () => {
    expect((await own.text('model-name')).includes('lstm.berth'), await own.text('model-name'));
    expectEqual([await own.test('dim-frames').inputValue(), await own.test('dim-batch').inputValue()], ['10', '2'], 'dimensions');
    expectEqual(await own.page.locator('#budget').inputValue(), '4096', 'budget');
  });
  await check('the link that is passed on is the one that was opened, and nothing was uploaded', async () => {
    const made = new URL(await own.test('link').inputValue());
    expectEqual(new URLSearchParams(made.hash.slice(1)).get('model'), `${open.url}lstm.berth`, 'model');
    expect(made.hash.includes('dims=frames:10,batch:2') && made.hash.includes('budget=4096K'), made.hash);
    expect((await own.text('link-hint')).includes('Nothing is uploaded'), await own.text('link-hint'));
  });
  await check('a link to a sample takes its place', async () => {
    await own.replanned(() => own.page.evaluate(() => { location.hash = '#sample=unet&dims=height:64,width:64'; }));
    expect((await own.text('model-name')).includes('unet'), await own.text('model-name'));
    expectEqual(await own.test('dim-height').inputValue(), '64', 'height');
    expectEqual(await own.errors, [], 'complaints');
  });
  await check('what is opened by hand takes the link away', async () => {
    await own.sample('keywords');
    expectEqual(new URL(own.page.url()).hash, '', 'the address');
  });
  await check('of a language model elsewhere the header is enough', async () => {
    const talking = await serve(join(process.env.BERTH_SRC, 'examples/tale'), { 'Access-Control-Allow-Origin': '*' });
    await own.replanned(() => own.page.evaluate((hash) => { location.hash = hash; }, new URL(link(`${talking.url}tale.gguf`)).hash));
    await own.fitted();
    expect((await own.text('model-name')).includes('tale.gguf'), await own.text('model-name'));
    await talking.close();
  });
  await check('a server that lets nobody read says so, and so does a link that is wrong', async () => {
    await own.page.evaluate((hash) => { location.hash = hash; }, new URL(link(`${closed.url}unet.berth`)).hash);
    await own.page.locator('#alert-network').waitFor({ state: 'visible' });
    expect((await own.text('alert-network')).includes('CORS'), await own.text('alert-network'));
    await own.page.evaluate(() => { location.hash = '#sample=nothing'; });
    await own.page.waitForFunction(() => document.getElementById('alert-network').textContent.includes('There is no sample'));
  });
  await own.close();
  await Promise.all([open.close(), closed.close()]);
}

async function checkShare() {
  const own = await BerthPage.open(browser, server.url, { acceptDownloads: true });
  const stateOf = (id) => own.test(`board-${id}`).getAttribute('data-state');
  await check('boards have a verdict: the digits fit everywhere, a MobileNet does not', async () => {
    await own.page.waitForSelector('#boards:not([data-asking])');
    expectEqual(await Promise.all(['pico', 'esp32', 'tab', 'board'].map(stateOf)), ['fits', 'fits', 'fits', 'fits'], 'digits');
    await own.sample('mobilenet');
    await own.page.waitForSelector('#boards:not([data-asking])');
    expectEqual(await Promise.all(['pico', 'esp32', 'tab', 'board'].map(stateOf)), ['no', 'no', 'fits', 'fits'], 'mobilenet');
  });
  await check('keywords fit a Pico, weights in flash', async () => {
    await own.sample('keywords');
    await own.page.waitForSelector('#boards:not([data-asking])');
    expectEqual(await stateOf('pico'), 'fits', 'keywords');
    expect((await own.test('board-pico').textContent()).includes('of flash for the weights'), await own.test('board-pico').textContent());
  });
  await check('a board that is too small is asked with a budget', async () => {
    await own.sample('unet');
    await own.bind({ height: 64, width: 64 });
    await own.page.waitForSelector('#boards:not([data-asking])');
    const words = await own.test('board-pico').textContent();
    expect(/fits|less memory|the smallest plan found takes/.test(words), words);
  });
  await check('the card is a picture of 1200 by 630, and an SVG', async () => {
    const { name, bytes } = await saved(own, () => own.test('save-card').click());
    expectEqual(name, 'unet-fits.png', 'name');
    expectEqual([bytes.toString('latin1', 1, 4), bytes.readUInt32BE(16), bytes.readUInt32BE(20)], ['PNG', 1200, 630], 'PNG');
    const svg = await saved(own, () => own.test('save-card-svg').click());
    expect(svg.bytes.toString().includes('Will it fit?') && svg.bytes.toString().includes('ESP32'), 'SVG');
  });
  await check('the badge has the size of the block, and a line for a README', async () => {
    const badge = await saved(own, () => own.test('save-badge').click());
    const size = (await own.text('arena')).trim();
    expect(badge.bytes.toString().includes(size), size);
    const line = await own.test('badge-markdown').inputValue();
    expect(line.startsWith(`[![memory: ${size}](memory.svg)](${server.url}#sample=unet&dims=`), line);
  });
  await check('the plan is saved as JSON and as a report', async () => {
    const json = await saved(own, () => own.test('save-plan').click());
    const plan = JSON.parse(json.bytes.toString());
    expectEqual([json.name, plan.model, plan.arena_size], ['unet.json', 'unet', await own.bytes('arena')], 'JSON');
    expect(plan.values.length > 10 && plan.steps.length > 10, 'values and steps');
    const report = await saved(own, () => own.test('save-report').click());
    expect(report.name === 'unet.html' && /<html/.test(report.bytes.toString()), report.name);
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

async function checkKept() {
  const own = await BerthPage.open(browser, server.url);
  const again = async () => {
    await own.page.reload();
    await own.ready();
    await own.idle();
  };
  await check('a file that was open is open again after a reload, with its dimensions', async () => {
    await own.chooseModel(join(process.env.BERTH_SRC, 'web/page/samples/lstm.berth'));
    await own.bind({ frames: 12 });
    await own.page.waitForSelector('html[data-kept="lstm.berth"]');
    await own.page.waitForFunction(() => !document.getElementById('kept').hidden);
    await again();
    expect((await own.text('model-name')).includes('lstm.berth'), await own.text('model-name'));
    expectEqual(await own.test('dim-frames').inputValue(), '12', 'frames');
    await own.run();
  });
  await check('it is forgotten when that is asked for', async () => {
    await own.test('forget').click();
    await own.page.waitForFunction(() => document.getElementById('kept').hidden);
    await own.bind({ frames: 13 }); // another plan does not bring it back
    await again();
    expect((await own.text('model-name')).includes('digits'), await own.text('model-name'));
  });
  await check('a sample is kept by its name', async () => {
    await own.sample('encoder');
    await own.page.waitForSelector('html[data-kept^="encoder"]'); // the first sample may only be stored now
    await again();
    expect((await own.text('model-name')).includes('encoder'), await own.text('model-name'));
    expectEqual(await own.test('sample-encoder').getAttribute('aria-pressed'), 'true', 'pressed');
  });
  await own.close();
}

/** A graph with n nodes. */
const chain = (n) => {
  const lines = Array.from({ length: n }, (_, i) => `  %v${i + 1} = ${i % 2 ? 'relu' : 'neg'}(%v${i})`);
  return `graph "chain" {\n  input %v0 : f32[4]\n${lines.join('\n')}\n  output "y" = %v${n}\n}\n`;
};

async function checkGraph() {
  const own = await BerthPage.open(browser, server.url);
  const see = () => own.page.locator('#graph').scrollIntoViewIfNeeded();
  await check('the graph is there, and a search goes to a node with its attributes and shapes', async () => {
    await own.sample('unet');
    await see();
    await own.page.waitForSelector('#graph[data-nodes="39"]');
    await own.test('graph-search').fill('max_pool');
    await own.test('graph-search').press('Enter');
    expectEqual(await own.page.locator('#graph').getAttribute('data-chosen'), 'pool0', 'chosen');
    const words = await own.test('graph-detail').textContent();
    expect(/kernel\[2, 2\]/.test(words) && words.includes('f32[1, 8, 64, 64]'), words);
    expect((await own.test('graph-found').textContent()).startsWith('3 found.'), await own.test('graph-found').textContent());
  });
  await check('keys alone go along the edges', async () => {
    await own.test('graph-canvas').focus();
    await own.page.keyboard.press('ArrowUp');
    expectEqual(await own.page.locator('#graph').getAttribute('data-chosen'), 'down0.b.relu', 'above it');
  });
  await check('a value of the graph leads to its bytes in the plan, and back', async () => {
    await own.test('graph-search').fill('skip1');
    await own.test('graph-search').press('Enter');
    const button = own.test('to-plan').last();
    await button.click();
    const name = await own.page.locator('#picture').getAttribute('data-selected');
    expect(name !== null, 'nothing is chosen in the picture');
    await own.page.locator('#filter').fill('logits');
    await own.page.waitForFunction(() => document.querySelectorAll('#tensors tbody tr').length < 8);
    const row = own.page.locator('#tensors tbody tr[data-name^="logits"] button').last();
    const wanted = await row.textContent();
    await row.click();
    if (/^logits$/.test(wanted))
      await own.page.waitForFunction(() => document.getElementById('graph').dataset.chosen === 'logits');
  });
  await check('a graph of 1,500 nodes is shown, and searched', async () => {
    const file = { name: 'chain.berth', mimeType: 'text/plain', buffer: Buffer.from(chain(1500)) };
    await own.opened('chain.berth', () => own.page.locator('#file').setInputFiles(file));
    await see();
    await own.page.waitForSelector('#graph[data-nodes="1500"]');
    await own.test('graph-search').fill('v1400');
    await own.test('graph-search').press('Enter');
    expectEqual(await own.page.locator('#graph').getAttribute('data-chosen'), 'v1400', 'chosen');
    await own.test('graph-fit').click();
  });
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

/** The browser's fake camera. */
async function checkCamera() {
  const seeing = await launch(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
  const own = await BerthPage.open(seeing, server.url, { permissions: ['camera'] });
  await check('the camera is an input, once and again and again', async () => {
    await own.sample('unet');
    await own.bind({ height: 32, width: 32 });
    await own.test('input-image').locator('[data-test=fill]').selectOption('camera');
    await own.page.waitForFunction(() => document.querySelector('.camera')?.videoWidth > 0);
    const { mask } = await own.run();
    expectEqual(mask.shape, [1, 1, 32, 32], 'shape');
    const counted = () => own.page.evaluate(() => {
      window.ranAgain = 0;
      new MutationObserver(() => { window.ranAgain++; }).observe(document.getElementById('outputs'), { childList: true });
    });
    await counted();
    await own.test('camera-live').click();
    await own.page.waitForFunction(() => window.ranAgain > 2);
    await own.test('camera-live').click();
    await own.page.waitForSelector('[data-test=camera-live][aria-pressed=false]');
  });
  await check('another choice gives the camera back', async () => {
    await own.test('input-image').locator('[data-test=fill]').selectOption('zeros');
    expect(await own.page.evaluate(() => document.querySelector('.camera').srcObject === null), 'it still looks');
  });
  await own.close();
  await seeing.close();
  const blind = await BerthPage.open(browser, server.url);
  await check('without a camera it says so', async () => {
    await blind.test('input-image').locator('[data-test=fill]').selectOption('camera');
    await blind.page.locator('#alert-run').waitFor({ state: 'visible' });
    expect((await blind.text('alert-run')).includes('The camera cannot be used'), await blind.text('alert-run'));
  });
  await check('classes have names where the kind of model is known, or a file has them', async () => {
    await blind.sample('digits');
    await blind.run();
    const { best } = { best: await blind.test('output-probabilities').locator('[data-test=best]').textContent() };
    expect(/^\d .*names of digits$/.test(best), best);
    const names = { name: 'names.txt', mimeType: 'text/plain', buffer: Buffer.from(Array.from({ length: 10 }, (_, i) => `class ${i}`).join('\n')) };
    await blind.test('labels-file').setInputFiles(names);
    await blind.page.waitForFunction(() => /^class \d/.test(document.querySelector('[data-test=output-probabilities] [data-test=best]').textContent));
  });
  await blind.close();
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

for (const part of [checkHero, checkSlider, checkLinks, checkShare, checkKept, checkGraph, checkCamera, checkStill])
  if (!only || part.name.includes(only)) await part();
await browser.close();
await server.close();
done();
