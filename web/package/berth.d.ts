/** berth in a browser or in Node: read a network, plan one block of memory for it, and run it there. */

/** Elements as they are in the model. bool is one byte an element; f16 and bf16 are their bits. */
export type ElementType =
  | 'f32' | 'f64' | 'f16' | 'bf16' | 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64' | 'bool';

export type TypedArray =
  | Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array
  | Int32Array | Uint32Array | BigInt64Array | BigUint64Array;

export interface TensorInfo {
  readonly name: string;
  readonly type: ElementType;
  /** A number, or the name of a dimension that is bound when a plan is made. */
  readonly shape: readonly (number | string)[];
}

export interface Tensor {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

export interface DeviceInfo {
  /** What to give as `device`: "cpu", "webgpu". */
  readonly name: string;
  /** "8 threads, 128-bit SIMD", "SwiftShader": what is behind it. */
  readonly description: string;
  readonly available: boolean;
  /** Why not, where it is not available. */
  readonly reason: string;
}

/** How far something is. `total` is 0 where nobody knows. */
export interface Progress {
  /** "fetching the program", "reading the model", "reading the weights", "planning", "compiling kernels", "writing
   * weights", "preparing weights". Fetching, reading and writing count bytes. */
  readonly stage: string;
  readonly done: number;
  readonly total: number;
}
export type OnProgress = (progress: Progress) => void;

export interface LoadOptions {
  /** Where berth.wasm and berth-threads.wasm lie; default: beside this module. */
  base?: string | URL;
  /** Threads of the CPU device, this one included. More than one needs shared memory (a page that is cross-origin
   * isolated, or Node), and a thread that may wait (a worker, or Node); where that is missing there is one.
   * Default: what the machine has, at most 8. */
  threads?: number;
  onProgress?: OnProgress;
}

/** Every error of the library: a sentence that says what is wrong, where, and what would help. */
export class BerthError extends Error {
  /** "INVALID", "UNSUPPORTED", "MALFORMED", "NOMEM", ...: as `berth_status_name` has them. */
  readonly status: string;
}

export type Source = string | URL | ArrayBuffer | ArrayBufferView | Blob;

export function load(options?: LoadOptions): Promise<Berth>;

export interface Berth {
  readonly version: string;
  readonly threads: number;
  /** Asks the browser for its GPU the first time. */
  devices(): Promise<DeviceInfo[]>;
  /** An ONNX file, or a graph in berth's text form. A string or URL is fetched (in Node, a string that is no address is
   * the path of a file). `weights`: a safetensors file with the params of a text graph. */
  model(source: Source, options?: { name?: string; weights?: Source; onProgress?: OnProgress }): Promise<Model>;
  /** The model that ships with berth: f32[batch, 1, 8, 8] handwritten digits to ten probabilities. */
  digits(): Promise<Model>;
  /** Bytes of linear memory, and how much of it is in use. */
  memory(): { total: number; used: number };
  /** Ends threads and gives the GPU back; everything made from it is gone too. */
  close(): void;
}

export interface PlanOptions {
  /** Default "cpu". */
  device?: string;
  /** The named dimensions that the model leaves open: { batch: 1 }. */
  dims?: Record<string, number>;
  /** Bytes that the arena may take. */
  budget?: number;
  /** Search steps of the packer. */
  effort?: number;
  /** Inputs stay as they are after a run; default false: their place is used again. */
  keepInputs?: boolean;
  /** Weights in 16 bits, on a GPU. */
  f16Weights?: boolean;
  onProgress?: OnProgress;
}

/** What `berth plan --json` says, and where every value lies. */
export interface PlanReport {
  readonly device: string;
  readonly dims: Record<string, number>;
  readonly arena_size: number;
  readonly weights_size: number;
  /** What lives from run to run. */
  readonly state_size: number;
  readonly activations_size: number;
  readonly activations_lower_bound: number;
  readonly scratch_size: number;
  /** What preparing the weights adds to the arena, and the most that its temporaries take at once. */
  readonly preparation_size: number;
  readonly preparation_peak: number;
  readonly total_unshared: number;
  readonly optimal: boolean;
  readonly n_steps: number;
  readonly [key: string]: unknown;
}

export interface PlanValue {
  readonly name: string;
  /** "input", "output", "param", "constant", "state", "value", "scratch" */
  readonly kind: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** The op that makes it; "" where none does. */
  readonly op: string;
  /** Bytes from the start of the arena; -1: outside of it. */
  readonly offset: number;
  readonly size: number;
  /** Half open: it lives over the steps [birth, death). */
  readonly birth: number;
  readonly death: number;
  /** The value whose place it shares; "" where it has its own. */
  readonly shares: string;
}

export interface Plan {
  readonly report: PlanReport;
  readonly values: readonly PlanValue[];
  /** The op of each step. */
  readonly steps: readonly { readonly op: string; readonly name: string }[];
  /** The packing picture. */
  svg(): string;
}

export interface Model {
  readonly name: string;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /** Names of the dimensions that are left open. */
  readonly dims: readonly string[];
  readonly nNodes: number;
  /** Names of inputs whose elements say what shapes are: no plan can be made before they are fixed. */
  readonly toFix: readonly string[];
  /** Makes an input a constant, and no input any more. Sessions that there are stay as they are. */
  fix(name: string, value: Tensor): Promise<void>;
  plan(options?: PlanOptions): Promise<Plan>;
  /** Plans, takes the block, compiles: what is left is `run`. */
  session(options?: PlanOptions): Promise<Session>;
  close(): void;
}

export interface Session {
  readonly device: string;
  readonly plan: Plan;
  /** With the dimensions bound. */
  readonly inputs: readonly (TensorInfo & { readonly shape: readonly number[] })[];
  readonly outputs: readonly TensorInfo[];
  /** Every input by its name. Numbers are taken as they are for the type: BigInt arrays for i64. */
  run(inputs: Record<string, TypedArray | readonly number[] | Tensor>): Promise<Record<string, Tensor>>;
  /** Milliseconds of the last run: writing, running and reading apart. */
  readonly timings: { write: number; run: number; read: number; total: number };
  /** Allocations that the library made in runs of this session: 0 after any number of them. WebGPU objects that live;
   * 0 on the CPU. */
  readonly counters: { allocations: number; gpuObjects: number };
  close(): void;
}
