// The tour: what its strip points at is marked, and brought into view. An ask or a call may arrive after the page.
import { $ } from './page.js';

const strip = $('#tour');
const mark = () => {
  const found = strip.dataset.look.split(', ').map((each) => document.querySelector(each));
  const shown = found.find((each) => each?.checkVisibility());
  for (const old of document.querySelectorAll('.toured')) if (old !== shown) old.classList.remove('toured');
  if (!shown || shown.classList.contains('toured')) return;
  shown.classList.add('toured');
  shown.scrollIntoView({ block: 'nearest' });
};

if (strip?.dataset.look) {
  mark();
  new MutationObserver(mark).observe(document.body, { childList: true, subtree: true });
}
$('#tour-go')?.focus();
