/** Dark or light: the system's choice, until the button is pressed. Not a module, so that it runs before painting. */
(() => {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => {
    try {
      return localStorage.getItem('theme');
    } catch {
      return null;
    }
  };
  const isDark = () => (root.dataset.theme ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const chosen = stored();
  if (chosen === 'dark' || chosen === 'light') root.dataset.theme = chosen;

  addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const show = () => {
      button.setAttribute('aria-pressed', String(isDark()));
      dispatchEvent(new Event('themechange'));
    };
    button.addEventListener('click', () => {
      root.dataset.theme = isDark() ? 'light' : 'dark';
      try {
        localStorage.setItem('theme', root.dataset.theme);
      } catch {
        /* it is not stored then */
      }
      show();
    });
    system.addEventListener('change', show);
    show();
  });
})();
