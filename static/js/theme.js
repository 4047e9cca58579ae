// The button of the theme: system, light, dark. The choice stays in this browser; static/theme.js applies it first.
import { $, browser, root } from './dom.js';

const THEMES = { system: 'follows the system', light: 'light', dark: 'dark' };
const NEXT = { system: 'light', light: 'dark', dark: 'system' };

const set = (theme) => {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  browser.set('parley-theme', theme);
  const button = $('#theme');
  if (!button) return;
  button.title = `Theme: ${THEMES[theme]}`;
  button.setAttribute('aria-label', button.title);
};
const now = () => root.dataset.theme || 'system';

set(now());
document.addEventListener('click', (event) => {
  if (event.target.closest?.('#theme')) set(NEXT[now()]);
});
