// Count-downs and running times: the server says a moment once, the tab counts.
import { clock, left, SOON, since } from './decide.js';
import { $, $$, write } from './dom.js';

const tick = () => {
  const now = Date.now();
  for (const element of $$('time[data-deadline]')) {
    const seconds = Math.ceil(left(element.dataset.deadline, now));
    write(element, seconds ? `${clock(seconds)} ${element.dataset.after}` : 'time is up');
    element.parentElement.classList.toggle('soon', seconds < SOON);
  }
  for (const element of $$('time[data-since]')) write(element, `${since(element.dataset.since, now)} s`);
  for (const bar of $$('progress[data-deadline]')) {
    const seconds = left(bar.dataset.deadline, now);
    bar.value = Math.min(seconds, bar.max);
    bar.classList.toggle('soon', seconds < SOON);
  }
};

setInterval(tick, 500);
tick();
new MutationObserver(tick).observe($('#main'), { childList: true, subtree: true });
