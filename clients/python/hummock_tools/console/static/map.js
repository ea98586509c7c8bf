// The star map: loads the points, draws them, follows what happens to them, and says which one is pointed at.

const [FRESH_MS, POINT_MS, AGAIN_MS] = [5000, 120, 15000];
const AGES_S = [1, 7, 30, 365, Infinity].map((days) => 86400 * days);
// Paints of the style sheet: 0 is plain, 1 to 10 differ, those from 11 on go from new to old.
const [DISTINCT, FIRST_AGE] = [10, 11];
const [SOLID, DIM, STEP] = [255, 46, 60];

const part = document.getElementById("map-part");
const [canvas, status, at, colour, search, legend, list] = ["", "-status", "-at", "-colour", "-search", "-legend", "-found"].map((end) => document.getElementById(`map${end}`));
const context = canvas.getContext("2d");
const [names, said] = [part.dataset.names, part.dataset.said].map((text) => JSON.parse(text));
const look = { x: 0, y: 0, zoom: 1 };
const [fresh, pointers] = [new Set(), new Map()];
let sky = { stars: new Map() };
let [loading, found, lit, chosen, source, sheet] = [];
let [isStale, isDue, hasMoved, told] = [true, false, false, 0];

function soon() {
  isDue ||= Boolean(requestAnimationFrame(draw));
}

function changed() {
  isStale = true;
  soon();
}

function element(name, values, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

async function answered(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(answer.status);
  return answer;
}

// Colours, and where things are.

const linkTo = ({ href, title }) => element("a", { href, textContent: title });
const colours = (name) => getComputedStyle(canvas).getPropertyValue(name).trim().split(/\s+/);
const pixels = (name, alpha) => colours(name).map((each) => parseInt(each.slice(1), 16)).map((rgb) => (alpha << 24) | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16));
// CSS pixels for a unit of the map.
const scale = () => (Math.min(canvas.clientWidth, canvas.clientHeight) / 2.45) * look.zoom;
// The place of a point of the canvas, by default its middle.
const placeOf = (left = canvas.clientWidth / 2, top = canvas.clientHeight / 2) => [
  look.x + (left - canvas.clientWidth / 2) / scale(), look.y - (top - canvas.clientHeight / 2) / scale(),
];

// Paints the stars by what is chosen, and says what the colours mean.
function recolour() {
  const by = colour.value;
  const now = Date.now() / 1000;
  const [counts, paints, rows, plain] = [new Map(), new Map(), [], colours("--stars")];
  let [none, others, waiting] = [0, 0, 0];
  for (const star of sky.stars.values()) {
    star.value = by === "age" ? AGES_S.findIndex((limit) => now - star.time < limit) : star[by];
    counts.set(star.value, (counts.get(star.value) ?? 0) + 1);
    waiting += !star.placed;
  }
  const sorted = [...counts].sort(([one, few], [other, many]) => (by === "age" ? one - other : many - few));
  for (const [value, count] of sorted) {
    // An age, a kind and an origin keep their colours; sessions get them by size.
    const paint = { age: FIRST_AGE + value, session: paints.size + 1 }[by] ?? value;
    if (by !== "age" && !value) none = count;
    else if (by !== "age" && paint > DISTINCT) others += count;
    else {
      paints.set(value, paint);
      rows.push([plain[paint], names[by]?.[value] ?? value, count]);
    }
  }
  for (const star of sky.stars.values()) star.paint = paints.get(star.value) ?? 0;
  rows.push([plain[0], said.others, others], [plain[0], said.none, none], ["", said.waiting, waiting]);
  legend.replaceChildren(...rows.filter(([, , count]) => count).map(([background, name, count]) => {
    const swatch = element("span", { className: background ? "star-swatch" : "star-swatch star-waiting" });
    swatch.style.background = background;
    return element("li", {}, swatch, ` ${name} ${count}`);
  }));
}

// A dot: how far it reaches, and where its pixels lie, from its middle.
function dot(radius, width) {
  const reach = Math.ceil(radius);
  const line = Array.from({ length: 2 * reach + 1 }, (_, place) => place - reach);
  const places = line.flatMap((down) => line.filter((right) => Math.hypot(down, right) <= radius).map((right) => down * width + right));
  return { places, reach };
}

// Dots are written into pixels, which takes milliseconds for a hundred thousand and needs no graphics card.
function draw() {
  if (isStale) recolour();
  isDue = isStale = false;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((each) => Math.round(each * ratio));
  if (!width || !height) return;
  if (sheet?.width !== width || sheet.height !== height) {
    [canvas.width, canvas.height] = [width, height];
    sheet = context.createImageData(width, height);
  }
  const paper = new Uint32Array(sheet.data.buffer).fill(0);
  const [[ink], plain, dimmed] = [pixels("--ink", SOLID), pixels("--stars", SOLID), pixels("--stars", lit ? DIM : SOLID)];
  const unit = scale() * ratio;
  // Few stars are large, and larger the nearer one looks.
  const base = ratio * Math.min(1 + 60 / Math.sqrt(sky.stars.size + 1), 4) * Math.min(look.zoom ** 0.45, 4);
  const [small, large, ring] = [0, 2, 4].map((more) => dot(base + more * ratio, width));

  function put(star, { places, reach }, paint) {
    const left = Math.round(width / 2 + (star.x - look.x) * unit);
    const top = Math.round(height / 2 - (star.y - look.y) * unit);
    if (left < reach || top < reach || left >= width - reach || top >= height - reach) return;
    const start = top * width + left;
    for (let place = 0; place < places.length; place += 1) paper[start + places[place]] = paint;
  }

  for (const star of sky.stars.values()) put(star, small, dimmed[star.paint]);
  for (const star of lit ?? []) put(star, large, plain[star.paint]);
  for (const star of [...fresh, chosen]) {
    if (!star || sky.stars.get(star.id) !== star) continue;
    put(star, ring, ink);
    put(star, large, plain[star.paint]);
  }
  context.putImageData(sheet, 0, 0);
  if (document.activeElement !== canvas) return;
  // Enter chooses the star that is nearest to the cross.
  context.fillStyle = getComputedStyle(canvas).color;
  context.fillRect(width / 2 - 8 * ratio, height / 2, 16 * ratio, ratio);
  context.fillRect(width / 2, height / 2 - 8 * ratio, ratio, 16 * ratio);
}

// Loading, and what happens since.

async function load() {
  source?.close();
  const loaded = { stars: new Map() };
  loading = loaded;
  try {
    const reader = (await answered(part.dataset.stars)).body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { done, value } = await reader.read();
      // Meanwhile the map may have been laid out anew once more.
      if (loading !== loaded) return;
      if (done) break;
      rest += value;
      if (!value.includes("\n")) continue;
      const lines = rest.split("\n");
      rest = lines.pop();
      lines.forEach((line) => take(loaded, JSON.parse(line)));
      // The first map is shown as it comes; one that was laid out anew takes the place of the old one at once.
      if (!sky.stars.size) sky = loaded;
      if (sky !== loaded || !loaded.stars.size) continue;
      status.textContent = `${said.loading} ${loaded.stars.size} / ${loaded.count}`;
      changed();
      performance.mark("hummock-map-part");
    }
  } catch (error) {
    if (loading === loaded) status.textContent = error.said ?? said.failed;
    return;
  }
  sky = loaded;
  loading = null;
  chosen = sky.stars.get(chosen?.id);
  status.textContent = `${said.shown} ${sky.stars.size}`;
  relight();
  performance.mark("hummock-map-whole");
  follow();
}

// Takes a line of the map, or news of it, and says which points came or changed; see `_points` in map_page.py.
function take(into, { failed, stars = [], gone = [], ...head }) {
  if (failed) throw Object.assign(new Error(failed), { said: failed });
  Object.assign(into, head);
  gone.forEach((id) => into.stars.delete(id));
  return stars.map(([id, x, y, placed, kind, origin, time, session]) => {
    if (!into.stars.has(id)) into.stars.set(id, { id });
    return Object.assign(into.stars.get(id), { x, y, placed, kind, origin, time, session });
  });
}

function follow() {
  source = new EventSource(`${part.dataset.live}&after=${sky.seq}&layout=${encodeURIComponent(sky.layout ?? "")}`);
  source.addEventListener("events", (event) => {
    const news = JSON.parse(event.data);
    told += news.stars.length + news.gone.length;
    for (const star of take(sky, news)) {
      fresh.add(star);
      setTimeout(() => { if (fresh.delete(star)) soon(); }, FRESH_MS);
    }
    if (told) status.textContent = `${said.shown} ${sky.stars.size} · ${said.told} ${told}`;
    relight();
  });
  source.addEventListener("reset", load);
  source.addEventListener("failed", (event) => { status.textContent = JSON.parse(event.data); });
}

// A question, and pointing at stars.

function relight() {
  lit = found?.map(({ id }) => sky.stars.get(id)).filter(Boolean);
  changed();
}

function show(hits) {
  found = hits;
  status.textContent = !hits ? `${said.shown} ${sky.stars.size}` : hits.length ? `${said.found} ${hits.length}` : said["found.none"];
  list.replaceChildren(...(hits ?? []).map((hit) => element("li", {}, linkTo(hit))));
  relight();
}

async function choose(star, pause) {
  if (star === chosen) return;
  chosen = star;
  soon();
  await new Promise((done) => setTimeout(done, pause));
  try {
    if (!star || star !== chosen) return;
    const one = await (await answered(`${part.dataset.star}&id=${encodeURIComponent(star.id)}`)).json();
    if (star === chosen) at.replaceChildren(linkTo(one), ` ${one.facts}`);
  } catch {
    at.textContent = said.failed;
  }
}

// The star nearest to a place, at most so many pixels away; of those that are lit, if any are.
function nearest([x, y], reach) {
  let [best, least] = [null, reach / scale()];
  for (const star of lit ?? sky.stars.values()) {
    const apart = Math.hypot(star.x - x, star.y - y);
    if (apart <= least) [best, least] = [star, apart];
  }
  return best;
}

// Moving about.

function zoom(factor, ...point) {
  const [x, y] = placeOf(...point);
  look.zoom = Math.min(Math.max(look.zoom * factor, 0.5), 400);
  const [nextX, nextY] = placeOf(...point);
  Object.assign(look, { x: look.x + x - nextX, y: look.y + y - nextY });
  soon();
}

function move(left, top) {
  look.x = Math.min(Math.max(look.x - left / scale(), -1.2), 1.2);
  look.y = Math.min(Math.max(look.y + top / scale(), -1.2), 1.2);
  soon();
}

// The middle between the fingers, and how far two are apart.
function grip() {
  const [one, other = one] = pointers.values();
  const [right, down] = [other.offsetX - one.offsetX, other.offsetY - one.offsetY];
  return [one.offsetX + right / 2, one.offsetY + down / 2, Math.hypot(right, down)];
}

const KEYS = {
  ArrowLeft: () => move(STEP, 0),
  ArrowRight: () => move(-STEP, 0),
  ArrowUp: () => move(0, STEP),
  ArrowDown: () => move(0, -STEP),
  "+": () => zoom(1.5),
  "=": () => KEYS["+"](),
  "-": () => zoom(1 / 1.5),
  0: () => soon(Object.assign(look, { x: 0, y: 0, zoom: 1 })),
  Home: () => KEYS[0](),
  Escape: () => show(null),
  Enter: () => choose(nearest(placeOf(), Infinity), 0),
};
for (const button of document.querySelectorAll("button[data-map]")) button.addEventListener("click", KEYS[button.dataset.map]);

const HANDLERS = {
  keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  },
  pointerdown(event) {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    hasMoved = pointers.size > 1;
  },
  pointermove(event) {
    if (pointers.has(event.pointerId)) {
      const [left, top, apart] = grip();
      pointers.set(event.pointerId, event);
      const [nextLeft, nextTop, nextApart] = grip();
      hasMoved ||= Math.hypot(nextLeft - left, nextTop - top) > 2;
      move(nextLeft - left, nextTop - top);
      if (apart) zoom(nextApart / apart, nextLeft, nextTop);
    } else if (event.pointerType === "mouse") {
      choose(nearest(placeOf(event.offsetX, event.offsetY), 8) ?? chosen, POINT_MS);
    }
  },
  pointerup(event) {
    pointers.delete(event.pointerId);
    if (!hasMoved && !pointers.size) choose(nearest(placeOf(event.offsetX, event.offsetY), event.pointerType === "mouse" ? 10 : 24), 0);
  },
  pointercancel: (event) => pointers.delete(event.pointerId),
  wheel(event) {
    // Whoever scrolls the page past the map does not stand in it.
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
  },
  focus: soon,
  blur: soon,
};
for (const [name, handler] of Object.entries(HANDLERS)) canvas.addEventListener(name, handler, { passive: false });

search.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = search.elements.q.value.trim();
  try {
    show(question ? await (await answered(`${part.dataset.found}&q=${encodeURIComponent(question)}`)).json() : null);
  } catch {
    status.textContent = said.failed;
  }
});
search.addEventListener("input", () => { if (!search.elements.q.value && lit) show(null); });
colour.addEventListener("change", changed);
new ResizeObserver(soon).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
window.addEventListener("pagehide", () => source?.close());
// Nobody is told that vectors have come, so the map is loaded again while memories wait for them.
setInterval(() => { if (!document.hidden && !loading && [...sky.stars.values()].some((star) => !star.placed)) load(); }, AGAIN_MS);

part.hidden = false;
load();
