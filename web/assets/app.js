// What a page gains from JavaScript. Without it everything works but liveness.
(function () {
  'use strict';

  const byId = (id) => document.getElementById(id);
  const say = (text) => { const el = byId('announce'); if (el) el.textContent = text; };

  /* Ages and durations go on while the page stands open, by the server's clock. */

  const skew = document.body.dataset.now ? Date.now() - Date.parse(document.body.dataset.now) : 0;

  function span(s) {
    if (s < 3600) return Math.max(1, Math.round(s / 60)) + ' min';
    if (s < 36 * 3600) return Math.round(s / 3600) + ' h';
    return Math.round(s / 86400) + ' days';
  }

  function age(at, now) {
    const s = (now - at) / 1000;
    if (s < 0) return -s < 60 ? 'in ' + Math.max(1, Math.floor(-s)) + ' s' : 'in ' + span(-s);
    if (s < 45) return 'just now';
    return s < 14 * 86400 ? span(s) + ' ago' : null;
  }

  function duration(s) {
    const two = (n) => String(n).padStart(2, '0');
    s = Math.max(0, Math.floor(s));
    if (s < 60) return s + 's';
    if (s < 3600) return Math.floor(s / 60) + 'm ' + two(s % 60) + 's';
    if (s < 86400) return Math.floor(s / 3600) + 'h ' + two(Math.floor(s / 60) % 60) + 'm';
    return Math.floor(s / 86400) + 'd ' + two(Math.floor(s / 3600) % 24) + 'h';
  }

  const set = (el, text) => { if (text && el.textContent !== text) el.textContent = text; };

  setInterval(function () {
    if (document.hidden) return;
    const now = Date.now() - skew;
    for (const el of document.querySelectorAll('time[data-ago]')) set(el, age(Date.parse(el.dateTime), now));
    for (const el of document.querySelectorAll('.ticking')) set(el, duration((now - Date.parse(el.dataset.since)) / 1000));
  }, 1000);

  /* Copy buttons. */

  for (const b of document.querySelectorAll('[data-copy]')) b.hidden = false;
  document.addEventListener('click', async function (e) {
    const b = e.target.closest('[data-copy]');
    if (b) {
      const field = byId(b.dataset.copy);
      field.select();
      try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand('copy'); }
      say('Copied');
      const was = b.textContent;
      b.textContent = 'Copied';
      setTimeout(() => { b.textContent = was; }, 1500);
    }
    const menu = byId('user-menu');
    if (menu && menu.open && !menu.contains(e.target)) menu.open = false;
  });
  document.addEventListener('keydown', function (e) {
    const menu = byId('user-menu');
    if (e.key === 'Escape' && menu && menu.open) { menu.open = false; menu.querySelector('summary').focus(); }
  });

  /* Live parts: keep the focus over a swap, tell of a change of state, and say
     when the connection is lost. */

  const live = byId('live-state');
  let focused = null, held = false;
  let state = document.querySelector('[data-state]')?.dataset.state;

  function tell(text, lost) {
    if (!live || !live.hidden && live.textContent === text) return;
    live.hidden = false;
    live.className = lost ? 'live lost' : 'live';
    live.textContent = text;
  }
  const lost = 'connection lost, trying again', still = 'not live, read again every 15 s';
  document.addEventListener('htmx:sseOpen', function () {
    if (live && live.classList.contains('lost')) say('Connected again');
    clearTimeout(looking);
    looking = 0;
    tell('live', false);
  });
  document.addEventListener('htmx:sseError', function (e) {
    if (settled) return;
    const refused = e.detail.source.readyState === EventSource.CLOSED;
    if (live && !live.classList.contains('lost')) say(refused ? 'Not live, read again every 15 s' : 'Connection lost, trying again');
    if (!refused) tell(lost, true);
    else if (!looking) { tell(still, true); lookLater(); }
  });
  document.addEventListener('htmx:sseClose', function (e) {
    if (live && e.detail.type === 'message') live.hidden = true;
  });

  /* A stream may be refused: docket has only so many. Until one opens, the page
     is asked for now and then, and what has changed is put in its place. */

  let looking = 0, settled = false;
  function lookLater() { looking = setTimeout(look, 15000); }
  document.addEventListener('visibilitychange', function () {
    if (!looking || document.hidden) return;
    clearTimeout(looking);
    look();
  });

  function look() {
    const mine = looking;
    if (document.hidden) { lookLater(); return; }
    fetch(location.pathname + location.search, { headers: { Accept: 'text/html' } }).then((r) => r.ok && !r.redirected ? r.text() : Promise.reject(r.status)).then(function (text) {
      if (looking !== mine) return; // a stream has opened
      const fresh = new DOMParser().parseFromString(text, 'text/html');
      if (log) putLog(fresh);
      for (const part of document.querySelectorAll('[sse-swap]:not([data-log])')) {
        const now = fresh.getElementById(part.id);
        if (!now || part.querySelector('details[open]')) continue; // somebody fills in a form
        before(part);
        part.replaceChildren(...now.childNodes);
        after(part);
      }
      settled = !fresh.body.hasAttribute('sse-connect');
      looking = 0;
      if (settled) { live.hidden = true; return; }
      tell(still, true);
      lookLater();
    }).catch(function () {
      if (looking !== mine) return;
      tell(lost, true);
      lookLater();
    });
  }

  document.addEventListener('htmx:sseBeforeMessage', function (e) {
    const part = e.target;
    if (part.hasAttribute('data-log')) {
      e.preventDefault();
      if (e.detail.type === 'reload') location.reload(); // its lines are of an attempt that is over
      else appendLog(e.detail.data);
      return;
    }
    before(part);
  });
  document.addEventListener('htmx:sseMessage', (e) => after(e.target));

  function before(part) {
    const at = document.activeElement;
    held = at && at !== part && part.contains(at);
    focused = held && at.href ? at.getAttribute('href') : null;
  }
  function after(part) {
    if (focused !== null && !part.contains(document.activeElement)) {
      for (const a of part.querySelectorAll('a[href]')) if (a.getAttribute('href') === focused) { a.focus({ preventScroll: true }); break; }
    }
    if (held && (document.activeElement === document.body || !document.activeElement)) {
      // What had the focus is gone: what came in its place has it, or else the page's heading.
      const next = part.querySelector('summary, a[href], button') || document.querySelector('main h1');
      if (next && next.tagName === 'H1') next.tabIndex = -1;
      if (next) next.focus({ preventScroll: true });
    }
    focused = null;
    held = false;
    const now = part.querySelector('[data-state]')?.dataset.state;
    if (now && now !== state) { state = now; say(now); }
    if (part.id === 'live-steps') steps(part);
  }

  /* The log. */

  const log = byId('log');
  if (!log) return;

  const section = (slug) => byId('log:' + slug);
  const lines = (from) => from.querySelectorAll('.l');
  const touched = new Set();
  log.addEventListener('click', function (e) {
    const s = e.target.closest('summary');
    if (s) touched.add(s.parentElement.dataset.slug);
  });

  // The list of steps is what the stream sends; the log's headings follow it.
  function steps(part) {
    let missing = false;
    for (const a of part.querySelectorAll('[data-step]')) {
      const ls = section(a.dataset.step);
      if (!ls) { missing ||= !a.hidden; continue; }
      const sum = ls.querySelector('summary');
      for (const name of ['.s', '.d']) sum.querySelector(name).replaceChildren(...a.querySelector(name).cloneNode(true).childNodes);
      if (a.querySelector('.i-running, .i-failed, .i-cancelled') && !touched.has(a.dataset.step)) ls.open = true;
    }
    if (missing) reload();
  }

  let reloading = false;
  function reload() {
    if (reloading) return;
    reloading = true;
    fetch(location.pathname + location.search, { headers: { Accept: 'text/html' } }).then((r) => r.ok ? r.text() : Promise.reject(r.status)).then(function (text) {
      replaceLog(new DOMParser().parseFromString(text, 'text/html').getElementById('log'));
      reloading = false;
      ready();
    }).catch(() => { setTimeout(() => { reloading = false; }, 1000); });
  }

  function replaceLog(fresh) {
    for (const old of log.querySelectorAll('.ls, #log-none')) old.remove();
    if (fresh) log.append(...fresh.querySelectorAll('.ls, #log-none'));
  }

  // What a page that was asked for again has of the log, where it has more.
  function putLog(page) {
    const fresh = page.getElementById('log');
    const have = (of) => [...of.querySelectorAll('.ls')].map((ls) => ls.dataset.slug + ls.dataset.total + ls.querySelector('.b.p')?.textContent).join();
    if (reloading || !fresh || have(fresh) === have(log)) return;
    const open = new Map([...log.querySelectorAll('.ls')].map((ls) => [ls.dataset.slug, ls.open]));
    replaceLog(fresh);
    for (const ls of log.querySelectorAll('.ls')) if (touched.has(ls.dataset.slug) && open.has(ls.dataset.slug)) ls.open = open.get(ls.dataset.slug);
    if (q.value) search();
    const last = [...log.querySelectorAll('.ls[open]')].pop();
    if (following && last) toEnd(last);
  }

  const blockLines = 200;

  function appendLog(html) {
    const doc = new DOMParser().parseFromString(html, 'text/html');
    const event = doc.querySelector('[data-step]');
    if (!event || reloading) return;
    const ls = section(event.dataset.step);
    if (!ls) { reload(); return; }
    const box = ls.querySelector('.lines');
    const atEnd = ls.querySelectorAll('.gap').length === 0 || ls.lastElementChild === box;
    const total = Number(event.dataset.total);
    ls.dataset.total = total;
    ls.querySelector('.ln').textContent = total ? total.toLocaleString('en') + (total === 1 ? ' line' : ' lines') : '';
    if (!atEnd) return; // an older window is shown
    box.querySelector('.b.p')?.remove();
    const number = (l) => Number(l.id.slice(l.id.lastIndexOf('-') + 1));
    const all = lines(box);
    let last = all.length ? number(all[all.length - 1]) : 0;
    const fresh = [...event.querySelectorAll('.b:not(.p) > .l')].filter((l) => number(l) > last);
    if (fresh.length && last && number(fresh[0]) > last + 1) { reload(); return; }
    let block = box.lastElementChild;
    for (const l of fresh) {
      if (!block || block.childElementCount >= blockLines) {
        if (block && last > 2000) block.classList.add('f');
        block = document.createElement('div');
        block.className = 'b';
        box.append(block);
      }
      if (box.querySelector('.l') !== null) l.firstElementChild.tabIndex = -1;
      block.append(document.adoptNode(l));
      last = number(l);
    }
    const partial = event.querySelector('.b.p');
    if (partial) box.append(document.adoptNode(partial));
    if (!ls.open && !touched.has(ls.dataset.slug) && fresh.length) ls.open = ls.querySelector('summary .i-running') !== null;
    if (following) toEnd(ls);
  }

  /* Follow. */

  const follow = byId('log-follow');
  let following = false;
  let scrolled = 0;
  function toEnd(ls) {
    scrolled = Date.now();
    (ls.querySelector('.lines') || ls).scrollIntoView({ block: 'end' });
  }
  function setFollow(on) {
    following = on;
    follow.setAttribute('aria-pressed', String(on));
    if (on) {
      const open = [...log.querySelectorAll('.ls[open]')].pop();
      if (open) toEnd(open);
    }
  }
  if (document.body.hasAttribute('sse-connect')) follow.hidden = false;
  follow.addEventListener('click', () => setFollow(!following));
  window.addEventListener('wheel', (e) => { if (e.deltaY < 0 && following) setFollow(false); }, { passive: true });
  window.addEventListener('keydown', (e) => { if (following && ['PageUp', 'Home', 'ArrowUp'].includes(e.key)) setFollow(false); });
  window.addEventListener('touchmove', () => { if (following && Date.now() - scrolled > 500) setFollow(false); }, { passive: true });

  /* A line's address. A line that is not in the window is asked for. */

  function hash() {
    try { return decodeURIComponent(location.hash); } catch { return ''; }
  }

  function toHash() {
    const m = /^#(.+)-(\d+)$/.exec(hash());
    for (const l of log.querySelectorAll('.l.on')) l.classList.remove('on');
    if (!m) {
      const ls = hash().startsWith('#log:') && byId(hash().slice(1));
      if (ls) ls.open = true;
      return;
    }
    const ls = section(m[1]);
    if (!ls) return;
    ls.open = true;
    const line = byId(m[1] + '-' + m[2]);
    if (line) {
      line.classList.add('on');
      line.scrollIntoView({ block: 'center' });
    } else if (Number(m[2]) > 0 && Number(m[2]) <= Number(ls.dataset.total)) {
      const q = new URLSearchParams({ step: ls.dataset.name, from: String(Math.max(1, Number(m[2]) - 50)) });
      location.replace(location.pathname + '?' + q + '#' + m[1] + '-' + m[2]);
    }
  }
  window.addEventListener('hashchange', toHash);

  log.addEventListener('keydown', function (e) {
    const line = e.target.closest('.l');
    if (!line || !['ArrowUp', 'ArrowDown'].includes(e.key)) return;
    const next = beside(line, e.key === 'ArrowDown');
    if (!next) return;
    e.preventDefault();
    next.firstElementChild.focus();
  });
  function beside(line, down) {
    const el = down ? line.nextElementSibling : line.previousElementSibling;
    if (el) return el;
    const block = down ? line.parentElement.nextElementSibling : line.parentElement.previousElementSibling;
    return block && (down ? block.firstElementChild : block.lastElementChild);
  }

  /* Search. */

  const form = byId('log-search');
  const q = byId('log-q');
  const hits = byId('log-hits');
  let found = [];
  let at = -1;

  function search() {
    const text = q.value.toLowerCase();
    for (const l of found) l.classList.remove('hit', 'now');
    found = [];
    at = -1;
    if (text) {
      for (const l of lines(log)) if (l.textContent.slice(l.firstElementChild.textContent.length).toLowerCase().includes(text)) found.push(l);
      for (const l of found.slice(0, 5000)) l.classList.add('hit');
    }
    mark(text);
    hits.textContent = text ? (found.length ? found.length.toLocaleString('en') + ' found' : 'none') : '';
  }

  function mark(text) {
    if (!window.CSS || !CSS.highlights) return;
    CSS.highlights.delete('docket-q');
    if (!text || !found.length) return;
    const h = new Highlight();
    let n = 0;
    for (const l of found) {
      const walk = document.createTreeWalker(l, NodeFilter.SHOW_TEXT);
      walk.nextNode(); // the number
      while (walk.nextNode() && n < 2000) {
        const s = walk.currentNode.data.toLowerCase();
        for (let i = s.indexOf(text); i >= 0 && n < 2000; i = s.indexOf(text, i + text.length)) {
          const r = new Range();
          r.setStart(walk.currentNode, i);
          r.setEnd(walk.currentNode, i + text.length);
          h.add(r);
          n++;
        }
      }
    }
    CSS.highlights.set('docket-q', h);
  }

  function go(step) {
    if (!found.length) return;
    if (at >= 0) found[at].classList.remove('now');
    at = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
    const l = found[at];
    l.closest('.ls').open = true;
    l.classList.add('now');
    setFollow(false);
    l.scrollIntoView({ block: 'center' });
    history.replaceState(null, '', '#' + l.id);
    hits.textContent = (at + 1).toLocaleString('en') + ' of ' + found.length.toLocaleString('en');
  }

  let timer = 0;
  let searched = '';
  function now() {
    clearTimeout(timer);
    if (searched !== q.value) { searched = q.value; search(); }
  }
  q.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(now, 150); });
  form.addEventListener('submit', (e) => { e.preventDefault(); now(); go(1); });
  byId('log-prev').addEventListener('click', () => { now(); go(-1); });
  form.hidden = false;

  function ready() {
    toHash();
    if (q.value) search();
  }
  ready();
})();
