/**
 * Bundlers find the modules of the package: their output for a small program runs in a browser. And Node finds them.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, require } from './browser.mjs';
import { serve } from './server.mjs';
import { check, diagnostic, done, expect, expectEqual, skip } from './tap.mjs';

const { BERTH_WEB: site, BERTH_WEB_TESTS: tests } = process.env;
const folder = join(tests, 'bundles');
const pack = join(site, 'package');

const PROGRAM = `import { load } from 'berth-arena';
const ran = async (threads) => {
  const berth = await load({ threads });
  const session = await (await berth.digits()).session({ dims: { batch: 1 } });
  const { probabilities } = await session.run({ image: new Float32Array(64).fill(0.5) });
  return [berth.threads, probabilities.data.length];
};
`;
const ON_PAGE = `const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
worker.onmessage = ({ data }) => { document.title = data; };
worker.onerror = ({ message }) => { document.title = 'failed: ' + message; };
`;
const IN_WORKER = `${PROGRAM}try {
  postMessage(JSON.stringify([await ran(1), await ran(2)]));
} catch (error) {
  postMessage('failed: ' + error.message);
}
`;

function prepare() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'app'), { recursive: true });
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(pack, join(folder, 'node_modules/berth-arena'), 'dir');
  writeFileSync(join(folder, 'app/main.js'), ON_PAGE);
  writeFileSync(join(folder, 'app/worker.js'), IN_WORKER);
  writeFileSync(join(folder, 'app/index.html'), '<!doctype html><title></title><script type="module" src="./main.js"></script>');
}

const app = (name) => join(folder, 'app', name);
const entry = { main: app('main.js'), worker: app('worker.js') };

/** Replaces @rollup/plugin-node-resolve: the package's entry for browsers. */
const resolver = {
  name: 'resolver',
  resolveId: (id) =>
    id === 'berth-arena' ? join(pack, JSON.parse(readFileSync(join(pack, 'package.json'))).exports['.'].browser) : null,
};

const plain = (out) => {
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'index.html'), readFileSync(app('index.html')));
};

const bundlers = {
  async vite(out) {
    const { build } = await import(pathToFileURL(require.resolve('vite')));
    await build({
      root: join(folder, 'app'), base: './', logLevel: 'error', configFile: false,
      worker: { format: 'es' },
      build: { outDir: out, emptyOutDir: true, target: 'esnext', minify: false },
    });
  },
  async webpack(out) {
    const webpack = require('webpack');
    const config = {
      mode: 'production', context: folder, entry: entry.main, performance: { hints: false },
      output: { path: out, filename: 'main.js', module: true }, experiments: { outputModule: true },
      optimization: { minimize: false },
    };
    await new Promise((resolve, reject) => webpack(config, (error, stats) => {
      if (error || stats.hasErrors()) reject(error ?? new Error(stats.toString('errors-only')));
      else resolve();
    }));
    plain(out);
  },
  async esbuild(out) {
    const { esbuild } = await import(pathToFileURL(join(pack, 'bundlers.js')));
    await require('esbuild').build({
      entryPoints: entry, bundle: true, format: 'esm', target: 'esnext', outdir: out, logLevel: 'silent', plugins: [esbuild()],
    });
    plain(out);
  },
  async rollup(out) {
    const { rollup } = await import(pathToFileURL(join(pack, 'bundlers.js')));
    const made = await require('rollup').rollup({ input: entry, plugins: [resolver, rollup()] });
    await made.write({ dir: out, format: 'es' });
    await made.close();
    plain(out);
  },
};

function filesOf(out) {
  return readdirSync(out, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile()).map((one) => join(one.parentPath ?? one.path, one.name));
}

const ISOLATION = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/** The title that the program gives the page, which has shared memory, and therefore threads. */
async function run(browser, out) {
  const server = await serve(out, ISOLATION);
  const page = await browser.newPage();
  try {
    await page.goto(server.url);
    await page.waitForFunction(() => document.title !== '');
    return await page.title();
  } finally {
    await page.close();
    await server.close();
  }
}

prepare();
const browser = await launch([]);
for (const [name, bundle] of Object.entries(bundlers)) {
  const title = `${name}: the bundle finds the modules, without and with threads`;
  if (!existsSync(join(tests, 'node_modules', name))) {
    skip(title, `${name} is not installed: make check installs it`);
    continue;
  }
  await check(title, async () => {
    const out = join(folder, name);
    const began = performance.now();
    await bundle(out);
    const files = filesOf(out);
    diagnostic(`${(performance.now() - began).toFixed(0)} ms; ${files.map((file) => file.slice(out.length + 1)).join(', ')}`);
    for (const file of files.filter((one) => one.endsWith('js')))
      expect(!/['"]node:/.test(readFileSync(file, 'utf8')), `${file} asks for parts of Node`);
    expectEqual(JSON.parse(await run(browser, out)), [[1, 10], [2, 10]], 'threads and probabilities');
  });
}
await browser.close();

await check('Node finds them by the name of the package', () => {
  const code = `${PROGRAM}console.log(JSON.stringify([await ran(1), await ran(2)])); process.exit(0);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd: folder, encoding: 'utf8' });
  expectEqual(JSON.parse(output), [[1, 10], [2, 10]], 'threads and probabilities');
});
done();
