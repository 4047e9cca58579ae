// Answer rules: what a rule does follows the kind of ask, a file is read into the form, keys move a rule.
import { $, $$, base } from './page.js';

// ---- what can be done follows the kind of ask
const GOES_WITH = {
  form: ['accept', 'decline', 'cancel', 'fail'],
  sampling: ['respond', 'model', 'decline', 'fail'],
  roots: ['accept', 'fail'],
};
const form = $('#rule-form');
const follow = () => {
  const kind = $('#rule-kind').value;
  form.dataset.kind = kind;
  const boxes = $$('[name=action]', form);
  for (const box of boxes) box.disabled = !!kind && !GOES_WITH[kind].includes(box.value);
  if (!boxes.some((box) => box.checked && !box.disabled)) boxes.find((box) => !box.disabled).checked = true;
};
if (form) {
  follow();
  $('#rule-kind').addEventListener('change', follow);
  $('[aria-invalid]', form)?.focus();
}

// ---- tried anew when there are other asks to try it on; the number of them is drawn by the server
const known = $('#rules-known');
if (known) {
  const again = () => htmx.trigger('#rule-trial', 'again');
  new MutationObserver(again).observe(known, { childList: true, characterData: true, subtree: true });
}

// ---- a file is read here, and goes to the server as what stands in the form
document.addEventListener('change', async ({ target }) => {
  const file = target.dataset?.into && target.files[0];
  if (file) $(target.dataset.into).value = await file.text();
});

// ---- Alt with an arrow moves the rule that the keyboard is in, or the one in the editor; the keyboard goes with it
let moved = '';
document.addEventListener('keydown', (event) => {
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!by || !event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  // there it opens the list
  if (event.target.matches?.('select')) return;
  const row = event.target.closest?.('[data-rule]');
  const rule = row?.dataset.rule ?? (event.target.closest?.('#editor') && $('#rules [aria-current]')?.dataset.rule);
  if (!rule) return;
  event.preventDefault();
  moved = row && document.activeElement.id;
  htmx.ajax('POST', `${base()}/rules/${rule}/move`, { values: { by }, swap: 'none' });
});
new MutationObserver((changes) => {
  if (moved && document.activeElement === document.body) document.getElementById(moved)?.focus();
  // A switch that was moved by hand does not follow its markup any more.
  for (const { target, type } of changes) if (type === 'attributes') target.checked = target.defaultChecked;
}).observe($('#rules').parentElement, { childList: true, subtree: true, attributeFilter: ['checked'] });
document.addEventListener('focusin', ({ target }) => {
  if (target.id !== moved) moved = '';
});
