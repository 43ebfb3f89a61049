/** The sequence of events: a network is opened, planned repeatedly, and run. first.js starts it. */
import { $, save } from './dom.js';
import { amount, fileName } from './format.js';
import { busy } from './busy.js';
import { Cancelled } from './client.js';
import { client, load } from './start.js';
import { clearAlert, showAlert } from './alerts.js';
import { explain } from './foreign.js';
import { fault } from './fault.js';
import { device, showDevices } from './devices.js';
import { markSource, samples, showSources } from './source.js';
import {
  dimOf, fixedInputs, planOptions, setDims, showDims, showFixed, usualDims, watchSetup,
} from './setup.js';
import { hidePlan, showPlan, watchPlan } from './plan.js';
import { pictureSvg } from './picture.js';
import { forgetRun, freeSession, loseSession, showInputs, showNoInputs, watchRun } from './run.js';
import { cacheOptions, chooseCtx, dimsFor, fitAgain, nearFor, watchFit } from './fit.js';
import { loseTalk, moveTalk, showLanguage, watchTalk } from './talk.js';
import { outputsOf } from './outputs.js';
import { digitAgain, loseDigit } from './digit.js';
import { extrasOpened, extrasPlanned, isRefusedBudget, openFirst, watchExtras } from './extras.js';
import { watchOffline } from './offline.js';
import { watchTeach } from './teach.js';

let current = null; // { source, handle, name, inputs, ... } of the open model
let opening = 0; // counts open requests: only the last one matters

async function lookForDevices() {
  showDevices(await client.call('devices'), () => {
    replan();
    digitAgain();
    loseTalk();
    fitAgain();
  });
}

/** The options of a plan from the current fields. */
const optionsNow = () => ({ ...planOptions(), ...cacheOptions() });

/** Cancels the worker's request, and restores the page's previous state. */
async function cancel() {
  loseSession();
  loseDigit();
  planning = idle();
  try {
    await client.restart(async (call) => {
      await load(call);
      if (current) Object.assign(current, await call('open', { source: current.source }));
    });
    if (current) moveTalk(current.handle);
    if (current && current.planned !== keyOf({ fixed: fixedInputs(), options: optionsNow() }))
      throw new Error('planning was called off; change a dimension or an option to plan again');
  } catch (error) {
    showAlert(current ? 'plan' : 'network', error);
  }
}

function showModel({ name, nNodes, inputs, outputs, dims, seeded }) {
  $('model-name').textContent = `of ${name}`;
  const words = [
    amount(nNodes, 'node'),
    `${inputs.length} ${inputs.length === 1 ? 'input' : 'inputs'}`,
    `${outputs.length} ${outputs.length === 1 ? 'output' : 'outputs'}`,
  ];
  if (dims.length) words.push(`open: ${dims.join(', ')}`);
  if (seeded) words.push('weights are random numbers, the same every time');
  $('model-facts').textContent = words.join(' · ');
}

/** Scrolls a part of the page into view. */
const reveal = (id) => $(id).scrollIntoView({ block: 'start', behavior: 'instant' });

/** Initial dimensions: the requested or usual ones, if the model accepts them, otherwise the smallest. */
async function firstDims({ handle, dims, language }, wanted) {
  const all = { ...usualDims(dims), ...wanted };
  const own = Object.fromEntries(dims.map((name) => [name, all[name]]));
  if (language || dims.length === 0) return own;
  return client.call('guess', { model: handle, dims: own }).catch(() => own); // the plan reports what is wrong
}

/** Removes everything of the previous model, on the page and in the worker. */
function forget() {
  const old = current;
  current = null;
  hidePlan();
  showDims({});
  showFixed([]);
  forgetRun();
  freeSession();
  showNoInputs('There is no model.');
  showLanguage(null, '', null);
  $('model-facts').textContent = '';
  if (old) client.call('free', { model: old.handle }).catch(() => {});
}

/** Why a file could not be opened, in general words; and the library's message. */
async function showNotOpened(source, error) {
  forget();
  markSource(null);
  $('model-name').textContent = `of ${source.name}`;
  const { what, advice } = source.file
    ? await explain(source.file, error)
    : { what: `${source.name} cannot be opened: ${error.message}`, advice: undefined };
  const isPlain = !what.includes(error.message);
  showAlert('network', fault(isPlain ? 'MALFORMED' : error.status, what), advice, isPlain ? error.message : '');
  $('opened').textContent = what;
  markReady();
}

/** `isQuiet`: opened automatically, so the page does not scroll to it. */
async function open(source, dims, isQuiet = false) {
  const turn = ++opening;
  clearAlert('network');
  clearAlert('plan');
  $('opened').textContent = '';
  try {
    const info = await busy(
      `reading ${source.name}`,
      (onProgress) => client.call('open', { source }, onProgress),
      cancel,
    );
    if (turn !== opening) {
      client.call('free', { model: info.handle }).catch(() => {});
      return;
    }
    forget();
    current = { source, ...info };
    markSource(source);
    showModel(info);
    const first = showLanguage(info.handle, info.name, info.language);
    if (!isQuiet) reveal(info.language ? 'talk' : 'plan');
    const begin = await busy('trying dimensions', () => firstDims(info, { ...first, ...dims }), cancel);
    if (turn !== opening) return;
    showDims(begin);
    showFixed(info.inputs.filter(({ name }) => info.toFix.includes(name)));
    extrasOpened();
    await replan(true);
    if (turn !== opening || isQuiet) return;
    reveal(info.language ? 'talk' : 'plan'); // the content above may have changed its height
    if (current?.planned) $('opened').textContent = `${info.name} is open.`;
  } catch (error) {
    if (turn !== opening || error instanceof Cancelled) return;
    await showNotOpened(source, error);
    reveal('plan');
  }
}

/** Sets the dimensions to those of an array given for an input, if its shape fits the model's. */
function bindToArray(name, shape) {
  const open = current.inputs.find((input) => input.name === name)?.shape;
  if (!open || open.length !== shape.length) return;
  const fits = open.every((extent, i) => typeof extent === 'string' || extent === shape[i]);
  if (fits) setDims(Object.fromEntries(open.map((extent, i) => [extent, shape[i]])));
}

const TALKS = 'A language model runs token by token: talk to it above.';
const EMBEDS = 'This model computes text embeddings. The page shows its plan; outside of a browser, berth embed runs it.';

const idle = () => ({ busy: false, wanted: false, fresh: false });
let planning = idle();

const boundShape = ({ shape, ...rest }, dims) => ({
  ...rest,
  shape: shape.map((extent) => (typeof extent === 'string' ? (dims[extent] ?? extent) : extent)),
});

const keyOf = (options) => JSON.stringify(options);

/** The basis of plans, sessions and pictures: the model, with the current fields. */
const target = () => ({ model: current.handle, fixed: fixedInputs(), options: optionsNow() });

/** What is shown now corresponds to the fields: the plan, or an error. */
const markReady = () => {
  document.documentElement.dataset.ready = 'yes';
};

async function planOnce(fresh) {
  await client.ready;
  const { model: handle, fixed, options } = target();
  const key = keyOf({ fixed, options });
  if (!fresh && current.planned === key) {
    markReady();
    return;
  }
  const plan = await busy(
    'planning',
    (onProgress) => client.call('plan', { model: handle, fixed, options }, onProgress),
    cancel,
  );
  if (current?.handle !== handle) return;
  clearAlert('plan');
  const boundTo = keyOf([fixed, options.dims]);
  if (current.boundTo !== boundTo) forgetRun(); // results of another device are comparable, but not of other shapes
  Object.assign(current, { boundTo, planned: key });
  showPlan(plan);
  if (current.language) showNoInputs(current.language.generates ? TALKS : EMBEDS);
  else
    showInputs(
      plan.inputs.map((input) => boundShape(input, options.dims)),
      fresh,
      bindToArray,
    );
  await extrasPlanned(plan, { model: handle, fixed, options });
  if (current?.handle !== handle) return;
  markReady();
}

/** Plans with the current fields. One at a time; changes in between are planned afterwards. */
async function replan(fresh = false) {
  if (!current) return;
  const own = planning;
  Object.assign(own, { wanted: true, fresh: own.fresh || fresh });
  if (own.busy) return;
  own.busy = true;
  while (own.wanted && own === planning && current) {
    const { source } = current;
    const begin = own.fresh;
    Object.assign(own, { wanted: false, fresh: false });
    try {
      await planOnce(begin);
    } catch (error) {
      if (error instanceof Cancelled || own !== planning) break;
      if (!current) break;
      if (current.source !== source) continue;
      if (isRefusedBudget(error)) {
        own.wanted = true;
        continue;
      }
      current.planned = '';
      hidePlan();
      forgetRun();
      showNoInputs('There is no plan.');
      showAlert('plan', error);
      markReady();
    }
  }
  own.busy = false;
}

const saveSvg = () =>
  save(
    `${fileName(current.name)}.svg`,
    [pictureSvg(`${current.name}: ${$('arena').textContent} in one block`)],
    'image/svg+xml',
  );

/** `isLoaded`: berth is loaded. Otherwise everything is shown, and reports the error when it is used. */
export async function start(isLoaded) {
  showSources(open);
  watchSetup(() => {
    chooseCtx(dimOf('ctx'));
    setDims(nearFor(dimOf('ctx'), dimOf('rows')));
    replan();
  });
  watchPlan();
  watchTeach(client);
  watchExtras({ client, open, replan: () => replan(), target, current: () => current });
  watchRun(client, target, cancel);
  watchFit(client, (ctx) => {
    loseTalk();
    setDims(dimsFor(ctx));
    replan();
  });
  const tale = samples.find(({ id }) => id === 'tale');
  watchTalk(client, cancel, () => open(tale.source, {}));
  $('save-svg').addEventListener('click', saveSvg);
  if (!isLoaded) return;
  if (opening === 0) await openFirst();
  watchOffline(); // now that nothing else needs the network
  lookForDevices().catch((error) => showAlert('network', error)); // a browser may take long to find the GPU
}

/** For tests and for the console. */
window.berthPage = { outputsOf, device, pictureSvg };
