/* berth in Node: the same, with files and Node's workers. Bundlers for browsers never include this. */
import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { host } from './host.js';

const PIECE = 1 << 20; // bytes per read

Object.assign(host, {
  openFile: async (url) => {
    const { size } = await stat(url);
    return { pieces: createReadStream(url, { highWaterMark: PIECE }), total: size };
  },
  openBlob: (url) => openAsBlob(url),
  pathToUrl: pathToFileURL,
  threads: availableParallelism,
  hasOneModule: false,
  isIsolated: () => true,
  newWorker: () => new Worker(new URL('./thread_node.js', import.meta.url), { execArgv: [] }), // not the program's own
  listen: (worker, event, heard) => worker.once(event, heard),
});

export * from './berth.js';
