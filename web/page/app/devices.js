/** The device: a choice of the available ones, with the reasons why others are not. */
import { $, el } from './dom.js';

const titles = { cpu: 'CPU', webgpu: 'GPU (WebGPU)' };
let chosen = 'cpu';

export const device = () => chosen;

export function showDevices(devices, onChange) {
  const rows = devices.map(({ name, description, available, reason }) => {
    const radio = el('input', {
      type: 'radio',
      name: 'device',
      value: name,
      id: `device-${name}`,
      'data-test': `device-${name}`,
      disabled: !available,
      'aria-describedby': `device-reason-${name}`,
    });
    radio.checked = name === chosen;
    radio.addEventListener('change', () => {
      chosen = name;
      onChange();
    });
    return el(
      'div',
      { class: available ? 'device' : 'device absent' },
      radio,
      el('label', { for: `device-${name}`, text: titles[name] ?? name }),
      el('span', {
        id: `device-reason-${name}`,
        class: 'hint',
        'data-test': `device-reason-${name}`,
        text: available ? description : reason || 'not there',
      }),
    );
  });
  $('devices').replaceChildren(...rows);
}
