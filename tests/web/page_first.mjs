/**
 * First contacts: a dropped file shows its plan, or why there is none, where the user is looking; models run at the
 * first click; and pictures are correct.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthPage, launch } from './browser.mjs';
import { expectOutputs, planNative, runNative } from './native.mjs';
import { writeNpy } from './npy.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual, skip } from './tap.mjs';

const { BERTH_SRC: source, BERTH_WEB: site } = process.env;
const work = join(process.env.BERTH_WEB_TESTS, 'first');
mkdirSync(work, { recursive: true });

const put = (name, bytes) => {
  writeFileSync(join(work, name), bytes);
  return join(work, name);
};

const small = readFileSync(join(source, 'tests/onnx/models/small.onnx'));
const good = join(source, 'web/page/samples/unet.berth');

/** Files that are not models, with the expected message for each. */
const bad = {
  'cut.onnx': [small.subarray(0, small.length >> 1), /damaged|missing/],
  'cat.onnx': [Buffer.from('89504e470d0a1a0a0000000d', 'hex'), /picture/],
  'pointer.onnx': ['version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n', /Git LFS/],
  'saved.onnx': ['<!DOCTYPE html><html>not found</html>', /web page/],
  'model.pt': [Buffer.from('504b0304', 'hex'), /ZIP/],
  'nothing.onnx': ['', /empty/],
  'notes.txt': ['to buy: milk', /not a model/],
};

const isInSight = (own, selector) => own.page.locator(selector).evaluate((element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight && element.checkVisibility();
});

async function checkDrops(browser, url, name, options) {
  const own = await BerthPage.open(browser, url, options);
  await check(`${name}: a file that is dropped shows its plan in sight`, async () => {
    await own.replanned(() => own.drop(good));
    expect(await isInSight(own, '#arena'), 'the size is out of sight');
    expect(await isInSight(own, '#model-name'), 'the name is out of sight');
    expect((await own.text('opened')).includes('unet.berth'), `beside the button it says: ${await own.text('opened')}`);
  });
  for (const [file, [bytes, wanted]] of Object.entries(bad)) {
    await check(`${name}: ${file} is explained in sight, and nothing of the model before is left`, async () => {
      await own.replanned(() => own.drop(put(file, bytes)));
      const alert = own.page.locator('#alert-network');
      const words = await alert.locator('.alert-what').textContent();
      diagnostic(words);
      expect(words.includes(file) && wanted.test(words), words);
      expect(/^[^.]*\.?[^.]*\.$/.test(words) && words.length < 120, `not one plain sentence: ${words}`);
      expect(await isInSight(own, '#alert-network'), 'the alert is out of sight');
      const [page, section] = (await own.test('help').first().getAttribute('href')).split('#');
      expect(readFileSync(join(site, page), 'utf8').includes(`id="${section}"`), `there is no help about ${section}`);
      await expectNothingLeft(own, file);
    });
  }
  await check(`${name}: after that it goes on`, async () => {
    await own.replanned(() => own.drop(good));
    expectEqual(await own.page.locator('.alert:not([hidden])').count(), 0, 'alerts');
    await own.bind({ height: 32, width: 32 });
    await own.run();
  });
  await check(`${name}: after a plan that cannot be, nothing of the one before is left`, async () => {
    const never = put('never.berth', 'graph "never" {\n  input %x : f32[4]\n  input %s : i64[2]\n  %z = reshape(%x, %s)\n  output "z" = %z\n}\n');
    await own.replanned(() => own.drop(never));
    await own.page.locator('#alert-plan').waitFor({ state: 'visible' });
    expect(await isInSight(own, '#alert-plan'), 'the alert is out of sight');
    await expectNothingLeft(own, 'never.berth');
  });
  expectEqual(own.errors, [], 'complaints');
  await own.close();
}

async function expectNothingLeft(own, file) {
  expect((await own.text('model-name')).includes(file), `the title is ${await own.text('model-name')}`);
  expect(await own.page.locator('#planned').isHidden(), 'there is a plan');
  expectEqual(await own.page.locator('#inputs fieldset').count(), 0, 'inputs');
  expectEqual(await own.page.locator('#outputs article').count(), 0, 'outputs');
  expect(await own.page.locator('#go').isDisabled(), 'it can be run');
  for (const what of ['#graph-canvas', '#graph-count', '#boards', '#link', '#badge'])
    expect(await own.page.locator(what).isHidden(), `${what} is there`);
}

/** Models that accept only certain inputs; the native program runs each, too, without given inputs. */
const careful = {
  'ids, token types and a mask': `graph "bert" {
  input %ids : i64[batch, seq]
  input %types : i64[batch, seq]
  input %mask : i64[batch, seq]
  param %words : f32[7, 8]
  param %kinds : f32[2, 8]
  const %one : f32[] = [1]
  const %low : f32[] = [-3.4028235e+38]
  %a = gather(%words, %ids)
  %b = gather(%kinds, %types)
  %x = add(%a, %b)
  %m = cast(%mask) {to = "f32"}
  %n = sub(%one, %m)
  %o = mul(%n, %low)
  %p = unsqueeze(%o) {axes = [1]}
  %t = transpose(%x) {perm = [0, 2, 1]}
  %s = matmul(%x, %t)
  %r = add(%s, %p)
  %q = softmax(%r) {axis = -1}
  output "q" = %q
}
`,
  'a sample rate': `graph "rate" {
  input %x : f32[n]
  input %sr : i64[]
  const %known : i64[] = [16000]
  %is = eq(%sr, %known)
  %y = neg(%x)
  %z = where(%is, %x, %y)
  output "z" = %z
}
`,
  'a size that it needs': `graph "audio" {
  input %x : f32[batch, 1, samples]
  param %w : f32[4, 1, 256]
  %c = conv(%x, %w) {strides = [4]}
  output "c" = %c
}
`,
};

async function checkFirstClick(own) {
  for (const [what, text] of Object.entries(careful)) {
    await check(`a model with ${what} runs at the first click, as natively`, async () => {
      const file = put('careful.berth', text);
      await own.chooseModel(file);
      expect(await own.page.locator('#alert-plan').isHidden(), await own.text('alert-plan'));
      const fields = await own.page.locator('#dims input').evaluateAll((all) => all.map(({ dataset, value }) => [dataset.dim, value]));
      const outputs = await own.run();
      for (const { data } of Object.values(outputs)) expect(data.every(Number.isFinite), 'not all of it is finite');
      expectOutputs(outputs, runNative([file, '--random-weights'], { dims: Object.fromEntries(fields) }), 'cpu');
    });
  }
  const real = process.env.BERTH_MODELS ?? join(source, '../shared/data/models');
  for (const name of ['silero_vad_v5', 'ch_ppocr_mobile_v2.0_cls_infer', 'stories260K/stories260K_kv', 'mobilenet_v2_qdq_int8']) {
    const [folder, base = folder] = name.split('/');
    const file = join(real, folder, `${base}.onnx`);
    const title = `${base} runs at the first click`;
    if (!existsSync(file)) {
      skip(title, 'there are no real models; BERTH_MODELS names a folder of them');
      continue;
    }
    await check(title, async () => {
      await own.chooseModel(file);
      const outputs = await own.run();
      for (const { data } of Object.values(outputs)) expect(data.every(Number.isFinite), 'not all of it is finite');
    });
  }
  await check('an array of another shape binds the dimensions', async () => {
    await own.sample('unet');
    const file = join(work, 'tall.npy');
    writeNpy(file, [1, 3, 64, 32], new Float32Array(3 * 64 * 32).fill(0.5));
    await own.replanned(() => own.giveInputs({ image: file }));
    expectEqual([await own.test('dim-height').inputValue(), await own.test('dim-width').inputValue()], ['64', '32'], 'dimensions');
    expect(await own.page.locator('#alert-run').isHidden(), await own.text('alert-run'));
    expectEqual((await own.run()).mask.shape, [1, 1, 64, 32], 'the shape of the output');
  });
}

/* ---- ONNX with its weights in another file ---- */

const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >> 7)]);
const field = (number, content) => {
  const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
};
const int = (number, value) => Buffer.from([...varint(number << 3), ...varint(value)]);
const tensorType = (name) => {
  const shape = field(2, field(1, int(1, 4)));
  return Buffer.concat([field(1, name), field(2, field(1, Buffer.concat([int(1, 1), shape])))]);
};

/** y = x + w of four numbers, with w in `location`. */
function externalModel(location) {
  const entry = Buffer.concat([field(1, 'location'), field(2, location)]);
  const tensor = Buffer.concat([int(1, 4), int(2, 1), field(8, 'w'), field(13, entry), int(14, 1)]);
  const node = Buffer.concat([field(1, 'x'), field(1, 'w'), field(2, 'y'), field(4, 'Add')]);
  const graph = Buffer.concat([field(1, node), field(2, 'sum'), field(5, tensor), field(11, tensorType('x')), field(12, tensorType('y'))]);
  return Buffer.concat([int(1, 8), field(7, graph), field(8, int(2, 13))]);
}

async function checkExternal(own) {
  const model = put('sum.onnx', externalModel('sum.onnx_data'));
  const weights = put('sum.onnx_data', Buffer.from(new Float32Array([1, 2, 3, 4]).buffer));
  const x = join(work, 'x.npy');
  writeNpy(x, [4], new Float32Array([10, 20, 30, 40]));
  await check('a model in two files runs when both are given', async () => {
    await own.opened('sum.onnx', () => own.page.locator('#file').setInputFiles([weights, model]));
    await own.giveInputs({ x });
    expectEqual((await own.run()).y.data, [11, 22, 33, 44], 'the sum');
  });
  await check('without the other it says which one it needs', async () => {
    await own.replanned(() => own.page.locator('#file').setInputFiles(model));
    const words = await own.text('alert-network');
    expect(/sum\.onnx_data/.test(words) && /both/i.test(words), words);
  });
}

/* ---- Pictures ---- */

async function checkLooks(own) {
  await check('activations leave out what only prepares weights', async () => {
    await own.sample('unet');
    const { steps } = planNative([good], { dims: { height: 128, width: 128 } });
    const first = steps.findIndex(({ prelude }) => !prelude);
    expect(first > 0, 'nothing is prepared: this test shows nothing');
    expectEqual(Number(await own.page.locator('#picture').getAttribute('data-first')), first, 'the first step of the picture');
    expect(!/Preparing/.test(await own.text('legend')), await own.text('legend'));
    await own.test('show-arena').click();
    expectEqual(Number(await own.page.locator('#picture').getAttribute('data-first')), 0, 'the first step of the whole block');
    await own.test('show-activations').click();
  });
  await check('a value has the hue of its role', async () => {
    const words = await own.text('legend');
    for (const role of ['Inputs', 'Products', 'Moved', 'Outputs']) expect(words.includes(role), words);
  });
  await check('the picture that is saved is the one on the screen', async () => {
    const [download] = await Promise.all([own.page.waitForEvent('download'), own.test('save-svg').click()]);
    const svg = readFileSync(await download.path(), 'utf8');
    const share = await own.page.evaluate(compareWithScreen, svg);
    diagnostic(`${(100 * share).toFixed(1)} % of the pixels are the same`);
    expect(share > 0.97, `${(100 * share).toFixed(1)} % of the pixels are the same`);
  });
  await check('labels in the picture do not touch each other', async () => {
    const svg = await own.page.evaluate(() => window.berthPage.pictureSvg('labels'));
    const labels = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)" text-anchor="start"[^>]*>([^<]*)</g)]
      .map(([, x, y, text]) => ({ x: Number(x), y: Number(y), text }));
    expect(labels.length > 8, `${labels.length} labels`);
    const wide = ({ text }) => 4.6 * text.length;
    for (const a of labels)
      for (const b of labels)
        expect(a === b || Math.abs(a.y - b.y) >= 11 || a.x + wide(a) <= b.x || b.x + wide(b) <= a.x, `${a.text} and ${b.text}`);
  });
  await check('the table is not cut off', async () => {
    const [wide, room] = await own.page.locator('#table-box .scroll').evaluate(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth]);
    expect(wide <= room, `${wide} pixels in ${room}`);
  });
  await check('a heat map has the proportions of its numbers', async () => {
    await own.bind({ height: 32, width: 96 });
    await own.run();
    const box = await own.test('output-mask').locator('.heat').boundingBox();
    expect(Math.abs(box.width / box.height - 3) < 0.05, `${box.width} by ${box.height} for 96 by 32`);
  });
  await check('few runs are a bar each, many are spread', async () => {
    await own.run(5);
    expectEqual(await own.test('runs-each').locator('.slot').count(), 5, 'bars');
    await own.run(64);
    expectEqual(await own.test('runs-spread').locator('.slot').count(), 8, 'bins');
  });
}

/** In the page: the fraction of the canvas that looks like the SVG. */
async function compareWithScreen(svg) {
  const canvas = document.getElementById('picture');
  const { width, height } = canvas.getBoundingClientRect();
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  await image.decode();
  const [x, y] = svg.match(/viewBox="([-\d.]+) ([-\d.]+)/).slice(1).map(Number);
  const pixels = (draw) => {
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.fillStyle = getComputedStyle(canvas).backgroundColor;
    context.fillRect(0, 0, width, height);
    draw(context);
    return context.getImageData(0, 0, width, height).data;
  };
  const a = pixels((context) => context.drawImage(canvas, 0, 0, width, height));
  const b = pixels((context) => context.drawImage(image, x, y));
  let same = 0;
  for (let i = 0; i < a.length; i += 4) same += [0, 1, 2].every((c) => Math.abs(a[i + c] - b[i + c]) < 24);
  return same / (a.length / 4);
}

async function checkForcedColours(browser, url) {
  const own = await BerthPage.open(browser, url, { viewport: { width: 1280, height: 800 }, forcedColors: 'active' });
  await check('with forced colours the picture still tells roles apart', async () => {
    await own.sample('unet');
    const colours = await own.page.evaluate(() => {
      const svg = window.berthPage.pictureSvg('forced');
      return new Set([...svg.matchAll(/<rect[^>]* fill="(rgb[^"]*)"/g)].map(([, colour]) => colour)).size;
    });
    expect(colours >= 5, `${colours} colours`);
    await own.page.screenshot({ path: join(work, 'forced-colours.png') });
  });
  await own.close();
}

const server = await serve(site);
const browser = await launch([]);
try {
  const views = {
    '1280 by 800': { viewport: { width: 1280, height: 800 } },
    'a phone': { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  };
  for (const [name, options] of Object.entries(views)) await checkDrops(browser, server.url, name, options);
  const own = await BerthPage.open(browser, server.url, views['1280 by 800']);
  await checkFirstClick(own);
  await checkExternal(own);
  await checkLooks(own);
  await check('the browser complained about nothing', () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
  await checkForcedColours(browser, server.url);
} finally {
  await browser.close();
  await server.close();
}
done();
