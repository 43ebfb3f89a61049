/** What a value is to the reader: its role has a hue and a title. Those of values come from the op that makes them. */

/** Roles in the order of the legend; `--kind-` and the role is the colour's name. */
export const roles = {
  input: 'Inputs',
  product: 'Products, convolutions',
  attention: 'Attention, recurrence',
  value: 'Element by element',
  move: 'Moved, joined, pooled',
  output: 'Outputs',
  scratch: 'Working space of a step',
  weight: 'Weights',
  preparation: 'Preparing weights, once',
};

const byOp = [
  [/attention|softmax|rope|lstm|gru|rnn|recurrent/, 'attention'],
  [/conv|product|matmul|gemm|depthwise|einsum|winograd|embedding/, 'product'],
  [/concat|transpose|reshape|gather|scatter|pad|slice|narrow|split|tile|expand|resize|pool|copy|layout|move|stack/, 'move'],
];

/** Of a value that is neither input, output, weight nor scratch. */
export const roleOf = (op) => byOp.find(([pattern]) => pattern.test(op))?.[1] ?? 'value';
