// Which colour each star has, and what the colours mean.

// Of style sheets: none, then ten that differ, then five from new to old.
export const PAINTS = 16;
const PLAIN = 0;
const DISTINCT = 10;
const FIRST_AGE = 11;
const DAY_S = 86400;
const AGES_S = [DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S];

// groups: the paint of each star. legend: what there is of each, the most first but by age.
export function colouring(stars, by, names, said) {
  const groups = new Uint8Array(stars.count);
  const counts = new Map();
  const valueOf = { kind: (star) => stars.kind[star], origin: (star) => stars.origin[star], session: (star) => stars.session[star], age: ageOf(stars) }[by];
  for (let star = 0; star < stars.count; star += 1) {
    if (stars.gone[star]) continue;
    const value = valueOf(star);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const paints = painted(by, counts);
  for (let star = 0; star < stars.count; star += 1) groups[star] = paints.get(valueOf(star)) ?? PLAIN;
  return { groups, legend: legend(stars, by, counts, paints, names, said) };
}

function ageOf(stars) {
  const now = Date.now() / 1000;
  return (star) => {
    const age = AGES_S.findIndex((limit) => now - stars.time[star] < limit);
    return age < 0 ? AGES_S.length : age;
  };
}

// A kind, an origin and an age keep their colours; sessions have them by size.
function painted(by, counts) {
  if (by === "age") return new Map([...counts.keys()].map((age) => [age, FIRST_AGE + age]));
  if (by === "session") {
    const largest = [...counts].filter(([number]) => number).sort(([, one], [, other]) => other - one);
    return new Map(largest.slice(0, DISTINCT).map(([number], place) => [number, 1 + place]));
  }
  return new Map([...counts.keys()].filter((value) => value && value <= DISTINCT).map((value) => [value, value]));
}

function legend(stars, by, counts, paints, names, said) {
  const nameOf = by === "session" ? (number) => stars.sessions[number] : (value) => names[by][value] ?? String(value);
  const rows = [...paints].map(([value, paint]) => ({ paint, name: nameOf(value), count: counts.get(value) }));
  rows.sort((one, other) => (by === "age" ? one.paint - other.paint : other.count - one.count));
  const rest = [...counts].filter(([value]) => !paints.has(value));
  for (const [name, some] of [[said.others, rest.filter(([value]) => value)], [said.none, rest.filter(([value]) => !value)]]) {
    const count = some.reduce((sum, [, each]) => sum + each, 0);
    if (count) rows.push({ paint: PLAIN, name, count });
  }
  let waiting = 0;
  for (let star = 0; star < stars.count; star += 1) waiting += !stars.placed[star] && !stars.gone[star];
  if (waiting) rows.push({ paint: "waiting", name: said.waiting, count: waiting });
  return rows;
}
