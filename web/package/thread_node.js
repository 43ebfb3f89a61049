/* thread.js in Node. */
import { parentPort } from 'node:worker_threads';
import { begin } from './thread.js';

parentPort.once('message', (data) => begin(data, parentPort));
