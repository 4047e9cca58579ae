// What was typed into an ask and not sent is kept in this tab, and stays readable when the ask is over.
import { $, $$, base, root, tab } from './dom.js';

const isBox = (field) => field.type === 'checkbox' || field.type === 'radio';
const fields = (card) =>
  $$('input[name], select[name], textarea[name]', card).filter(
    (field) => field.type !== 'hidden' && !['force', 'consent'].includes(field.name),
  );
// A draft belongs to its session, not to the path below which this browser sees it.
const key = (ask) => `parley-draft ${base().slice(root.dataset.root.length - 1)} ${ask}`;

// ---- how a card was when it came: a form that is shown again with its errors has what was typed as its defaults
const firsts = new Map();
const initially = (field) => {
  if (isBox(field)) return field.defaultChecked;
  if (field.tagName !== 'SELECT') return field.defaultValue;
  const chosen = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
  return chosen?.value ?? '';
};
const now = (field) => (isBox(field) ? field.checked : field.value);
export const isNew = (card) => !firsts.has(card.dataset.ask);
const meet = (card) => {
  if (!isNew(card)) return;
  firsts.set(card.dataset.ask, new Map(fields(card).map((field) => [field.id, initially(field)])));
};
const isTouched = (field, first) => now(field) !== (first?.get(field.id) ?? initially(field));

// ---- in words
const label = (field) => (field.labels?.[0]?.childNodes[0]?.textContent || field.name).trim();
const value = (field) => {
  if (field.type === 'checkbox') return field.checked ? 'yes' : 'no';
  if (field.tagName !== 'SELECT') return field.value;
  return [...field.selectedOptions].map((option) => option.text).join(', ');
};
/** What a person would want back: the one text they wrote, or each field with its label. */
export const words = (card) => {
  const first = firsts.get(card.dataset.ask);
  const mine = fields(card).filter((field) => isTouched(field, first) && (field.type !== 'radio' || field.checked));
  if (mine.length === 1 && mine[0].tagName === 'TEXTAREA') return mine[0].value;
  return mine.map((field) => `${label(field)}: ${value(field)}`).join('\n');
};

// ---- kept
/** The draft of an ask, or nothing. */
export const kept = (ask) => {
  try {
    return JSON.parse(tab.get(key(ask)));
  } catch {
    return null;
  }
};
export const keep = (card) => {
  const mine = fields(card).filter((field) => !field.name.startsWith('edit-') || field.value !== field.defaultValue);
  const values = mine.map((field) => [field.id, now(field)]);
  tab.set(key(card.dataset.ask), JSON.stringify({ values, words: words(card) }));
};
export const restore = (card) => {
  meet(card);
  for (const [id, value] of kept(card.dataset.ask)?.values ?? []) {
    const field = id && document.getElementById(id);
    // The form to edit a request is fetched when it is opened: what was typed in it must not be forgotten there.
    if (!field && id.includes('-edit-')) $('details.edit', card)?.setAttribute('open', '');
    if (!field || !card.contains(field)) continue;
    if (isBox(field)) field.checked = value;
    else field.value = value;
  }
};
export const forget = (ask) => tab.remove(key(ask));
/** The request of an ask was edited, and Parley keeps that: its fields are as they were when they came. */
export const forgetEdits = (card) => {
  for (const field of $$('[name^=edit-]', card)) {
    field.value = field.defaultValue;
    firsts.get(card.dataset.ask)?.delete(field.id);
  }
  keep(card);
};
/** Forget the drafts of asks that this session no longer shows. */
export const prune = () => {
  const start = key('');
  for (const one of tab.keys()) {
    if (one.startsWith(start) && !document.getElementById(`ask-${one.slice(start.length)}`)) tab.remove(one);
  }
};
