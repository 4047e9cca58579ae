// Tool forms and results: files into fields, a pasted object into the form, branches of large results, copying.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);

  // ---- htmx sends the fields of the form, but not the button inside it that has an address of its own
  document.addEventListener('htmx:config:request', (event) => {
    const { sourceElement: button, request } = event.detail.ctx;
    if (button?.matches?.('button[name][hx-post]') && request.body instanceof FormData) request.body.set(button.name, button.value);
  });

  // ---- a file becomes base64 text in the field beside it
  const readFile = (input) => {
    const field = document.getElementById(input.dataset.base64For), file = input.files[0];
    if (!field || !file) return;
    const reader = new FileReader();
    reader.onload = () => {
      field.value = String(reader.result).replace(/^[^,]*,/, '');
      field.dispatchEvent(new Event('input', { bubbles: true }));
    };
    reader.readAsDataURL(file);
  };

  // ---- an object pasted beside the fields fills the form
  const fill = async (form, text) => {
    const body = new URLSearchParams({ _mode: 'json', _to: 'form', _text: text });
    const answer = await fetch(form.dataset.form, { method: 'POST', headers: { 'HX-Request': 'true' }, body });
    if (!answer.ok) return;
    form.outerHTML = await answer.text();
    htmx.process($('#tool-form'));
  };
  document.addEventListener('paste', (event) => {
    const form = $('#tool-form');
    if (!form || event.target.closest?.('input, textarea, select, [contenteditable]')) return;
    const text = event.clipboardData?.getData('text/plain') || '';
    let value = null;
    try { value = JSON.parse(text); } catch { return; }
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return;
    event.preventDefault();
    fill(form, text);
  });

  // ---- results: a branch comes when it is opened
  const pathOf = (node) => {
    const parts = [];
    for (let at = node; at && !at.matches('.json'); at = at.parentElement) if (at.dataset.k !== undefined) parts.unshift(at.dataset.k);
    return parts.map((part) => `/${part}`).join('');
  };
  const address = (node, more) => {
    const url = new URL(node.closest('[data-tree]').dataset.tree, location.href);
    for (const [name, value] of Object.entries(more)) url.searchParams.set(name, value);
    return url;
  };
  const load = async (node, offset, put) => {
    const answer = await fetch(address(node, { pointer: pathOf(node), offset }), { headers: { 'HX-Request': 'true' } });
    if (answer.ok) put(await answer.text());
  };
  document.addEventListener('toggle', (event) => {
    const branch = event.target;
    if (!branch.matches?.('.json details[data-lazy]') || !branch.open) return;
    branch.removeAttribute('data-lazy');
    load(branch, 0, (html) => { $(':scope > div', branch).innerHTML = html; });
  }, true);

  // ---- copying: a result, or the path and the value of the line that was pressed last
  const copy = async (button, text) => {
    const said = button.dataset.words ??= button.textContent;
    try {
      await navigator.clipboard.writeText(await text);
      button.textContent = 'Copied';
    } catch { button.textContent = 'Not copied'; }
    setTimeout(() => { button.textContent = said; }, 1500);
  };
  const fetched = async (url) => {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  };
  let picked = null;
  const pick = (line) => {
    picked?.classList.remove('jp');
    picked = line;
    $('#jbar')?.remove();
    const bar = document.createElement('span');
    bar.id = 'jbar';
    const path = document.createElement('code');
    path.textContent = pathOf(line) || '/';
    bar.append(path);
    for (const [what, words] of [['path', 'Copy path'], ['value', 'Copy value']]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset.pick = what;
      button.textContent = words;
      bar.append(button);
    }
    line.classList.add('jp');
    line.after(bar);
  };

  document.addEventListener('change', (event) => {
    if (event.target.matches?.('input[type=file][data-base64-for]')) readFile(event.target);
  });
  document.addEventListener('click', (event) => {
    const at = (selector) => event.target.closest?.(selector);
    const more = at('.json button[data-more]');
    if (more) {
      more.disabled = true;
      const branch = more.closest('details');
      return load(branch, more.dataset.more, (html) => {
        const before = more.previousElementSibling;
        more.insertAdjacentHTML('beforebegin', html);
        more.remove();
        (before?.nextElementSibling?.matches('details') ? $('summary', before.nextElementSibling) : null)?.focus();
      });
    }
    const whole = at('button[data-copy]');
    if (whole) return copy(whole, fetched(whole.dataset.copy));
    const part = at('#jbar button[data-pick]');
    if (part) {
      const path = pathOf(picked);
      return copy(part, part.dataset.pick === 'path' ? path : fetched(address(picked, { pointer: path, value: 1 })));
    }
    const place = at('button[data-line]'), box = $('#arguments');
    if (place && box) {
      const start = box.value.split('\n').slice(0, +place.dataset.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
      const from = start + +place.dataset.column - 1;
      box.focus();
      return box.setSelectionRange(from, Math.min(from + 1, box.value.length));
    }
    const line = at('.json[data-tree] .l[data-k], .json[data-tree] summary');
    if (line && !getSelection()?.toString()) pick(line);
    return undefined;
  });
})();
