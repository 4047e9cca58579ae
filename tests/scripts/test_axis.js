// What the timeline reckons: windows, zoom and the marks of its axis.
import assert from 'node:assert/strict';
import test from 'node:test';
import { fitted, lasting, marks, moment, tick, zoomed } from '../../static/js/axis.js';

test('a window stays inside the whole and is never nothing', () => {
  assert.deepEqual(fitted(-5, 5, 60), [0, 10]);
  assert.deepEqual(fitted(55, 75, 60), [40, 60]);
  assert.deepEqual(fitted(0, 100, 60), [0, 60]);
  const [from, to] = fitted(30, 30, 60);
  assert.ok(to - from > 0 && to <= 60);
});
test('a zoom keeps the point where it is', () => {
  assert.deepEqual(zoomed([0, 60], 0.5, 15, 60), [7.5, 37.5]);
  assert.deepEqual(zoomed([7.5, 37.5], 2, 15, 60), [0, 60]);
  assert.deepEqual(zoomed([50, 60], 10, 55, 60), [0, 60]);
});
test('marks are round and not too many', () => {
  assert.equal(tick(60), 10);
  assert.equal(tick(0.3), 0.05);
  assert.deepEqual(marks([80, 180], 5), { step: 20, found: [80, 100, 120, 140, 160] });
  assert.deepEqual(marks([0, 3]).found[0] > 0, true);
});
test('moments and lengths read as elsewhere', () => {
  assert.equal(moment(100, 20), '1:40');
  assert.equal(moment(3720, 300), '1:02:00');
  assert.equal(moment(2.5, 0.5), '2.5 s');
  assert.equal(moment(0.012, tick(0.01)), '12 ms');
  assert.deepEqual([0, 0.4, 22, 14400, 185000, 5700000].map(lasting), [
    '0 ms',
    '<1 ms',
    '22 ms',
    '14.4 s',
    '3 min 5 s',
    '1 h 35 min',
  ]);
});
