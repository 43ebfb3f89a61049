/** Chromium with the page, and a user's actions. */
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { expect } from './tap.mjs';

/** Packages are in build/web-tests, not in this folder. */
export const require = createRequire(`${process.env.BERTH_WEB_TESTS}/`);
const { chromium } = require('playwright-core');

const flags = [
  '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--disable-extensions',
];
export const withGpu = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];

/** Milliseconds: longer than anything takes, however busy the machine is. */
const WAIT = Number(process.env.BERTH_TEST_WAIT ?? 300000);

/** A browser with such timeouts for itself and its pages: playwright gives up after 30 seconds. */
export async function patiently(kind, options) {
  const browser = await kind.launch({ ...options, timeout: WAIT }), newContext = browser.newContext.bind(browser);
  browser.newContext = async (...given) => {
    const context = await newContext(...given);
    context.setDefaultTimeout(WAIT);
    return context;
  };
  return browser;
}

export function launch(more = withGpu) {
  const { VK_ICD_FILENAMES: _, ...env } = process.env; // the browser has its own driver
  return patiently(chromium, { executablePath: process.env.BERTH_CHROMIUM, args: [...flags, ...more], env });
}

/** Errors reported by the browser, for a page and its workers. */
function watchErrors(page) {
  const errors = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => errors.push(`thrown: ${error.message}`));
  page.on('requestfailed', (request) => errors.push(`not loaded: ${request.url()}`));
  return errors;
}

export class BerthPage {
  /** A new page in a new profile; `options` are those of a browser context. */
  static async open(browser, url, options = {}) {
    const context = await browser.newContext(options);
    const own = new BerthPage();
    own.context = context;
    own.page = await context.newPage();
    own.errors = watchErrors(own.page);
    own.asked = []; // paths, in the order of the page's requests: they may arrive in another order
    own.page.on('request', (request) => own.asked.push(new URL(request.url()).pathname));
    own.url = url;
    await own.load();
    return own;
  }

  async load() {
    await this.page.goto(this.url);
    await this.ready();
  }

  ready() {
    return this.page.waitForSelector('html[data-ready=yes]');
  }

  /** Loads again once the service worker has all files: then the page has threads. */
  async loadKept() {
    await this.page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
    await this.page.reload();
    await this.ready();
  }

  close() {
    return this.context.close();
  }

  test(name) {
    return this.page.locator(`[data-test="${name}"]`);
  }

  text(id) {
    return this.page.locator(`#${id}`).textContent();
  }

  async bytes(name) {
    return Number(await this.test(name).getAttribute('data-bytes'));
  }

  /** Nothing is running, and no field waits to be processed. */
  idle() {
    return this.page.waitForSelector('html:not([data-busy], [data-changed])');
  }

  /** Does something that causes a new plan, and waits for the plan or an error. */
  async replanned(act) {
    await this.idle();
    await this.page.evaluate(() => { delete document.documentElement.dataset.ready; });
    await act();
    const planned = 'html[data-ready=yes]:not([data-busy], [data-changed])';
    await this.page.waitForSelector(`${planned}, #alert-network:not([hidden])`);
  }

  async opened(name, act) {
    await this.replanned(act);
    expect(await this.page.locator('#alert-network').isHidden(), await this.text('alert-network'));
    expect((await this.text('model-name')).includes(name), `the page has the model ${await this.text('model-name')}`);
  }

  sample(name) {
    return this.opened(name, () => this.test(`sample-${name}`).click());
  }

  /** Like from a file manager: one file, or several. */
  async drop(file) {
    await this.page.locator('#drop').scrollIntoViewIfNeeded();
    const box = await this.page.locator('#drop').boundingBox();
    const session = await this.context.newCDPSession(this.page);
    const data = { items: [], files: [file].flat(), dragOperationsMask: 1 };
    const at = { x: box.x + box.width / 2, y: box.y + box.height / 2, data };
    for (const type of ['dragEnter', 'dragOver', 'drop']) {
      await session.send('Input.dispatchDragEvent', { type, ...at });
    }
    await session.detach();
  }

  dropModel(file) {
    return this.opened(basename(file), () => this.drop(file));
  }

  chooseModel(file) {
    return this.opened(basename(file), () => this.page.locator('#file').setInputFiles(file));
  }

  async device(name) {
    const radio = this.test(`device-${name}`);
    if (!await radio.isChecked()) await this.replanned(() => radio.evaluate((input) => input.click())); // a mouse misses what still moves
  }

  async bind(dims) {
    for (const [name, extent] of Object.entries(dims)) {
      const field = this.test(`dim-${name}`);
      if (await field.inputValue() !== String(extent)) await this.replanned(() => field.fill(String(extent)));
    }
  }

  async giveInputs(files) {
    for (const [name, file] of Object.entries(files)) {
      await this.test(`input-${name}`).locator('[data-test=input-file]').setInputFiles(file);
    }
  }

  /** Runs, and returns the outputs by name, as plain arrays of numbers. */
  async run(repeats = 1) {
    expect(await this.page.locator('#alert-plan').isHidden(), `there is no plan: ${await this.text('alert-plan')}`);
    await this.page.locator('#repeats').fill(String(repeats));
    await this.page.evaluate(() => { document.getElementById('run-live').textContent = ''; });
    // The page scrolls to a new plan once it is there, so that a mouse may miss the button.
    await this.page.evaluate(() => document.getElementById('go').click());
    await this.page.waitForFunction(() => document.getElementById('run-live').textContent !== ''
      || !document.getElementById('alert-run').hidden);
    expect(await this.page.locator('#alert-run').isHidden(), `the run failed: ${await this.text('alert-run')}`);
    return this.page.evaluate(() => Object.fromEntries(Object.entries(window.berthPage.outputsOf())
      .map(([name, { shape, data }]) => [name, { shape: [...shape], data: Array.from(data, Number) }])));
  }

  /** The memory of a language model, and how much of it fits, is shown. */
  fitted() {
    return this.page.waitForSelector('#talk[data-ready=yes]');
  }

  /** Lets the model generate, and returns the text including the prompt. */
  async write({ prompt, tokens, temperature = 0, button = 'write' }) {
    if (prompt !== undefined) await this.test('prompt').fill(prompt);
    await this.test('temperature').fill(String(temperature));
    await this.test('tokens').fill(String(tokens));
    await this.page.evaluate(() => { document.getElementById('talk-live').textContent = ''; });
    await this.test(button).click();
    await this.page.waitForFunction(() => document.getElementById('talk-live').textContent !== ''
      || !document.getElementById('alert-talk').hidden);
    expect(await this.page.locator('#alert-talk').isHidden(), `it says nothing: ${await this.text('alert-talk')}`);
    await this.page.waitForSelector('html:not([data-talking])');
    return this.text('story');
  }

  async probabilities() {
    const items = this.page.locator('#digit-bars li');
    return items.evaluateAll((all) => all.map((item) => Number(item.dataset.probability)));
  }

  /** The verdict, once it is that digit; otherwise the verdict when waiting ends. */
  async verdict(digit) {
    const is = (wanted) => document.getElementById('digit-verdict').textContent === wanted;
    await this.page.waitForFunction(is, digit).catch(() => {});
    return this.text('digit-verdict');
  }

  /** Lines of points, from 0 to 1 in both directions, with the mouse. */
  async draw(lines) {
    const pad = this.page.locator('#digit-pad');
    await pad.scrollIntoViewIfNeeded();
    const box = await pad.boundingBox();
    const place = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
    for (const [first, ...rest] of lines) {
      await this.page.mouse.move(...place(first));
      await this.page.mouse.down();
      for (const point of rest) await this.page.mouse.move(...place(point), { steps: 5 });
      await this.page.mouse.up();
    }
  }
}

const circle = Array.from({ length: 25 }, (_, i) => (i * Math.PI) / 12)
  .map((angle) => [0.5 + 0.2 * Math.sin(angle), 0.5 - 0.32 * Math.cos(angle)]);

/** Digits as people write them. */
export const strokes = {
  0: [circle],
  1: [[[0.38, 0.3], [0.54, 0.15], [0.54, 0.85]]],
  4: [[[0.45, 0.15], [0.28, 0.55], [0.75, 0.55]], [[0.6, 0.4], [0.58, 0.88]]],
  7: [[[0.28, 0.18], [0.72, 0.18], [0.45, 0.85]]],
};
