/** TAP for tests in JavaScript: each check is a line, and a check that throws fails. */
let count = 0;
let failed = 0;

const line = (text) => process.stdout.write(`${text}\n`);

export function diagnostic(text) {
  for (const row of String(text).split('\n')) line(`# ${row}`);
}

export async function check(name, body) {
  count++;
  try {
    await body();
    line(`ok ${count} - ${name}`);
  } catch (error) {
    failed++;
    line(`not ok ${count} - ${name}`);
    diagnostic(error?.stack ?? error);
  }
}

export function skip(name, reason) {
  line(`ok ${++count} - ${name} # SKIP ${reason}`);
}

export function done() {
  line(`1..${count}`);
  process.exitCode = failed ? 1 : 0;
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

export function expectEqual(got, expected, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  expect(a === b, `${what}: got ${a}, expected ${b}`);
}
