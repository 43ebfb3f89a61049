/** The events in the block, step by step: which buffers come, stay and leave, and their bytes. Pure functions. */

import { roleOf } from './roles.js';

const groupOf = ({ kind, op }) => (kind === 'value' ? roleOf(op) : kind);
const isKept = ({ kind }) => kind === 'param' || kind === 'constant' || kind === 'state';

/** Bytes covered by at least one of these. */
function covered(buffers) {
  const spans = buffers.map(({ offset, size }) => [offset, offset + size]).sort((a, b) => a[0] - b[0]);
  let sum = 0,
    end = -1;
  for (const [from, to] of spans) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}

/** Values with a slot of their own or in another's during a run; the prelude has ended by then. */
function movingBuffers({ report, values, steps }) {
  const floor = report.weights_size + report.state_size;
  const first = steps.findIndex(({ once }) => !once);
  const isMoving = (v) => v.offset >= floor && v.size > 0 && !isKept(v) && v.death > Math.max(first, v.birth);
  return values.filter(isMoving).map((value) => ({ group: groupOf(value), ...value, offset: value.offset - floor }));
}

/**
 * `frames`: one per step of a run: `step`, `op`, `name`, `alive` (buffers), `bytes` (that they cover), `grown` (the
 * bytes of all values so far without sharing). `span`: the bytes of the block without weights and states.
 */
export function framesOf(plan) {
  const { report, steps } = plan;
  const buffers = movingBuffers(plan);
  const waiting = [...buffers].sort((a, b) => a.birth - b.birth);
  const frames = [];
  let alive = [],
    next = 0,
    grown = 0;
  steps.forEach(({ op, name, once }, step) => {
    const came = next;
    while (next < waiting.length && waiting[next].birth <= step) grown += waiting[next++].size;
    alive = [...alive, ...waiting.slice(came, next)].filter(({ death }) => step < death);
    if (!once) frames.push({ step, op, name, alive, bytes: covered(alive), grown });
  });
  const span = buffers.reduce((end, b) => Math.max(end, b.offset + b.size), report.activations_size + report.scratch_size);
  const peak = frames.reduce((most, { bytes }) => Math.max(most, bytes), 0);
  return { frames, buffers, span: Math.max(1, span), grown, peak };
}

/** The positions of buffers between frame `at` and the next: `in` and `out` go from 0 to 1. */
export function fleet({ frames }, at) {
  const index = Math.min(frames.length - 1, Math.max(0, Math.floor(at)));
  const frame = frames[index];
  if (!frame) return [];
  const share = Math.min(1, at - index);
  const came = new Set(frames[index - 1]?.alive);
  const ships = frame.alive.map((buffer) => ({ buffer, in: came.has(buffer) ? 1 : share, out: 0 }));
  const here = new Set(frame.alive);
  const left = (frames[index - 1]?.alive ?? []).filter((buffer) => !here.has(buffer));
  return [...left.map((buffer) => ({ buffer, in: 1, out: share })), ...ships];
}
