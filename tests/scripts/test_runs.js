import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runs } from '../../static/js/decide.js';

const times = (many, name) => Array(many).fill(name);

test('six polls in a row are a run, five are not', () => {
  assert.deepEqual(runs(times(5, 'ping')), []);
  assert.deepEqual(runs(times(6, 'ping')), [[0, 6]]);
});

test('another poll ends a run, and so does a row that is none', () => {
  assert.deepEqual(runs([...times(7, 'ping'), ...times(6, 'tasks/get')]), [
    [0, 7],
    [7, 13],
  ]);
  assert.deepEqual(runs([...times(4, 'ping'), undefined, ...times(4, 'ping')]), []);
});

test('rows that are no polls are never folded, however many', () => {
  assert.deepEqual(runs(times(20, undefined)), []);
  assert.deepEqual(runs([undefined, ...times(6, 'ping'), undefined]), [[1, 7]]);
  assert.deepEqual(runs([]), []);
});
