// The home page and the connect form. What a command line becomes, what sounds secret and what is wrong with a form, the
// server says. What was typed stays where it is: a page that came back would not have the secrets in it.
import { $, $$, make } from './page.js';
import './undo.js';

// A question about one field takes only that field along.
document.addEventListener('htmx:config:request', (event) => {
  const { sourceElement: field, request } = event.detail.ctx;
  if (!field.matches('[data-preview]')) return;
  for (const name of new Set(request.body.keys())) if (name !== '_preview') request.body.delete(name);
  request.body.set(field.name, field.value);
});

// ---- rows with a secret
const valueIn = (row) => $('[name$=_value]', row);
const markIn = (row) => $('[data-secret]', row);
const asks = (row, does) => $('[data-preview]', row).setAttribute('hx-swap', does ? 'innerHTML' : 'none');
const apply = (row) => {
  valueIn(row).type = markIn(row).value ? 'password' : 'text';
};
document.addEventListener('change', (event) => {
  const row = event.target.matches('[data-secret]') && event.target.closest('.trio');
  if (!row) return;
  // what a person has chosen is not changed by what they type next
  asks(row, false);
  apply(row);
});
document.addEventListener('htmx:after:swap', (event) => {
  const row = event.target.closest?.('.trio');
  if (row) apply(row);
});
const blank = (row) => {
  for (const input of $$('input', row)) input.value = '';
  asks(row, true);
  markIn(row).value = '';
  valueIn(row).placeholder = 'value';
  valueIn(row).setAttribute('aria-label', valueIn(row).getAttribute('aria-label').split(',')[0]);
  apply(row);
};
// A new row begins as a shown one, whatever row it was copied from.
document.addEventListener('parley:row', (event) => {
  const row = event.target.closest('.trio');
  if (row) blank(row);
});
document.addEventListener('click', (event) => {
  const row = event.target.closest?.('[data-remove]')?.closest('.trio');
  if (!row) return;
  const next = row.nextElementSibling ?? row.previousElementSibling;
  const add = $('[data-add]', row.closest('fieldset'));
  if (next) row.remove();
  else blank(row);
  (next && row.nextElementSibling ? $('[data-remove]', next) : add).focus();
});

// ---- a form is looked at before it goes: what is wrong is said at its field, and nothing else changes
const fieldOf = (form, id) => $(`#${id}`, form) ?? $(`[name=${id}_name]`, form);
const say = (form, id, text) => {
  const field = fieldOf(form, id);
  let place = $(`#${id}-error`, form);
  if (!place && field && text) {
    place = make('span', { name: 'err', id: `${id}-error` });
    field.after(place);
  }
  if (place) place.textContent = text;
  if (text) field?.setAttribute('aria-invalid', 'true');
  else field?.removeAttribute('aria-invalid');
};
const whole = (form, text) => {
  const box = $('#form-wrong', form);
  box.hidden = !text;
  if (text) $('b', box).textContent = text;
};
const look = async (form, { saves = false } = {}) => {
  const fields = new URLSearchParams(new FormData(form));
  fields.set('_preview', 'form');
  // what is saved need not be installed yet
  if (saves) fields.set('_saves', '1');
  const answer = await fetch(form.getAttribute('action'), {
    method: 'POST',
    body: fields,
    headers: { accept: 'application/json' },
  });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
};
const show = (form, { wrong, offer }) => {
  for (const place of $$('[id$=-error]', form)) say(form, place.id.slice(0, -'-error'.length), '');
  whole(form, wrong['']);
  for (const [id, text] of Object.entries(wrong)) if (id) say(form, id, text);
  if (offer && wrong.command_line) {
    const button = make('button', { name: 'btn', type: 'button', text: 'Use this', 'data-use': '' });
    $('#argv', form).replaceChildren(button);
  }
  const field = Object.keys(wrong)
    .map((id) => id && fieldOf(form, id))
    .find(Boolean);
  const fold = field?.closest('details');
  if (fold) fold.open = true;
  field?.focus();
};
const asked = new WeakSet();
document.addEventListener('submit', async (event) => {
  const { target: form, submitter } = event;
  if (!form.matches('form.connect') || submitter?.matches('[data-unchecked]') || asked.delete(form)) return;
  event.preventDefault();
  try {
    const found = await look(form, { saves: !!submitter?.hasAttribute('formaction') });
    if (Object.keys(found.wrong).length) {
      show(form, found);
      return;
    }
  } catch {} // what cannot be looked at goes as it is: the answer is a page that says why
  asked.add(form);
  form.requestSubmit(submitter);
});
document.addEventListener('input', (event) => {
  const form = event.target.closest?.('form.connect');
  if (form && event.target.matches('[aria-invalid]')) {
    say(form, event.target.id || event.target.name.split('_')[0], '');
  }
});

// ---- what a line for a shell comes to without one
const row = (form, [name, value]) => {
  const free = $$('.by-stdio .trio', form).find((one) => [name, ''].includes($('input', one).value));
  if (!free) $('.by-stdio [data-add]', form).click();
  const into = free ?? $$('.by-stdio .trio', form).at(-1);
  $('input', into).value = name;
  valueIn(into).value = value;
  $('input', into).dispatchEvent(new Event('input', { bubbles: true }));
};
document.addEventListener('click', async (event) => {
  const form = event.target.closest?.('[data-use]')?.closest('form');
  if (!form) return;
  const { offer } = await look(form);
  if (!offer) return;
  const line = $('#command_line', form);
  if (offer.cwd) $('#cwd', form).value = offer.cwd;
  for (const pair of offer.env) row(form, pair);
  say(form, 'command_line', '');
  line.value = offer.command_line;
  line.dispatchEvent(new Event('input', { bubbles: true }));
  line.focus();
});

// ---- the lists: a tab of the form, and what can be brought back for a while
document.addEventListener('click', (event) => {
  const tab = event.target.closest?.('[data-tab]');
  const radio = tab && $(`#by-${tab.dataset.tab}`);
  if (!radio) return;
  radio.checked = true;
  $('#mcp_json').focus();
});
const fade = () => {
  for (const one of $$('[data-undo]')) {
    setTimeout(() => one.remove(), Number(one.dataset.undo));
    delete one.dataset.undo;
  }
};
fade();
document.addEventListener('htmx:after:swap', fade);

// What opens the file of a recording comes with the first sign that somebody is there.
if ($('#open-file')) {
  for (const sign of ['pointermove', 'dragenter', 'focusin', 'change']) {
    document.addEventListener(sign, () => import('./opening.js'), { once: true });
  }
}
