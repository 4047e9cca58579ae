// Count-downs and running times: the server says a moment once, and the tab counts. No patch sets one back.
import { clock, left, SOON, since } from './decide.js';
import { $, $$, write } from './page.js';

const tick = () => {
  const now = Date.now();
  for (const element of $$('time[data-deadline]')) {
    const seconds = Math.ceil(left(element.dataset.deadline, now));
    const over = element.dataset.over ?? 'time is up';
    write(element, seconds ? `${clock(seconds)} ${element.dataset.after}`.trim() : over);
    element.parentElement.classList.toggle('soon', seconds < SOON);
  }
  for (const one of $$('time[data-until]')) {
    const seconds = Math.ceil(left(one.dataset.until, now));
    write(one, seconds < SOON ? `${seconds} s` : clock(seconds));
  }
  for (const element of $$('time[data-since]')) {
    const seconds = since(element.dataset.since, now);
    write(element, seconds < 60 ? `${seconds} s` : clock(seconds));
  }
  for (const one of $$('time[data-age]')) write(one, clock(since(one.dataset.age, now)));
  for (const bar of $$('progress[data-deadline]')) {
    const seconds = left(bar.dataset.deadline, now);
    bar.value = Math.min(seconds, bar.max);
    bar.classList.toggle('soon', seconds < SOON);
  }
};

setInterval(tick, 500);
tick();
// A card that arrives counts at once. Rows of the log have no clock, and there are many.
new MutationObserver((changes) => {
  if (changes.some(({ target }) => !target.closest('#logscroll'))) tick();
}).observe($('#main'), { childList: true, subtree: true });
