/** Plugins that carry the files of berth-arena along, for bundlers that do not do so by themselves. */
export function esbuild(): { name: string; setup(build: any): void };
export function rollup(): { name: string; transform(this: any, code: string, id: string): Promise<{ code: string; map: null } | null> };
