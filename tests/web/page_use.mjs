/** The page when operations are cancelled, changed while they run, saved, or replaced by a newer version. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BerthPage, launch, strokes } from './browser.mjs';
import { readNpy } from './npy.mjs';
import { serve } from './server.mjs';
import { check, done, expect, expectEqual } from './tap.mjs';

const { BERTH_WEB: site, BERTH_SRC: source } = process.env;
const work = mkdtempSync(join(tmpdir(), 'berth-page-'));

const idle = (own) =>
  own.page.waitForFunction(() => {
    const { documentElement: root } = document;
    return (
      !root.hasAttribute('data-busy') &&
      !root.hasAttribute('data-changed') &&
      !document.getElementById('go').hasAttribute('aria-disabled')
    );
  });

async function checkCancel(own) {
  await check('many runs end when they are called off, and say how many there were', async () => {
    await own.sample('unet');
    await own.page.locator('#repeats').fill('10000');
    await own.page.locator('#go').click();
    await own.page.waitForFunction(() => {
      const bar = document.getElementById('busy-bar');
      return bar.max === 10000 && bar.value > 1;
    });
    await own.page.waitForTimeout(1000); // before that, runs are cancelled like a long one
    await own.page.locator('#cancel').click();
    await idle(own);
    const runs = Number(/Ran (\d+) times/.exec(await own.text('run-live'))?.[1]);
    expect(runs > 1 && runs < 10000, await own.text('run-live'));
  });
  await check('what was called off in the middle leaves the page as it was', async () => {
    await own.bind({ height: 64, width: 64 });
    const arena = await own.bytes('arena');
    await own.page.locator('#repeats').fill('1');
    await own.page.evaluate(() => {
      document.getElementById('go').click();
      setTimeout(() => document.getElementById('cancel').click());
    });
    await own.page.waitForTimeout(500);
    await idle(own);
    expectEqual(await own.bytes('arena'), arena, 'the arena');
    expectEqual(await own.page.locator('.alert:not([hidden])').count(), 0, 'alerts');
    await own.run();
    await own.draw(strokes[7]);
    expectEqual(await own.verdict('7'), '7', 'the digit');
  });
  await check('planning that is called off is said, and a changed field plans again', async () => {
    await own.sample('encoder');
    await own.page.evaluate(() => {
      // exactly when it begins, because it may take milliseconds
      const root = document.documentElement;
      new MutationObserver((_, observer) => {
        if (!root.hasAttribute('data-busy')) return;
        observer.disconnect();
        document.getElementById('cancel').click();
      }).observe(root, { attributes: true });
    });
    await own.page.locator('[data-test=dim-seq]').fill('200');
    await own.page.locator('#alert-plan').waitFor({ state: 'visible' });
    expect(/called off/.test(await own.text('alert-plan')), await own.text('alert-plan'));
    await own.bind({ seq: 24 });
    expectEqual(await own.page.locator('.alert:not([hidden])').count(), 0, 'alerts');
    expect((await own.test('input-ids').textContent()).includes('i64[24]'), 'the input has another shape');
  });
}

async function checkSwitching(own) {
  await check('the last of several samples in a row is the one that is shown', async () => {
    for (const name of ['unet', 'lstm', 'encoder', 'digits', 'lstm']) await own.test(`sample-${name}`).click();
    await own.page.waitForFunction(() => /lstm/.test(document.getElementById('model-name').textContent));
    await idle(own);
    expectEqual(await own.test('sample-lstm').getAttribute('aria-pressed'), 'true', 'what is marked');
    expect(await own.test('input-features').isVisible(), 'inputs of another model');
    await own.run();
  });
  await check('typing a dimension plans for what stands there in the end', async () => {
    const field = own.test('dim-frames');
    await field.fill('');
    await field.pressSequentially('123', { delay: 60 });
    await idle(own);
    expect(
      (await own.test('input-features').textContent()).includes('f32[123, 1, 40]'),
      await own.test('input-features').textContent(),
    );
  });
  await check('other shapes take the outputs of the old ones away; another device does not', async () => {
    await own.run();
    await own.device('webgpu');
    expectEqual(await own.test('output-best').count(), 1, 'outputs after the device');
    await own.device('cpu');
    await own.bind({ frames: 7 });
    expectEqual(await own.test('output-best').count(), 0, 'outputs after the dimension');
  });
}

async function saved(own, button) {
  const [download] = await Promise.all([own.page.waitForEvent('download'), button.click()]);
  const file = join(work, download.suggestedFilename());
  await download.saveAs(file);
  return file;
}

async function checkFiles(own) {
  await check('what is saved is what came out', async () => {
    const { probabilities } = await own.run();
    const card = own.test('output-probabilities');
    const array = readNpy(await saved(own, card.locator('[data-test=save-npy]')));
    expectEqual([array.shape, Array.from(array.data)], [probabilities.shape, probabilities.data], 'the .npy file');
    const { type, shape, data } = JSON.parse(
      readFileSync(await saved(own, card.locator('[data-test=save-json]')), 'utf8'),
    );
    expectEqual([type, shape, data], ['f32', probabilities.shape, probabilities.data], 'the JSON file');
    expect(/^<svg|^<\?xml/.test(readFileSync(await saved(own, own.test('save-svg')), 'utf8')), 'the picture is no SVG');
  });
  await check('a picture is taken for an input of its shape, and refused for another', async () => {
    const picture = join(work, 'red.png');
    writeFileSync(picture, await own.page.locator('#digit-pad').screenshot());
    await own.sample('unet');
    const random = await own.run();
    await own.giveInputs({ image: picture });
    const pictured = await own.run();
    expect(
      pictured.mask.data.some((value, i) => Math.abs(value - random.mask.data[i]) > 1e-6),
      'the picture changes nothing',
    );
    await own.sample('lstm');
    await own.giveInputs({ features: picture });
    await own.page.locator('#alert-run').waitFor({ state: 'visible' });
    expect(/\.npy/.test(await own.text('alert-run')), await own.text('alert-run'));
  });
  await check('a graph and its weights can be chosen together', async () => {
    const files = ['digits.berth', 'digits.safetensors'].map((name) => join(source, 'examples/digits', name));
    await own.opened('digits.berth', () => own.page.locator('#file').setInputFiles(files));
    await own.bind({ batch: 10 });
    await own.giveInputs({ image: join(source, 'examples/digits/samples.npy') });
    expectEqual((await own.run()).class.data, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 'the digits that ship');
  });
}

async function checkFixed(own) {
  await check('an input that decides shapes is asked for, and may be changed', async () => {
    const file = join(work, 'reshape.berth');
    writeFileSync(
      file,
      `graph "reshape" {
      input %x : f32[n, 12]
      input %shape : i64[2]
      %y = reshape(%x, %shape)
      %z = neg(%y)
      output "z" = %z
    }`,
    );
    await own.chooseModel(file);
    expect(/'shape'/.test(await own.text('alert-plan')), `the alert says: ${await own.text('alert-plan')}`);
    const field = own.test('fix-shape');
    for (const [text, shape] of [
      ['6, -1', [6, 4]],
      ['3 8', [3, 8]],
    ]) {
      await own.replanned(() => field.fill(text));
      await own.bind({ n: 2 });
      expectEqual(await own.page.locator('.alert:not([hidden])').count(), 0, 'alerts');
      expectEqual(await own.test('input-shape').count(), 0, 'editors of the fixed input');
      expectEqual((await own.run()).z.shape, shape, `the shape for ${text}`);
    }
    await own.replanned(() => field.fill('5, 5'));
    expect(await own.page.locator('#alert-plan').isVisible(), 'a shape that cannot be is taken');
  });
}

async function checkPicture(own) {
  await check('the picture zooms, moves and fits again', async () => {
    await own.sample('unet');
    const picture = own.page.locator('#picture');
    const zoom = async () => Number(await picture.getAttribute('data-zoom'));
    await own.test('zoom-in').click();
    await own.page.waitForFunction(() => Number(document.getElementById('picture').dataset.zoom) > 1.5);
    await picture.focus();
    await own.page.keyboard.press('+');
    await own.page.waitForFunction(() => Number(document.getElementById('picture').dataset.zoom) > 2.4);
    await own.page.keyboard.press('0');
    await own.page.waitForFunction(() => document.getElementById('picture').dataset.zoom === '1.00');
    expectEqual(await zoom(), 1, 'zoom');
  });
  await check('a tap chooses a buffer, and so does a row of the table', async () => {
    const picture = own.page.locator('#picture');
    await own.page.locator('#filter').fill('down1.b.relu');
    await own.page.waitForFunction(() => document.querySelectorAll('#tensors tbody tr').length < 10);
    const row = own.page.locator('#tensors tbody tr').first();
    const name = await row.getAttribute('data-name');
    // A click may be lost only if the table was rebuilt meanwhile, with other rows; the row is marked to detect that.
    for (let isSameRow = false; !isSameRow && (await picture.getAttribute('data-selected')) !== name; ) {
      await row.evaluate((element) => { element.dataset.marked = 'yes'; });
      await row.locator('button').click();
      isSameRow = (await row.getAttribute('data-marked')) === 'yes';
    }
    expectEqual(await picture.getAttribute('data-selected'), name, 'from the table');
    expectEqual(await own.page.locator('#tensors tr[aria-current]').count(), 1, 'marked rows');
    await own.page.keyboard.press('Escape');
    await own.page.locator('#filter').fill('');
    const box = await picture.boundingBox();
    await own.page.mouse.click(box.x + 0.3 * box.width, box.y + 0.35 * box.height);
    const tapped = await picture.getAttribute('data-selected');
    expect(tapped && (await own.text('detail')).includes(tapped), `chosen: ${tapped}`);
  });
  await check('the table is sorted by any column, both ways', async () => {
    const first = () => own.page.locator('#tensors tbody tr').first().getAttribute('data-name');
    const head = own.page.locator('#tensors [data-sort=name]');
    await head.click();
    const rising = await first();
    await head.click();
    expect(rising < (await first()), 'names');
    expectEqual(
      await own.page.locator('#tensors th[data-key=name]').getAttribute('aria-sort'),
      'descending',
      'aria-sort',
    );
  });
}

const hashOf = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Changes the served page: a new title; with `listed` also in the list of files, like the build. */
function publish(folder, title, version, listed) {
  const page = join(folder, 'index.html');
  const list = join(folder, 'files.js');
  writeFileSync(page, readFileSync(page, 'utf8').replace(/<title>.*<\/title>/, `<title>${title}</title>`));
  let text = readFileSync(list, 'utf8').replace(/version: "\w+"/, `version: "${version}"`);
  if (listed) text = text.replace(/"index.html": "\w+"/, `"index.html": "${hashOf(page)}"`);
  writeFileSync(list, text);
}

async function checkVersions(browser) {
  const folder = join(work, 'site');
  cpSync(site, folder, { recursive: true });
  const server = await serve(folder);
  const own = await BerthPage.open(browser, server.url);
  const kept = () => own.page.evaluate(() => caches.keys());
  await own.loadKept();
  const [first] = await kept();
  await check('files that do not belong together are not kept', async () => {
    publish(folder, 'half', 'half', false);
    await own.page.reload();
    await own.ready();
    await own.page.waitForTimeout(2000);
    expect((await own.page.title()) !== 'half', 'the half of a version is shown');
    const names = await own.page.evaluate(async () => {
      const found = [];
      for (const name of await caches.keys()) if (await (await caches.open(name)).match('index.html')) found.push(name);
      return found;
    });
    expectEqual(names, [first], 'kept versions');
  });
  await check('a newer version waits until it is wanted, and then all of it is there', async () => {
    publish(folder, 'newer', 'newer', true);
    await own.page.reload();
    await own.ready();
    await own.page.locator('#offline button').waitFor();
    expect((await own.page.title()) !== 'newer', 'it did not wait');
    await own.page.locator('#offline button').click();
    await own.page.waitForFunction(() => document.title === 'newer');
    await own.ready();
    expectEqual(await kept(), ['berth-newer'], 'kept versions');
  });
  await own.close();
  await server.close();
}

const server = await serve(site, {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
});
const browser = await launch();
try {
  const own = await BerthPage.open(browser, server.url, { acceptDownloads: true });
  await checkCancel(own);
  await checkSwitching(own);
  await checkFiles(own);
  await checkFixed(own);
  await checkPicture(own);
  await check('the browser complained about nothing', () => expect(own.errors.length === 0, own.errors.join('\n')));
  await checkVersions(browser);
} finally {
  await browser.close();
  await server.close();
  rmSync(work, { recursive: true });
}
done();
