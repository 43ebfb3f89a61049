/* The imports of the C library: only a clock. There are no files, no arguments and no environment. */

const OK = 0, BAD_FILE = 8, NO_FILE = 44;
const REALTIME = 0; // the wall clock

/** `memory()` returns the instance's memory, which exists when the functions are called. */
export function wasiImports(memory) {
  const view = () => new DataView(memory().buffer);
  const nothing = (count, size) => {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return OK;
  };
  const badFile = () => BAD_FILE;
  return {
    environ_sizes_get: nothing,
    environ_get: () => OK,
    clock_time_get: (id, precision, at) => {
      const now = id === REALTIME ? Date.now() : performance.now();
      view().setBigUint64(at >>> 0, BigInt(Math.round(now * 1e6)), true);
      return OK;
    },
    random_get: (at, size) => {
      const bytes = crypto.getRandomValues(new Uint8Array(size)); // a copy: it does not accept shared memory
      new Uint8Array(memory().buffer).set(bytes, at >>> 0);
      return OK;
    },
    fd_close: badFile,
    fd_fdstat_get: badFile,
    fd_fdstat_set_flags: badFile,
    fd_filestat_get: badFile,
    fd_prestat_get: badFile,
    fd_prestat_dir_name: badFile,
    fd_read: badFile,
    fd_seek: badFile,
    fd_write: badFile,
    path_open: () => NO_FILE,
    proc_exit: () => {
      throw new Error('berth ended itself, which it never should');
    },
  };
}
