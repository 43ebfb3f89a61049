/* Plugins for bundlers that do not include files referenced by new URL(..., import.meta.url). Vite, webpack and Parcel
 * do so themselves; esbuild and Rollup need one of these. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const NAMED = /new URL\('\.\/([\w.-]+)', import\.meta\.url\)/g;

/** The code with `at(name)` in place of every file reference; null: it has none. */
async function withFiles(code, at) {
  const names = [...new Set([...code.matchAll(NAMED)].map(([, name]) => name))];
  if (names.length === 0) return null;
  const places = new Map();
  for (const name of names) places.set(name, await at(name));
  return code.replaceAll(NAMED, (_, name) => `new URL(${places.get(name)})`);
}

export function rollup() {
  return {
    name: 'berth-arena',
    async transform(code, id) {
      if (dirname(id) !== folder) return null;
      const moved = await withFiles(code, async (name) => {
        const source = await readFile(join(folder, name));
        return `import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: 'asset', name, source })}`;
      });
      return moved === null ? null : { code: moved, map: null };
    },
  };
}

const SCHEME = 'berth-file:';

export function esbuild() {
  return {
    name: 'berth-arena',
    setup(build) {
      build.onLoad({ filter: /\.js$/, namespace: 'file' }, async ({ path }) => {
        if (dirname(path) !== folder) return undefined;
        const imports = [];
        const code = await readFile(path, 'utf8');
        const moved = await withFiles(code, (name) => {
          imports.push(`import berthFile${imports.length} from '${SCHEME}${name}';\n`);
          return `berthFile${imports.length - 1}, import.meta.url`;
        });
        return { contents: moved === null ? code : imports.join('') + moved, loader: 'js' };
      });
      build.onResolve({ filter: new RegExp(`^${SCHEME}`) }, ({ path }) => ({
        path: join(folder, path.slice(SCHEME.length)),
        namespace: SCHEME,
      }));
      build.onLoad({ filter: /.*/, namespace: SCHEME }, async ({ path }) => ({
        contents: await readFile(path),
        loader: 'file',
      }));
    },
  };
}
