/** Talking to a language model: text appears as it is generated. */
import { $, el } from './dom.js';
import { amount, bytes, count, milliseconds } from './format.js';
import { busy } from './busy.js';
import { Cancelled } from './client.js';
import { clearAlert, showAlert } from './alerts.js';
import { closeFit, fitAgain, generatorOptions, moveFit, openFit } from './fit.js';

let client = null;
let cancel = () => {};
let model = null; // a handle
let chats = false; // messages are answered, using the model's own template
let going = null; // the current request
let hasBegun = false; // there is a text to continue
let lost = 0; // counts lost conversations
let isTooLarge = false; // for a page
const LARGEST = 2 ** 31; // bytes: one block of WebAssembly's memory

const reasons = {
  count: 'There may be more: go on.',
  end: 'The model says that this is the end.',
  stop: 'Stopped.',
  full: 'The context is full: a longer one has room for more.',
};

function showButtons() {
  $('write').textContent = chats ? 'Send' : 'Write';
  $('write').disabled = going !== null || isTooLarge;
  $('go-on').disabled = going !== null || !hasBegun;
  $('stop').hidden = going === null;
  $('story').setAttribute('aria-busy', String(going !== null));
  document.documentElement.toggleAttribute('data-talking', going !== null);
}

/** A new paragraph, to which text is added. */
function paragraph(kind, text) {
  const place = el('p', { class: kind, text });
  $('story').append(place);
  return place;
}

function clearStory() {
  $('story').replaceChildren();
  $('talk-facts').textContent = '';
  $('talk-live').textContent = '';
  hasBegun = false;
}

function showFacts(value, where) {
  const rate = value.msPerToken > 0 ? 1000 / value.msPerToken : 0;
  const facts = [
    [rate ? (rate < 10 ? rate.toFixed(1) : count(rate)) : '–', 'tokens a second', 'rate'],
    [count(value.tokens.length), value.tokens.length === 1 ? 'token' : 'tokens', 'written'],
    [milliseconds(value.promptMs), `to read ${count(value.promptTokens)}`, 'prompt'],
    [bytes(value.arena), `in one block, on ${where}`, 'arena'],
    [count(value.allocations), 'allocations', 'token-allocations'],
  ];
  $('talk-facts').replaceChildren(
    ...facts.map(([figure, words, test]) =>
      el('li', {}, el('b', { text: figure, 'data-test': `talk-${test}` }), ` ${words}`),
    ),
  );
  $('talk-live').textContent = `${amount(value.tokens.length, 'token')}. ${reasons[value.stoppedBy]}`;
  $('talk-end').textContent = reasons[value.stoppedBy];
}

function numberOf(id, least, what) {
  const value = Number($(id).value);
  const good = $(id).value !== '' && Number.isFinite(value) && value >= least;
  $(id).setAttribute('aria-invalid', String(!good));
  if (!good) throw Object.assign(new Error(`${what} must be a number of ${least} or more`), { status: 'INVALID' });
  return value;
}

function sampling() {
  return {
    temperature: numberOf('temperature', 0, 'the temperature'),
    seed: Math.trunc(numberOf('seed', 0, 'the seed')),
  };
}

/** `given`: { prompt }, { message } or nothing, which continues. `begun` returns the element for the text. */
async function write(given, begun) {
  const options = generatorOptions();
  const request = { model, options, sampling: sampling(), count: Math.trunc(numberOf('tokens', 1, 'the number of tokens')) };
  const place = begun();
  let began;
  const first = new Promise((resolve) => {
    began = resolve;
  });
  let tell = () => {};
  going = client.call('talk', { ...request, ...given }, (progress) => {
    if (progress.text === undefined) return tell(progress);
    began();
    place.append(progress.text);
    $('story').scrollTop = $('story').scrollHeight;
    return undefined;
  });
  showButtons();
  const reading = (onProgress) => {
    tell = onProgress;
    return Promise.race([going, first]);
  };
  await busy('reading the model', reading, cancel);
  const turn = lost;
  showFacts(await going, options.device);
  hasBegun = turn === lost;
}

async function act(given, place) {
  if (going || model === null || isTooLarge) return;
  const asked = model;
  clearAlert('talk');
  $('talk-end').textContent = '';
  try {
    await write(given, place);
  } catch (error) {
    if (asked === model && !(error instanceof Cancelled)) showAlert('talk', error);
  } finally {
    going = null;
    showButtons();
  }
}

function begin() {
  const text = $('prompt').value;
  if (chats) {
    if (text.trim() === '') return;
    act({ message: text, isFirst: !hasBegun }, () => {
      $('prompt').value = '';
      paragraph('asked', text);
      return paragraph('answer', '');
    });
    return;
  }
  act({ prompt: text }, () => {
    clearStory();
    const place = paragraph('answer', '');
    place.append(el('span', { class: 'given', text }));
    return place;
  });
}

const goOn = () => act({}, () => $('story').lastElementChild ?? paragraph('answer', ''));

function setChats(yes) {
  chats = yes;
  $('talk-continue').setAttribute('aria-pressed', String(!yes));
  $('talk-chat').setAttribute('aria-pressed', String(yes));
  $('prompt-label').textContent = yes ? 'Your message' : 'A beginning';
  clearStory();
  showButtons();
}

/** The conversation is lost: with the worker, or with its options. */
export function loseTalk() {
  hasBegun = false;
  lost++;
  showButtons();
}

/** The same model in another worker. */
export function moveTalk(handle) {
  loseTalk();
  if (model === null) return;
  model = handle;
  moveFit(handle);
  fitAgain();
}

const kinds = (types) =>
  Object.entries(types)
    .sort(([, a], [, b]) => b - a)
    .map(([type]) => type);

function nameParameters(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)} billion parameters`;
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} million parameters` : amount(n, 'parameter');
}

/**
 * Shows what `open` found, or the invitation if it is not a language model. Returns the dimensions of the first plan.
 */
export function showLanguage(handle, name, language, begins) {
  if (going) client.stop(going.id);
  const talks = Boolean(language?.generates);
  model = talks ? handle : null;
  $('talk-invite').hidden = talks;
  $('talking').hidden = !talks;
  $('talk-name').textContent = talks ? name : '';
  $('talk-about').textContent = '';
  for (const where of ['fit', 'talk']) clearAlert(where);
  $('talk-end').textContent = '';
  clearStory();
  if (!talks) {
    closeFit();
    return {};
  }
  const words = [language.architecture, nameParameters(language.nParameters), kinds(language.types).slice(0, 4).join(', ')];
  if (language.context) words.push(`made for ${amount(language.context, 'token')}`);
  $('talk-about').textContent = words.join(' · ');
  const size = Object.values(language.types).reduce((sum, part) => sum + part, 0);
  isTooLarge = size >= LARGEST;
  $('talk-how').hidden = !language.hasTemplate;
  setChats(false);
  if (isTooLarge)
    $('talk-end').textContent =
      `Its ${bytes(size)} are too many for a page, which has 4 GiB in blocks of 2. Outside of one, berth generate ${name} lets it talk.`;
  $('prompt').value = begins ?? 'Once upon a time';
  const dims = openFit(handle, language);
  fitAgain();
  return dims;
}

export function watchTalk(ownClient, whenCancelled, openSample) {
  client = ownClient;
  cancel = whenCancelled;
  $('talk-sample').addEventListener('click', openSample);
  $('write').addEventListener('click', begin);
  $('go-on').addEventListener('click', goOn);
  $('stop').addEventListener('click', () => going && client.stop(going.id));
  $('talk-continue').addEventListener('click', () => setChats(false));
  $('talk-chat').addEventListener('click', () => setChats(true));
  $('prompt').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    begin();
  });
  showButtons();
}
