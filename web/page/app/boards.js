/** Boards that a network may have to fit on, and whether it does. Pure functions. */
import { bytes } from './format.js';

const KIB = 1024,
  MIB = 1024 * KIB,
  GIB = 1024 * MIB;

/**
 * `memory`: bytes for a program's data; `flash`: bytes of memory-mapped flash for weights, 0 if they are in memory too.
 */
export const boards = [
  { id: 'pico', name: 'Raspberry Pi Pico', what: '264 KiB of RAM, 2 MiB of flash', memory: 264 * KIB, flash: 2 * MIB },
  { id: 'esp32', name: 'ESP32', what: '320 KiB of RAM for data, 4 MiB of flash', memory: 320 * KIB, flash: 4 * MIB },
  { id: 'tab', name: 'A phone’s browser tab', what: 'about 1 GiB before it is closed', memory: GIB, flash: 0 },
  { id: 'board', name: 'A board with 4 GB', what: 'about 3 GiB beside the system', memory: 3 * GIB, flash: 0 },
];

const kept = ({ weights_size: weights, state_size: state }) => ({ weights, state });

/** What a network needs on a board: bytes of memory, and of flash. */
export function needOf(board, report) {
  const { weights } = kept(report);
  return board.flash ? { memory: report.arena_size - weights, flash: weights } : { memory: report.arena_size, flash: 0 };
}

/** A budget that may make a plan fit: weights in flash are part of the planned block, so they are added. */
export const budgetFor = (board, report) => board.memory + (board.flash ? kept(report).weights : 0);

/**
 * "fits": without changes; "tight": possibly with a budget, which a plan must confirm; "no": never. `share`: of the
 * board's memory; `words`: the reason.
 */
export function verdictOf(board, report) {
  const need = needOf(board, report);
  const { state } = kept(report);
  const share = need.memory / board.memory;
  const use = `${bytes(need.memory)} of ${bytes(board.memory)}`;
  if (need.flash > board.flash && board.flash)
    return { state: 'no', share, words: `its weights take ${bytes(need.flash)}, the flash has ${bytes(board.flash)}` };
  if (need.memory <= board.memory)
    return { state: 'fits', share, words: `${use}${board.flash ? `, and ${bytes(need.flash)} of flash for the weights` : ''}` };
  const least = board.flash ? state : kept(report).weights + state;
  if (least >= board.memory) return { state: 'no', share, words: `it needs ${bytes(need.memory)}, there are ${bytes(board.memory)}` };
  return { state: 'tight', share, words: `it asks for ${use}` };
}
