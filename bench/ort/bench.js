'use strict';
// berth compared with ONNX Runtime: the same models, inputs and threads, each engine in its own process, in alternating
// rounds. Prints a table in Markdown; progress goes to stderr.
//   node bench.js --berth BERTH --ort-run PROGRAM --lib LIBONNXRUNTIME --generated FOLDER [--models FOLDER]
//                 [--threads 1,2] [--rounds 5] [--dim NAME=N]... [--out FILE] [--rows FILE] [--small]
//                 [MODEL.onnx|FOLDER|NAME]...
// In a file given by --out that contains the marks, only the text between them is replaced, as in docs/benchmarks.md.
// --rows keeps the measurements in FILE and prints the table of all of them, so that a table can be measured model by
// model. --dim binds named dimensions of models without input files, which otherwise give the shapes. --small takes the
// small models of small.js, runs them back to back and with pauses, and prints a separate table. Without a list: every
// model below --models, and those of models.js, which are written to --generated.
const {spawnSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const {listCases, nameOf, readList} = require('../../tests/onnx/ort/cases.js');
const {makeModels, NAMES, SMALL_NAMES} = require('./models.js');
const {measureSmall, reportSmall} = require('./bench_small.js');

const ROUND_MS = 400; // target duration of the timed runs of one round
const MOST_RUNS = 500;

function parse(argv) {
  const options = {threads: '1,2', rounds: '5', dims: [], list: []};
  for (let i = 0; i < argv.length; i++) {
    const known = /^--(berth|ort-run|lib|generated|models|threads|rounds|out|rows)$/.exec(argv[i]);
    if (known) options[known[1]] = argv[++i];
    else if (argv[i] === '--small') options.small = true;
    else if (argv[i] === '--dim') options.dims.push('--dim', argv[++i]);
    else if (argv[i].startsWith('--')) throw new Error(`there is no option ${argv[i]}`);
    else options.list.push(argv[i]);
  }
  const threads = options.threads.split(',').map(Number), rounds = Number(options.rounds);
  if (![...threads, rounds].every((n) => Number.isInteger(n) && n > 0)) throw new Error('--threads 1,2 --rounds 5');
  return {...options, threads, rounds};
}

// ---- Which models ----

function defaultCases(options, names) {
  makeModels(options.generated, names);
  const generated = names.flatMap((name) => listCases(`${options.generated}/${name}`));
  return (options.models && !options.small ? listCases(options.models) : []).concat(generated);
}

function chooseCases(options) {
  if (options.list.length === 0) return defaultCases(options, options.small ? SMALL_NAMES : NAMES);
  const isPlace = (item) => fs.existsSync(item), names = options.list.filter((item) => !isPlace(item));
  const known = names.length ? defaultCases(options, [...NAMES, ...SMALL_NAMES].filter((name) => names.includes(name))) : [];
  return options.list.flatMap((item) => {
    const found = isPlace(item) ? listCases(item) : known.filter((each) => nameOf(each) === item);
    if (found.length === 0) throw new Error(`${item} is neither a file, nor a folder with models, nor a known name`);
    return found;
  });
}

// ---- One process of one engine ----

function execute(program, args) {
  const done = spawnSync(program, args, {encoding: 'utf8', maxBuffer: 1 << 26});
  if (done.status === 0) return JSON.parse(done.stdout);
  const line = (done.stderr || '').split('\n').find((each) => /^(berth|ort_run): (?!note:)/.test(each));
  throw new Error(line || `${program} ended with ${done.status ?? done.signal}`);
}

function engines(options, item, threads) {
  const inputs = item.list ? [...readList(item.list)].flatMap(([name, file]) => ['--input', `${name}=${file}`]) : [];
  const common = [item.model, ...inputs, ...(item.list ? [] : options.dims), '--threads', String(threads)];
  const runs = ({warmup, count}) => ['--warmup', String(warmup), '--runs', String(count)];
  return {
    ort: (plan, ...more) => execute(options['ort-run'], ['--lib', options.lib, ...common, ...runs(plan), ...more]),
    berth: (plan, ...more) => execute(options.berth, ['bench', ...common, ...runs(plan), '--json', ...more]),
    plan: () => execute(options.berth, ['plan', ...common, '--json']),
  };
}

// ---- One model: alternating rounds, then the medians over the rounds ----

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function howMany(engine) {
  const {median_ms: ms} = engine({warmup: 0, count: 1});
  const count = Math.min(MOST_RUNS, Math.max(1, Math.ceil(ROUND_MS / Math.max(ms, 1e-3))));
  return {warmup: Math.min(3, count - 1), count};
}

const adds = (result) => result.arena_peak - result.arena_after;
// Its outputs are in the arena, in slots of their own size rounded up; its inputs are outside.
const ortNeeds = (result) => result.arena_peak - result.arena_idle + result.inputs_size;
// Everything but the weights: activations with inputs and outputs, scratch, and what preparation adds.
const berthNeeds = (plan) => plan.activations_size + plan.scratch_size + (plan.preparation_size ?? 0);

function measure(options, item, threads, progress) {
  const {ort, berth, plan} = engines(options, item, threads);
  const rounds = {ort: [], berth: []}, plans = {ort: howMany(ort), berth: howMany(berth)};
  for (let i = 0; i < options.rounds; i++) {
    progress(`round ${i + 1} of ${options.rounds}`);
    const order = [['ort', ort], ['berth', berth]];
    for (const [name, engine] of i % 2 ? order.reverse() : order) rounds[name].push(engine(plans[name]));
  }
  const of = (name, field) => median(rounds[name].map((result) => result[field]));
  const version = rounds.ort[0].version, needed = berthNeeds(plan());
  const both = [rounds.ort[0], ort({warmup: 2, count: 1}, '--no-pattern')];
  return {
    name: nameOf(item), threads, version,
    ms: [of('ort', 'median_ms'), of('berth', 'median_ms')],
    bytes: [Math.min(...both.map(adds)), needed],
    whole: [Math.min(...both.map(ortNeeds)), needed],
    rss: [of('ort', 'peak_rss'), of('berth', 'peak_rss')],
  };
}

const counted = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

function measureAll(options, cases) {
  const rows = [], failures = [], total = cases.length * options.threads.length;
  let done = 0;
  for (const item of cases) {
    for (const threads of options.threads) {
      const what = `${nameOf(item)}, ${counted(threads, 'thread')}`, where = `[${++done}/${total}] ${what}`;
      const progress = (text) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${where}: ${text}`);
      try {
        const row = measure(options, item, threads, progress);
        rows.push(row);
        process.stderr.write(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${where}: time ${ratio(row.ms)}\n`);
      } catch (error) {
        failures.push(`${what}: ${error.message}`);
        process.stderr.write(`\n${where}: ${error.message}\n`);
      }
    }
  }
  return {rows, failures};
}

// ---- The table ----

// A figure of 0 cannot be compared: it is shown as a dash, and left out of means.
const compares = ([ort]) => ort > 0;
const ratio = (pair) => (compares(pair) ? (pair[1] / pair[0]).toFixed(2) : '-');
const time = (ms) => (ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(2) : ms.toFixed(4));
const kib = (bytes) => Math.round(bytes / 1024).toString().replace(/\B(?=(\d{3})+$)/g, ',');
const mib = (bytes) => (bytes / 1048576).toFixed(1);

function rowText({name, threads, ms, bytes, whole, rss}) {
  const pair = (values, show) => [...values.map(show), ratio(values)];
  const memory = [...pair(bytes, kib), kib(whole[0]), ratio(whole)];
  return `| ${[name, threads, ...pair(ms, time), ...memory, ...pair(rss, mib)].join(' | ')} |`;
}

// The geometric mean of the ratios with this many threads, and the worst of them.
function summary(rows, threads) {
  const of = (field) => rows.filter((row) => row.threads === threads && compares(row[field]));
  const mean = (some, field) => {
    const logs = some.map((row) => Math.log(row[field][1] / row[field][0]));
    return Math.exp(logs.reduce((a, b) => a + b, 0) / logs.length).toFixed(3);
  };
  const worst = (some, field) => {
    const row = some.reduce((a, b) => (a[field][1] / a[field][0] >= b[field][1] / b[field][0] ? a : b));
    return `${ratio(row[field])} (${row.name})`;
  };
  return ['ms', 'bytes', 'whole', 'rss'].map((field, i) => {
    const what = ['time', 'memory that a run needs', 'the same with ONNX Runtime\'s inputs and outputs', 'peak RSS'][i];
    const some = of(field), start = `- ${counted(threads, 'thread')}, ${what}:`;
    if (some.length === 0) return `${start} nothing to compare with`;
    return `${start} geometric mean ${mean(some, field)} over ` +
      `${counted(some.length, 'model')}, worst ${worst(some, field)}`;
  }).join('\n');
}

const pairNames = (what) => `ORT ${what} | berth ${what} | ratio`;

function report(options, {rows, failures}) {
  const machine = `${os.cpus()[0].model.trim()}, ${os.cpus().length} cores`;
  const lines = rows.length === 0 ? [] : [
    `berth beside ONNX Runtime ${rows[0].version}, ${machine}, ${counted(options.rounds, 'round')} in turn.`, '',
    `| model | threads | ${['ms', 'run KiB'].map(pairNames).join(' | ')} | ORT with i/o KiB | ratio | ` +
      `${pairNames('RSS MiB')} |`,
    `|---${'|---:'.repeat(12)}|`, ...rows.map(rowText), '',
    ...options.threads.filter((t) => rows.some((row) => row.threads === t)).map((t) => summary(rows, t)),
  ];
  return [...lines, ...failures.map((text) => `- not measured: ${text}`), ''].join('\n');
}

// If the file has the two marks, replaces the text between them; otherwise overwrites it.
function writeReport(file, text, name) {
  const marks = [`<!-- ${name}: what the command prints -->\n`, `<!-- ${name}: end -->\n`];
  const old = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  const [start, end] = marks.map((mark) => old.indexOf(mark));
  const isMarked = start >= 0 && end > start, from = start + marks[0].length;
  fs.writeFileSync(file, isMarked ? `${old.slice(0, from)}${text}${old.slice(end)}` : text);
}

// Rows of this call replace older ones for the same model and number of threads.
function withOlderRows(file, result) {
  const old = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : [];
  const same = (a) => (b) => a.name === b.name && a.threads === b.threads;
  const rows = old.map((row) => result.rows.find(same(row)) ?? row);
  rows.push(...result.rows.filter((row) => !old.some(same(row))));
  fs.writeFileSync(file, JSON.stringify(rows));
  return {...result, rows};
}

function main() {
  const options = parse(process.argv.slice(2));
  const cases = chooseCases(options), ways = {engines, nameOf, ortNeeds, berthNeeds};
  const measured = options.small ? measureSmall(options, cases, ways) : measureAll(options, cases);
  const result = options.rows ? withOlderRows(options.rows, measured) : measured;
  const text = options.small ? reportSmall(options, result) : report(options, result);
  process.stdout.write(text);
  if (options.out) writeReport(options.out, text, options.small ? 'bench-ort --small' : 'bench-ort');
  process.exitCode = result.failures.length > 0 || result.rows.length === 0 ? 1 : 0;
}

try {
  main();
} catch (error) {
  console.error(`bench-ort: ${error.message}`);
  process.exitCode = 1;
}
