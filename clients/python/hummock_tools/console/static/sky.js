// Draws stars: dots written into the pixels of a canvas, which takes some milliseconds for a hundred thousand and needs
// no graphics card.
import { PAINTS } from "./star_colours.js";

const DIM = 0.82;
let sheet = null;

// The colours of the style sheet as pixels: the ground, what is chosen, each paint, and each paint dimmed.
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  function read(name) {
    probe.fillStyle = style.getPropertyValue(name).trim();
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
  }
  const pixel = (values) => new Uint32Array(new Uint8ClampedArray([...values.slice(0, 3), 255]).buffer)[0];
  const ground = read("--raised");
  const plain = Array.from({ length: PAINTS }, (_, paint) => read(`--star-${paint}`));
  const dimmed = plain.map((values) => values.map((value, place) => value + (ground[place] - value) * DIM));
  return { ground: pixel(ground), ink: pixel(read("--ink")), plain: plain.map(pixel), dimmed: dimmed.map(pixel) };
}

// Where the pixels of a dot lie, from its middle.
function dot(radius, width) {
  const places = [];
  const reach = Math.ceil(radius);
  for (let down = -reach; down <= reach; down += 1) {
    for (let right = -reach; right <= reach; right += 1) {
      if (down * down + right * right <= radius * radius) places.push(down * width + right);
    }
  }
  return { places: Int32Array.from(places), reach };
}

export function draw(canvas, { stars, look, lit, fresh, chosen, paints, groups }) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (!width || !height) return;
  const context = canvas.getContext("2d", { alpha: false });
  if (canvas.width !== width || canvas.height !== height || !sheet) {
    [canvas.width, canvas.height] = [width, height];
    sheet = context.createImageData(width, height);
  }
  const pixels = new Uint32Array(sheet.data.buffer);
  pixels.fill(paints.ground);
  const scale = (Math.min(width, height) / 2.45) * look.zoom;
  const middle = { left: width / 2 - look.x * scale, top: height / 2 + look.y * scale };
  // Few stars are large, and larger the nearer one looks.
  const base = ratio * Math.min(1 + 60 / Math.sqrt(stars.shown + 1), 4) * Math.min(look.zoom ** 0.45, 4);
  const small = dot(base, width);
  const large = dot(base + 2 * ratio, width);

  function put(star, { places, reach }, paint) {
    const left = Math.round(middle.left + stars.x[star] * scale);
    const top = Math.round(middle.top - stars.y[star] * scale);
    if (left < reach || top < reach || left >= width - reach || top >= height - reach) return;
    const start = top * width + left;
    for (let place = 0; place < places.length; place += 1) pixels[start + places[place]] = paint;
  }

  const shades = lit ? paints.dimmed : paints.plain;
  for (let star = 0; star < stars.count; star += 1) {
    if (!stars.gone[star]) put(star, small, shades[groups[star] ?? 0]);
  }
  if (lit) {
    for (let star = 0; star < lit.length; star += 1) {
      if (lit[star] && !stars.gone[star]) put(star, large, paints.plain[groups[star] ?? 0]);
    }
  }
  const ring = dot(base + 4 * ratio, width);
  for (const star of chosen >= 0 ? [...fresh, chosen] : fresh) {
    if (stars.gone[star]) continue;
    put(star, ring, paints.ink);
    put(star, large, paints.plain[groups[star] ?? 0]);
  }
  context.putImageData(sheet, 0, 0);
  if (document.activeElement === canvas) cross(context, width / 2, height / 2, 8 * ratio, canvas);
}

// What Enter chooses by.
function cross(context, left, top, reach, canvas) {
  context.strokeStyle = getComputedStyle(canvas).color;
  context.beginPath();
  context.moveTo(left - reach, top);
  context.lineTo(left + reach, top);
  context.moveTo(left, top - reach);
  context.lineTo(left, top + reach);
  context.stroke();
}
