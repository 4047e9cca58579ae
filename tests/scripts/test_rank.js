import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ranked } from '../../static/js/decide.js';

const place = (kind, label, detail = '') => ({ kind, label, detail });
const PLACES = [
  place('tool', 'read_file', 'reads one file'),
  place('tool', 'file_search', 'finds files'),
  place('page', 'Log', 'every message'),
  place('ask', 'Sampling', 'wants a file name'),
];
const labels = (text) => ranked(PLACES, text).map((item) => item.label);

test('without words the asks stand first, then the pages, then the rest in their order', () => {
  assert.deepEqual(labels('  '), ['Sampling', 'Log', 'read_file', 'file_search']);
});

test('a name that begins with the word stands before one that has it, and that before a detail', () => {
  assert.deepEqual(labels('FILE'), ['file_search', 'read_file', 'Sampling']);
});

test('every word must be somewhere, also in the kind', () => {
  assert.deepEqual(labels('file tool'), ['file_search', 'read_file']);
  assert.deepEqual(labels('file nowhere'), []);
});
