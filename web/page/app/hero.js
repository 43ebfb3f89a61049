/** The first picture: the network that reads digits, in its block of memory, while it runs. */
import { $ } from './dom.js';
import { bytes, exactBytes, percent } from './format.js';
import { showAlert } from './alerts.js';
import { framesOf } from './play_frames.js';
import { Harbour } from './play.js';

let harbour = null;
let shown = ''; // the model and the device of the plan shown
let last = null; // the digit recognised last
let tensors = null; // the values of its steps, once requested

function look() {
  const { client, session, inputs } = last;
  const given = { name: 'image', type: 'f32', shape: [1, 1, 8, 8], data: inputs.image.data };
  tensors ??= client
    .call('trace', { session, inputs })
    .then(({ tensors: list }) => new Map([given, ...list].map((tensor) => [tensor.name, tensor])));
  return tensors;
}

function showFigures(plan) {
  const { span, grown } = framesOf(plan);
  const { arena_size: arena } = plan.report;
  $('harbour-size').textContent = bytes(span);
  $('harbour-size').dataset.bytes = span;
  $('harbour-words').textContent =
    `for all tensors of this network, ${bytes(grown)} if each had its own: ${percent(1 - span / grown)} less. ` +
    `With the weights it is one block of ${exactBytes(arena)}.`;
}

async function showPlanOf({ client, model, device }) {
  const plan = await client.call('plan', { model, fixed: {}, options: { device, dims: { batch: 1 } } });
  shown = `${model} ${device}`;
  harbour.show(plan, 'digits');
  showFigures(plan);
}

/** Returns a function to call for every digit. */
export function watchHero() {
  harbour = new Harbour($('play'), { look });
  return async (digit) => {
    last = digit;
    tensors = null;
    try {
      if (shown !== `${digit.model} ${digit.device}`) await showPlanOf(digit);
      if (!harbour.playing) harbour.replay();
    } catch (error) {
      showAlert('digit', error);
    }
  };
}
