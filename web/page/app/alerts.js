/** Error messages where the reader is looking: the library's message, and what to do. */
import { $, el } from './dom.js';
import { Cancelled } from './client.js';

const SMALLER = 'Take smaller dimensions, set a memory limit under Options, or close other tabs.';

const LARGE =
  'A page has 4 GiB at most. A shorter context or another cache may help; outside of a browser, berth generate has all of the memory.';

/** By the library's status. */
const advice = {
  NOMEM: SMALLER,
  DEVICE_NOMEM: SMALLER,
  INVALID: 'Change what it names, and try again.',
  MALFORMED: 'The file is damaged, or it is something else. Choose another one.',
  UNSUPPORTED: 'Try another file, or one of the samples; the help lists what is read.',
  INFEASIBLE: 'Raise the memory limit under Options.',
  DEVICE_LOST: 'Load the page again, or choose another device.',
  INTERNAL: 'This is a mistake in berth; a report would help. Loading the page again makes it usable.',
};

function adviceFor(where, { status, message }) {
  if (/lie in another file/.test(message)) return 'Choose or drop both files together.';
  if (/has no weights/.test(message)) return 'Choose the graph and its .safetensors file together.';
  if (/is split over/.test(message)) return 'Choose or drop all of its parts together.';
  if (where === 'talk' && status === 'INFEASIBLE') return 'Take a longer context, or a shorter text.';
  if ((where === 'talk' || where === 'fit') && /NOMEM/.test(status)) return LARGE;
  if (where === 'plan' && status === 'INVALID') return 'Other numbers for the dimensions may help.';
  return advice[status] ?? 'Try again, or load the page again.';
}

const sentence = (text) => {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
};

/** Sections of help.html, by where the error occurred. */
const sections = {
  NOMEM: ['memory', 'About memory'],
  DEVICE_NOMEM: ['memory', 'About memory'],
  INFEASIBLE: ['memory', 'About memory'],
  INVALID: ['dimensions', 'About dimensions and inputs'],
  UNSUPPORTED: ['models', 'What models berth takes'],
  MALFORMED: ['files', 'What files berth opens'],
  DEVICE_LOST: ['gpu', 'About the GPU'],
};

/**
 * `where`: load, digit, network, fit, talk, plan or run. `said`: the library's own message, if another one is shown
 * instead.
 */
export function showAlert(where, error, whatToDo, said) {
  if (error instanceof Cancelled) return;
  const box = $(`alert-${where}`);
  const [section, title] = sections[error.status] ?? ['top', 'Help'];
  box.replaceChildren(
    el('p', { class: 'alert-what', text: sentence(error.message), 'data-status': error.status || undefined }),
    el(
      'p',
      { class: 'alert-advice' },
      `${whatToDo ?? adviceFor(where, error)} `,
      el('a', { href: `help.html#${section}`, target: '_blank', rel: 'noopener', text: title, 'data-test': 'help' }),
    ),
    said ? el('p', { class: 'alert-said hint' }, 'berth says: ', el('span', { text: said })) : '',
  );
  box.hidden = false;
}

export function clearAlert(where) {
  const box = $(`alert-${where}`);
  box.hidden = true;
  box.replaceChildren();
}
