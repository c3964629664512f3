// This script draws the timelines that the page contains as JSON; drawing.go defines the
// format. Selecting a mark, an event of the list, a time range of a chart or a violation shows
// it in the other places too. The script loads no other files.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('timelines').textContent);
  const kinds = ['step', 'fault', 'process', 'commit', 'delivery', 'write', 'refused', 'read', 'gap'];

  // ---- small helpers ----

  const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
      else if (value !== false) e.setAttribute(key, value === true ? '' : value);
    }
    e.append(...children);
    return e;
  };
  const seconds = us => (us / 1e6).toFixed(3) + 's';
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
    // firstAtLeast returns the first index of an ascending array at which the element is at
  // least value. It returns the length of the array if there is none.
  const firstAtLeast = (array, value) => {
    let low = 0, high = array.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (array[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  };

  // Colors come from the style sheet, resolved for the current theme.
  const probe = document.body.appendChild(element('span', {hidden: true}));
  let colors = {};
  const resolve = css => colors[css] ??= (probe.style.color = css, getComputedStyle(probe).color);
  const color = name => resolve(`var(--${name})`);

  // oncePerFrame returns a function that runs f at most once before the next frame.
  const oncePerFrame = f => {
    let asked = false;
    return () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; f(); });
    };
  };

  // ---- the time axis, which all timelines and charts share ----

  class Axis {
    constructor(end) { this.end = end; this.from = 0; this.to = end; this.watchers = []; }
    watch(f) { this.watchers.push(f); }
    set(from, to) {
      const span = clamp(to - from, 200, this.end);
      this.from = clamp(from, 0, this.end - span);
      this.to = this.from + span;
      this.watchers.forEach(f => f());
    }
    zoom(factor, at = (this.from + this.to) / 2) {
      this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
    }
    pan(share) { const d = (this.to - this.from) * share; this.set(this.from + d, this.to + d); }
    show(at) {
      if (at >= this.from && at <= this.to) return;
      const half = (this.to - this.from) / 2;
      this.set(at - half, at + half);
    }
  }

    // warp returns a function that maps times of one run to times of another run. It maps each
  // knot of the first run, such as the start of a step, to the same knot of the other run.
  const warp = (from, to) => t => {
    const i = clamp(firstAtLeast(from, t), 1, from.length - 1);
    const width = from[i] - from[i - 1];
    return width === 0 ? to[i] : to[i - 1] + (t - from[i - 1]) / width * (to[i] - to[i - 1]);
  };

    // notDisplayed returns the time ranges of a run outside its displayed window. The function
  // map converts times of the run to times of the axis.
  const notDisplayed = (run, map) => [[0, run.displayed[0]], [run.displayed[1], run.end]].filter(([from, to]) => from < to).map(([from, to]) => [map(from), map(to)]);

  // ---- the tracks, events and filter of one run ----

  const trackHeight = 26, axisHeight = 26, eventHeight = 24, trackFont = '12px system-ui, sans-serif';

  class TimelineView {
    constructor(root, run, axis, place) {
      this.root = root; this.run = run; this.axis = axis; this.id = place === 0 ? 's' : `t${place}-s`;
      const m = run.marks;
      this.count = (m.seq || []).length;
      const map = place === 0 ? t => t : warp(data.knots[place], data.knots[0]);
      this.x0 = Float64Array.from(m.from || [], map);
      this.x1 = Float64Array.from(m.to || [], map);
      this.bands = run.bands.map(b => ({...b, x0: map(b.from), x1: map(b.to)}));
      this.phases = run.phases.map(p => ({...p, x: map(p.at)}));
      this.notDisplayed = notDisplayed(run, map);
      this.violations = (run.violations || []).map(v => ({...v, x: map(v.at)}));
      const numbers = new Map(kinds.map((kind, number) => [kind, number]));
      this.kind = Uint8Array.from(m.kind || [], word => numbers.get(run.words[word]));
      this.cited = new Map(); // mark -> violations
      this.isCited = new Uint8Array(this.count);
      for (const v of this.violations) {
        for (const i of v.marks || []) this.isCited[i] = 1;
        for (const i of v.marks || []) this.cited.set(i, [...(this.cited.get(i) || []), v]);
      }
      this.selected = -1;
      this.draw = oncePerFrame(() => this.paint());
      this.build();
      const text = this.canvas.getContext('2d');
      text.font = trackFont;
      this.nameWidth = Math.ceil(Math.max(0, ...run.tracks.map(t => text.measureText(t.name).width)));
      this.filter();
      axis.watch(this.draw);
      new ResizeObserver(this.draw).observe(this.tracks);
    }

    word(column, i) { return this.run.words[this.run.marks[column][i]]; }

    build() {
      this.search = element('input', {type: 'search', placeholder: 'pods web, 409, scale …', 'aria-label': 'filter by object or words', oninput: () => this.filter()});
      this.since = element('input', {type: 'number', min: 0, step: 'any', 'aria-label': 'from second', oninput: () => this.filter()});
      this.until = element('input', {type: 'number', min: 0, step: 'any', 'aria-label': 'to second', oninput: () => this.filter()});
      this.evidence = element('input', {type: 'checkbox', oninput: () => this.filter()});
      this.kinds = new Map(kinds.map(kind => [kind, element('input', {type: 'checkbox', checked: true, oninput: () => this.filter()})]));
      const boxes = kinds.filter((_, number) => this.kind.includes(number)).map(kind =>
        element('label', {}, this.kinds.get(kind), element('span', {class: 'swatch', style: `background: var(--${kind})`}), kind));
      const tool = (name, label, f) => element('button', {type: 'button', 'aria-label': label, onclick: f}, name);
      this.canvas = element('canvas', {'aria-hidden': 'true'});
      this.spacer = element('div');
      this.tracks = element('div', {class: 'tracks', tabindex: 0, role: 'group', 'aria-label': 'timeline tracks; plus and minus zoom, arrows move, 0 shows all'}, this.canvas, this.spacer);
      this.details = element('div', {class: 'selected-mark', 'aria-live': 'polite'}, element('p', {class: 'dim'}, 'Select a mark, an event or a piece of evidence.'));
      this.rows = element('div');
      this.events = element('div', {class: 'events', tabindex: 0, role: 'listbox', 'aria-label': 'events; up and down select'}, this.rows);
      this.number = element('span', {class: 'dim'});
      this.root.append(
        element('div', {class: 'tools'}, this.search,
          element('label', {}, 'from', this.since), element('label', {}, 'to', this.until, 's'),
          element('label', {}, this.evidence, 'evidence only')),
        element('div', {class: 'tools'}, ...boxes),
        element('div', {class: 'tools'},
          tool('+', 'zoom in', () => this.axis.zoom(0.5)), tool('−', 'zoom out', () => this.axis.zoom(2)),
          tool('←', 'earlier', () => this.axis.pan(-0.3)), tool('→', 'later', () => this.axis.pan(0.3)),
          tool('all', 'show the whole run', () => this.axis.set(0, this.axis.end)), this.number),
        ...(this.run.omitted ? [element('p', {class: 'unknown omitted'}, this.run.omitted)] : []),
        this.tracks, this.details, this.events);
      this.tracks.addEventListener('scroll', this.draw);
      this.tracks.addEventListener('wheel', e => this.wheel(e), {passive: false});
      this.tracks.addEventListener('keydown', e => this.key(e));
      this.canvas.addEventListener('pointerdown', e => this.press(e));
      this.canvas.addEventListener('pointermove', e => this.hover(e));
      this.events.addEventListener('scroll', oncePerFrame(() => this.list()));
      this.events.addEventListener('keydown', e => this.walk(e));
    }

    // ---- filtering ----

    filter() {
      const {run} = this, m = run.marks;
      const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const from = this.since.value === '' ? -Infinity : this.since.value * 1e6;
      const to = this.until.value === '' ? Infinity : this.until.value * 1e6;
      const on = kinds.map(kind => this.kinds.get(kind).checked);
            const fits = new Map(); // index of a word, or a track -> for each search word, whether the text contains it
      const has = (key, text) => {
        if (!fits.has(key)) fits.set(key, words.map(w => text.toLowerCase().includes(w)));
        return fits.get(key);
      };
      this.shown = [];
      this.visible = new Uint8Array(this.count);
      for (let i = 0; i < this.count; i++) {
        if (!on[this.kind[i]] || m.to[i] < from || m.from[i] > to) continue;
        if (this.evidence.checked && !this.cited.has(i)) continue;
        if (words.length > 0) {
          const found = ['action', 'object', 'note', 'fault'].map(c => has(m[c][i], this.word(c, i)));
          found.push(has('track ' + m.track[i], run.tracks[m.track[i]].name));
          if (!words.every((_, w) => found.some(f => f[w]))) continue;
        }
        this.visible[i] = 1;
        this.shown.push(i);
      }
      // the marks of each track, and the tracks that have any
      this.byTrack = run.tracks.map(() => []);
      for (const i of this.shown) this.byTrack[m.track[i]].push(i);
      this.tracksShown = run.tracks.map((_, track) => track).filter(track => this.byTrack[track].length > 0);
      this.number.textContent = this.shown.length === this.count ? `${this.count} events` : `${this.shown.length} of ${this.count} events`;
      this.rows.style.height = this.shown.length * eventHeight + 'px';
      this.list();
      this.draw();
    }

    // ---- the tracks ----

        // gutter returns the width of the column with the names of the tracks, in pixels. It returns
    // 0 on a narrow screen, where the names are above the marks.
    gutter() {
      const width = this.tracks.clientWidth;
      return width < 640 ? 0 : clamp(this.nameWidth + 20, 220, Math.round(width * 0.33));
    }
    rowHeight() { return this.gutter() === 0 ? trackHeight + 12 : trackHeight; }
    toPixel(x) { return this.gutter() + (x - this.axis.from) / (this.axis.to - this.axis.from) * (this.width - this.gutter()); }
    toAxis(pixel) { return this.axis.from + (pixel - this.gutter()) / (this.width - this.gutter()) * (this.axis.to - this.axis.from); }

    paint() {
      const ratio = devicePixelRatio || 1;
      const full = axisHeight + this.tracksShown.length * this.rowHeight();
      const most = Math.round(innerHeight * 0.6);
      this.width = this.tracks.clientWidth;
      this.height = Math.min(full, most);
      if (this.width === 0) return;
      this.tracks.style.height = this.height + 2 + 'px';
      this.spacer.style.height = full - this.height + 'px';
      this.canvas.style.width = this.width + 'px';
      this.canvas.style.height = this.height + 'px';
      this.canvas.width = this.width * ratio;
      this.canvas.height = this.height * ratio;
      const c = this.canvas.getContext('2d');
      c.scale(ratio, ratio);
      c.font = trackFont;
      c.textBaseline = 'middle';
      const rowHeight = this.rowHeight(), top = this.tracks.scrollTop;
      const first = Math.max(0, Math.floor(top / rowHeight)), last = Math.min(this.tracksShown.length, Math.ceil((top + this.height) / rowHeight));
      this.paintBackground(c);
      for (let row = first; row < last; row++) {
        this.paintTrack(c, this.tracksShown[row], axisHeight + row * rowHeight - top, rowHeight);
      }
      this.paintAxis(c);
    }

    // paintBackground shades the time outside the displayed window, and faintly the time
    // of each fault.
    paintBackground(c) {
      c.save();
      c.beginPath();
      c.rect(this.gutter(), 0, this.width - this.gutter(), this.height);
      c.clip();
      c.fillStyle = color('line');
      for (const [from, to] of this.notDisplayed) c.fillRect(this.toPixel(from), axisHeight, this.toPixel(to) - this.toPixel(from), this.height);
      c.fillStyle = color('fault');
      c.globalAlpha = 0.06;
            let shaded = -Infinity; // the right end of the shaded area; overlapping faults are shaded once
      for (const band of this.bands) { // in order of their starts
        const from = Math.max(this.toPixel(band.x0), shaded), to = this.toPixel(band.x1);
        if (band.kind !== 'fault' || to <= from) continue;
        c.fillRect(from, axisHeight, to - from, this.height);
        shaded = to;
      }
      c.restore();
    }

    paintTrack(c, track, y, height) {
      const gutter = this.gutter(), base = gutter === 0 ? y + 12 : y, tall = gutter === 0 ? height - 12 : height;
      c.strokeStyle = color('line');
      c.beginPath(); c.moveTo(0, y + height - 0.5); c.lineTo(this.width, y + height - 0.5); c.stroke();
      c.save();
      c.beginPath(); c.rect(gutter, y, this.width - gutter, height); c.clip();
      for (const band of this.bands) {
        if (band.track !== track) continue;
        const from = this.toPixel(band.x0), to = this.toPixel(band.x1);
        c.globalAlpha = 0.25;
        c.fillStyle = color(band.kind);
        c.fillRect(from, base + 3, Math.max(2, to - from), tall - 6);
        c.globalAlpha = 1;
      }
      this.paintMarks(c, track, base, tall);
      c.restore();
      if (this.run.tracks[track].color) { // a stripe in the color of the kind
        c.fillStyle = resolve(this.run.tracks[track].color);
        c.fillRect(0, y + 3, 3, gutter === 0 ? 10 : height - 7);
      }
      c.fillStyle = color('text');
      c.save();
      c.beginPath(); c.rect(0, y, gutter === 0 ? this.width : gutter - 8, height); c.clip();
      c.fillText(this.run.tracks[track].name, 8, gutter === 0 ? y + 8 : y + height / 2);
      c.restore();
    }

        // paintMarks draws the visible marks of a track. If several marks of one kind have the same
    // pixels, it draws only the first.
    paintMarks(c, track, y, height) {
      const {axis, x0, x1} = this, gutter = this.gutter(), scale = (this.width - gutter) / (axis.to - axis.from);
      const styles = kinds.map(color), shares = kinds.map(kind => this.share(kind, y, height));
      const lastFrom = new Float64Array(kinds.length).fill(-1), lastTo = new Float64Array(kinds.length).fill(-1);
      const framed = [];
      for (const i of this.byTrack[track]) {
        if (x1[i] < axis.from || x0[i] > axis.to) continue;
        const kind = this.kind[i];
        const from = gutter + Math.round((x0[i] - axis.from) * scale), to = gutter + Math.round((x1[i] - axis.from) * scale);
        if (this.isCited[i] || i === this.selected) framed.push([i, from, to]);
        else if (lastFrom[kind] === from && lastTo[kind] === to) continue;
        lastFrom[kind] = from;
        lastTo[kind] = to;
        const [at, tall] = shares[kind];
        c.fillStyle = styles[kind];
        if (to - from > 2) {
          c.globalAlpha = 0.35;
          c.fillRect(from, at, to - from, tall);
          c.globalAlpha = 1;
        }
        c.fillRect(kinds[kind] === 'delivery' ? to - 1 : from - 1, at, 2, tall);
      }
      c.lineWidth = 2;
      for (const [i, from, to] of framed) {
        const wide = i === this.selected ? 6 : 4;
        c.strokeStyle = color(i === this.selected ? 'link' : 'fail');
        c.strokeRect(from - wide, y + 2, Math.max(2 * wide, to - from + 2 * wide), height - 4);
      }
      c.lineWidth = 1;
    }

        // share returns the top and the height of the marks of a kind, within a track that begins at
    // y and has the given height.
    share(kind, y, height) {
      switch (kind) {
      case 'commit': return [y + 2, height * 0.3];
      case 'delivery': return [y + height * 0.66, height * 0.28];
      case 'write': case 'refused': case 'read': return [y + height * 0.38, height * 0.24];
      default: return [y + 4, height - 8];
      }
    }

    paintAxis(c) {
      c.fillStyle = color('panel');
      c.fillRect(0, 0, this.width, axisHeight);
      const span = this.axis.to - this.axis.from, wide = this.width - this.gutter();
      const raw = span / Math.max(2, wide / 110), power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= raw);
      c.fillStyle = color('dim');
      for (let t = Math.ceil(this.axis.from / step) * step; t <= this.axis.to; t += step) {
        const x = this.toPixel(t);
        c.fillRect(x, axisHeight - 5, 1, 5);
        c.fillText((t / 1e6).toFixed(step >= 1e6 ? 0 : step >= 1e5 ? 1 : step >= 1e3 ? 3 : 4) + ' s', x + 3, axisHeight - 8);
      }
      c.fillStyle = c.strokeStyle = color('text');
      c.setLineDash([4, 3]);
            let free = -Infinity; // the right end of the last name, so that names do not overlap
      for (const phase of this.phases) {
        const x = this.toPixel(phase.x);
        if (x < this.gutter() || x > this.width) continue;
        c.beginPath(); c.moveTo(x, 0); c.lineTo(x, this.height); c.stroke();
        if (x < free) continue;
        c.fillText(phase.name, x + 3, 6);
        free = x + c.measureText(phase.name).width + 6;
      }
      c.setLineDash([]);
      c.fillStyle = color('fail');
      for (const v of this.violations) {
        const x = this.toPixel(v.x);
        if (x < this.gutter() || x > this.width) continue;
        c.fillRect(x - 0.5, 0, 1, this.height);
        c.beginPath(); c.moveTo(x - 5, 0); c.lineTo(x + 5, 0); c.lineTo(x, 9); c.fill();
      }
    }

    // ---- selection ----

        // at returns the index of the mark at a point of the canvas. It prefers marks that evidence
    // cites. It returns -1 if no mark is near.
    at(x, y) {
      const track = this.trackAt(y);
      if (track < 0) return -1;
      let best = -1, least = 8;
      for (const i of this.byTrack[track]) {
        const from = this.toPixel(this.x0[i]), to = this.toPixel(this.x1[i]);
        let distance = x < from ? from - x : x > to ? x - to : 0;
        const [top, tall] = this.share(this.word('kind', i), 0, this.rowHeight());
        const within = (y + this.tracks.scrollTop - axisHeight) % this.rowHeight();
        if (within < top || within > top + tall) distance += 2;
        if (this.cited.has(i)) distance -= 3;
        if (distance < least) { best = i; least = distance; }
      }
      return best;
    }

        // trackAt returns the index of the track at a vertical position of the canvas. It returns -1
    // if there is no track.
    trackAt(y) {
      const row = Math.floor((y + this.tracks.scrollTop - axisHeight) / this.rowHeight());
      return y < axisHeight ? -1 : this.tracksShown[row] ?? -1;
    }

        // raw returns a list with a details element that has a cited record as JSON. The list is
    // empty for a record that is not cited.
    raw(seq) {
      const record = this.run.cited[seq];
      return record ? [element('details', {}, element('summary', {}, `record ${seq}`), element('pre', {tabindex: 0}, JSON.stringify(record, null, 1)))] : [];
    }

        // select shows the details of mark i below the tracks, and scrolls the list to the event of
    // the mark. If scroll is true, it also scrolls the timeline. The elements in why come before
    // the details.
    select(i, scroll = true, ...why) {
      if (i < 0) return;
      this.selected = i;
      const m = this.run.marks, paragraphs = [...why];
      const say = (...children) => paragraphs.push(element('p', {}, ...children));
      say(element('strong', {}, [this.word('action', i), this.word('object', i)].filter(Boolean).join(' ')), ' ', element('span', {class: 'dim'}, this.word('kind', i)));
      if (this.word('note', i)) say(this.word('note', i));
      if (this.word('fault', i)) say('Changed by fault ', element('code', {}, this.word('fault', i)));
      const kind = this.word('kind', i), took = m.to[i] - m.from[i];
      let when = seconds(kind === 'delivery' ? m.to[i] : m.from[i]);
      if (kind === 'delivery') when += `, ${(took / 1e3).toFixed(1)} ms after the commit`;
      else if (took > 0) when += `, for ${(took / 1e3).toFixed(1)} ms`;
      const records = m.answer[i] ? `records ${m.seq[i]} and ${m.answer[i]}` : `record ${m.seq[i]}`;
      say(element('span', {class: 'dim'}, `at ${when}; ${m.version[i] ? `version ${m.version[i]}; ` : ''}${records} of history.jsonl`));
      for (const v of this.cited.get(i) || []) {
        say('Evidence of ', element('a', {href: `#${this.anchor(v)}`, class: 'fail'}, `${v.check} ${v.number}`), ': ', v.summary);
      }
      paragraphs.push(...this.raw(m.seq[i]), ...this.raw(m.answer[i]));
      this.details.replaceChildren(...paragraphs);
      if (scroll) {
        if (!this.visible[i]) this.unfilter();
        this.axis.show((this.x0[i] + this.x1[i]) / 2);
        const row = this.tracksShown.indexOf(m.track[i]) * this.rowHeight();
        if (row < this.tracks.scrollTop || row > this.tracks.scrollTop + this.height - axisHeight - this.rowHeight()) {
          this.tracks.scrollTop = row - this.height / 2;
        }
      }
      const place = firstAtLeast(this.shown, i) * eventHeight;
      if (place < this.events.scrollTop || place > this.events.scrollTop + this.events.clientHeight - eventHeight) {
        this.events.scrollTop = place - this.events.clientHeight / 2;
      }
      this.list();
      this.draw();
    }

    anchor(v) { return `${this.id === 's' ? 'v' : this.id.replace('-s', '')}-${v.check}-${v.number}`; }

    // unfilter resets the filter, so that the target of a link is visible.
    unfilter() {
      this.search.value = this.since.value = this.until.value = '';
      this.evidence.checked = false;
      this.kinds.forEach(box => { box.checked = true; });
      this.filter();
    }

        // follow selects the mark of a record. For a record without a mark, it selects the last mark
    // before the record.
    follow(seq) {
      const m = this.run.marks;
      let i = m.answer.indexOf(seq);
      if (i < 0) i = firstAtLeast(m.seq, seq + 1) - 1;
      if (i >= 0 && (m.answer[i] === seq || m.seq[i] === seq)) return this.select(i);
      const why = [element('p', {}, `Record ${seq} has no mark of its own. ${i < 0 ? 'No mark precedes it.' : 'The last mark before it:'}`), ...this.raw(seq)];
      if (i < 0) this.details.replaceChildren(...why);
      else this.select(i, true, ...why);
    }

        // ---- the list of events; the page has elements only for the visible rows ----

    list() {
      const first = Math.max(0, Math.floor(this.events.scrollTop / eventHeight) - 5);
      const last = Math.min(this.shown.length, first + Math.ceil(this.events.clientHeight / eventHeight) + 10);
      const rows = [];
      for (let place = first; place < last; place++) rows.push(this.row(place));
      this.rows.replaceChildren(...rows);
      if (this.selected >= 0) this.events.setAttribute('aria-activedescendant', `${this.id}-row-${this.selected}`);
    }

    row(place) {
      const i = this.shown[place], kind = this.word('kind', i), selected = i === this.selected;
      const at = this.run.marks[kind === 'delivery' ? 'to' : 'from'][i];
      return element('div', {
        class: `row${selected ? ' selected' : ''}${this.cited.has(i) ? ' cited' : ''}`, style: `top: ${place * eventHeight}px`,
        role: 'option', id: `${this.id}-row-${i}`, 'aria-selected': String(selected), onclick: () => this.select(i),
      },
      element('span', {}, (this.cited.has(i) ? '▼ ' : '') + seconds(at)),
      element('span', {style: `color: var(--${kind})`}, kind),
      element('span', {}, this.word('action', i)),
      element('span', {}, this.word('object', i)),
      element('span', {class: 'dim'}, this.word('note', i)));
    }

    walk(e) {
      const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity};
      if (!(e.key in steps) || this.shown.length === 0) return;
      e.preventDefault();
      const now = this.selected < 0 ? -1 : firstAtLeast(this.shown, this.selected);
      this.select(this.shown[clamp(now + steps[e.key], 0, this.shown.length - 1)]);
    }

    // ---- pointer and keyboard on the tracks ----

    wheel(e) {
      if (!e.ctrlKey && !e.shiftKey) return; // the page scrolls
      e.preventDefault();
      if (e.shiftKey) this.axis.pan(Math.sign(e.deltaY || e.deltaX) * 0.1);
      else this.axis.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.toAxis(e.offsetX));
    }

    key(e) {
      const actions = {
        '+': () => this.axis.zoom(0.5), '=': () => this.axis.zoom(0.5), '-': () => this.axis.zoom(2),
        'ArrowLeft': () => this.axis.pan(-0.2), 'ArrowRight': () => this.axis.pan(0.2), '0': () => this.axis.set(0, this.axis.end),
      };
      if (!(e.key in actions) || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      actions[e.key]();
    }

    // press starts a click, which selects a mark, or a drag, which selects a time range.
    press(e) {
      if (e.button !== 0) return;
      const start = e.offsetX, touch = e.pointerType === 'touch';
      const up = end => {
        removeEventListener('pointerup', up);
        removeEventListener('pointercancel', up);
        const x = end.clientX - this.canvas.getBoundingClientRect().left;
        if (end.type === 'pointercancel') return;
        if (Math.abs(x - start) < 6) return this.select(this.at(start, e.offsetY), false);
        if (!touch) this.axis.set(this.toAxis(Math.min(x, start)), this.toAxis(Math.max(x, start)));
        else this.axis.pan((start - x) / this.width);
      };
      addEventListener('pointerup', up);
      addEventListener('pointercancel', up);
    }

    hover(e) {
      const track = e.offsetX < this.gutter() ? this.trackAt(e.offsetY) : -1;
            if (track >= 0) { // shows the whole name of the track, which may be clipped
        this.canvas.title = this.run.tracks[track].name;
        return;
      }
      const i = this.at(e.offsetX, e.offsetY);
      this.canvas.title = i < 0 ? '' : [this.word('action', i), this.word('object', i), this.word('note', i)].filter(Boolean).join(' · ');
    }
  }

  // ---- charts ----

  const lineColors = ['step', 'commit', 'write', 'delivery', 'fault', 'refused', 'read'];

  // chart draws one chart within the displayed window of each run. The second run's lines
  // are dashed.
  const chart = (box, title, unit, lines, axis) => {
    const at = [...new Set(lines.flatMap(l => [...l.at, l.until]))].sort((a, b) => a - b);
    at.push(axis.end);
    const columns = lines.map(l => {
      const values = [];
      let next = 0, value = null;
      for (const t of at) {
        while (next < l.at.length && l.at[next] <= t) value = l.values[next++];
        values.push(t <= l.until ? value : null);
      }
      return values;
    });
    const names = [...new Set(lines.map(l => l.name))];
    const text = () => color('dim'), grid = {stroke: () => color('line'), width: 1};
    const plot = new uPlot({
      title: unit ? `${title} (${unit})` : title, width: box.clientWidth - 12, height: 200,
      cursor: {sync: {key: 'gauntlet'}, drag: {x: true, y: false, setScale: false}},
      scales: {x: {time: false, range: () => [axis.from, axis.to]}, y: {range: (_, low, high) => [0, Math.max(1, high * 1.05)]}},
      axes: [
        {stroke: text, grid, values: (_, ticks) => ticks.map(t => +(t / 1e6).toFixed(4) + ' s'), space: 70},
        {stroke: text, grid, size: 46},
      ],
      series: [{label: 'at', value: (_, v) => v == null ? '' : seconds(v)}, ...lines.map(l => ({
        label: l.run ? `${l.name}, ${l.run}` : l.name, stroke: () => color(lineColors[names.indexOf(l.name) % lineColors.length]),
        width: 1.5, dash: l.dash, paths: uPlot.paths.stepped({align: 1}), points: {show: false},
        value: (_, v) => v == null ? '' : String(+v.toFixed(1)),
      }))],
      hooks: {setSelect: [u => { if (u.select.width > 4) axis.set(u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x')); u.setSelect({left: 0, width: 0}, false); }]},
    }, [at, ...columns], box);
    axis.watch(oncePerFrame(() => plot.redraw()));
    new ResizeObserver(oncePerFrame(() => plot.setSize({width: box.clientWidth - 12, height: 200}))).observe(box);
    return plot;
  };

  // ---- the page ----

  const axis = new Axis(Math.max(...data.runs.map((run, place) => place === 0 ? run.end : data.knots[0].at(-1)), 1));
  const roots = [...document.querySelectorAll('.timeline')];
  const timelines = data.runs.map((run, place) => new TimelineView(roots[place], run, axis, place));
  const plots = [];

  // Charts with the same title share a box. A chart is created when it becomes visible.
  const titles = [...new Set(data.runs.flatMap(run => run.charts.map(c => c.title)))];
  const make = new Map();
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) {
      if (!entry.isIntersecting || !make.has(entry.target)) continue;
      plots.push(make.get(entry.target)());
      make.delete(entry.target);
    }
  }, {rootMargin: '200px'});
  for (const title of titles) {
    const box = element('div', {class: 'chart', role: 'img', 'aria-label': title});
    document.querySelector('.charts').append(box);
    make.set(box, () => {
      let unit = '';
      const lines = data.runs.flatMap((run, place) => {
        const map = place === 0 ? t => t : warp(data.knots[place], data.knots[0]);
        return run.charts.filter(c => c.title === title).flatMap(c => {
          unit = c.unit;
          const [since, until] = run.displayed;
          return c.lines.map(l => ({...l, at: l.at.map(t => map(Math.max(t, since))), until: map(until), run: data.runs.length > 1 ? run.subject : '', dash: place > 0 ? [5, 4] : undefined}));
        });
      });
      return chart(box, title, unit, lines, axis);
    });
    seen.observe(box);
  }

    // A link to a record selects the mark of the record. A link to a check or to a piece of evidence
  // opens the details of the check.
  const follow = () => {
    const hash = decodeURIComponent(location.hash.slice(1));
    for (const timeline of timelines) {
      if (hash.startsWith(timeline.id) && /^\d+$/.test(hash.slice(timeline.id.length))) {
        timeline.follow(Number(hash.slice(timeline.id.length)));
        timeline.root.scrollIntoView();
        timeline.events.focus({preventScroll: true});
        return;
      }
    }
    const target = hash && document.getElementById(hash);
    if (!target) return;
    if (target.tagName === 'TR') target.querySelector('details').open = true;
    for (let e = target; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
    target.scrollIntoView({block: 'center'});
    target.focus({preventScroll: true});
  };
  addEventListener('hashchange', follow);
  document.addEventListener('click', e => { // the same link a second time
    const link = e.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) { e.preventDefault(); follow(); }
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    colors = {};
    timelines.forEach(timeline => timeline.draw());
    plots.forEach(plot => plot.redraw());
  });
  follow();
  // For tests and debugging; paint returns the duration of a full repaint in ms.
  window.gauntlet = {timelines, axis, paint: () => { const start = performance.now(); timelines.forEach(b => b.paint()); return performance.now() - start; }};
})();
