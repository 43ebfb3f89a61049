/** Conversations: a generator with the current options, and its text piece by piece. */
import { pause } from './runs.js';

const SLICE = 30; // milliseconds of generating between checks for messages

/** The generator of an open GGUF model for these options; the previous one is closed, since each has an arena. */
export async function generatorOf(entry, options, onProgress) {
  const key = JSON.stringify(options);
  if (entry.talk?.key === key) return entry.talk;
  entry.talk?.generator.close();
  entry.talk = null;
  const begun = performance.now();
  const generator = await entry.gguf.generator({ ...options, onProgress });
  entry.talk = { key, generator, made: performance.now() - begun, sampling: '', messages: [] };
  return entry.talk;
}

/** Begins with a text, or answers a message; neither: continues. */
async function begin(talk, { prompt, message, isFirst, sampling }, onProgress) {
  const { generator } = talk, wanted = JSON.stringify(sampling);
  const isFresh = prompt !== undefined || message !== undefined;
  if (isFresh || talk.sampling !== wanted) await generator.sample(sampling);
  talk.sampling = wanted;
  if (prompt !== undefined) {
    talk.messages = [];
    await generator.reset();
    await generator.feed(prompt, { onProgress });
  }
  if (message !== undefined) {
    const messages = [...(isFirst ? [] : talk.messages), { role: 'user', content: message }];
    await generator.chat(messages, { onProgress });
    talk.messages = messages;
  }
}

/** Up to `count` tokens, reported as they are generated. */
export async function converse(talk, request, onProgress, isStopped) {
  const { generator } = talk, { message, count } = request;
  const before = generator.info.nTokens, allocations = generator.counters.allocations;
  const start = performance.now();
  await begin(talk, request, onProgress);
  const read = performance.now(), tokens = [];
  const fed = generator.info.nTokens - (request.prompt === undefined ? before : 0);
  let text = '', answer = '', stoppedBy = 'count', first = 0, told = 0;
  const tell = async () => {
    onProgress({ text, count: tokens.length });
    text = '';
    await pause();
    told = performance.now();
  };
  try {
    while (tokens.length < count && stoppedBy === 'count') {
      const piece = await generator.next();
      if (tokens.length === 0) first = performance.now();
      tokens.push(piece.token);
      text += piece.text;
      answer += piece.text;
      if (performance.now() - told > SLICE) await tell();
      if (piece.isEnd) stoppedBy = 'end';
      else if (isStopped()) stoppedBy = 'stop';
    }
  } catch (error) {
    if (error.status !== 'INFEASIBLE' || tokens.length === 0) throw error;
    stoppedBy = 'full';
  }
  const decoded = performance.now() - first;
  if (text !== '') await tell();
  const last = talk.messages.at(-1);
  if (message !== undefined) talk.messages.push({ role: 'assistant', content: answer });
  else if (last?.role === 'assistant') last.content += answer; // it was continued
  return {
    tokens,
    stoppedBy,
    promptTokens: fed,
    promptMs: read - start,
    msPerToken: tokens.length > 1 ? decoded / (tokens.length - 1) : 0, // the first one belongs to the prompt
    allocations: generator.counters.allocations - allocations,
    arena: generator.info.arenaSize,
    made: talk.made,
  };
}
