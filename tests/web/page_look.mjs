/**
 * Appearance and accessibility of the page: phones, keyboard only, dark and light, screen readers; and without a GPU.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BerthPage, launch, require, strokes } from './browser.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual } from './tap.mjs';

const pictures = join(process.env.BERTH_WEB_TESTS, 'screenshots');
mkdirSync(pictures, { recursive: true });

const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const views = {
  'desktop light': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  'desktop dark': { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  'phone light': { ...phone, colorScheme: 'light' },
  'phone dark': { ...phone, colorScheme: 'dark' },
};

/** The brightness from 0 to 1, and the number of colours, of a picture. */
const lookAt = (own, png) => own.page.evaluate(async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const counts = new Map();
  let light = 0;
  for (let i = 0; i < data.length; i += 4) {
    const colour = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
    light += (data[i] + data[i + 1] + data[i + 2]) / 765;
  }
  const pixels = data.length / 4;
  return { colours: counts.size, light: light / pixels, most: Math.max(...counts.values()) / pixels };
}, png.toString('base64'));

async function expectPicture(own, png, isDark) {
  const { colours, light, most } = await lookAt(own, png);
  const share = `${colours} colours, one of them on ${(100 * most).toFixed(1)} % of it`;
  expect(colours > 30 && most < 0.97, `nothing is seen: ${share}`);
  if (isDark !== undefined) expect(isDark ? light < 0.35 : light > 0.65, `it is ${light.toFixed(2)} light`);
}

/** Everything that the page can show: a digit, a plan, outputs, an alert. */
async function fill(own) {
  await own.draw(strokes[7]);
  await own.verdict('7');
  await own.sample('unet');
  await own.bind({ height: 32, width: 32 });
  await own.run(5);
  await own.page.locator('#options').evaluate((options) => { options.open = true; }); // a click may be lost while it scrolls
  await own.page.locator('#budget').fill('1');
  await own.page.locator('#alert-plan').waitFor({ state: 'visible' });
  await own.page.locator('#budget').fill('');
  await own.page.locator('#alert-plan').waitFor({ state: 'hidden' });
}

async function seriousViolations(own, part = 'html') {
  await own.page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = await own.page.evaluate((where) => window.axe.run(where), part);
  return violations.map(({ id, impact, help, nodes }) => {
    const where = nodes.map(({ html }) => html).join('\n  ');
    return { impact, text: `${impact}: ${id}: ${help}\n  ${where}` };
  });
}

/** A language model with all its parts. */
async function checkTalk(own, name) {
  await check(`${name}: a language model is shown, and axe finds nothing serious there`, async () => {
    await own.sample('tale');
    await own.write({ tokens: 40 });
    await own.page.locator('#talk summary').click();
    await own.fitted();
    await own.page.locator('#talk').screenshot({ path: join(pictures, `talk-${name.replace(' ', '-')}.png`) });
    const found = (await seriousViolations(own, '#talk')).filter(({ impact }) => /serious|critical/.test(impact));
    expect(found.length === 0, found.map(({ text }) => text).join('\n'));
    await expectNarrow(own);
  });
}

async function expectNarrow(own) {
  const [wide, room] = await own.page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return [scrollWidth, clientWidth];
  });
  expect(wide <= room, `${wide} pixels of ${room}`);
}

async function checkView(browser, url, name, options) {
  const own = await BerthPage.open(browser, url, options);
  const isDark = options.colorScheme === 'dark';
  if (isDark === Boolean(options.isMobile)) await checkTalk(own, name); // each size and each theme once
  await check(`${name}: everything can be shown`, () => fill(own));
  await check(`${name}: the page and its drawings are seen`, async () => {
    await own.page.evaluate(() => scrollTo(0, 0));
    const path = join(pictures, `${name.replace(' ', '-')}.png`);
    await expectPicture(own, await own.page.screenshot({ fullPage: true, path }), isDark);
    for (const id of ['digit-pad', 'picture']) await expectCanvas(own, id);
  });
  await check(`${name}: nothing is wider than the screen`, () => expectNarrow(own));
  await check(`${name}: axe finds nothing serious`, async () => {
    const found = await seriousViolations(own);
    for (const { text } of found) diagnostic(text);
    const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    expect(serious.length === 0, `${serious.length} serious violations`);
  });
  await check(`${name}: the browser complained about nothing`, () => expectEqual(own.errors, [], 'complaints'));
  await own.close();
}

/** A drawing consists of more than the background and a frame. */
async function expectCanvas(own, id) {
  const canvas = own.page.locator(`#${id}`);
  const { most } = await lookAt(own, await canvas.screenshot());
  expect(most < 0.96, `${(100 * most).toFixed(1)} % of #${id} have one colour`);
}

async function checkTheme(browser, url) {
  const own = await BerthPage.open(browser, url, { colorScheme: 'light' });
  await check('the button changes the theme, and it stays', async () => {
    const light = async () => (await lookAt(own, await own.page.screenshot())).light;
    expect(await light() > 0.65, 'it does not begin light');
    await own.test('theme').click();
    for (let tries = 0; tries < 100 && await light() >= 0.35; tries++) await own.page.waitForTimeout(100); // it fades
    expect(await light() < 0.35, 'it did not become dark');
    await own.page.reload();
    await own.ready();
    expect(await light() < 0.35, 'it is not dark any more after loading again');
  });
  await own.close();
}

async function checkTouch(browser, url) {
  const own = await BerthPage.open(browser, url, phone);
  await check('a 7 drawn with a finger is recognised', async () => {
    const pad = own.page.locator('#digit-pad');
    await pad.scrollIntoViewIfNeeded();
    const box = await pad.boundingBox();
    const session = await own.context.newCDPSession(own.page);
    const touch = (type, points) => {
      const touchPoints = points.map(([x, y]) => ({ x: box.x + x * box.width, y: box.y + y * box.height }));
      return session.send('Input.dispatchTouchEvent', { type, touchPoints });
    };
    const [[first, ...rest]] = strokes[7];
    await touch('touchStart', [first]);
    for (const point of rest) await touch('touchMove', [point]);
    await touch('touchEnd', []);
    expectEqual(await own.verdict('7'), '7', 'verdict');
  });
  await own.close();
}

/** The tab stops: one of a group of radio buttons stands for all of them, and one row for the table. */
const focusable = (own) => own.page.evaluate(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, summary, textarea, [tabindex="0"]')];
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const isStoodFor = (element) =>
    (element.type === 'radio' && !element.checked) || (element.tabIndex < 0 && element.closest('tbody'));
  const takesPart = (element) => !element.disabled && isShown(element) && !isStoodFor(element);
  window.named = (element) =>
    element.id || element.dataset.test || element.getAttribute('href') || element.textContent.trim();
  return all.filter(takesPart).map(window.named);
});

/** Goes through the page with the Tab key; returns what had the focus, and what of that did not show it. */
async function tabThrough(own, most) {
  const seen = [];
  const hidden = [];
  await own.page.evaluate(() => document.activeElement?.blur());
  for (let i = 0; i < most; i++) {
    await own.page.keyboard.press('Tab');
    const at = await own.page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const isMarked = (part) => ['outlineStyle', 'boxShadow'].some((style) => getComputedStyle(part)[style] !== 'none');
      const parts = [element, element.closest('label'), ...(element.labels ?? []), element.previousElementSibling];
      const marked = parts.filter(Boolean).some(isMarked);
      return { name: window.named(element), marked };
    });
    if (!at) break;
    seen.push(at.name);
    if (!at.marked) hidden.push(at.name);
  }
  return { seen, hidden };
}

async function checkKeys(browser, url) {
  const own = await BerthPage.open(browser, url);
  await check('the Tab key comes to every control, and each shows that it has the focus', async () => {
    const wanted = await focusable(own);
    const { seen, hidden } = await tabThrough(own, wanted.length + 30);
    diagnostic(`${wanted.length} controls`);
    expect(wanted.length > 25, `only ${wanted.length} controls: ${wanted}`);
    const missed = wanted.filter((name) => !seen.includes(name));
    expect(missed.length === 0, `not reached: ${missed.join(', ')}; reached: ${seen.join(', ')}`);
    expect(hidden.length === 0, `without a mark: ${hidden.join(', ')}`);
  });
  await check('keys alone choose a sample, bind a dimension, run it and take the GPU', async () => {
    const press = async (selector, key) => {
      await own.page.locator(selector).focus();
      await own.page.keyboard.press(key);
    };
    await own.opened('lstm', () => press('[data-test=sample-lstm]', 'Enter'));
    await own.page.locator('[data-test=dim-frames]').focus();
    await own.page.keyboard.press('Control+A');
    await own.replanned(() => own.page.keyboard.type('5'));
    await own.replanned(() => press('[data-test=device-cpu]', 'ArrowDown'));
    await press('#go', 'Enter');
    await own.page.waitForFunction(() => /on webgpu/.test(document.getElementById('run-live').textContent));
    const { best } = await own.page.evaluate(() => window.berthPage.outputsOf());
    expectEqual(best.shape, [5, 1], 'shape of the output');
  });
  await check('arrow keys choose a buffer in the picture', async () => {
    await own.page.locator('#picture').focus();
    await own.page.keyboard.press('ArrowRight');
    const chosen = await own.page.locator('#picture').getAttribute('data-selected');
    expect(chosen, 'none is chosen');
    expect((await own.text('detail')).includes(chosen), `the text beside it does not name ${chosen}`);
  });
  await own.close();
}

async function checkWithoutGpu(url) {
  const browser = await launch(['--disable-features=WebGPU,WebGPUService', '--disable-gpu']);
  try {
    const own = await BerthPage.open(browser, url);
    await check('without a GPU the page says so, and runs on the CPU', async () => {
      expect(await own.test('device-webgpu').isDisabled(), 'the GPU can be chosen');
      const reason = await own.test('device-reason-webgpu').textContent();
      diagnostic(reason);
      expect(reason.length > 15, `no reason: ${reason}`);
      await own.run();
      await own.draw(strokes[0]);
      expectEqual(await own.verdict('0'), '0', 'verdict');
    });
  } finally {
    await browser.close();
  }
}

const server = await serve(process.env.BERTH_WEB);
const browser = await launch();
try {
  for (const [name, options] of Object.entries(views)) await checkView(browser, server.url, name, options);
  await checkTheme(browser, server.url);
  await checkTouch(browser, server.url);
  await checkKeys(browser, server.url);
  await checkWithoutGpu(server.url);
} finally {
  await browser.close();
  await server.close();
}
done();
