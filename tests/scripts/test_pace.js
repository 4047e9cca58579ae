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

test('the third of a burst waits, however small', () => {
  const pace = new Pace();
  pace.swapped(1000);
  pace.swapped(1005);
  assert.equal(pace.waits(1010, 10), true);
  assert.equal(pace.waits(1060, 10), false);
});

test('the first connect is tried ever more seldom, and never gives up', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 50].map(backOff), [500, 1000, 2000, 4000, 8000, 15000, 15000]);
});
