// The connect form. What a command line becomes, what sounds secret and what is wrong with a paste, the server says:
// htmx asks while something is typed. A value that is marked secret is not shown.
import { $ } from './page.js';

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
  asks(row, false); // what a person has chosen is not changed by what they type next
  apply(row);
});
document.addEventListener('htmx:after:swap', (event) => {
  const row = event.target.closest?.('.trio');
  if (row) apply(row);
});
// A new row begins as a shown one, whatever row it was copied from.
document.addEventListener('parley:row', (event) => {
  const row = event.target.closest('.trio');
  if (!row) return;
  asks(row, true);
  markIn(row).value = '';
  valueIn(row).placeholder = 'value';
  valueIn(row).setAttribute('aria-label', valueIn(row).getAttribute('aria-label').split(',')[0]);
  apply(row);
});

// ---- a paste that cannot be read stays in its box: what was sent does not come back, because it may hold secrets
let good = null;
let asking = Promise.resolve();
const ask = async (box) => {
  const text = box.value;
  if (good === text) return;
  const values = { _preview: 'mcp_json' };
  await htmx.ajax('POST', box.form.getAttribute('action'), {
    source: box,
    target: '#mcp-json-help',
    swap: 'outerHTML',
    values,
  });
  const isWrong = $('#mcp-json-help').matches('.err');
  if (isWrong) box.setAttribute('aria-invalid', 'true');
  else box.removeAttribute('aria-invalid');
  good = isWrong ? null : text;
};
// One question at a time: a second one beside it would read the answer to the first.
const check = (box) => {
  const next = () => ask(box);
  asking = asking.then(next, next);
  return asking;
};
document.addEventListener('submit', async (event) => {
  const { target: form, submitter } = event;
  const box = $('#mcp_json', form);
  if (!box || !$('#by-mcpjson', form).checked || good === box.value) return;
  event.preventDefault();
  await check(box);
  if (good === box.value) form.requestSubmit(submitter);
  else box.focus();
});
document.addEventListener('input', (event) => {
  if (event.target.id === 'mcp_json' && event.target.hasAttribute('aria-invalid')) check(event.target);
});
