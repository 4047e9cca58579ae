import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backOff, Pace } from '../../static/js/decide.js';

const LARGE = 20_000;

test('a message that comes alone goes in at once', () => {
  const pace = new Pace();
  assert.equal(pace.waits(0, LARGE), false);
  pace.swapped(0);
  assert.equal(pace.waits(1000, LARGE), false);
});

test('a small one right after another goes in too, a large one waits', () => {
  const pace = new Pace();
  pace.swapped(1000);
  assert.equal(pace.waits(1001, 10), false);
  assert.equal(pace.waits(1001, LARGE), true);
});

test('the third of a burst waits, though it is small', () => {
  const pace = new Pace();
  pace.swapped(1000);
  pace.swapped(1005);
  assert.equal(pace.waits(1010, 2000), true);
  assert.equal(pace.waits(1060, 2000), false);
});

test('the first word of a draft does not wait behind what led to it, and the fifth of a burst does, however small', () => {
  const pace = new Pace();
  for (const now of [1000, 1005, 1010]) pace.swapped(now);
  assert.equal(pace.waits(1015, 10), false);
  pace.swapped(1015);
  assert.equal(pace.waits(1020, 10), true);
  assert.equal(pace.waits(1041, 10), false);
});

test('the first connect is tried ever more seldom, and never gives up', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 50].map(backOff), [500, 1000, 2000, 4000, 8000, 15000, 15000]);
});
