/* ONNX's node tests (Debian: libonnx-testdata) in the WebAssembly module: on the CPU in Node, on webgpu in Chromium.
 *   nodes.mjs DEVICE [NAME-PART]...
 * tests/onnx/known.txt and known_gpu.txt list the failures, like for the native program. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runCase } from './onnx_case.mjs';
import { check, diagnostic, done, expect, skip } from './tap.mjs';

const [device, ...parts] = process.argv.slice(2);
const { BERTH_SRC: source, BERTH_WEB: built } = process.env;
const data = process.env.BERTH_ONNX_DATA ?? '/usr/share/libonnx-testdata/data/node';

function readKnown(file) {
  const lines = readFileSync(join(source, 'tests/onnx', file), 'utf8').split('\n').filter((line) => /^[^#]/.test(line));
  return lines.map((line) => line.split(' ')[0]);
}
const known = new Set([...readKnown('known.txt'), ...(device === 'cpu' ? [] : readKnown('known_gpu.txt'))]);

/* ---- Environments: each returns a function from the name of a case to its error ---- */

async function inNode() {
  const { load } = await import(pathToFileURL(join(built, 'package/node.js')));
  const berth = await load({ threads: 1 });
  const run = (name) => runCase(berth, device, async (file) => {
    const path = join(data, name, file);
    return existsSync(path) ? Uint8Array.from(readFileSync(path)).buffer : null;
  });
  return { run, close: async () => berth.close() };
}

async function inBrowser() {
  const { launch } = await import('./browser.mjs'), { serve } = await import('./server.mjs');
  const site = mkdtempSync(join(tmpdir(), 'berth-nodes-'));
  writeFileSync(join(site, 'index.html'), '<!doctype html><link rel=icon href="data:,">');
  symlinkSync(resolve(built, 'package'), join(site, 'package'));
  symlinkSync(fileURLToPath(new URL('.', import.meta.url)), join(site, 'tests'));
  symlinkSync(resolve(data), join(site, 'data'));
  const server = await serve(site), browser = await launch(), page = await browser.newPage();
  await page.goto(server.url);
  const run = (name) => page.evaluate(async ([device, name]) => {
    const { load } = await import('/package/berth.js'), { runCase } = await import('/tests/onnx_case.mjs');
    globalThis.berth ??= await load({ threads: 1 });
    return runCase(globalThis.berth, device, async (file) => {
      const response = await fetch(`/data/${name}/${file}`);
      return response.ok ? response.arrayBuffer() : null;
    });
  }, [device, name]);
  const close = async () => {
    await browser.close();
    await server.close();
    rmSync(site, { recursive: true });
  };
  return { run, close };
}

/* ---- All cases ---- */

/* A GPU runs no plan with extents known only at run time. */
const isOpen = /depend on elements that only a run computes/;

if (!existsSync(data)) {
  skip('onnx node tests', `${data} is not there (Debian: libonnx-testdata)`);
} else {
  const { run, close } = await (device === 'cpu' ? inNode() : inBrowser());
  const isWanted = (name) => parts.length === 0 || parts.some((part) => name.includes(part));
  const names = readdirSync(data).filter((name) => name.startsWith('test_') && isWanted(name));
  const open = [];
  let passed = 0;
  for (const name of names.filter((name) => !known.has(`~${name}`))) { // their results are random
    const wrong = await run(name);
    passed += wrong === '';
    if (isOpen.test(wrong) && !known.has(name)) open.push(name);
    else await check(name, () => {
      expect(known.has(name) || wrong === '', wrong);
      expect(!known.has(name) || wrong !== '', 'it passes now: take it out of the list');
    });
  }
  diagnostic(`${passed} of ${names.length} pass on ${device}`);
  if (open.length !== 0) {
    diagnostic(`left out: ${open.join(' ')}`);
    skip(`${open.length} node tests`, 'their shapes depend on the elements of an input');
  }
  await close();
}
done();
