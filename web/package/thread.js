/* A worker that is one of berth's threads: an instance of the same module with the same memory and its own stack. It
 * waits for work in C, for ever. */

/** Tells `port` when it has begun. */
export function begin({ module, memory, number, stack, tls }, port) {
  const imports = { env: { memory } };
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== 'function') continue; // a thread computes, and needs no imports
    (imports[from] ??= {})[name] = () => {
      throw new Error(`a thread of berth called ${name}`);
    };
  }
  const { exports } = new WebAssembly.Instance(module, imports);
  exports.__stack_pointer.value = stack;
  exports.__wasm_init_tls(tls);
  port.postMessage('ready');
  try {
    exports.thread(number);
  } catch (error) {
    exports.thread_died(); // another thread may be waiting for it
    throw error;
  }
}

/* In a browser's worker; thread_node.js does the same for Node's. */
if (typeof WorkerGlobalScope === 'function' && globalThis instanceof WorkerGlobalScope)
  globalThis.onmessage = ({ data }) => begin(data, globalThis);
