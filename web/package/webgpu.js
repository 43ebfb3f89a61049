/* The imports of src/device/webgpu/browser.c: navigator.gpu as functions of numbers. Every browser object has a number
 * here as long as C holds it. Asynchronous calls end as an answer in a queue, which C empties; `wait` returns to the
 * browser until there is one (JavaScript Promise Integration), so C never sees a promise. */

/* As in api.h. */
const SUCCESS = 1, FAILED = 3;
const NO_ERROR = 1, VALIDATION = 2, OUT_OF_MEMORY = 3, INTERNAL = 4;
const LOST_UNKNOWN = 1; // the only loss reported: a device destroyed by C reports nothing
const FILTERS = [, 'validation', 'out-of-memory', 'internal'];
const BIND_KINDS = [, , 'uniform', 'storage'];
const MODE_READ = 1, COMPUTE = 4;
/* As in browser.c. */
const ANSWER_OBJECT = 0, ANSWER_MAP = 1, ANSWER_SCOPE = 2, ANSWER_LOST = 3, ANSWER_ERROR = 4;
const ANSWER_WORDS = 7;

const SCRATCH = 1 << 20; // bytes copied at once if a browser does not accept shared memory
const LONGEST_WAIT = 60e3; // ms; C checks its clock in between

const canWait = () => typeof WebAssembly.Suspending === 'function' && typeof WebAssembly.promising === 'function';

function whyNot(gpu) {
  if (gpu == null && globalThis.isSecureContext === false)
    return 'browsers give WebGPU to secure pages alone: serve this one over https, or from localhost';
  if (gpu == null)
    return 'there is no WebGPU here (navigator.gpu); browsers that have it are Chrome and Edge since 113, Safari since 26, and Firefox since 141 on some systems';
  if (!canWait())
    return 'this browser has WebGPU, but no JavaScript Promise Integration (WebAssembly.Suspending), by which berth waits for it; Chrome and Edge have it since 137';
  return '';
}

function typeOf(error) {
  if (globalThis.GPUValidationError !== undefined && error instanceof GPUValidationError) return VALIDATION;
  if (globalThis.GPUOutOfMemoryError !== undefined && error instanceof GPUOutOfMemoryError) return OUT_OF_MEMORY;
  return error instanceof RangeError ? OUT_OF_MEMORY : INTERNAL;
}

function nameOf(adapter) {
  const { description, device, vendor, architecture } = adapter.info ?? {};
  return description || device || [vendor, architecture].filter(Boolean).join(' ') || 'a GPU';
}

/** `imports` is the module "webgpu" of an instance; set `memory` to the instance's before they are called. `gpu`
 * replaces navigator.gpu in tests. */
export class WebGPU {
  /** @type {WebAssembly.Memory} */
  memory = null;
  imports;

  #gpu;
  #objects = [null]; // indexed by number
  #owners = [null]; // the instance that owns each
  #free = []; // free numbers
  #answers = [];
  #wake = null;
  #timer = 0;
  #view = new Uint8Array(0);
  #wordView = new Uint32Array(0);
  #text = new Uint8Array(512);
  #encoder = new TextEncoder();
  #decoder = new TextDecoder();
  #entries = []; // collected one by one, for the next object made from a list
  #limits = {};
  #one = [null];
  #offsets = new Uint32Array(4);
  #scratch = null; // created when a browser refuses shared memory

  constructor(gpu = globalThis.navigator?.gpu) {
    this.#gpu = gpu;
    this.imports = this.#table();
  }

  /** The number of browser objects that C holds. */
  get count() {
    return this.#objects.length - 1 - this.#free.length;
  }

  /** Releases the GPU. For C its devices are lost; it may still release its objects. */
  close() {
    for (const object of this.#objects) object?.destroy?.();
  }

  // ---- Numbers of objects ----

  #put(object, owner) {
    const at = this.#free.length !== 0 ? this.#free.pop() : this.#objects.length;
    this.#objects[at] = object;
    this.#owners[at] = owner;
    return at;
  }

  #release(at) {
    const object = this.#objects[at];
    if (object === this.#owners[at]) object.isOpen = false; // it is an instance
    this.#objects[at] = this.#owners[at] = null;
    this.#free.push(at);
  }

  // ---- Memory: it may have grown since the last call, which invalidates views of it ----

  #bytes() {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }

  #words() {
    if (this.#wordView.buffer !== this.memory.buffer) this.#wordView = new Uint32Array(this.memory.buffer);
    return this.#wordView;
  }

  /* Copies, because decoders do not accept shared memory. */
  #string(at, size) {
    return this.#decoder.decode(this.#bytes().slice(at >>> 0, (at >>> 0) + size));
  }

  #cString(at) {
    return this.#string(at, this.#bytes().indexOf(0, at >>> 0) - (at >>> 0));
  }

  #writeText(text, at, size) {
    const { written } = this.#encoder.encodeInto(text, this.#text.subarray(0, Math.min(size, this.#text.length)));
    this.#bytes().set(this.#text.subarray(0, written), at >>> 0);
    return written;
  }

  // ---- Answers ----

  #stir() {
    clearTimeout(this.#timer);
    this.#wake?.();
    this.#wake = null;
  }

  #answer(owner, kind, callback, status, value, text) {
    if (!owner.isOpen) {
      if (kind === ANSWER_OBJECT) value?.destroy?.();
      return;
    }
    this.#answers.push({ owner, kind, callback, status, value, text });
    this.#stir();
  }

  /* `value`: computes the answer from the result of `promise`. */
  #ask(owner, kind, callback, promise, value) {
    promise.then(
      (given) => this.#answer(owner, kind, callback, SUCCESS, value(given), ''),
      (error) => this.#answer(owner, kind, callback, FAILED, 0, error.message));
  }

  #takeAnswer(at, textSize) {
    for (let a; (a = this.#answers.shift()) !== undefined;) {
      if (!a.owner.isOpen) {
        a.value?.destroy?.();
        continue;
      }
      const value = typeof a.value === 'object' ? this.#put(a.value, a.owner) : a.value;
      const length = this.#writeText(a.text, (at >>> 0) + ANSWER_WORDS * 4, textSize);
      const { call, user1, user2 } = a.callback;
      this.#words().set([a.kind, a.status, value, call, user1, user2, length], at >>> 2);
      return 1;
    }
    return 0;
  }

  #wait(ms) {
    if (this.#answers.length !== 0) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#timer = setTimeout(resolve, Math.min(ms, LONGEST_WAIT));
    });
  }

  // ---- Errors ----

  /* Exceptions of calls are not in the browser's error scopes, so they are added to berth's own. */
  #fault(owner, error) {
    const scope = owner.scopes.at(-1);
    if (scope === undefined) this.#answer(owner, ANSWER_ERROR, owner.onError, SUCCESS, typeOf(error), error.message);
    else scope.thrown ??= error;
  }

  #make(parent, create) {
    const owner = this.#owners[parent];
    try {
      return this.#put(create(this.#objects[parent]), owner);
    } catch (error) {
      this.#fault(owner, error);
      return 0;
    }
  }

  #takeEntries() {
    const entries = this.#entries;
    this.#entries = [];
    return entries;
  }

  #popScope(device, callback) {
    const owner = this.#owners[device], { thrown } = owner.scopes.pop();
    const scope = this.#objects[device].popErrorScope();
    scope.then(
      (said) => {
        const error = thrown ?? said;
        this.#answer(owner, ANSWER_SCOPE, callback, SUCCESS, error ? typeOf(error) : NO_ERROR, error?.message ?? '');
      },
      (error) => this.#answer(owner, ANSWER_SCOPE, callback, FAILED, NO_ERROR, error.message));
  }

  // ---- Devices ----

  #requestDevice(adapter, callback, onLost, onError) {
    const owner = this.#owners[adapter], requiredLimits = this.#limits;
    this.#limits = {};
    owner.onError = onError;
    const asked = this.#objects[adapter].requestDevice({ requiredLimits });
    this.#ask(owner, ANSWER_OBJECT, callback, asked, (device) => {
      device.onuncapturederror = ({ error }) =>
        this.#answer(owner, ANSWER_ERROR, onError, SUCCESS, typeOf(error), error.message);
      device.lost.then(({ reason, message }) =>
        this.#answer(owner, ANSWER_LOST, onLost, SUCCESS, LOST_UNKNOWN, message || reason));
      return device;
    });
  }

  // ---- Bytes ----

  #writeBuffer(queue, buffer, offset, at, size) {
    const to = this.#objects[queue], target = this.#objects[buffer], from = at >>> 0;
    try {
      if (this.#scratch === null) return to.writeBuffer(target, offset, this.memory.buffer, from, size);
    } catch (error) {
      if (!(error instanceof TypeError) || this.memory.buffer instanceof ArrayBuffer)
        return this.#fault(this.#owners[queue], error);
      this.#scratch = new Uint8Array(SCRATCH);
    }
    for (let done = 0; done < size; done += SCRATCH) {
      const n = Math.min(size - done, SCRATCH);
      this.#scratch.set(this.#bytes().subarray(from + done, from + done + n));
      to.writeBuffer(target, offset + done, this.#scratch, 0, n);
    }
    return undefined;
  }

  #readMapped(buffer, offset, at, size) {
    try {
      const range = this.#objects[buffer].getMappedRange(0, (offset + size + 3) & ~3);
      this.#bytes().set(new Uint8Array(range, offset, size), at >>> 0);
      return 1;
    } catch (error) {
      this.#fault(this.#owners[buffer], error);
      return 0;
    }
  }

  // ---- The module ----

  #table() {
    const get = (at) => this.#objects[at];
    const put = (object, parent) => this.#put(object, this.#owners[parent]);
    const callback = (call, user1, user2) => ({ call, user1, user2 });
    const wait = (ms) => this.#wait(ms);
    return {
      reason: (at, size) => this.#writeText(whyNot(this.#gpu), at, size),
      wait: canWait() ? new WebAssembly.Suspending(wait) : wait,
      take_answer: (at, textSize) => this.#takeAnswer(at, textSize),
      release: (at) => this.#release(at),

      instance: () => {
        const instance = { isOpen: true, scopes: [], onError: null };
        return this.#put(instance, instance);
      },
      request_adapter: (instance, isFast, ...to) =>
        this.#ask(get(instance), ANSWER_OBJECT, callback(...to),
          this.#gpu.requestAdapter({ powerPreference: isFast ? 'high-performance' : undefined }).then((adapter) => {
            if (adapter === null) throw new Error('the browser offers none; chrome://gpu, or its kin elsewhere, says why');
            return adapter;
          }), (adapter) => adapter),
      adapter_name: (adapter, at, size) => this.#writeText(nameOf(get(adapter)), at, size),
      adapter_is_cpu: (adapter) => (get(adapter).info?.isFallbackAdapter ?? get(adapter).isFallbackAdapter ? 1 : 0),
      adapter_subgroup: (adapter) => get(adapter).info?.subgroupMinSize ?? 0,
      adapter_limit: (adapter, name) => get(adapter).limits[this.#cString(name)] ?? 0,
      ask_limit: (adapter, name, limit) => {
        this.#limits[this.#cString(name)] = limit;
      },
      request_device: (adapter, call, user1, user2, lost, lost1, lost2, error, error1, error2) =>
        this.#requestDevice(adapter, callback(call, user1, user2), callback(lost, lost1, lost2),
          callback(error, error1, error2)),
      device_queue: (device) => put(get(device).queue, device),
      destroy_device: (device) => get(device).destroy(),
      push_scope: (device, filter) => {
        this.#owners[device].scopes.push({ thrown: null });
        get(device).pushErrorScope(FILTERS[filter]);
      },
      pop_scope: (device, ...to) => this.#popScope(device, callback(...to)),

      buffer: (parent, usage, size) => this.#make(parent, (device) => device.createBuffer({ usage, size })),
      destroy_buffer: (buffer) => get(buffer).destroy(),
      write_buffer: (queue, buffer, offset, at, size) => this.#writeBuffer(queue, buffer, offset, at, size >>> 0),
      map: (buffer, offset, size, ...to) =>
        this.#ask(this.#owners[buffer], ANSWER_MAP, callback(...to), get(buffer).mapAsync(MODE_READ, offset, size),
          () => 0),
      read_mapped: (buffer, offset, at, size) => this.#readMapped(buffer, offset, at, size),
      unmap: (buffer) => get(buffer).unmap(),

      layout_entry: (binding, kind, isDynamic) => {
        this.#entries.push({
          binding, visibility: COMPUTE, buffer: { type: BIND_KINDS[kind], hasDynamicOffset: isDynamic !== 0 },
        });
      },
      group_layout: (parent) =>
        this.#make(parent, (device) => device.createBindGroupLayout({ entries: this.#takeEntries() })),
      layout_group: (layout) => {
        this.#entries.push(get(layout));
      },
      layout: (parent) =>
        this.#make(parent, (device) => device.createPipelineLayout({ bindGroupLayouts: this.#takeEntries() })),
      group_entry: (binding, buffer, offset, size) => {
        this.#entries.push({ binding, resource: { buffer: get(buffer), offset, size } });
      },
      group: (parent, layout) =>
        this.#make(parent, (device) => device.createBindGroup({ layout: get(layout), entries: this.#takeEntries() })),
      shader: (parent, at, size) =>
        this.#make(parent, (device) => device.createShaderModule({ code: this.#string(at, size) })),
      pipeline: (parent, layout, shader, at, size) =>
        this.#make(parent, (device) => device.createComputePipeline({
          layout: get(layout), compute: { module: get(shader), entryPoint: this.#string(at, size) },
        })),

      encoder: (device) => put(get(device).createCommandEncoder(), device),
      pass: (encoder) => put(get(encoder).beginComputePass(), encoder),
      set_pipeline: (pass, pipeline) => get(pass).setPipeline(get(pipeline)),
      set_group: (pass, index, group, n, at) => {
        for (let i = 0; i < n; i++) this.#offsets[i] = this.#words()[(at >>> 2) + i];
        get(pass).setBindGroup(index, get(group), this.#offsets, 0, n);
      },
      dispatch: (pass, x, y, z) => get(pass).dispatchWorkgroups(x, y, z),
      end_pass: (pass) => get(pass).end(),
      copy: (encoder, src, srcOffset, dst, dstOffset, size) =>
        get(encoder).copyBufferToBuffer(get(src), srcOffset, get(dst), dstOffset, size),
      clear: (encoder, buffer, offset, size) => get(encoder).clearBuffer(get(buffer), offset, size),
      finish: (encoder) => put(get(encoder).finish(), encoder),
      submit: (queue, commands) => {
        this.#one[0] = get(commands);
        get(queue).submit(this.#one);
        this.#one[0] = null;
      },
    };
  }
}
