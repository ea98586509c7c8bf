import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  isMessage,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";

/**
 * The message that a plain object describes.
 *
 * @throws TypeError A name, at any depth, is no field's: dropped in silence it would change what is asked for. TypeScript
 *   says so before the program runs, plain JavaScript does not.
 */
export function messageOf<D extends DescMessage>(schema: D, init: MessageInitShape<D>): MessageShape<D> {
  checkNames(schema, init, "");
  return create(schema, init);
}

function checkNames(schema: DescMessage, init: unknown, path: string): void {
  // What somebody has made a message of had its names checked, or has dropped them already.
  if (!isObject(init) || isMessage(init)) return;
  for (const [name, value] of Object.entries(init)) {
    if (name.startsWith("$")) continue; // protobuf's own, such as $typeName
    const member = schema.members.find(({ localName }) => localName === name);
    if (!member) throw new TypeError(unknownName(schema, name, path));
    if (member.kind === "oneof") checkOneof(member, value, `${path}${name}.`);
    else checkField(member, value, `${path}${name}`);
  }
}

function checkOneof(oneof: DescOneof, value: unknown, path: string): void {
  if (!isObject(value) || value["case"] === undefined) return;
  const field = oneof.fields.find(({ localName }) => localName === value["case"]);
  if (!field) {
    const known = oneof.fields.map(({ localName }) => `"${localName}"`).join(", ");
    throw new TypeError(`${path}case is "${String(value["case"])}"; it is one of ${known}`);
  }
  checkField(field, value["value"], `${path}value`);
}

function checkField(field: DescField, value: unknown, path: string): void {
  if (!field.message || !isObject(value)) return;
  if (field.fieldKind === "message") checkNames(field.message, value, `${path}.`);
  else for (const [key, each] of Object.entries(value)) checkNames(field.message, each, `${path}[${key}].`);
}

function unknownName(schema: DescMessage, name: string, path: string): string {
  const field = schema.fields.find(field => field.name === name);
  const of =
    field && (field.oneof ? `${field.oneof.localName}: { case: "${field.localName}", value }` : field.localName);
  const known = schema.members.map(({ localName }) => localName).join(", ");
  return `${path}${name} is no field of ${schema.name}; ${of ? `write ${of}` : `its fields are ${known}`}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
