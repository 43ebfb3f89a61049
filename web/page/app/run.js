/** Running the open model: its inputs, a session with the current options, and the results. */
import { $, el } from './dom.js';
import { median, milliseconds } from './format.js';
import { busy } from './busy.js';
import { clearAlert, showAlert } from './alerts.js';
import { InputEditor } from './input.js';
import { clearOutputs, showOutputs } from './outputs.js';
import { clearTimings, showTimings } from './timings.js';
import { clearProfile } from './profile.js';

let editors = [];
let client = null;
let session = null; // { key, handle, device, made }
let wanted = null; // () => the basis of a session
let cancelRun = null;

const problem = (error) => (error ? showAlert('run', error) : clearAlert('run'));

/** Editors for the inputs as bound by the plan; the choice for an input of the same name is kept. */
export function showInputs(inputs, fresh, onArray) {
  const choices = new Map(fresh ? [] : editors.map((editor) => [editor.input.name, editor.choice]));
  editors = inputs.map((input, i) => {
    const editor = new InputEditor(input, i, problem, onArray);
    const choice = choices.get(input.name);
    if (choice) editor.choice = choice;
    return editor;
  });
  $('inputs').replaceChildren(...editors.map(({ element }) => element));
  enableRun(true);
}

/** Replaces the inputs, for a model that is not run here. */
export function showNoInputs(text) {
  editors = [];
  $('inputs').replaceChildren(el('p', { class: 'hint', text }));
  enableRun(false);
}

/** After the model, or its binding, has changed. */
export function forgetRun() {
  clearAlert('run');
  clearOutputs();
  clearTimings();
  clearProfile();
  $('run-live').textContent = '';
}

function enableRun(can) {
  $('go').disabled = !can;
  $('profile-go').disabled = !can;
}

/** Closes the session, before its model is closed. */
export async function freeSession() {
  const old = session;
  session = null;
  if (old) await client.call('free', { session: old.handle }).catch(() => {});
}

/** The worker was terminated, and every session with it. */
export const loseSession = () => {
  session = null;
};

async function sessionFor(target, cancel) {
  const key = JSON.stringify(target);
  if (session?.key === key) return session;
  await freeSession();
  const begun = performance.now();
  const made = await busy('making the session', (onProgress) => client.call('session', target, onProgress), cancel);
  session = { key, handle: made.handle, device: made.device, made: performance.now() - begun };
  return session;
}

const inputsNow = async () =>
  Object.fromEntries(await Promise.all(editors.map(async (editor) => [editor.input.name, await editor.spec()])));

/** Profiles one run with the current inputs; keeps `elements` of each value. */
export async function traceOnce(elements) {
  await client.ready;
  const inputs = await inputsNow();
  const { handle, device } = await sessionFor(wanted(), cancelRun);
  const request = { session: handle, inputs, elements };
  const trace = await busy('looking at every step', () => client.call('trace', request), cancelRun);
  return { ...trace, device };
}

/** Runs `repeats` times. `target()` returns the basis; `cancel` terminates the worker. */
async function run(target, cancel) {
  clearAlert('run');
  await client.ready;
  const chosen = target();
  const repeats = Math.min(10000, Math.max(1, Math.trunc(Number($('repeats').value) || 1)));
  const inputs = await inputsNow();
  const { handle, device, made } = await sessionFor(chosen, cancel);
  const began = performance.now();
  let going = null;
  const stop = () => {
    if (repeats > 1 && performance.now() - began > 1000 && going.heard) client.stop(going.id);
    else cancel();
  };
  const result = await busy(
    'running',
    (onProgress) => {
      going = client.call('run', { session: handle, inputs, repeats }, (progress) => {
        going.heard = true;
        onProgress(progress);
      });
      return going;
    },
    stop,
  );
  showOutputs(result.outputs, editors.map(({ input }) => input));
  showTimings(result, device, made);
  const n = result.timings.run.length;
  $('run-live').textContent =
    `Ran ${n === 1 ? 'once' : `${n} times`} on ${device} in ${milliseconds(median(result.timings.run))}.`;
}

/** Runs once more; returns whether it succeeded. */
export async function runNow() {
  clearAlert('run');
  try {
    await run(wanted, cancelRun);
    return true;
  } catch (error) {
    showAlert('run', error);
    return false;
  }
}

export function watchRun(ownClient, target, cancel) {
  client = ownClient;
  [wanted, cancelRun] = [target, cancel];
  let running = false;
  const go = async () => {
    if (running) return;
    running = true;
    $('go').setAttribute('aria-disabled', 'true');
    try {
      await run(target, cancel);
    } catch (error) {
      showAlert('run', error);
    } finally {
      running = false;
      $('go').removeAttribute('aria-disabled');
    }
  };
  $('go').addEventListener('click', go);
  $('repeats').addEventListener('keydown', (event) => event.key === 'Enter' && go());
}
