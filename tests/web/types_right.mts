/* Every part of the interface, as a program in TypeScript would use it. */
import { BerthError, load } from '../../web/package/berth.js';
import type { Berth, DeviceInfo, Generator, Gguf, GgufPlan, Message, Model, Piece, Plan, Progress, Session, Tensor, Trainer, TrainerOptions } from '../../web/package/berth.js';

const onProgress = ({ stage, done, total }: Progress): string => `${stage} ${done / total}`;
const berth: Berth = await load({ base: new URL('.', import.meta.url), threads: 2, onProgress });
const devices: DeviceInfo[] = await berth.devices();
const model: Model = await berth.model(new Blob([]), { name: 'mine', weights: new ArrayBuffer(0), onProgress });
const dims: readonly string[] = model.dims;
for (const name of model.toFix) await model.fix(name, { type: 'i64', shape: [2], data: new BigInt64Array(2) });
const plan: Plan = await model.plan({ device: devices[0].name, dims: { [dims[0]]: 1 }, budget: 1 << 20, effort: 1, keepInputs: true });
const where: string[] = plan.values.map(({ name, offset, size, shares }) => `${name} ${offset + size} ${shares}`);
const ops: string[] = plan.steps.map(({ op, name }) => `${op} ${name}`);
const picture: string = plan.svg();
const session: Session = await model.session({ f16Weights: true });
const extent: number = session.inputs[0].shape[0];
try {
  const outputs: Record<string, Tensor> = await session.run({
    a: new Float32Array(4), b: [1, 2, 3], c: { type: 'i64', shape: [1], data: new BigInt64Array(1) },
  });
  console.log(outputs.y.type === 'i64' ? outputs.y.data[0] + 1n : outputs.y.data.length);
  const { y } = await session.run({ a: [1] });
  console.log(y.data[0].toFixed(2), y.type === 'f32' ? y.data.subarray(0, 1) : y.type);
  const { best } = await session.run<{ best: 'i64' }>({ a: [1] });
  const first: bigint = best.data[0];
  console.log(first, (await model.guess({ batch: 2 })).inputs[0].below?.toFixed());
  const total: number = session.timings.total + session.counters.allocations + session.counters.gpuObjects;
  console.log(outputs.y.data.length, total, extent, where, ops, picture, plan.report.arena_size, berth.memory().used);
} catch (error) {
  if (error instanceof BerthError) console.log(error.status, error.message);
}
session.close();

const learning: TrainerOptions = { loss: 'mse', optimizer: 'sgd', rate: (steps) => 0.1 / (1 + steps), params: ['w'], dims: { rows: 4 }, clip: 1 };
const trainer: Trainer = await model.trainer(learning);
const loss: number = await trainer.step({ x: new Float32Array(4) }, [1, 2, 3, 4]);
const weights: Uint8Array = await trainer.save();
await trainer.loadCheckpoint(await trainer.saveCheckpoint());
const bias: ArrayLike<number | bigint> = (await trainer.weights()).w.data;
console.log(loss, weights.length, bias.length, (await model.weights()).w.shape, trainer.labels.shape[0] + trainer.steps);
console.log((await model.trainerPlan(learning)).report.arena_size, trainer.plan.report.state_size, trainer.timings.run, trainer.counters.allocations);
trainer.close();
model.close();

const gguf: Gguf = await berth.gguf('model.gguf', { name: 'mine', parts: [new Blob([])], onProgress });
const compiled: Berth = await load({ module: WebAssembly.compile(new ArrayBuffer(0)) });
const sizes: GgufPlan = await gguf.plan({ ctx: 4096, chunk: 64, kv: gguf.kv[0], device: 'webgpu' });
const fitting: GgufPlan | null = await gguf.fit(8 * 2 ** 30, { kv: 'f16' });
const graph: Model = await gguf.model({ kv: 'f16' });
const generator: Generator = await gguf.generator({ ctx: 512, slide: true, sampling: { temperature: 0, seed: 7n } });
const messages: Message[] = [{ role: 'user', content: 'Hello' }];
await generator.feed('Once', { special: true, onProgress });
await generator.feedTokens(generator.tokens);
await generator.chat(messages);
await generator.sample({ topK: 1, topP: 1, minP: 0, repeatPenalty: 1.1, repeatLast: 8 });
await generator.mark();
await generator.rewind();
const piece: Piece = await generator.next();
for await (const { text, isEnd } of generator.generate(3)) console.log(text, isEnd);
const saved: Uint8Array = await generator.save();
const other: Generator = await generator.fork();
await other.load(saved);
await other.reset();
const logits: Float32Array = await generator.logits();
console.log(sizes.token.arena_size + sizes.state_size, fitting?.ctx, graph.dims, piece.token, logits.length, gguf.types.q8_0);
console.log(generator.info.nTokens, generator.counters.allocations);
generator.close();
gguf.close();
compiled.close();
berth.close();
