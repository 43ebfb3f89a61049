/* Tests in JavaScript that speak TAP: await test(name, what it does), ..., finish(). */
let number = 0, failures = 0;

export async function test(name, body) {
  number++;
  try {
    await body();
    console.log(`ok ${number} - ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok ${number} - ${name}`);
    console.log(String(error?.stack ?? error).replace(/^/gm, '# '));
  }
}

export function skip(name, reason) {
  console.log(`ok ${++number} - ${name} # SKIP ${reason}`);
}

export function finish() {
  console.log(`1..${number}`);
  process.exitCode = failures !== 0 ? 1 : 0;
}

export function isTrue(condition, otherwise) {
  if (!condition) throw new Error(otherwise);
}

export function equal(got, wanted) {
  const [a, b] = [got, wanted].map((value) => JSON.stringify(value));
  isTrue(a === b, `got ${a}, wanted ${b}`);
}
