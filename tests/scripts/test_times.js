import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clock, left, since } from '../../static/js/decide.js';

const MOMENT = '2026-11-17T10:00:00.000Z';
const at = (seconds) => Date.parse(MOMENT) + seconds * 1000;

test('seconds are written as a clock', () => {
  assert.deepEqual([0, 5, 65, 3599, 3600, 36061].map(clock), ['0:00', '0:05', '1:05', '59:59', '1:00:00', '10:01:01']);
});

test('what is over has no time left, and what is to come has not run', () => {
  assert.equal(left(MOMENT, at(-2.5)), 2.5);
  assert.equal(left(MOMENT, at(9)), 0);
  assert.equal(since(MOMENT, at(2.9)), 2);
  assert.equal(since(MOMENT, at(-9)), 0);
});
