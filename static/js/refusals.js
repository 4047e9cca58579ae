// What was refused and is visible nowhere else is said for a few seconds in a corner.
import { $, make } from './dom.js';

/** The sentence in a page or part that says what went wrong. */
export const sentence = (html) =>
  new DOMParser().parseFromString(html || '', 'text/html').querySelector('[data-message]')?.dataset.message;

const toast = (text) => $('#toasts').append(make('div', { name: 'toast', text }));
// The stream has its pill, and a tab that only counts tries again.
const speaksItself = (event) => !!event.target?.matches?.('#stream, [data-count]');

document.addEventListener('htmx:response:error', (event) => {
  const { ctx } = event.detail;
  const status = ctx?.response?.status;
  if (speaksItself(event) || status === 422) return;
  const otherwise = status === 401 ? 'Not sent: you are signed out.' : `Not sent: the answer was ${status}.`;
  toast(sentence(ctx?.text) || otherwise);
});
document.addEventListener('htmx:error', (event) => {
  if (!speaksItself(event)) toast('Not sent: Parley could not be reached.');
});
document.addEventListener('htmx:before:request', () => $('#form-error')?.replaceChildren());
document.addEventListener('animationend', (event) => {
  if (event.animationName === 'go') event.target.remove();
});
