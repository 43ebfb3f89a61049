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

/** What an input of whole numbers may hold, where the model says so: ids that are `below` the size of their table; the
 * `value` that a mask has where nothing is hidden, or that a setting such as a sample rate is compared with. */
export interface InputInfo extends TensorInfo {
  readonly below?: number;
  readonly value?: number;
}

/** Arrays for elements. */
export interface Elements {
  f32: Float32Array;
  f64: Float64Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  i8: Int8Array;
  u8: Uint8Array;
  i16: Int16Array;
  u16: Uint16Array;
  i32: Int32Array;
  u32: Uint32Array;
  i64: BigInt64Array;
  u64: BigUint64Array;
  bool: Uint8Array;
}

/** Types whose elements are numbers in JavaScript; those of i64 and u64 are BigInts. */
export type NumberType = Exclude<ElementType, 'i64' | 'u64'>;

/** `tensor.type` says what `tensor.data` is. */
export type Tensor<T extends ElementType = ElementType> = T extends ElementType
  ? { readonly type: T; readonly shape: readonly number[]; readonly data: Elements[T] }
  : never;

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
  /** "fetching the program", "reading the model", "reading the weights", "reading the header", "planning", "compiling
   * kernels", "writing weights", "preparing weights", "reading the text". Fetching, reading and writing count bytes;
   * reading a text counts tokens. */
  readonly stage: string;
  readonly done: number;
  readonly total: number;
}
export type OnProgress = (progress: Progress) => void;

export interface LoadOptions {
  /** The folder of berth.wasm and berth-threads.wasm; default: beside this module, or where a bundler put them. */
  base?: string | URL;
  /** Instead of fetching one: a module that is compiled already, of berth-threads.wasm or, for one thread, berth.wasm. */
  module?: WebAssembly.Module | Promise<WebAssembly.Module>;
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
   * the path of a file). `weights`: a safetensors file with the params of a text graph. `files`: by name, those that an
   * ONNX model keeps weights in ({ 'model.onnx_data': ... }). */
  model(source: Source, options?: {
    name?: string;
    weights?: Source;
    files?: Record<string, Source>;
    onProgress?: OnProgress;
  }): Promise<Model>;
  /** A language model in a GGUF file. Of the file no more than its header is read, however large it is, until
   * `generator` is called. The source must stay readable. `parts`: the other files of a model that was split, in any
   * order. */
  gguf(source: Source, options?: { name?: string; parts?: readonly Source[]; onProgress?: OnProgress }): Promise<Gguf>;
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

/** A step: a node of the network as it runs, after rewriting. */
export interface PlanStep {
  readonly op: string;
  readonly name: string;
  /** It only prepares weights: it runs before the first run, and not again. */
  readonly once: boolean;
  /** What runs it; "" where nothing does: its results are views. */
  readonly kernel: string;
  /** Names of values: operands ("" where an optional one is left out) and results. */
  readonly in: readonly string[];
  readonly out: readonly string[];
  /** Arithmetic operations, and bytes read and written. */
  readonly flops: number;
  readonly bytes: number;
}

/** A node as the file has it, in berth's ops. */
export interface GraphNode {
  readonly name: string;
  readonly op: string;
  readonly in: readonly string[];
  readonly out: readonly string[];
  readonly attrs: Readonly<Record<string, number | string | null | readonly (number | string | null)[]>>;
}

/** What a run did, step by step. */
export interface Trace {
  /** Milliseconds of each step; null: it ran no kernel, or runs once. */
  readonly steps: readonly (number | null)[];
  /** What steps made: the first elements of each value. */
  readonly tensors: readonly (Tensor & { readonly name: string; readonly step: number })[];
}

export interface Plan {
  readonly report: PlanReport;
  readonly values: readonly PlanValue[];
  readonly steps: readonly PlanStep[];
  /** The packing picture. */
  svg(): string;
}

export interface Model {
  readonly name: string;
  readonly inputs: readonly InputInfo[];
  readonly outputs: readonly TensorInfo[];
  /** Names of the dimensions that are left open. */
  readonly dims: readonly string[];
  readonly nNodes: number;
  /** Names of inputs whose elements say what shapes are: no plan can be made before they are fixed. */
  readonly toFix: readonly string[];
  /** Makes an input a constant, and no input any more. Sessions that there are stay as they are. */
  fix(name: string, value: Tensor): Promise<void>;
  /** Dimensions that the model takes: those given (1 where none is), or where it does not take them, the least that it
   * does; and its inputs and outputs then. */
  guess(dims?: Record<string, number>): Promise<{
    dims: Record<string, number>;
    inputs: (InputInfo & { readonly shape: readonly number[] })[];
    outputs: TensorInfo[];
  }>;
  plan(options?: PlanOptions): Promise<Plan>;
  /** A plan as text: a table, MiniMalloc's CSV, the picture, or a page of its own with picture and table. */
  report(kind: 'text' | 'csv' | 'svg' | 'html', options?: PlanOptions): Promise<string>;
  /** The graph: nodes in an order in which they can run, every value, and which of them are outputs. With `dims` for
   * all dimensions, shapes are those that they lead to. */
  nodes(options?: { dims?: Record<string, number> }): Promise<{
    readonly nodes: readonly GraphNode[];
    readonly outputs: readonly { readonly name: string; readonly value: string }[];
    readonly values: readonly TensorInfo[];
  }>;
  /** Plans, takes the block, compiles: what is left is `run`. */
  session(options?: PlanOptions): Promise<Session>;
  /** Copies of its weights, by name; those in blocks (of GGUF files) are left out. */
  weights(): Promise<Record<string, Tensor<ElementType>>>;
  /** What learning takes, before any of it is taken. */
  trainerPlan(options?: TrainerOptions): Promise<Plan>;
  /** A copy that learns; the model itself stays as it is. */
  trainer(options?: TrainerOptions): Promise<Trainer>;
  close(): void;
}

export interface TrainerOptions extends PlanOptions {
  /** Classes by their numbers, or the mean of squares. Default "cross_entropy". */
  loss?: 'cross_entropy' | 'mse';
  /** The output that the loss is taken of; default: the first of a float type. A softmax that ends the model is left out
   * for "cross_entropy". */
  output?: string;
  /** Default "adamw". */
  optimizer?: 'adamw' | 'sgd';
  /** The learning rate, or what it is after so many steps. Default 0.001. */
  rate?: number | ((steps: number) => number);
  /** Names of weights that learn; default: all of a float type. The others stay as they are. */
  params?: readonly string[];
  /** Calls of `step` that make one step, whose gradients are averaged. Default 1. */
  accumulate?: number;
  /** SGD; default 0.9. */
  momentum?: number;
  /** AdamW; defaults 0.9, 0.999 and 1e-8. */
  beta1?: number;
  beta2?: number;
  epsilon?: number;
  /** Default 0.01. */
  weightDecay?: number;
  /** The largest norm of all gradients together; default 0: any. */
  clip?: number;
}

/** A model that learns: forward, backward and the optimiser in one block, of which a step asks for no more. */
export interface Trainer {
  readonly device: string;
  readonly plan: Plan;
  /** Those of the model, with the dimensions bound: a batch has as many rows in every step. */
  readonly inputs: readonly (TensorInfo & { readonly shape: readonly number[] })[];
  /** What `step` takes beside them. */
  readonly labels: TensorInfo & { readonly shape: readonly number[] };
  /** That were done. */
  readonly steps: number;
  /** One batch; gives its loss, as it was before the weights changed. Labels are classes (BigInt64Array, or numbers), or
   * with "mse" what the output should have been. */
  step(
    inputs: Record<string, TypedArray | readonly number[] | Tensor<ElementType>>,
    labels: TypedArray | readonly number[] | Tensor<ElementType>,
  ): Promise<number>;
  /** Those that learn, as they are now. */
  weights(): Promise<Record<string, Tensor<ElementType>>>;
  /** The same as a safetensors file, which `Berth.model` takes as `weights` of a graph in the text form. */
  save(): Promise<Uint8Array>;
  /** All that training is, and going on from there: the next step is what it would have been. */
  saveCheckpoint(): Promise<Uint8Array>;
  loadCheckpoint(saved: ArrayBuffer | ArrayBufferView): Promise<void>;
  /** Of the last step. */
  readonly timings: { write: number; run: number; read: number; total: number };
  readonly counters: { allocations: number; gpuObjects: number };
  close(): void;
}

export interface Session {
  readonly device: string;
  readonly plan: Plan;
  /** With the dimensions bound. */
  readonly inputs: readonly (TensorInfo & { readonly shape: readonly number[] })[];
  readonly outputs: readonly TensorInfo[];
  /** Every input by its name. Numbers are taken as they are for the type: BigInt arrays for i64. Outputs are taken for
   * numbers; where one is i64 or u64, say so: `run<{ logits: 'f32'; best: 'i64' }>(...)`. */
  run<Types extends Record<string, ElementType> = Record<string, NumberType>>(
    inputs: Record<string, TypedArray | readonly number[] | Tensor>,
  ): Promise<{ [Name in keyof Types]: Tensor<Types[Name]> }>;
  /** Runs once and looks at every step, which takes longer. Of each value at most `elements` are kept (65536). */
  trace(
    inputs: Record<string, TypedArray | readonly number[] | Tensor>,
    options?: { elements?: number },
  ): Promise<Trace>;
  /** What lives from run to run, by name, as the last one left it; and all of it as bytes, to go on from. */
  states(): Promise<Record<string, Tensor<ElementType>>>;
  saveStates(): Promise<Uint8Array>;
  loadStates(saved: ArrayBuffer | ArrayBufferView): Promise<void>;
  /** Milliseconds of the last run: writing, running and reading apart. */
  readonly timings: { write: number; run: number; read: number; total: number };
  /** Allocations that the library made in runs of this session: 0 after any number of them. WebGPU objects that live;
   * 0 on the CPU. */
  readonly counters: { allocations: number; gpuObjects: number };
  close(): void;
}

export interface GgufPlanOptions {
  /** Default "cpu". */
  device?: string;
  /** Tokens that there is room for; default: what the model was made with, but at most 4096. */
  ctx?: number;
  /** Tokens in which text is read; default 64, or `ctx` where that is less. */
  chunk?: number;
  /** How keys and values are kept: one of `Gguf.kv`. Default `Gguf.defaultKv`. */
  kv?: string;
  onProgress?: OnProgress;
}

/** What `berth plan model.gguf --ctx N --json` says: what a generator takes, to the byte. */
export interface GgufPlan {
  readonly device: string;
  readonly ctx: number;
  readonly chunk: number;
  readonly kv: string;
  /** Rows that layers with a sliding window keep; absent where no layer has one. */
  readonly near?: number;
  /** All of it. */
  readonly arena_size: number;
  readonly weights_size: number;
  /** Keys and values. */
  readonly state_size: number;
  readonly activations_size: number;
  readonly scratch_size: number;
  readonly preparation_size: number;
  /** With one token at a time, as when text is generated; the rest is with `chunk` of them. */
  readonly token: { readonly arena_size: number; readonly activations_size: number; readonly scratch_size: number };
  readonly [key: string]: unknown;
}

export interface Gguf {
  /** "" where the file does not say. */
  readonly name: string;
  /** "llama", "qwen3", ... */
  readonly architecture: string;
  readonly tokenizer: string;
  /** Generators can `chat`. */
  readonly hasTemplate: boolean;
  /** It generates text; others compute text embeddings, and have no generator. */
  readonly generates: boolean;
  /** Tokens that the model was made for; 0 where the file does not say. */
  readonly context: number;
  readonly nParameters: number;
  readonly nTensors: number;
  /** Types that a cache of keys and values may have, the most exact first. */
  readonly kv: readonly string[];
  /** The one of them that is taken where nobody says otherwise: "f16" for models that have a cache. */
  readonly defaultKv: string;
  /** Bytes of tensors by their type: { q4_K: 1234 }. */
  readonly types: Readonly<Record<string, number>>;
  plan(options?: GgufPlanOptions): Promise<GgufPlan>;
  /** The plan with the largest context, up to `ctx` or what the model was made for, whose arena takes no more than
   * `bytes`; null where none does. */
  fit(bytes: number, options?: GgufPlanOptions): Promise<GgufPlan | null>;
  /** The graph without its weights, for plans that say where every value lies, and pictures of them. */
  model(options?: { kv?: string }): Promise<Model>;
  /** Reads the whole file, and takes all memory that the conversation will need. */
  generator(options?: GgufPlanOptions & {
    /** Where the context is full, its older half is forgotten; default: that is an error. */
    slide?: boolean;
    sampling?: Sampling;
  }): Promise<Generator>;
  close(): void;
}

/** How the next token is chosen, in this order. The same seed and texts give the same tokens on the same device. */
export interface Sampling {
  /** For tokens among the last `repeatLast` (64); default 1: none. */
  repeatPenalty?: number;
  repeatLast?: number;
  /** Of the best; 0: all. Default 40. */
  topK?: number;
  /** Of these the fewest whose probabilities add up to it. Default 0.95. */
  topP?: number;
  /** Of these the ones that are at least so many times as probable as the best. Default 0.05. */
  minP?: number;
  /** 0: always the best token. Default 0.8. */
  temperature?: number;
  /** Default 0. */
  seed?: number | bigint;
}

/** One token more. */
export interface Piece {
  readonly token: number;
  /** What can be shown by now, never part of a character; maybe "". */
  readonly text: string;
  /** The model says that it is done. */
  readonly isEnd: boolean;
}

export interface Message {
  /** "system", "user", "assistant" */
  role: string;
  content: string;
}

export interface Generator {
  readonly device: string;
  readonly info: {
    readonly architecture: string;
    readonly ctx: number;
    readonly chunk: number;
    readonly vocabulary: number;
    /** In the conversation. */
    readonly nTokens: number;
    readonly hasTemplate: boolean;
    /** Bytes of all of it, and of two parts. */
    readonly arenaSize: number;
    readonly weightsSize: number;
    readonly stateSize: number;
  };
  /** Of the conversation. */
  readonly tokens: number[];
  /** Allocations that the library made in `next`: 0 after any number of tokens. WebGPU objects that live. */
  readonly counters: { allocations: number; gpuObjects: number };
  /** Other choices from now on, with the seed set anew. */
  sample(sampling?: Sampling): Promise<void>;
  /** Adds text to the conversation. `special`: "<|im_end|>" and the like are tokens. */
  feed(text: string, options?: { special?: boolean; onProgress?: OnProgress }): Promise<void>;
  feedTokens(tokens: ArrayLike<number>, options?: { onProgress?: OnProgress }): Promise<void>;
  /** Makes the conversation what the model's template makes of all these messages, with the beginning of an answer. What
   * it already has of it is not evaluated again. */
  chat(messages: readonly Message[], options?: { onProgress?: OnProgress }): Promise<void>;
  next(): Promise<Piece>;
  /** `next` again and again, up to `count` times or until the model is done. */
  generate(count?: number): AsyncGenerator<Piece, void, void>;
  /** By which the next token will be chosen. */
  logits(): Promise<Float32Array>;
  /** Remembers where the conversation is, and goes back there, as often as it is called. */
  mark(): Promise<void>;
  rewind(): Promise<void>;
  /** Begins a new conversation. */
  reset(): Promise<void>;
  /** Another one that goes on by itself, with memory of its own. */
  fork(): Promise<Generator>;
  /** The conversation as bytes; another generator of the same model goes on where this one was. */
  save(): Promise<Uint8Array>;
  load(saved: ArrayBuffer | ArrayBufferView): Promise<void>;
  close(): void;
}
