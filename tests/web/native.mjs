/** The native program's results for a model, with which the page's are compared. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readNpy } from './npy.mjs';
import { expect, expectEqual } from './tap.mjs';

const berth = process.env.BERTH_BIN;

// The WebAssembly module has the portable kernels, and packs weights like them.
const options = {
  env: { ...process.env, BERTH_CPU_ISA: 'portable' },
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
  maxBuffer: 1 << 26,
};
const call = (args) => JSON.parse(execFileSync(berth, [...args, '--json'], options));

const pairs = (option, values = {}) => Object.entries(values).flatMap(([name, value]) => [option, `${name}=${value}`]);

/** Outputs by name. `model` is a list of arguments: a file, and --random-weights if it has none. */
export function runNative(model, { dims, inputs } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-web-'));
  try {
    const given = [...pairs('--dim', dims), ...pairs('--input', inputs)];
    const { outputs } = call(['run', ...model, ...given, '--output-dir', folder]);
    return Object.fromEntries(outputs.map(({ name, file }) => [name, readNpy(file)]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const planNative = (model, { dims, device = 'cpu', threads = 1 } = {}) =>
  call(['plan', ...model, ...pairs('--dim', dims), '--device', device, '--threads', String(threads)]);

/** Greedy, for comparison with the page and the package. */
export const generateNative = (model, prompt, count, more = []) =>
  call(['generate', model, '-p', prompt, '-n', String(count), '--temp', '0', ...more]);

export const planTextNative = (model, options, threads = 1) =>
  call(['plan', model, ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    '--threads', String(threads)]);

export const hasNative = (device) =>
  call(['devices']).devices.some(({ name, available }) => name === device && available);

const tolerances = { cpu: [1e-5, 1e-5], webgpu: [1e-4, 1e-3] }; // absolute, relative

/** Throws if the outputs of the page differ from those of the native CPU. */
export function expectOutputs(got, expected, device) {
  const [absolute, relative] = tolerances[device];
  expectEqual(Object.keys(got).sort(), Object.keys(expected).sort(), 'names of outputs');
  for (const [name, { shape, data }] of Object.entries(expected)) {
    expectEqual(got[name].shape, shape, `shape of ${name}`);
    expect(data.length > 0, `${name} has no elements`);
    expectEqual(got[name].data.length, data.length, `elements of ${name}`);
    data.forEach((element, i) => {
      const [a, b] = [Number(got[name].data[i]), Number(element)];
      const close = Math.abs(a - b) <= absolute + relative * Math.abs(b) || (Number.isNaN(a) && Number.isNaN(b));
      expect(close, `${name}[${i}] is ${a}, and ${b} natively`);
    });
  }
}
