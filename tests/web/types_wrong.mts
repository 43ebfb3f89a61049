/* What TypeScript is to refuse. */
import { load } from '../../web/package/berth.js';

const berth = await load({ threads: 1 });
const model = await berth.digits();
await (await model.session()).run({ image: 'a string' });
