/** berth, in its worker: what every part of the page talks to, and how it is loaded. */
import { $ } from './dom.js';
import { busy } from './busy.js';
import { Client } from './client.js';

export const client = new Client();

export function setState(state, text) {
  $('state').dataset.state = state;
  $('state').textContent = text;
}

/** What a worker does first. */
export async function load(call) {
  const { version, threads } = await busy('loading berth', (onProgress) => call('load', {}, onProgress));
  const words = threads === 1 ? 'one thread' : `${threads} threads`;
  setState('ready', `berth ${version} is ready, with ${words} in this browser.`);
  $('where').textContent = `berth ${version}. The CPU part runs in a worker of this page with ${words}.`;
}
