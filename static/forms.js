// Tool forms and results: files into fields, a pasted object into the form, branches of large results, copying.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);

  // ---- htmx sends the fields of the form, but not the button inside it that has an address of its own
  document.addEventListener('htmx:config:request', (event) => {
    const { sourceElement: button, request } = event.detail.ctx;
    if (button?.matches?.('button[name][hx-post]') && request.body instanceof FormData) request.body.set(button.name, button.value);
  });

  // ---- after a refusal the first wrong field has the focus, with what is wrong beside it
  document.addEventListener('htmx:after:swap', (event) => {
    if (event.detail.ctx?.response?.status !== 422) return;
    const wrong = $('#tool-form :is(input, select, textarea)[aria-invalid=true]') || $('#tool-form [name=_refused] ~ * #arguments');
    for (let at = wrong; at; at = at.parentElement) if (at.matches('details')) at.open = true;
    wrong?.focus();
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

  // ---- a text as Markdown, or as a page in a frame that may do nothing: fetched when it is asked for
  const showAs = async (button) => {
    const text = document.getElementById($('[data-as=text]', button.parentElement).getAttribute('aria-controls'));
    const other = document.getElementById(button.parentElement.lastElementChild.getAttribute('aria-controls'));
    if (button.dataset.src && !other.childElementCount) {
      if (button.dataset.as === 'frame') {
        const frame = document.createElement('iframe');
        frame.setAttribute('sandbox', '');
        frame.referrerPolicy = 'no-referrer';
        frame.title = 'A page from the server, without script and without loads';
        frame.src = button.dataset.src;
        other.append(frame);
      } else {
        const answer = await fetch(button.dataset.src, { headers: { 'HX-Request': 'true' } });
        const html = await answer.text();
        if (answer.ok) other.innerHTML = html;
        else {
          const note = document.createElement('p');
          note.className = 'dim';
          note.textContent = new DOMParser().parseFromString(html, 'text/html').querySelector('[data-message]')?.dataset.message || `Not shown: the answer was ${answer.status}.`;
          other.replaceChildren(note);
        }
      }
    }
    text.hidden = !!button.dataset.src;
    other.hidden = !button.dataset.src;
    for (const one of button.parentElement.children) one.setAttribute('aria-pressed', String(one === button));
  };

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
    path.setAttribute('role', 'status');
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

  // By keyboard: up and down pick a line, left and right fold it, Enter goes to its buttons, Escape back to the tree.
  document.addEventListener('keydown', (event) => {
    const tree = event.target.closest?.('.json[data-tree]');
    if (!tree || event.ctrlKey || event.metaKey || event.altKey) return;
    const bar = event.target.closest('#jbar');
    if (bar) { if (event.key === 'Escape') { event.stopPropagation(); tree.focus(); } return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], here = picked && tree.contains(picked) ? picked : null;
    if (step) {
      const lines = [...tree.querySelectorAll('.l[data-k], summary')].filter((line) => line.checkVisibility());
      const next = lines[here ? Math.max(0, Math.min(lines.length - 1, lines.indexOf(here) + step)) : 0];
      if (!next) return;
      event.preventDefault();
      pick(next);
      next.scrollIntoView({ block: 'nearest' });
    } else if (here?.matches('summary') && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
      event.preventDefault();
      here.parentElement.open = event.key === 'ArrowRight';
    } else if (event.key === 'Enter' && here && event.target === tree) {
      event.preventDefault();
      $('#jbar button').focus();
    }
  });

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
    const as = at('.as button[data-as]');
    if (as) return showAs(as);
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
