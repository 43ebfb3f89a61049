/** Links that open a model: #model=ADDRESS&dims=batch:1,seq:64&budget=320K, or #sample=NAME. Pure. */

const UNITS = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** Bytes from "320K", "1.5M", "4096"; NaN where that is no size. */
export function sizeOf(text) {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([KMG]?)(?:i?B)?$/i.exec(text.trim()) ?? [];
  return number === undefined ? NaN : Math.round(Number(number) * UNITS[unit.toUpperCase()]);
}

function dimsOf(text) {
  const dims = {};
  for (const pair of text.split(',').filter(Boolean)) {
    const [, name, extent] = /^(.+)[:=](\d+)$/.exec(pair.trim()) ?? [];
    if (name === undefined) throw new Error(`the link has dims=${text}; it should be like dims=batch:1,seq:64`);
    dims[name] = Number(extent);
  }
  return dims;
}

/**
 * The request of a fragment: { url or sample, dims, budget }; null: not a link of this page. Throws a message if it is
 * invalid.
 */
export function parseLink(fragment, base) {
  const given = new URLSearchParams(fragment.replace(/^#/, ''));
  const model = given.get('model'),
    sample = given.get('sample');
  if (!model && !sample) return null;
  const link = { dims: dimsOf(given.get('dims') ?? ''), budget: 0 };
  if (given.has('budget')) {
    link.budget = sizeOf(given.get('budget'));
    if (!(link.budget > 0)) throw new Error(`the link has budget=${given.get('budget')}; it should be like budget=320K`);
  }
  if (sample) return { ...link, sample };
  let url;
  try {
    url = new URL(model, base);
  } catch {
    throw new Error(`the link has model=${model}, which is not an address`);
  }
  if (!/^https?:$/.test(url.protocol)) throw new Error(`the link has an address of the kind ${url.protocol}; https: is read`);
  return { ...link, url: url.href };
}

/** The last part of an address, without its query. */
export const nameOf = (url) => decodeURIComponent(new URL(url).pathname.split('/').pop() || 'model');

const shortSize = (size) => (size % 1024 === 0 ? `${size / 1024}K` : String(size));

/** The fragment for what is open; null if there is no address, as for a local file. */
export function makeLink({ url, sample, dims = {}, budget = 0 }) {
  if (!url && !sample) return null;
  const pairs = Object.entries(dims).map(([name, extent]) => `${encodeURIComponent(name)}:${extent}`);
  const parts = [sample ? `sample=${encodeURIComponent(sample)}` : `model=${encodeURIComponent(url)}`];
  if (pairs.length) parts.push(`dims=${pairs.join(',')}`);
  if (budget) parts.push(`budget=${shortSize(budget)}`);
  return `#${parts.join('&')}`;
}
