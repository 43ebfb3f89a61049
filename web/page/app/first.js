/**
 * The first screen: the minimum for reading a digit. The rest of the page, main.js, is fetched after that, and starts
 * when the first digit has appeared.
 */
import { showAlert } from './alerts.js';
import { digitDone, startDigit, watchDigit } from './digit.js';
import { watchHero } from './hero.js';
import { client, load, setState } from './start.js';

async function loadBerth() {
  try {
    await client.restart(load);
    startDigit(client);
    await digitDone();
    return true;
  } catch (error) {
    setState('failed', 'berth could not be loaded.');
    showAlert(
      'load',
      error,
      'This browser may lack WebAssembly, or a file of the page is missing. Try a recent Chrome, Edge, Firefox or Safari.',
    );
    return false;
  }
}

setState('loading', 'Loading berth…');
watchDigit(watchHero());
const isLoaded = loadBerth();
const { start } = await window.berthModule.catch(() => {}).then(() => import('./main.js'));
await start(await isLoaded);
