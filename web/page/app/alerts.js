/** What went wrong, where the reader is looking: the library's sentence, and what to do. */
import { $, el } from './dom.js';
import { Cancelled } from './client.js';

const SMALLER = 'Take smaller dimensions, set a budget under Options, or close other tabs.';

const LARGE =
  'A page has 4 GiB at most. A shorter context or another cache may help; outside of a browser, berth generate has all of the memory.';

/** By the library's status. */
const advice = {
  NOMEM: SMALLER,
  DEVICE_NOMEM: SMALLER,
  INVALID: 'Change what it names, and try again.',
  MALFORMED: 'The file is damaged, or it is something else. Choose another one.',
  UNSUPPORTED: 'Try another file, or one of the samples; docs/onnx.md and docs/generation.md list what is read.',
  INFEASIBLE: 'Take a larger budget under Options.',
  DEVICE_LOST: 'Load the page again, or choose another device.',
  INTERNAL: 'This is a mistake in berth; a report would help. Loading the page again makes it usable.',
};

function adviceFor(where, { status, message }) {
  if (/has no weights/.test(message)) return 'Choose the graph and its .safetensors file together.';
  if (/is split over/.test(message)) return 'Join its parts into one file first: llama.cpp has gguf-split --merge for that.';
  if (where === 'talk' && status === 'INFEASIBLE') return 'Take a longer context, or a shorter text.';
  if ((where === 'talk' || where === 'fit') && /NOMEM/.test(status)) return LARGE;
  if (where === 'plan' && status === 'INVALID') return 'Other numbers for the dimensions may help.';
  return advice[status] ?? 'Try again, or load the page again.';
}

const sentence = (text) => {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
};

/** `where`: digit, network, fit, talk, plan or run. */
export function showAlert(where, error, whatToDo) {
  if (error instanceof Cancelled) return;
  const box = $(`alert-${where}`);
  box.replaceChildren(
    el('p', { class: 'alert-what', text: sentence(error.message), 'data-status': error.status || undefined }),
    el('p', { class: 'alert-advice', text: whatToDo ?? adviceFor(where, error) }),
  );
  box.hidden = false;
}

export function clearAlert(where) {
  const box = $(`alert-${where}`);
  box.hidden = true;
  box.replaceChildren();
}
