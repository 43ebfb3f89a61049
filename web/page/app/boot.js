/* Runs first: fetches and compiles berth's module while the page is still loading, and starts its worker. client.js
 * connects the two. Files dropped or chosen before the listeners exist are kept for source.js. */
(() => {
  const hasSharedMemory = () => {
    try {
      return new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true }) !== null;
    } catch {
      return false;
    }
  };
  const compile = async (name) => {
    const response = await fetch(name);
    if (!response.ok) throw new Error(`${name} could not be fetched: ${response.status} ${response.statusText}`);
    const isNamed = response.headers.get('Content-Type') === 'application/wasm';
    const named = { headers: { 'Content-Type': 'application/wasm' } };
    return WebAssembly.compileStreaming(isNamed ? response : new Response(response.body, named));
  };
  window.berthModule = compile(hasSharedMemory() ? 'package/berth-threads.wasm' : 'package/berth.wasm');
  window.berthModule.catch(() => {}); // client.js reports it
  window.berthWorker = new Worker('worker.js', { type: 'module', name: 'berth' });
  window.berthDropped = [];
  const early = (event) => {
    event.preventDefault();
    if (event.type === 'drop') window.berthDropped = [...event.dataTransfer.files];
  };
  const types = ['dragover', 'drop'];
  for (const type of types) addEventListener(type, early);
  window.berthListens = () => types.forEach((type) => removeEventListener(type, early));
})();
