/** The page's side of the service worker: its status, and the two actions that need a button. */
import { $, el } from './dom.js';

function say(text, action, act) {
  $('offline').replaceChildren(
    `${text} `,
    action ? el('button', { type: 'button', class: 'link', text: action, onclick: act }) : '',
  );
}

function whenInstalled(worker, act) {
  if (worker.state === 'installed' || worker.state === 'activated') act();
  else worker.addEventListener('statechange', () => worker.state === 'installed' && act());
}

/** A newer version waits until no page of the old one is open; if this is the only page, a button is enough. */
function offerUpdate(worker) {
  say('A newer version of this page is there.', 'Use it', () => {
    navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) =>
      data === 'others' && say('Close the other tabs with this page first; then it is used.');
    worker.postMessage('update', [port2]);
  });
}

function saySaved() {
  const threads = !crossOriginIsolated && navigator.hardwareConcurrency > 1;
  if (threads)
    say(
      'All files are kept for use without a network. After loading again, the CPU has more than one thread.',
      'Load again',
      () => location.reload(),
    );
  else say('All files are kept for use without a network.');
}

export async function watchOffline() {
  if (!('serviceWorker' in navigator))
    return say('This browser, or this address, keeps no files for use without a network.');
  const controlled = Boolean(navigator.serviceWorker.controller);
  if (controlled) saySaved();
  try {
    const registration = await navigator.serviceWorker.register('sw.js', { updateViaCache: 'none' });
    const look = () => {
      if (registration.waiting && controlled) return offerUpdate(registration.waiting);
      const coming = registration.installing;
      if (coming) whenInstalled(coming, () => (controlled ? offerUpdate(coming) : saySaved()));
      else if (registration.active && !controlled) saySaved();
      return undefined;
    };
    look();
    registration.addEventListener('updatefound', look);
    registration.update().catch(() => {}); // offline
  } catch {
    if (!controlled) say('The files could not be kept for use without a network; everything else works.');
  }
}
