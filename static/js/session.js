// The pages of a session. The palette stands first: its keys come before those of the page.
import './palette.js';
import './asks.js';
import './alerts.js';
import './forms.js';
import './results.js';
import './found.js';
import './calls.js';
import './drawer.js';
import './countdown.js';
import { $ } from './dom.js';
import { open } from './stream.js';

$('.rail nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
open();
