// Pages of a team: what is shown once can be copied, and on a phone the row of admin's pages shows where one is.
import { $, $$ } from './page.js';

$('.arail [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

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
