// The strip for a session that was closed a moment ago: it counts, and goes when it is too late to bring it back.
import { $, $$, write } from './page.js';

const begin = () => {
  for (const strip of $$('.undo > [data-until]')) {
    const until = Date.now() + +strip.dataset.until * 1000;
    delete strip.dataset.until;
    const count = () => {
      if (!strip.isConnected) return;
      const left = Math.ceil((until - Date.now()) / 1000);
      write($('.sec-left', strip), String(Math.max(0, left)));
      if (left > 0) return setTimeout(count, 500);
      if (strip.contains(document.activeElement)) $('#main').focus();
      const list = strip.parentElement;
      strip.remove();
      if (!list.children.length) list.remove();
    };
    count();
  }
};
begin();
// closed in the list of the first page
document.addEventListener('htmx:after:swap', begin);
