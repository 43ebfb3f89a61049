/** Parts that depend on the open model and its plan: animation, memory slider, boards, links, files. */
import { $, save } from './dom.js';
import { fileName } from './format.js';
import { showAlert } from './alerts.js';
import { samples } from './source.js';
import { watchCamera } from './camera.js';
import { watchLabels } from './outputs.js';
import { runNow } from './run.js';
import { forgetBudget, fullPlan, showBudget, startBudget, watchBudget } from './budget.js';
import { keepModel, keptModel } from './keep.js';
import { showGraph, watchGraph } from './graph.js';
import { nameOf, parseLink } from './link.js';
import { showPlanPlay, watchPlanPlay } from './plan_play.js';
import { watchProfile } from './profile.js';
import { showShare, watchShare } from './share.js';

export { isRefusedBudget } from './budget.js';

let page = null; // { client, current(), open(source, dims), replan(), target() }
let plan = null;

const sampleOf = (source) => samples.find((sample) => sample.source === source)?.id;

/** How a source can be reopened: by a sample's name, an address, or itself. */
function originOf(source) {
  const sample = sampleOf(source);
  if (sample) return { sample };
  return source.url ? { url: source.url } : {};
}

/** Removes an address that asks for another model, because a reload would bring that back. */
function dropLink() {
  try {
    const link = parseLink(location.hash, location.href);
    const { url, sample } = originOf(page.current().source);
    if (link && (link.url !== url || link.sample !== sample)) history.replaceState(null, '', location.pathname + location.search);
  } catch {
    /* it does not name a model */
  }
}

/** A model has been opened, and not been planned yet. */
export function extrasOpened() {
  dropLink();
  forgetBudget();
  plan = null;
  $('run').toggleAttribute('data-seeded', page.current().seeded);
}

/** Called after every plan, with what it was made from. */
export async function extrasPlanned(given, { model, fixed, options }) {
  plan = given;
  await new Promise((resolve) => setTimeout(resolve)); // lets the plan be painted first
  if (page.current().handle !== model) return;
  const { name, source, language } = page.current();
  const planWith = (budget) => page.client.call('plan', { model, fixed, options: { ...options, budget } });
  showPlanPlay(given, name);
  showGraph(given.values, options.dims);
  await showBudget(given, { fixed, options }, () => planWith(undefined));
  const origin = originOf(source);
  showShare({
    key: JSON.stringify([model, fixed, { ...options, budget: 0 }]),
    name,
    plan: fullPlan(),
    arena: given.report.arena_size,
    options,
    origin,
    planWith: language ? null : planWith,
  });
  keepModel(origin.sample ? { sample: origin.sample, name } : source, source, options.dims, options.budget);
}

function saveJson() {
  const { name } = page.current();
  const { report, values, steps } = plan;
  save(`${fileName(name)}.json`, [JSON.stringify({ model: name, ...report, values, steps }, null, 1)], 'application/json');
}

async function saveReport() {
  try {
    const text = await page.client.call('report', { ...page.target(), form: 'html' });
    save(`${fileName(page.current().name)}.html`, [text], 'text/html');
  } catch (error) {
    showAlert('plan', error);
  }
}

/** Opens what was requested: a sample, an address, a stored file. */
async function openOrigin({ sample, url, source, dims, budget }, isQuiet = false) {
  const known = samples.find(({ id }) => id === (sample ?? source?.sample));
  if (!known && !url && (source?.sample || sample)) throw new Error(`there is no sample '${sample ?? source.sample}'`);
  startBudget(budget);
  if (known) await page.open(known.source, { ...known.dims, ...dims }, isQuiet);
  else await page.open(source ?? { url, name: nameOf(url) }, dims, isQuiet);
}

/** Whether the page's address asked for a model. */
async function openLink() {
  try {
    const link = parseLink(location.hash, location.href);
    if (!link) return false;
    await openOrigin(link);
  } catch (error) {
    showAlert('network', error, 'A link looks like #model=https://host/model.onnx&dims=batch:1&budget=320K');
  }
  return true;
}

/** The first model: from the address, the last one, or a sample. */
export async function openFirst() {
  const [first] = samples;
  const isLinked = await openLink();
  const kept = isLinked ? null : await keptModel();
  if (kept) await openOrigin(kept, true).catch(() => {});
  if (page.current()) return;
  const [alert, words] = [$('alert-network'), [...$('alert-network').childNodes]];
  await page.open(first.source, first.dims, true);
  if (words.length === 0) return;
  alert.replaceChildren(...words); // keeps the error visible
  alert.hidden = false;
}

export function watchExtras(given) {
  page = given;
  watchBudget(page.replan);
  watchPlanPlay();
  watchProfile(() => plan.steps);
  watchShare();
  watchGraph(page);
  watchCamera(runNow);
  watchLabels();
  $('save-plan').addEventListener('click', saveJson);
  $('save-report').addEventListener('click', saveReport);
  addEventListener('hashchange', openLink);
}
