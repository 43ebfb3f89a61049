/** The animated plan of the open model; created when it is first opened. */
import { $ } from './dom.js';
import { choosePicture } from './picture.js';
import { Harbour } from './play.js';
import { traceOnce } from './run.js';

let harbour = null;
let waiting = null; // { plan, name } not shown yet
let tensors = null;

function show() {
  if (!waiting || !$('plan-play-box').open) return;
  const { plan, name } = waiting;
  waiting = null;
  harbour ??= new Harbour($('plan-play'), { look, onChoose: choosePicture });
  harbour.pause();
  harbour.show(plan, name);
}

function look() {
  tensors ??= traceOnce().then(({ tensors: list }) => new Map(list.map((tensor) => [tensor.name, tensor])));
  tensors.catch(() => {
    tensors = null; // another attempt may succeed
  });
  return tensors;
}

export function showPlanPlay(plan, name) {
  waiting = { plan, name };
  tensors = null;
  show();
}

export function watchPlanPlay() {
  $('plan-play-box').addEventListener('toggle', show);
  $('inputs').addEventListener('change', () => {
    tensors = null;
  });
}
