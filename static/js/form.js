// A form from a schema while it is filled in: what is sent where nothing is typed, how much is sent, where the focus goes.
import { $, $$, write } from './page.js';

// ==== a field: typing makes it set, clearing makes it not set, its menu says what is sent instead

const isMenu = (control) => control.name.endsWith('#as');
const fieldOf = (element) => element.closest?.('[data-f]');
const isGroup = (field) => 'there' in field.dataset;
const inside = (field) =>
  $$('input:not([type=hidden], [type=file]), select, textarea', field).filter((one) => fieldOf(one) === field);
const isBox = (control) => control.type === 'radio' || control.type === 'checkbox';
const isTyped = (control) => (isBox(control) ? control.checked && control.value !== '' : control.value !== '');
const SHOWN = { null: 'null', empty: '""' };

const show = (control, state) => {
  const none = control.tagName === 'SELECT' ? control.options[0] : control;
  const words = SHOWN[state] ?? (state === 'out' ? none?.dataset.none : none === control ? '' : 'choose one');
  if (none !== control) write(none, words);
  else if (isBox(control)) control.checked = state === 'out';
  else control.placeholder = words ?? '';
};

/** What a field shows follows from what is in its controls; whoever writes into them without typing calls this. */
export const sync = (field) => {
  if (isGroup(field)) return;
  const all = inside(field);
  const choices = all.filter(isMenu);
  const controls = all.filter((one) => !isMenu(one));
  const typed = controls.some((one) => (one.type === 'checkbox' ? one.checked : isTyped(one)));
  let state = '';
  if (!typed) {
    state = choices.find((one) => one.checked)?.value ?? ('opt' in field.dataset ? 'out' : '');
    for (const control of controls) if (!isBox(control) || !control.value) show(control, state);
  }
  for (const one of choices) one.checked = !typed && one.value === state;
  field.dataset.as = state;
};
const clear = (field) => {
  for (const control of inside(field)) {
    if (isMenu(control)) continue;
    if (isBox(control)) control.checked = false;
    else control.value = '';
  }
};

// ---- how much is sent, below the form and in the line of what is folded
const isSent = (field) => {
  if (isGroup(field)) return field.dataset.there === '1';
  const { as, implied } = field.dataset;
  const typed = inside(field).some((one) => !isMenu(one) && (one.type === 'checkbox' ? one.checked : isTyped(one)));
  return typed || as === 'empty' || as === 'null' || (as === '' && implied !== undefined);
};
const TOP = '.top-fields > .fields >';
const count = () => {
  const form = $('#tool-form');
  const said = form && $('#sends', form);
  if (!said) return;
  const all = $$(`${TOP} [data-f], ${TOP} .more > .fields > [data-f]`, form).filter((one) => !('rest' in one.dataset));
  write(said, `Sends ${all.filter(isSent).length} of ${all.length} ${all.length === 1 ? 'field' : 'fields'}`);
  for (const fold of $$('details.more', form)) {
    const set = $$(':scope > .fields > [data-f]', fold).filter(isSent).length;
    write($(':scope > summary [data-set-in-fold]', fold), set ? `${set} set` : 'none set');
  }
};

document.addEventListener('input', (event) => {
  const field = fieldOf(event.target);
  if (!field) return;
  if (event.target.name && isMenu(event.target)) clear(field);
  else for (const one of inside(field)) if (isMenu(one)) one.checked = false;
  sync(field);
  count();
});

// ==== the menu of a field: by its type word, or by Alt and Down in the field

const place = (menu, button) => {
  const at = button.getBoundingClientRect();
  const [width, height] = [menu.offsetWidth, menu.offsetHeight];
  const left = Math.max(8, Math.min(at.right - width, innerWidth - width - 8));
  const top = at.bottom + height + 8 > innerHeight ? Math.max(8, at.top - height - 2) : at.bottom + 2;
  menu.style.inset = `${top}px auto auto ${left}px`;
};
document.addEventListener(
  'toggle',
  (event) => {
    const menu = event.target;
    const button = menu.matches?.('.menu[popover]') && $(`[popovertarget="${CSS.escape(menu.id)}"]`);
    if (!button) return;
    button.toggleAttribute('data-open', event.newState === 'open');
    if (event.newState === 'open') place(menu, button);
  },
  true,
);
// A menu stands where its word stood: when the page moves below it, it goes.
document.addEventListener(
  'scroll',
  (event) => {
    if (event.target.closest?.('.menu')) return;
    for (const menu of $$('.menu[popover]:popover-open')) menu.hidePopover();
  },
  true,
);

document.addEventListener('keydown', (event) => {
  const { target, key, altKey } = event;
  const menu = target.closest?.('.menu[popover]');
  if (menu && key === 'Enter' && isMenuChoice(target) && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    menu.hidePopover();
  }
  if (menu || key !== 'ArrowDown' || !altKey || event.ctrlKey || event.metaKey) return;
  const field = fieldOf(target);
  const button = field && $$('.ty', field).find((one) => fieldOf(one) === field);
  const opened = button && document.getElementById(button.getAttribute('popovertarget'));
  if (!opened) return;
  event.preventDefault();
  opened.showPopover();
  ($('input:checked', opened) ?? $('input, button', opened))?.focus();
});
const isMenuChoice = (target) => target.matches('input[type=radio]');

const copyPath = async (button) => {
  const words = $('span', button);
  try {
    await navigator.clipboard.writeText(button.dataset.path);
    write(words, 'Copied');
  } catch {
    write(words, 'Not copied');
  }
  setTimeout(() => {
    write(words, 'Copy path');
    button.closest('[popover]')?.hidePopover();
  }, 700);
};

// ==== buttons that draw the form anew: the fold stays open, and the focus goes where one goes on

const unfolded = new Set();
document.addEventListener(
  'toggle',
  (event) => {
    if (!event.target.matches?.('details.more[id]')) return;
    if (event.target.open) unfolded.add(event.target.id);
    else unfolded.delete(event.target.id);
  },
  true,
);

let pressed = null;
const press = (button) => {
  const [verb, name] = [
    button.value.slice(0, button.value.indexOf(':')),
    button.value.slice(button.value.indexOf(':') + 1),
  ];
  const items = button.closest('[data-list]');
  const at = items ? [...items.children].indexOf(button.closest('li')) : 0;
  pressed = { verb, name, at, list: items?.dataset.list ?? '', home: button.closest('#tool-form, .ask')?.id };
};
const first = (element) =>
  element && $$('input:not([type=hidden]), select, textarea', element).find((one) => one.checkVisibility());
const next = ({ verb, name, at, list, home }) => {
  const form = document.getElementById(home);
  if (!form) return null;
  const op = (value) => $$('button[name=_op]', form).find((one) => one.value === value && one.checkVisibility());
  const itemsOf = (of) => {
    const found = $$('[data-list]', form).find((one) => one.dataset.list === of);
    return found ? $$(':scope > .part', found) : [];
  };
  if (verb === 'add') return first(itemsOf(name).at(-1));
  if (verb === 'remove') {
    const left = itemsOf(list);
    return $(':scope > .rm', left[Math.min(at, left.length - 1)] ?? form) ?? op(`add:${list}`);
  }
  if (verb === 'up' || verb === 'down') return $(':scope > .ix', itemsOf(list)[at + (verb === 'up' ? -1 : 1)] ?? form);
  if (verb === 'use') return first(op(`drop:${name}`)?.closest('[data-f]')) ?? op(`add:${name}`);
  return op(`use:${name}`) ?? op(`add:${name}`);
};

// ---- htmx sends the fields of the form, but not the button inside it that has an address of its own
document.addEventListener('htmx:config:request', (event) => {
  const { sourceElement: button, request } = event.detail.ctx;
  if (button?.matches?.('button[name][hx-post]') && request.body instanceof FormData) {
    request.body.set(button.name, button.value);
  }
});

document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at('button[name=_op]')) press(at('button[name=_op]'));
  if (at('[data-path]')) return copyPath(at('[data-path]'));
  // A choice by pointer is made; by keyboard one may walk on to the next.
  if (event.detail > 0 && at('.menu label')) at('.menu').hidePopover();
  const field = at('[data-fill]') && document.getElementById(at('[data-fill]').dataset.fill);
  if (!field) return;
  for (let up = field; up; up = up.parentElement) if (up.matches('details')) up.open = true;
  (field.matches('input, select, textarea') ? field : first(field))?.focus();
});
document.addEventListener('htmx:after:swap', () => {
  for (const fold of $$('details.more[id]')) if (unfolded.has(fold.id)) fold.open = true;
  for (const field of $$('#tool-form [data-f]')) sync(field);
  count();
  if (!pressed) return;
  const place = next(pressed);
  if (!place) return;
  pressed = null;
  place.focus();
});
// A browser may fill a page that is loaded again as it was left.
for (const field of $$('#tool-form [data-f]')) sync(field);
count();
