// Pages of a team: what is shown once can be copied.
import { $$ } from './page.js';

for (const button of $$('[data-copy-once]')) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const words = $$('span', button).at(-1);
    try {
      await navigator.clipboard.writeText(button.dataset.copyOnce);
      words.textContent = 'Copied';
    } catch {
      words.textContent = 'The browser does not allow copying';
    }
  });
}
