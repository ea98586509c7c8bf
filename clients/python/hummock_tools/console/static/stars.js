// The points of a map in columns, as the console sends them, and as they change.

const HEAD = 1;
const FAILED = 3;
const ROOM = 1024;

const decoder = new TextDecoder();

export class Stars {
  constructor() {
    this.count = 0;
    this.expected = 0;
    this.seq = 0;
    this.layout = "";
    this.ids = [];
    this.sessions = [""];
    this.removed = 0;
    this.known = null;
    this.columns = { x: Float32Array, y: Float32Array, time: Uint32Array, session: Uint32Array, kind: Uint8Array, origin: Uint8Array, placed: Uint8Array, gone: Uint8Array };
    for (const [name, type] of Object.entries(this.columns)) this[name] = new type(0);
  }

  // How many are there.
  get shown() {
    return this.count - this.removed;
  }

  // Where each id stands; made when something is first looked up.
  get index() {
    this.known ??= new Map(this.ids.map((id, star) => [id, star]));
    return this.known;
  }

  room(count) {
    if (count <= this.x.length) return;
    const size = Math.max(count, this.expected, 2 * this.x.length, ROOM);
    for (const [name, type] of Object.entries(this.columns)) {
      const longer = new type(size);
      longer.set(this[name]);
      this[name] = longer;
    }
  }

  // A frame's points; see `_columns` in map_page.py.
  add(body) {
    const [count, idBytes, moreBytes] = new Uint32Array(body.slice(0, 12));
    let start = 12;
    function taken(type) {
      const end = start + count * type.BYTES_PER_ELEMENT;
      const values = new type(body.slice(start, end));
      start = end;
      return values;
    }
    this.room(this.count + count);
    for (const name of ["x", "y", "time", "session"]) this[name].set(taken(this.columns[name]), this.count);
    const lengths = taken(Uint16Array);
    for (const name of ["kind", "origin", "placed"]) this[name].set(taken(Uint8Array), this.count);
    const ids = decoder.decode(new Uint8Array(body, start, idBytes));
    const more = JSON.parse(decoder.decode(new Uint8Array(body, start + idBytes, moreBytes)));
    let place = 0;
    for (const length of lengths) {
      this.ids.push(ids.slice(place, place + length));
      place += length;
    }
    this.sessions.push(...more.sessions);
    this.layout = more.layout || this.layout;
    this.count += count;
    this.known = null;
  }

  // A point that came or changed; where it stands among the columns.
  put({ id, x, y, time, session, kind, origin, placed }) {
    let star = this.index.get(id);
    if (star === undefined) {
      star = this.count;
      this.room(star + 1);
      this.count += 1;
      this.ids.push(id);
      this.index.set(id, star);
    } else if (this.gone[star]) {
      this.removed -= 1;
    }
    let number = this.sessions.indexOf(session);
    if (number < 0) number = this.sessions.push(session) - 1;
    const values = { x, y, time, session: number, kind, origin, placed: Number(placed), gone: 0 };
    for (const [name, value] of Object.entries(values)) this[name][star] = value;
    return star;
  }

  remove(id) {
    const star = this.index.get(id);
    if (star === undefined || this.gone[star]) return;
    this.gone[star] = 1;
    this.removed += 1;
  }

  // The point that is nearest to a place, at most so far away; -1 where there is none. Of those that are lit, if any are.
  nearest(x, y, reach, lit) {
    let best = -1;
    let least = reach * reach;
    for (let star = 0; star < this.count; star += 1) {
      if (this.gone[star] || (lit && !lit[star])) continue;
      const left = this.x[star] - x;
      const up = this.y[star] - y;
      const apart = left * left + up * up;
      if (apart <= least) {
        least = apart;
        best = star;
      }
    }
    return best;
  }
}

// Reads all frames of an address, and says whenever some have come.
export async function read(address, stars, tell) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(String(answer.status));
  const reader = answer.body.getReader();
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const bytes = new Uint8Array(rest.length + value.length);
    bytes.set(rest);
    bytes.set(value, rest.length);
    rest = bytes.subarray(taken(bytes, stars));
    tell();
  }
}

// Takes whole frames, and says how many bytes they had.
function taken(bytes, stars) {
  let start = 0;
  while (bytes.length - start >= 8) {
    const [kind, length] = new Uint32Array(bytes.slice(start, start + 8).buffer);
    if (bytes.length - start - 8 < length) break;
    const body = bytes.slice(start + 8, start + 8 + length).buffer;
    start += 8 + length;
    if (kind === HEAD) {
      const { seq, count } = JSON.parse(decoder.decode(body));
      Object.assign(stars, { seq, expected: count });
    } else if (kind === FAILED) {
      throw Object.assign(new Error("failed"), { said: JSON.parse(decoder.decode(body)) });
    } else {
      stars.add(body);
    }
  }
  return start;
}
