'use strict';
// berth compared with llama.cpp: the same files, prompts and threads, each engine in its own process, in alternating
// rounds. Prints two tables in Markdown; progress goes to stderr.
//   node bench.js --run LLAMA_RUN --lib LIBLLAMA --work FOLDER [--text FILE] [--threads 1,2] [--rounds 3] [--count 32]
//                 [--windows 4] [--no-speed] [--no-score] [--out FILE] NAME=MODEL.gguf...
// In a file given by --out that contains the marks, only the text between them is replaced, as in docs/benchmarks.md.
// --work is for logits and decoded weights, which are removed again.
const {spawnSync} = require('child_process');
const fs = require('fs');
const os = require('os');

function parse(argv) {
  const options = {threads: '1,2', rounds: '3', count: '32', windows: '4', models: []};
  for (let i = 0; i < argv.length; i++) {
    const known = /^--(run|lib|work|text|threads|rounds|count|windows|out)$/.exec(argv[i]);
    if (known) options[known[1]] = argv[++i];
    else if (argv[i] === '--no-score') options.noScore = true;
    else if (argv[i] === '--no-speed') options.noSpeed = true;
    else if (/^[^-][^=]*=./.test(argv[i])) options.models.push(argv[i].split(/=(.*)/s).slice(0, 2));
    else throw new Error(`there is no option ${argv[i]}`);
  }
  const threads = options.threads.split(',').map(Number), rounds = Number(options.rounds);
  if (![...threads, rounds].every((n) => Number.isInteger(n) && n > 0)) throw new Error('--threads 1,2 --rounds 3');
  return {...options, threads, rounds};
}

// ---- One process of one engine ----

function execute(options, verb, engine, args) {
  const common = engine ? ['--engine', engine, '--text', options.text] : [];
  const done = spawnSync(options.run, [verb, '--lib', options.lib, ...common, ...args.map(String)],
    {encoding: 'utf8', maxBuffer: 1 << 26});
  if (done.status !== 0)
    throw new Error((done.stderr || '').trim().split('\n').pop() || `llama_run ended with ${done.status ?? done.signal}`);
  return done.stdout ? JSON.parse(done.stdout) : null;
}

const note = (text) => process.stderr.write(`${text}\n`);
const counted = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// ---- Speed and memory ----

function measureSpeed(options, [name, model], threads) {
  const rounds = {llama: [], berth: []}, args = ['--threads', threads, '--count', options.count, model];
  for (let i = 0; i < options.rounds; i++)
    for (const engine of i % 2 ? ['berth', 'llama'] : ['llama', 'berth'])
      rounds[engine].push(execute(options, 'speed', engine, args));
  const unmapped = execute(options, 'speed', 'llama', ['--no-map', ...args]);
  const of = (field) => ['llama', 'berth'].map((engine) => median(rounds[engine].map((result) => result[field])));
  const tokens = rounds.berth[0].tokens, others = rounds.llama[0].tokens;
  const apart = tokens.findIndex((token, i) => token !== others[i]);
  return {
    name, threads, prefill: of('prefill'), decode: of('decode'), load: of('load_ms'), first: of('first_ms'),
    rss: [...of('peak_rss'), unmapped.peak_rss], same: apart < 0 ? tokens.length : apart, tokens: tokens.length,
  };
}

const show = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));
const mib = (bytes) => show(bytes / 1048576);
const faster = ([llama, berth]) => (berth / llama).toFixed(2);
const sooner = ([llama, berth]) => (llama / berth).toFixed(2);

function speedRow({name, threads, prefill, decode, load, first, rss, same, tokens}) {
  const speeds = [prefill, decode].flatMap((pair) => [...pair.map(show), faster(pair)]);
  const times = [load, first].flatMap((pair) => [...pair.map(show), sooner(pair)]);
  const [mapped, berth, unmapped] = rss;
  const memory = [mib(mapped), mib(unmapped), mib(berth), (berth / Math.min(mapped, unmapped)).toFixed(2)];
  return `| ${[name, threads, ...speeds, ...times, ...memory, `${same} of ${tokens}`].join(' | ')} |`;
}

function speedTable(options, rows) {
  if (rows.length === 0) return [];
  const three = (what) => `llama.cpp ${what} | berth ${what} | ratio`;
  return [
    `| model | threads | ${three('prefill tok/s')} | ${three('decode tok/s')} | ${three('load ms')} | ` +
      `${three('first token ms')} | llama.cpp RSS MiB, mapped | not mapped | berth RSS MiB | ratio | same tokens |`,
    `|---${'|---:'.repeat(18)}|`, ...rows.map(speedRow), ''];
}

// ---- Accuracy ----

// The reference for both: logits of the same weights in f32, by llama.cpp.
function measureScore(options, [name, model]) {
  const decoded = `${options.work}/decoded.gguf`, logits = `${options.work}/logits.bin`;
  const threads = Math.max(...options.threads);
  const args = ['--threads', threads, '--ctx', 256, '--windows', options.windows];
  try {
    execute(options, 'quantise', null, ['--threads', threads, '--type', 0, model, decoded]);
    const exact = execute(options, 'score', 'llama', [...args, '--keep', logits, decoded]);
    fs.rmSync(decoded);
    const [llama, berth] = ['llama', 'berth'].map((engine) =>
      execute(options, 'score', engine, [...args, '--against', logits, model]));
    return {name, exact, llama, berth};
  } finally {
    for (const file of [decoded, logits]) fs.rmSync(file, {force: true});
  }
}

function scoreRow({name, exact, llama, berth}) {
  const percent = (x) => `${(100 * x).toFixed(2)} %`, divergence = (x) => x.divergence.toExponential(2);
  const cells = [name, exact.scored, exact.perplexity.toFixed(4), llama.perplexity.toFixed(4),
    berth.perplexity.toFixed(4), `${(100 * (berth.perplexity / llama.perplexity - 1)).toFixed(3)} %`,
    divergence(llama), divergence(berth),
    llama.divergence > 1e-9 ? (berth.divergence / llama.divergence).toFixed(2) : '', // f32 against itself
    percent(llama.same), percent(berth.same)];
  return `| ${cells.join(' | ')} |`;
}

function scoreTable(rows) {
  if (rows.length === 0) return [];
  return [
    '| model | tokens | perplexity, weights in f32 | llama.cpp | berth | berth to llama.cpp | divergence, llama.cpp | ' +
      'berth | ratio | same best token, llama.cpp | berth |',
    `|---${'|---:'.repeat(10)}|`, ...rows.map(scoreRow), ''];
}

// ---- Everything ----

function measureAll(options) {
  const speeds = [], scores = [], failures = [];
  const attempt = (what, list, work) => {
    try {
      list.push(work());
    } catch (error) {
      failures.push(`${what}: ${error.message}`);
      note(`${what}: ${error.message}`);
    }
  };
  for (const model of options.models) {
    for (const threads of options.noSpeed ? [] : options.threads)
      attempt(`${model[0]}, ${counted(threads, 'thread')}`, speeds, () => {
        const row = measureSpeed(options, model, threads);
        note(`${model[0]}, ${counted(threads, 'thread')}: prefill ${faster(row.prefill)}, decode ${faster(row.decode)}`);
        return row;
      });
    if (!options.noScore) attempt(`${model[0]}, accuracy`, scores, () => {
      const row = measureScore(options, model);
      note(`${model[0]}: perplexity ${row.berth.perplexity.toFixed(4)}, llama.cpp ${row.llama.perplexity.toFixed(4)}`);
      return row;
    });
  }
  return {speeds, scores, failures};
}

function report(options, {speeds, scores, failures}) {
  const machine = `${os.cpus()[0].model.trim()}, ${os.cpus().length} cores`, version = /\.(b\d+)\./.exec(options.lib);
  return [
    `berth beside llama.cpp ${version ? version[1] : ''}, ${machine}, ${counted(options.rounds, 'round')} in turn.`, '',
    ...speedTable(options, speeds), ...scoreTable(scores), ...failures.map((text) => `- not measured: ${text}`), '',
  ].join('\n');
}

// If the file has the two marks, replaces the text between them; otherwise overwrites it.
function writeReport(file, text) {
  const marks = ['<!-- bench-llama: what the command prints -->\n', '<!-- bench-llama: end -->\n'];
  const old = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  const [start, end] = marks.map((mark) => old.indexOf(mark));
  const isMarked = start >= 0 && end > start, from = start + marks[0].length;
  fs.writeFileSync(file, isMarked ? `${old.slice(0, from)}${text}${old.slice(end)}` : text);
}

function main() {
  const options = parse(process.argv.slice(2));
  const result = measureAll(options), text = report(options, result);
  process.stdout.write(text);
  if (options.out) writeReport(options.out, text);
  process.exitCode = result.failures.length > 0 || result.speeds.length + result.scores.length === 0 ? 1 : 0;
}

try {
  main();
} catch (error) {
  console.error(`bench-llama: ${error.message}`);
  process.exitCode = 1;
}
