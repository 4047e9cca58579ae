// The steps of a sign-in: what somebody unfolded or folded stays so while the page is drawn anew.
import { $, $$ } from './page.js';

// by step: whether it is open, and in which state of the step somebody said so
const chosen = new Map();
const keep = () => {
  for (const step of $$('.stp')) {
    const [said, details] = [chosen.get(step.id), $('details', step)];
    // A step that has failed since, or whose turn it is, opens by itself. An attribute that is set is a change, also to
    // what it was.
    if (said && said.state !== step.dataset.s && details.open) chosen.delete(step.id);
    else if (said && details.open !== said.open) details.open = said.open;
  }
};
document.addEventListener('click', (event) => {
  const step = event.target.closest?.('.stp > details > summary')?.closest('.stp');
  if (step) chosen.set(step.id, { open: !$('details', step).open, state: step.dataset.s });
});
new MutationObserver(keep).observe($('#main'), { childList: true, subtree: true, attributeFilter: ['open', 'data-s'] });

// A link to a step opens it.
const goTo = () => {
  const step = $$('.stp').find((one) => `#${one.id}` === location.hash);
  if (!step) return;
  $('details', step).open = true;
  step.scrollIntoView({ block: 'nearest' });
};
addEventListener('hashchange', goTo);
goTo();
