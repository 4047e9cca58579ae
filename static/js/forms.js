// The form of a tool: files into fields, a pasted object into the form, and the first wrong field in focus.
import { $ } from './dom.js';

// ---- htmx sends the fields of the form, but not the button inside it that has an address of its own
document.addEventListener('htmx:config:request', (event) => {
  const { sourceElement: button, request } = event.detail.ctx;
  if (button?.matches?.('button[name][hx-post]') && request.body instanceof FormData) {
    request.body.set(button.name, button.value);
  }
});

// ---- after a refusal the first wrong field has the focus, with what is wrong beside it
document.addEventListener('htmx:after:swap', (event) => {
  if (event.detail.ctx?.response?.status !== 422) return;
  const wrong =
    $('#tool-form :is(input, select, textarea)[aria-invalid=true]') ?? $('#tool-form [name=_refused] ~ * #arguments');
  for (let at = wrong; at; at = at.parentElement) if (at.matches('details')) at.open = true;
  wrong?.focus();
});

// ---- a file becomes base64 text in the field beside it
document.addEventListener('change', (event) => {
  const input = event.target;
  if (!input.matches?.('input[type=file][data-base64-for]')) return;
  const [field, file] = [document.getElementById(input.dataset.base64For), input.files[0]];
  if (!field || !file) return;
  const reader = new FileReader();
  reader.onload = () => {
    field.value = String(reader.result).replace(/^[^,]*,/, '');
    field.dispatchEvent(new Event('input', { bubbles: true }));
  };
  reader.readAsDataURL(file);
});

// ---- an object pasted beside the fields fills the form
const isObject = (text) => {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value);
  } catch {
    return false;
  }
};
document.addEventListener('paste', (event) => {
  const form = $('#tool-form');
  if (!form || event.target.closest?.('input, textarea, select, [contenteditable]')) return;
  const text = event.clipboardData?.getData('text/plain') || '';
  if (!isObject(text)) return;
  event.preventDefault();
  const values = { _mode: 'json', _to: 'form', _text: text };
  htmx.ajax('POST', form.dataset.form, { source: '#fetches', target: form, swap: 'outerHTML', values });
});

// ---- where the JSON of the arguments cannot be read, a button leads to the place
document.addEventListener('click', (event) => {
  const place = event.target.closest?.('button[data-line]')?.dataset;
  const box = $('#arguments');
  if (!place || !box) return;
  const above = box.value.split('\n').slice(0, +place.line - 1);
  const from = above.reduce((sum, line) => sum + line.length + 1, 0) + +place.column - 1;
  box.focus();
  box.setSelectionRange(from, Math.min(from + 1, box.value.length));
});
