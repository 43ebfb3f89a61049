/** The role of a value, with a hue and a title. Intermediate values get theirs from the op that makes them. */

/** Roles in the order of the legend; the colour's name is `--kind-` plus the role. */
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

/** For a value that is not an input, output, weight or scratch. */
export const roleOf = (op) => byOp.find(([pattern]) => pattern.test(op))?.[1] ?? 'value';
