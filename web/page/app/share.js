/** Where the network fits, and what to share: a link, a card, a badge. */
import { $, el, later, save } from './dom.js';
import { bytes, count, fileName } from './format.js';
import { boards, budgetFor, verdictOf } from './boards.js';
import { badgeMarkdown, badgeSvg, boxesOf, cardSvg } from './card.js';
import { makeLink } from './link.js';
import { framesOf } from './play_frames.js';
import { priceOf, priceWords, smallestIn } from './price.js';

const WORDS = { fits: 'fits', tight: 'fits in slices', no: 'does not fit', asking: 'asking…' };
const MANY = 1000; // steps: with more, a budget takes so long that it is left to the slider
const WAIT = 300; // milliseconds without another plan before boards are checked

let shown = null; // { key, name, plan, options, verdicts, planWith, origin }

function showTiles() {
  $('boards').replaceChildren(
    ...boards.map((board) => {
      const { state, words, share } = shown.verdicts.get(board.id);
      const fill = el('span', { class: 'fill' });
      fill.style.transform = `scaleX(${Math.min(1, share)})`;
      return el(
        'li',
        { class: 'board', 'data-test': `board-${board.id}`, 'data-state': state },
        el('p', { class: 'board-name' }, el('b', { text: board.name }), el('span', { class: 'board-verdict', text: WORDS[state] })),
        el('span', { class: 'track', 'aria-hidden': 'true' }, fill),
        el('p', { class: 'hint', text: words }),
        el('p', { class: 'hint', text: board.what }),
      );
    }),
  );
  $('boards').toggleAttribute('data-asking', [...shown.verdicts.values()].some(({ state }) => state === 'asking'));
}

/** For a board that the plan is too large for: whether there is a plan within its memory. */
async function ask(board, own) {
  const before = own.verdicts.get(board.id);
  const answer = (state, words) => own.verdicts.set(board.id, { ...before, state, words });
  try {
    const plan = await own.planWith(budgetFor(board, own.plan.report));
    answer('tight', priceWords(priceOf(own.plan, plan)));
  } catch (error) {
    const least = smallestIn(error.message);
    const need = Number.isFinite(least) ? least - (board.flash ? own.plan.report.weights_size : 0) : NaN;
    answer('no', Number.isFinite(need) ? `the smallest plan found takes ${bytes(need)} of ${bytes(board.memory)}` : error.message);
  }
}

const askAll = later(WAIT, async (own) => {
  for (const board of boards) {
    if (own !== shown) return;
    if (own.verdicts.get(board.id).state !== 'asking') continue;
    await ask(board, own);
    if (own === shown) showTiles();
  }
});

/**
 * Called after every plan. `plan`: the one without a budget; `origin`: { url, sample } or nothing; `planWith(budget)`:
 * a promise of a plan; null if budgets do not apply.
 */
export function showShare({ key, name, plan, arena, options, origin, planWith }) {
  const { budget, dims } = options;
  if (shown?.key !== key) {
    const verdicts = new Map();
    const canAsk = planWith && plan.steps.length <= MANY;
    for (const board of boards) {
      const verdict = verdictOf(board, plan.report);
      const state = verdict.state !== 'tight' ? verdict.state : canAsk ? 'asking' : 'no';
      const words = state === 'no' && verdict.state === 'tight' ? `${verdict.words}; the memory slider may find less` : verdict.words;
      verdicts.set(board.id, { ...verdict, state, words });
    }
    shown = { key, name, plan, verdicts, planWith };
    showTiles();
    if (canAsk) askAll(shown);
  }
  Object.assign(shown, { arena, origin, dims, budget });
  const link = linkNow();
  $('link').value = link ?? '';
  $('link').placeholder = link ? '' : 'the file is on this machine alone';
  $('copy-link').disabled = !link;
  $('link-hint').textContent = link
    ? 'It opens the same plan for whoever has it. Nothing is uploaded: their browser reads the model from its address.'
    : 'A link needs an address: put the file where other pages may read it (CORS), and open #model=ADDRESS.';
  $('badge').src = `data:image/svg+xml,${encodeURIComponent(badgeSvg(arena))}`;
  $('badge').alt = `Badge: memory, ${bytes(arena)}`;
  $('badge-markdown').value = badgeMarkdown('memory.svg', arena, link);
}

function linkNow() {
  const { origin, dims, budget } = shown;
  const fragment = makeLink({ ...origin, dims, budget });
  return fragment && `${location.origin}${location.pathname}${fragment}`;
}

function cardNow() {
  const { name, plan, verdicts, dims } = shown;
  const { report } = plan;
  const parts = Object.entries(dims).map(([dim, extent]) => `${dim} ${count(extent)}`);
  const weights = `weights ${bytes(report.weights_size)}, everything else ${bytes(report.arena_size - report.weights_size)}`;
  const tiles = boards.map((board) => {
    const { state, words, share } = verdicts.get(board.id);
    return { name: board.name, state: state === 'asking' ? 'no' : state, text: words, share };
  });
  const line = [weights, ...parts].join(' · ');
  return cardSvg({ name, arena: report.arena_size, unshared: report.total_unshared, line, tiles, boxes: boxesOf(framesOf(plan)) });
}

/** The card as pixels. */
async function cardPng() {
  const url = URL.createObjectURL(new Blob([cardNow()], { type: 'image/svg+xml' }));
  try {
    const image = el('img', { src: url, alt: '' });
    await image.decode();
    const canvas = el('canvas', { width: image.naturalWidth, height: image.naturalHeight });
    canvas.getContext('2d').drawImage(image, 0, 0);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the card could not be painted'))), 'image/png');
    });
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function copy(field, button) {
  field.select();
  const title = button.textContent;
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Press Ctrl+C'; // the text is selected
  }
  setTimeout(() => {
    button.textContent = title;
  }, 2000);
}

export function watchShare() {
  const named = (ending) => `${fileName(shown.name)}-${ending}`;
  $('copy-link').addEventListener('click', () => copy($('link'), $('copy-link')));
  $('copy-badge').addEventListener('click', () => copy($('badge-markdown'), $('copy-badge')));
  $('save-badge').addEventListener('click', () => save('memory.svg', [badgeSvg(shown.arena)], 'image/svg+xml'));
  $('save-card-svg').addEventListener('click', () => save(named('fits.svg'), [cardNow()], 'image/svg+xml'));
  $('save-card').addEventListener('click', async () => save(named('fits.png'), [await cardPng()], 'image/png'));
}
