// The connect form: a value that is marked secret is not shown, and a name that sounds secret is marked by itself.
(() => {
  'use strict';
  // What sounds secret is decided by one table, app/secrecy.py; the form carries it.
  const soundsSecret = (name, { words, sounds, harmless }) => {
    const plain = name.replace(new RegExp(words, 'g'), '-').toLowerCase().replace(/^-|-$/g, '');
    return new RegExp(sounds).test(plain) && !new RegExp(harmless).test(plain);
  };
  const apply = (row) => {
    const mark = row.querySelector('[data-secret]'), value = row.querySelector('[name$=_value]');
    value.type = mark.value ? 'password' : 'text';
  };
  document.addEventListener('change', (event) => {
    if (!event.target.matches('[data-secret]')) return;
    event.target.dataset.chosen = '1';
    apply(event.target.closest('.trio'));
  });
  document.addEventListener('input', (event) => {
    if (!event.target.matches('.trio [name$=_name]')) return;
    const row = event.target.closest('.trio'), mark = row.querySelector('[data-secret]');
    if (mark.dataset.chosen) return;
    mark.value = soundsSecret(event.target.value, row.closest('[data-words]').dataset) ? '1' : '';
    apply(row);
  });
  // A new row begins as a shown one, whatever row it was copied from.
  document.addEventListener('click', (event) => {
    const rows = event.target.closest?.('[data-add]')?.closest('fieldset')?.querySelectorAll('.trio');
    const row = rows?.[rows.length - 1];
    if (!row) return;
    const mark = row.querySelector('[data-secret]');
    mark.value = '';
    delete mark.dataset.chosen;
    const value = row.querySelector('[name$=_value]');
    value.placeholder = 'value';
    value.setAttribute('aria-label', value.getAttribute('aria-label').split(',')[0]);
    apply(row);
  });
  // A paste that is no JSON stays in its box: what was sent does not come back, because it may hold secrets.
  const fault = (text) => {
    const clean = text.trim(), whole = /^"(?:[^"\\]|\\.)*"\s*:/.test(clean) ? `{${clean.replace(/,$/, '')}}` : clean;
    try { JSON.parse(whole); return ''; } catch (error) { return clean ? `That is not JSON: ${error.message}.` : 'Paste an mcp.json, or one entry of it.'; }
  };
  const check = (box) => {
    const help = document.getElementById('mcp-json-help'), words = fault(box.value);
    help.dataset.text ??= help.textContent;
    help.textContent = words || help.dataset.text;
    help.className = words ? 'err' : '';
    if (words) box.setAttribute('aria-invalid', 'true'); else box.removeAttribute('aria-invalid');
    return !words;
  };
  document.addEventListener('submit', (event) => {
    const box = event.target.querySelector('#mcp_json');
    if (!box || !event.target.querySelector('#by-mcpjson')?.checked || check(box)) return;
    event.preventDefault();
    box.focus();
  });
  document.addEventListener('input', (event) => {
    if (event.target.id === 'mcp_json' && event.target.hasAttribute('aria-invalid')) check(event.target);
  });
})();
