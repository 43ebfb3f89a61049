/** Every value of the plan as a row: sorted by any column, filtered by words. */
import { $, el, later } from './dom.js';
import { amount, bytes, count, exactBytes } from './format.js';

const PAGE = 100; // rows at a time, which keeps the page fast with 20,000 of them

const columns = [
  { key: 'name', title: 'Name', text: (v) => v.name },
  { key: 'kind', title: 'Kind', text: (v) => v.kind },
  { key: 'op', title: 'Op', text: (v) => v.op },
  { key: 'type', title: 'Type', text: (v) => v.type },
  {
    key: 'shape',
    title: 'Shape',
    text: (v) => `[${v.shape.join(', ')}]`,
    rank: (v) => v.shape.reduce((a, b) => a * b, 1),
  },
  {
    key: 'size',
    title: 'Size',
    text: (v) => bytes(v.size),
    hover: (v) => exactBytes(v.size),
    rank: (v) => v.size,
    number: true,
  },
  {
    key: 'offset',
    title: 'Offset',
    text: (v) => (v.offset < 0 ? 'outside' : count(v.offset)),
    rank: (v) => v.offset,
    number: true,
  },
  {
    key: 'birth',
    title: 'Steps',
    text: (v) => `${v.birth}–${v.death}`,
    rank: (v) => v.birth * 1e7 + v.death,
    number: true,
  },
  { key: 'shares', title: 'Shares with', text: (v) => v.shares },
];

let values = [];
let sort = { key: 'size', down: true };
let rows = PAGE;
let onChoose = () => {};
let chosen = null;

function sorted() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const column = columns.find(({ key }) => key === sort.key);
  const rank = column.rank ?? ((v) => column.text(v).toLowerCase());
  const matches = (v) => {
    const text = `${v.name} ${v.kind} ${v.op} ${v.type} ${v.shares}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const ranked = values.filter(matches).map((value) => ({ value, at: rank(value) }));
  ranked.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0) * (sort.down ? -1 : 1));
  return ranked.map(({ value }) => value);
}

function cell(column, value) {
  if (column.key !== 'name')
    return el('td', {
      class: column.number ? 'number' : undefined,
      title: column.hover?.(value),
      text: column.text(value),
    });
  return el(
    'th',
    { scope: 'row' },
    el('button', {
      type: 'button',
      class: 'link mono',
      tabindex: -1,
      text: value.name,
      onclick: () => onChoose(value.name),
    }),
  );
}

/** Only one row is a tab stop, or there would be a hundred of them; arrow keys move from row to row. */
function stopAt(button) {
  $('tensors').tBodies[0].querySelector('[tabindex="0"]')?.setAttribute('tabindex', '-1');
  button?.setAttribute('tabindex', '0');
}

function moveByKey(event) {
  const buttons = [...$('tensors').tBodies[0].querySelectorAll('button')];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  buttons[to]?.focus();
}

function show() {
  const found = sorted();
  const body = $('tensors').tBodies[0];
  body.replaceChildren(
    ...found
      .slice(0, rows)
      .map((value) =>
        el(
          'tr',
          { 'data-name': value.name, 'aria-current': value.name === chosen ? 'true' : undefined },
          ...columns.map((column) => cell(column, value)),
        ),
      ),
  );
  stopAt(body.querySelector('button'));
  $('table-count').textContent =
    found.length === values.length
      ? amount(values.length, 'value')
      : `${count(found.length)} of ${amount(values.length, 'value')}`;
  $('more-rows').hidden = found.length <= rows;
  for (const head of $('tensors').tHead.rows[0].cells) {
    const { key } = head.dataset;
    head.setAttribute('aria-sort', key !== sort.key ? 'none' : sort.down ? 'descending' : 'ascending');
  }
}

export function showTable(plan) {
  values = plan.values;
  rows = PAGE;
  show();
}

export function markRow(name) {
  chosen = name;
  for (const row of $('tensors').tBodies[0].rows) {
    if (row.dataset.name === name) row.setAttribute('aria-current', 'true');
    else row.removeAttribute('aria-current');
  }
}

export function watchTable(whenChosen) {
  onChoose = whenChosen;
  $('tensors').tHead.rows[0].replaceChildren(
    ...columns.map(({ key, title, number }) =>
      el(
        'th',
        { scope: 'col', 'data-key': key, class: number ? 'number' : undefined },
        el('button', {
          type: 'button',
          class: 'sort',
          'data-sort': key,
          text: title,
          onclick: () => {
            sort = { key, down: sort.key === key ? !sort.down : Boolean(number) };
            show();
          },
        }),
      ),
    ),
  );
  $('tensors').tBodies[0].addEventListener('keydown', moveByKey);
  $('tensors').tBodies[0].addEventListener('focusin', ({ target }) => stopAt(target));
  $('filter').addEventListener(
    'input',
    later(120, () => {
      rows = PAGE;
      show();
    }),
  );
  $('more-rows').addEventListener('click', () => {
    rows += 5 * PAGE;
    show();
  });
}
