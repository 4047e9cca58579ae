import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bar, foldWords, said, took } from '../../static/js/decide.js';

test('a line of progress says from where to where', () => {
  const of = { key: 'notifications/progress 7', asked: 0, ms: 5200 };
  assert.equal(foldWords({ ...of, from: '1 of 50', to: '50 of 50' }), '1 to 50 of 50');
  assert.equal(foldWords({ ...of, from: '0.5', to: '9' }), '0.5 to 9');
  assert.equal(foldWords({ ...of, from: '', to: '' }), '');
});

test('a line of polls says how many, of what and how often', () => {
  assert.equal(
    foldWords({ key: 'tasks/get tsk_8Qf2', from: '', asked: 18, ms: 34000 }),
    '18 polls of tsk_8Qf2, every 2 s',
  );
  assert.equal(foldWords({ key: 'ping', from: '', asked: 3, ms: 600 }), '3 times, every 300 ms');
  assert.equal(foldWords({ key: 'ping', from: '', asked: 1, ms: 0 }), '1 times');
});

test('durations read as the server writes them', () => {
  const all = [0.4, 22.4, 999.4, 14400, 15000, 89999, 185000, 5400000];
  assert.deepEqual(all.map(took), ['<1 ms', '22 ms', '999 ms', '14.4 s', '15 s', '90 s', '3 min 5 s', '1 h 30 min']);
});

test('a bar is logarithmic, from a millisecond to a minute', () => {
  assert.deepEqual([0, 1, 32, 278, 60000, 9e9].map(bar), [2, 2, 32, 51, 100, 100]);
});

test('a moment keeps the shape it was written in, and what is none stays as it is', () => {
  const iso = '2026-11-17T23:02:07.118Z';
  assert.equal(said(iso, '23:02:07.118', false), '23:02:07.118');
  assert.equal(said(iso, '23:02:07', false), '23:02:07');
  assert.equal(said(iso, '23:02', false), '23:02');
  assert.equal(said(iso, 'yesterday', true), 'yesterday');
  assert.equal(said('never', '23:02', true), '23:02');
  const at = new Date(iso);
  const [h, m] = [at.getHours(), at.getMinutes()].map((n) => String(n).padStart(2, '0'));
  assert.equal(said(iso, '23:02:07.118', true), `${h}:${m}:07.118`);
});
