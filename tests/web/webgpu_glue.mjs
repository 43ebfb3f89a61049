/* web/package/webgpu.js by itself: its functions are called as C calls them, with a GPU that is made up here. */
import { WebGPU } from '../../web/package/webgpu.js';
import { check, done, expect, expectEqual } from './tap.mjs';

WebAssembly.Suspending = undefined; // `wait` is a plain function then, which can be called from here

const PAGE = 65536, AT = 1024, TEXT = 400;
const equal = (got, expected) => expectEqual(got, expected, 'this');
const soon = () => new Promise((resolve) => setTimeout(resolve, 1));

class FakeQueue {
  constructor(takesShared) {
    this.takesShared = takesShared;
    this.written = [];
  }

  writeBuffer(buffer, offset, data, from, size) {
    const bytes = data instanceof Uint8Array ? data.subarray(from, from + size) : new Uint8Array(data, from, size);
    if (!this.takesShared && bytes.buffer instanceof SharedArrayBuffer) throw new TypeError('shared memory is not taken');
    this.written.push({ offset, bytes: bytes.slice() });
  }
}

class FakeDevice {
  isDestroyed = false;
  scopes = 0;
  lost = new Promise((resolve) => {
    this.lose = (message) => resolve({ reason: 'unknown', message });
  });

  constructor(takesShared) {
    this.queue = new FakeQueue(takesShared);
  }

  createBuffer({ size }) {
    if (size > 1000) throw new RangeError('too large by far');
    return { size, destroy: () => {} };
  }

  pushErrorScope() {
    this.scopes++;
  }

  async popErrorScope() {
    this.scopes--;
    return null;
  }

  destroy() {
    this.isDestroyed = true;
  }
}

function fakeGPU(takesShared = true) {
  const device = new FakeDevice(takesShared);
  const adapter = {
    info: { vendor: 'nobody', architecture: 'fake' }, limits: { maxBufferSize: 2 ** 33 },
    async requestDevice(desc) {
      adapter.asked = desc;
      return device;
    },
  };
  return { device, adapter, requestAdapter: async () => adapter };
}

function start(gpu, memory = new WebAssembly.Memory({ initial: 2 })) {
  const glue = new WebGPU(gpu);
  glue.memory = memory;
  return { glue, js: glue.imports };
}

/* As browser.c's struct answer. */
function take(glue, at = AT) {
  if (glue.imports.take_answer(at, TEXT) === 0) return null;
  const [kind, status, value, call, user1, user2, length] = new Uint32Array(glue.memory.buffer, at, 7);
  const text = new TextDecoder().decode(new Uint8Array(glue.memory.buffer).slice(at + 28, at + 28 + length));
  return { kind, status, value, call, user1, user2, text };
}

async function open(glue) {
  const { imports: js } = glue;
  const instance = js.instance();
  js.request_adapter(instance, 1, 7, 8, 9);
  await js.wait(1000);
  const adapter = take(glue).value;
  js.request_device(adapter, 7, 8, 9, 17, 18, 19, 27, 28, 29);
  await js.wait(1000);
  const device = take(glue).value;
  return { instance, adapter, device };
}

function put(glue, text, at = AT) {
  new Uint8Array(glue.memory.buffer).set(new TextEncoder().encode(`${text}\0`), at);
  return at;
}

function reason(gpu) {
  const { glue, js } = start(gpu);
  const length = js.reason(AT, TEXT);
  return new TextDecoder().decode(new Uint8Array(glue.memory.buffer, AT, length));
}

await check('what is missing is named', async () => {
  expect(/navigator\.gpu/.test(reason(undefined)), reason(undefined));
  expect(/WebAssembly\.Suspending/.test(reason(fakeGPU())), reason(fakeGPU()));
  globalThis.isSecureContext = false;
  expect(/https/.test(reason(undefined)), reason(undefined));
  delete globalThis.isSecureContext;
});

await check('answers say whom they are for, and what they give', async () => {
  const gpu = fakeGPU(), { glue, js } = start(gpu), instance = js.instance();
  js.request_adapter(instance, 1, 7, 8, 0xffff_fff0 | 0); // addresses above 2 GiB come as negative numbers
  equal(take(glue), null);
  await js.wait(1000);
  const answer = take(glue);
  equal([answer.kind, answer.status, answer.call, answer.user1, answer.user2], [0, 1, 7, 8, 0xffff_fff0]);
  equal(take(glue), null);
  equal(glue.count, 2);
  js.ask_limit(answer.value, put(glue, 'maxBufferSize'), js.adapter_limit(answer.value, put(glue, 'maxBufferSize')));
  js.request_device(answer.value, 7, 8, 9, 17, 18, 19, 27, 28, 29);
  await soon();
  equal(gpu.adapter.asked.requiredLimits, { maxBufferSize: 2 ** 33 });
});

await check('no adapter is a sentence', async () => {
  const { glue, js } = start({ requestAdapter: async () => null });
  js.request_adapter(js.instance(), 1, 7, 8, 9);
  await js.wait(1000);
  const { status, value, text } = take(glue);
  equal([status, value], [3, 0]);
  expect(/offers none/.test(text), text);
});

await check('a wait ends by itself', async () => {
  const { glue, js } = start(fakeGPU()), before = performance.now();
  await js.wait(30);
  expect(performance.now() - before >= 25, 'it came back early');
  equal(take(glue), null);
});

await check('numbers are used again', async () => {
  const { glue, js } = start(fakeGPU()), { device } = await open(glue), count = glue.count;
  const first = js.buffer(device, 1, 16);
  js.release(first);
  equal(js.buffer(device, 1, 16), first);
  equal(glue.count, count + 1);
});

await check('what a call throws is in the innermost scope, or else an error of the device', async () => {
  const { glue, js } = start(fakeGPU()), { device } = await open(glue);
  js.push_scope(device, 1);
  js.push_scope(device, 2);
  equal(js.buffer(device, 1, 5000), 0);
  js.pop_scope(device, 31, 32, 33);
  await js.wait(1000);
  const inner = take(glue);
  equal([inner.kind, inner.value, inner.call, inner.text], [2, 3, 31, 'too large by far']);
  js.pop_scope(device, 31, 32, 33);
  await js.wait(1000);
  equal(take(glue).value, 1);
  equal(js.buffer(device, 1, 5000), 0);
  const outside = take(glue);
  equal([outside.kind, outside.call, outside.user1, outside.text], [4, 27, 28, 'too large by far']);
});

await check('a device that is lost says so', async () => {
  const gpu = fakeGPU(), { glue, js } = start(gpu);
  await open(glue);
  gpu.device.lose('the cable was pulled');
  await js.wait(1000);
  const { kind, call, user1, text } = take(glue);
  equal([kind, call, user1, text], [3, 17, 18, 'the cable was pulled']);
});

await check('nothing is answered behind the end of an instance', async () => {
  const gpu = fakeGPU(), { glue, js } = start(gpu), instance = js.instance();
  js.request_adapter(instance, 1, 7, 8, 9);
  await js.wait(1000);
  const adapter = take(glue).value;
  js.request_device(adapter, 7, 8, 9, 17, 18, 19, 27, 28, 29); // under way
  js.release(adapter);
  js.release(instance);
  await soon();
  equal(take(glue), null);
  expect(gpu.device.isDestroyed, 'the device that came late is still there');

  const other = fakeGPU(), second = start(other), opened = await open(second.glue);
  other.device.lose('in the queue'); // answered, but not taken
  await soon();
  second.js.release(opened.instance);
  equal(take(second.glue), null);
});

await check('bytes come from a memory that has grown, or is shared', async () => {
  const gpu = fakeGPU(), { glue, js } = start(gpu), { device } = await open(glue);
  const queue = js.device_queue(device), buffer = js.buffer(device, 1, 16);
  glue.memory.grow(1);
  put(glue, 'grown', 2 * PAGE);
  js.write_buffer(queue, buffer, 8, 2 * PAGE, 4);
  equal(gpu.device.queue.written.map(({ offset, bytes }) => [offset, ...bytes]), [[8, 103, 114, 111, 119]]);

  const size = 3 * 2 ** 20 - 4, wary = fakeGPU(false);
  const shared = start(wary, new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true }));
  const opened = await open(shared.glue), bytes = new Uint8Array(shared.glue.memory.buffer);
  for (let i = 0; i < size; i++) bytes[4096 + i] = i % 251;
  shared.js.write_buffer(shared.js.device_queue(opened.device), shared.js.buffer(opened.device, 1, 16), 0, 4096, size);
  equal(take(shared.glue), null);
  let at = 0;
  for (const piece of wary.device.queue.written) {
    equal(piece.offset, at);
    expect(piece.bytes.every((byte, i) => byte === (at + i) % 251), `bytes behind ${at} are wrong`);
    at += piece.bytes.length;
  }
  equal(at, size);
});

await check('what is mapped comes to any address', async () => {
  const high = 0x8000_1000, gpu = fakeGPU();
  const { glue, js } = start(gpu, new WebAssembly.Memory({ initial: high / PAGE + 1 }));
  const { device } = await open(glue), range = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
  gpu.device.createBuffer = () => ({ getMappedRange: (from, size) => range.slice(from, from + size) });
  equal(js.read_mapped(js.buffer(device, 1, 16), 2, high | 0, 3), 1);
  equal([...new Uint8Array(glue.memory.buffer, high, 4)], [3, 4, 5, 0]);
  gpu.device.createBuffer = () => ({
    getMappedRange: () => {
      throw new Error('it is not mapped');
    },
  });
  equal(js.read_mapped(js.buffer(device, 1, 16), 2, high | 0, 3), 0);
  equal(take(glue).text, 'it is not mapped');
});

await check('closing it gives the GPU back', async () => {
  const gpu = fakeGPU(), { glue } = start(gpu);
  await open(glue);
  glue.close();
  expect(gpu.device.isDestroyed, 'the device is still there');
});

done();
