'use strict';
// Small models compared with ONNX Runtime: runs back to back, and single runs with pauses in between, like for incoming
// audio. A time is the minimum over the rounds of each round's median, which reduces the effect of other load.
const os = require('os');

const PAUSE_MS = 10;
const MODES = [
  {name: 'back to back', plan: {warmup: 200, count: 2000}, more: []},
  {name: 'paced', plan: {warmup: 5, count: 40}, more: ['--pause', String(PAUSE_MS)]},
];

const least = (numbers) => Math.min(...numbers);

function measureMode({ort, berth}, {plan, more}, rounds) {
  const times = {ort: [], berth: []}, order = [['ort', ort], ['berth', berth]];
  for (let i = 0; i < rounds; i++)
    for (const [name, engine] of i % 2 ? [...order].reverse() : order) times[name].push(engine(plan, ...more));
  return {us: ['ort', 'berth'].map((name) => 1000 * least(times[name].map((t) => t.median_ms))), first: times.ort[0]};
}

function measureOne(options, item, threads, ways) {
  const all = ways.engines(options, item, threads);
  const modes = MODES.map((mode) => measureMode(all, mode, options.rounds)), {first} = modes[0];
  const needed = Math.min(ways.ortNeeds(first), ways.ortNeeds(all.ort({warmup: 2, count: 1}, '--no-pattern')));
  const bytes = [needed, ways.berthNeeds(all.plan())];
  return {name: ways.nameOf(item), threads, version: first.version, us: modes.map((mode) => mode.us), bytes};
}

function measureSmall(options, cases, ways) {
  const rows = [], failures = [];
  for (const item of cases) {
    for (const threads of options.threads) {
      try {
        const row = measureOne(options, item, threads, ways);
        rows.push(row);
        process.stderr.write(`${row.name}, ${threads}: ${row.us.map(ratio).join(', ')}; memory ${ratio(row.bytes)}\n`);
      } catch (error) {
        failures.push(`${ways.nameOf(item)}, threads ${threads}: ${error.message}`);
        process.stderr.write(`${failures[failures.length - 1]}\n`);
      }
    }
  }
  return {rows, failures};
}

const compares = ([ort]) => ort > 0; // a figure of 0 cannot be compared
const ratio = (pair) => (compares(pair) ? (pair[1] / pair[0]).toFixed(2) : '-');
const us = (number) => (number >= 100 ? number.toFixed(0) : number.toFixed(1));
const kib = (bytes) => (bytes / 1024).toFixed(1);

function rowText({name, threads, us: times, bytes}) {
  const pair = (values, show) => [...values.map(show), ratio(values)];
  return `| ${[name, threads, ...times.flatMap((each) => pair(each, us)), ...pair(bytes, kib)].join(' | ')} |`;
}

// The geometric mean of the ratios, the worst of them, and how many are above 1.
function summary(rows, what, pairOf) {
  const some = rows.filter((row) => compares(pairOf(row)));
  const ratios = some.map((row) => ({name: row.name, value: pairOf(row)[1] / pairOf(row)[0]}));
  if (ratios.length === 0) return `- ${what}: nothing to compare with`;
  const mean = Math.exp(ratios.reduce((sum, {value}) => sum + Math.log(value), 0) / ratios.length);
  const worst = ratios.reduce((a, b) => (a.value >= b.value ? a : b));
  return `- ${what}: geometric mean ${mean.toFixed(3)}, worst ${worst.value.toFixed(2)} (${worst.name}), ` +
    `${ratios.filter(({value}) => value > 1).length} of ${ratios.length} above 1`;
}

function reportSmall(options, {rows, failures}) {
  const lines = rows.length === 0 ? [] : [
    `berth beside ONNX Runtime ${rows[0].version}, ${os.cpus()[0].model.trim()}, ${os.cpus().length} cores, ` +
      `${options.rounds} rounds in turn, pauses of ${PAUSE_MS} ms.`, '',
    '| model | threads | ORT us | berth us | ratio | ORT us, paced | berth us, paced | ratio | ORT KiB | berth KiB | ratio |',
    `|---${'|---:'.repeat(10)}|`, ...rows.map(rowText), '',
    ...options.threads.flatMap((threads) => {
      const some = rows.filter((row) => row.threads === threads), who = `${threads} thread${threads === 1 ? '' : 's'}`;
      if (some.length === 0) return [];
      return [...MODES.map(({name}, i) => summary(some, `${who}, ${name}`, (row) => row.us[i])),
        summary(some, `${who}, memory with inputs and outputs`, (row) => row.bytes)];
    }),
  ];
  return [...lines, ...failures.map((text) => `- not measured: ${text}`), ''].join('\n');
}

module.exports = {measureSmall, reportSmall};
