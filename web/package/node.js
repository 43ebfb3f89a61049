/* berth in Node: the same, with files and Node's workers. Bundlers for browsers never see this. */
import { createReadStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { host } from './host.js';

const PIECE = 1 << 20; // bytes that are read at once

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
  newWorker: () => new Worker(new URL('./thread_node.js', import.meta.url), { execArgv: [] }), // those of the program are for it alone
  listen: (worker, event, heard) => worker.once(event, heard),
});

export * from './berth.js';
