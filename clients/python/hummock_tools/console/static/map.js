// The star map: it asks for the points, keeps what happens to them, and says where one points at.
import { draw, palette } from "./sky.js";
import { colouring } from "./star_colours.js";
import { read, Stars } from "./stars.js";

const FRESH_MS = 5000;
const POINT_MS = 120;
const AGAIN_MS = 15000;
const FOUND = 1;

const part = document.getElementById("map-part");
const canvas = document.getElementById("map");
const status = document.getElementById("map-status");
const at = document.getElementById("map-at");
const colour = document.getElementById("map-colour");
const search = document.getElementById("map-search");
const list = document.getElementById("map-found");
const names = JSON.parse(part.dataset.names);
const said = JSON.parse(part.dataset.said);

const look = { x: 0, y: 0, zoom: 1 };
const fresh = new Set();
let stars = new Stars();
let lit = null;
let chosen = -1;
let colours = null;
let paints = null;
let source = null;
let told = 0;
let isDue = false;
let loading = null;

function soon() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    paints ??= palette();
    colours ??= colouring(stars, colour.value, names, said);
    draw(canvas, { stars, look, lit, fresh, chosen, paints, groups: colours.groups });
  });
}

function recolour() {
  colours = colouring(stars, colour.value, names, said);
  const legend = document.getElementById("map-legend");
  legend.replaceChildren(...colours.legend.map(({ paint, name, count }) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = `star-swatch star-${paint}`;
    item.append(swatch, ` ${name} ${count}`);
    return item;
  }));
  soon();
}

// Loading, and what happens since.

async function load() {
  source?.close();
  const loaded = new Stars();
  loading = loaded;
  try {
    await read(part.dataset.stars, loaded, () => {
      if (loading !== loaded) return;
      if (loaded.count && stars !== loaded && !stars.count) stars = loaded;
      if (stars !== loaded) return;
      status.textContent = `${said.loading} ${loaded.count} / ${loaded.expected}`;
      colours = null;
      soon();
      performance.mark("hummock-map-part");
    });
  } catch (error) {
    status.textContent = error.said ?? said.failed;
    return;
  }
  // Meanwhile it may have been laid out anew once more.
  if (loading !== loaded) return;
  // A map that was laid out anew takes the place of the old one at once.
  const id = stars.ids[chosen];
  stars = loaded;
  chosen = stars.index.get(id) ?? -1;
  status.textContent = `${said.shown} ${stars.shown}`;
  if (lit) relight();
  recolour();
  performance.mark("hummock-map-whole");
  follow();
  // Nobody is told that vectors have come, so who waits for them is looked for again.
  if (stars.placed.subarray(0, stars.count).includes(0)) setTimeout(again, AGAIN_MS);
}

function again() {
  if (document.hidden) setTimeout(again, AGAIN_MS);
  else load();
}

function follow() {
  const address = `${part.dataset.live}&after=${stars.seq}&layout=${encodeURIComponent(stars.layout)}`;
  source = new EventSource(address);
  source.addEventListener("events", (event) => {
    const changes = JSON.parse(event.data);
    if (!changes.length) return;
    for (const change of changes) {
      if (change.gone) stars.remove(change.id);
      else light(stars.put(change));
    }
    told += changes.length;
    status.textContent = `${said.shown} ${stars.shown} · ${said.told} ${told}`;
    recolour();
  });
  source.addEventListener("reset", load);
  source.addEventListener("failed", (event) => { status.textContent = JSON.parse(event.data); });
}

function light(star) {
  fresh.add(star);
  setTimeout(() => {
    fresh.delete(star);
    soon();
  }, FRESH_MS);
}

// A question.

function relight() {
  lit = new Uint8Array(stars.count);
  for (const { id } of list.hits ?? []) {
    const star = stars.index.get(id);
    if (star !== undefined) lit[star] = FOUND;
  }
}

async function find() {
  const question = search.elements.q.value.trim();
  if (!question) return forget();
  try {
    const answer = await fetch(`${part.dataset.found}&q=${encodeURIComponent(question)}`);
    if (!answer.ok) throw new Error(String(answer.status));
    list.hits = await answer.json();
  } catch {
    status.textContent = said.failed;
    return;
  }
  relight();
  status.textContent = list.hits.length ? `${said.found} ${list.hits.length}` : said["found.none"];
  list.replaceChildren(...list.hits.map((hit) => {
    const item = document.createElement("li");
    item.append(linkTo(hit));
    return item;
  }));
  soon();
}

function forget() {
  lit = null;
  list.hits = [];
  list.replaceChildren();
  status.textContent = `${said.shown} ${stars.shown}`;
  soon();
}

function linkTo({ href, title }) {
  const anchor = document.createElement("a");
  anchor.href = href;
  anchor.textContent = title;
  return anchor;
}

// Pointing at stars.

const known = new Map();
let timer = 0;

async function about(id) {
  if (!known.has(id)) {
    const answer = await fetch(`${part.dataset.star}&id=${encodeURIComponent(id)}`);
    if (!answer.ok) throw new Error(String(answer.status));
    known.set(id, await answer.json());
  }
  return known.get(id);
}

function choose(star, pause) {
  if (star === chosen) return;
  chosen = star;
  soon();
  clearTimeout(timer);
  if (star < 0) return;
  timer = setTimeout(async () => {
    try {
      const one = await about(stars.ids[star]);
      if (star === chosen) at.replaceChildren(linkTo(one), ` ${one.facts}`);
    } catch {
      at.textContent = said.failed;
    }
  }, pause);
}

function scale() {
  return (Math.min(canvas.clientWidth, canvas.clientHeight) / 2.45) * look.zoom;
}

function nearest(left, top, reach) {
  const x = look.x + (left - canvas.clientWidth / 2) / scale();
  const y = look.y - (top - canvas.clientHeight / 2) / scale();
  return stars.nearest(x, y, reach / scale(), lit);
}

// Moving about.

function zoom(factor, left = canvas.clientWidth / 2, top = canvas.clientHeight / 2) {
  const next = Math.min(Math.max(look.zoom * factor, 0.5), 400);
  const kept = 1 / scale();
  look.zoom = next;
  const change = kept - 1 / scale();
  look.x += (left - canvas.clientWidth / 2) * change;
  look.y -= (top - canvas.clientHeight / 2) * change;
  soon();
}

function move(left, top) {
  look.x = Math.min(Math.max(look.x - left / scale(), -1.2), 1.2);
  look.y = Math.min(Math.max(look.y + top / scale(), -1.2), 1.2);
  soon();
}

function whole() {
  Object.assign(look, { x: 0, y: 0, zoom: 1 });
  soon();
}

const ACTIONS = { in: () => zoom(1.5), out: () => zoom(1 / 1.5), whole };
for (const button of document.querySelectorAll("button[data-map]")) {
  button.addEventListener("click", ACTIONS[button.dataset.map]);
}

const STEP = 60;
const KEYS = {
  ArrowLeft: () => move(STEP, 0),
  ArrowRight: () => move(-STEP, 0),
  ArrowUp: () => move(0, STEP),
  ArrowDown: () => move(0, -STEP),
  "+": ACTIONS.in,
  "=": ACTIONS.in,
  "-": ACTIONS.out,
  0: whole,
  Home: whole,
  Escape: forget,
  Enter: () => choose(nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, Infinity), 0),
};
canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

const pointers = new Map();
let hasMoved = false;
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event);
  hasMoved = pointers.size > 1;
});
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) {
    if (event.pointerType === "mouse") {
      const star = nearest(event.offsetX, event.offsetY, 8);
      if (star >= 0) choose(star, POINT_MS);
    }
    return;
  }
  const apart = spread();
  pointers.set(event.pointerId, event);
  const [left, top] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY];
  hasMoved ||= Math.hypot(left, top) > 2;
  move(left / pointers.size, top / pointers.size);
  if (apart) zoom(spread() / apart, ...middle());
});
for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    if (name === "pointerup" && !hasMoved && !pointers.size) {
      choose(nearest(event.offsetX, event.offsetY, event.pointerType === "mouse" ? 10 : 24), 0);
    }
  });
}

function spread() {
  if (pointers.size !== 2) return 0;
  const [one, other] = pointers.values();
  return Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY);
}

function middle() {
  const [one, other] = pointers.values();
  return [(one.offsetX + other.offsetX) / 2, (one.offsetY + other.offsetY) / 2];
}

canvas.addEventListener("wheel", (event) => {
  // Whoever scrolls the page past the map does not stand in it.
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
}, { passive: false });

colour.addEventListener("change", recolour);
search.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
search.addEventListener("input", () => { if (!search.elements.q.value && lit) forget(); });
canvas.addEventListener("focus", soon);
canvas.addEventListener("blur", soon);
new ResizeObserver(soon).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  paints = null;
  soon();
});
window.addEventListener("pagehide", () => source?.close());

part.hidden = false;
load();
