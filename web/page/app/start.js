/** berth in its worker: the client that every part of the page uses, and its loading. */
import { $ } from './dom.js';
import { busy } from './busy.js';
import { Client } from './client.js';

export const client = new Client();

export function setState(state, text) {
  $('state').dataset.state = state;
  $('state').textContent = text;
}

/** The first requests to a worker. */
export async function load(call) {
  const { version, threads } = await busy('loading berth', (onProgress) => call('load', {}, onProgress));
  const words = threads === 1 ? 'one thread' : `${threads} threads`;
  setState('ready', `berth ${version} is ready, with ${words} in this browser.`);
  $('where').textContent = `berth ${version}. The CPU part runs in a worker of this page with ${words}.`;
}
