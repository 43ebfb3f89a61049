/** The bar at the bottom for longer operations, with a button to cancel. */
import { $ } from './dom.js';

const PATIENCE = 500; // milliseconds before anything is shown, so that short operations do not flicker

const jobs = new Set();

/** For tests and other observers: whether anything is running, shown or not. */
const markBusy = () => document.documentElement.toggleAttribute('data-busy', jobs.size > 0);

function show() {
  const job = [...jobs].pop();
  const visible = job && job.due;
  $('busy').hidden = !visible;
  if (!visible) return;
  const bar = $('busy-bar');
  const text = job.total ? `${job.stage}, ${job.done} of ${job.total}` : `${job.stage}…`;
  // Screen readers should not announce every number: the words change only with the stage.
  if ($('busy-stage').dataset.stage !== job.stage) {
    $('busy-stage').textContent = job.total ? job.stage : text;
    $('busy-stage').dataset.stage = job.stage;
  }
  if (job.total) {
    bar.max = job.total;
    bar.value = job.done;
  } else {
    bar.removeAttribute('value');
  }
  bar.title = text;
  $('cancel').hidden = !job.cancel;
}

/** Shows `stage` during `work(onProgress)`. */
export async function busy(stage, work, cancel) {
  const job = { stage, done: 0, total: 0, cancel, due: false };
  const timer = setTimeout(() => {
    job.due = true;
    show();
  }, PATIENCE);
  jobs.add(job);
  markBusy();
  try {
    return await work((progress) => {
      Object.assign(job, progress);
      show();
    });
  } finally {
    clearTimeout(timer);
    jobs.delete(job);
    markBusy();
    show();
  }
}

$('cancel').addEventListener('click', () => [...jobs].pop()?.cancel?.());
