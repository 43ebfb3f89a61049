/** What went wrong, where the reader is looking: the library's sentence, and what to do. */
import { $, el } from './dom.js';
import { Cancelled } from './client.js';

const advice = {
  PARSE: 'The file is damaged, or it is not an ONNX model. Try another file, or one of the samples.',
  UNSUPPORTED: 'Try another file, or one of the samples; docs/onnx.md lists what is read.',
  NOMEM: 'Close other tabs, take smaller dimensions, or set a budget under Options.',
  INVALID: 'Change what it names, and try again.',
  BUDGET: 'Take a larger budget under Options.',
  DEVICE: 'Choose another device, or load the page again.',
};

function adviceFor(error) {
  if (error.status) return advice[error.status] ?? 'Try other settings, or another model.';
  return 'Loading the page again may help.';
}

const sentence = (text) => {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
};

/** `where`: digit, network, plan or run. */
export function showAlert(where, error, whatToDo) {
  if (error instanceof Cancelled) return;
  const box = $(`alert-${where}`);
  box.replaceChildren(
    el('p', { class: 'alert-what', text: sentence(error.message), 'data-status': error.status || undefined }),
    el('p', { class: 'alert-advice', text: whatToDo ?? adviceFor(error) }),
  );
  box.hidden = false;
}

export function clearAlert(where) {
  const box = $(`alert-${where}`);
  box.hidden = true;
  box.replaceChildren();
}
