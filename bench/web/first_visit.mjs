/**
 * A first visit to the page over a slow connection: when the first digit appears, the bytes transferred until then, and
 * the longest tasks of the main thread and gaps between frames.
 *   BERTH_WEB_TESTS=build/web-tests node bench/web/first_visit.mjs [--mbit N] [--rtt MS] [--coding gzip|br|none]
 *     [--browser chromium|firefox] [--times N] [--waterfall] [FOLDER]
 */
import { createRequire } from 'node:module';
import { execSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { serveSlowly } from './slow_server.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mbit: { type: 'string', default: '10' },
    rtt: { type: 'string', default: '40' },
    coding: { type: 'string', default: 'gzip' },
    browser: { type: 'string', default: 'chromium' },
    times: { type: 'string', default: '3' },
    waterfall: { type: 'boolean', default: false },
  },
});
const folder = positionals[0] ?? 'build/web';
const playwright = createRequire(`${process.cwd()}/${process.env.BERTH_WEB_TESTS ?? 'build/web-tests'}/`)('playwright-core');
const which = (name) => execSync(`command -v ${name}`).toString().trim();

async function launch() {
  if (options.browser === 'firefox')
    return playwright.firefox.launch({ channel: 'moz-firefox', executablePath: which('firefox-esr') });
  const { VK_ICD_FILENAMES: _, ...env } = process.env;
  return playwright.chromium.launch({ executablePath: which('chromium'), env, args: ['--no-sandbox', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-extensions'] });
}

/** Injected before the page's own code. */
function watch() {
  const seen = { digit: 0, ready: 0, tasks: [], frames: [] };
  window.seen = seen;
  try {
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) seen.tasks.push([Math.round(startTime), Math.round(duration)]);
    }).observe({ type: 'longtask', buffered: true });
  } catch {
    /* Firefox does not report tasks */
  }
  let last = 0;
  const frame = (now) => {
    if (last > 0 && now - last > 50) seen.frames.push([Math.round(last), Math.round(now - last)]);
    last = now;
    const verdict = document.getElementById('digit-verdict')?.textContent ?? '';
    if (!seen.digit && /^[0-9]$/.test(verdict)) seen.digit = performance.now();
    if (!seen.ready && document.documentElement?.dataset.ready === 'yes') seen.ready = performance.now();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

const browser = await launch();
const rows = [];
for (let i = 0; i < Number(options.times); i++) {
  const server = await serveSlowly(folder, { mbit: Number(options.mbit), rtt: Number(options.rtt), coding: options.coding });
  await server.warm(readdirSync(folder, { recursive: true }));
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(watch);
  const start = performance.now();
  await page.goto(server.url, { waitUntil: 'commit' });
  await page.waitForFunction(() => window.seen.digit > 0 && window.seen.ready > 0, null, { polling: 100 });
  const digit = await page.evaluate(() => window.seen.digit);
  await page.waitForTimeout(4000);
  const seen = await page.evaluate(() => window.seen);
  const origin = start + ((await page.evaluate(() => performance.timeOrigin)) - (performance.timeOrigin + start));
  const before = server.log.filter(({ begin }) => begin - origin < digit);
  const done = before.filter(({ end }) => end > 0 && end - origin < digit);
  rows.push({
    'first digit, ms': Math.round(seen.digit),
    'plan shown, ms': Math.round(seen.ready),
    'requests before': before.length,
    'bytes before': done.reduce((sum, { bytes }) => sum + bytes, 0),
    'requests in all': server.log.length,
    'bytes in all': server.log.reduce((sum, { bytes }) => sum + bytes, 0),
    'longest task': Math.max(0, ...seen.tasks.map(([, ms]) => ms)),
    'longest frame': Math.max(0, ...seen.frames.map(([, ms]) => ms)),
  });
  if (options.waterfall && i === Number(options.times) - 1) {
    for (const { path, bytes, begin, end } of server.log)
      console.log(`${String(Math.round(begin - origin)).padStart(6)} ${String(Math.round(end - origin)).padStart(6)} ${String(bytes).padStart(8)} ${path}`);
    console.log('tasks', JSON.stringify(seen.tasks), 'frames', JSON.stringify(seen.frames));
  }
  await context.close();
  await server.close();
}
await browser.close();
console.table(rows);
