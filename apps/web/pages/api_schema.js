// What a body looks like, of its JSON Schema: fields with their types, those within them on demand.
import {h} from "../dom.js";

// The schema a reference leads to, with the last part of the reference as its name.
export function resolved(schema, document, name = "") {
  let found = schema ?? {};
  for (let i = 0; found.$ref && i < 10; ++i) {
    const parts = found.$ref.replace("#/", "").split("/");
    name = parts.at(-1);
    found = parts.reduce((node, part) => node?.[part], document) ?? {};
  }
  return {name, schema: found};
}

// "string", "integer (int32)", "array of PermitInfo", "one of held, closed"
export function type_text(schema, document) {
  const {name, schema: found} = resolved(schema, document);
  if (found.enum) return `one of ${found.enum.join(", ")}`;
  if (found.anyOf) return found.anyOf.map((one) => type_text(one, document)).join(", or ");
  if (found.type === "array") return `array of ${type_text(found.items, document)}`;
  if (found.type === "object" && found.properties) return name || "object";
  if (found.type === "object" && found.additionalProperties) {
    return found.additionalProperties === true ? "any object" : `map of ${type_text(found.additionalProperties, document)}`;
  }
  const like = found.examples ? `, like ${found.examples.map((one) => JSON.stringify(one)).join(" or ")}` : "";
  return (found.type ? found.type + (found.format ? ` (${found.format})` : "") : "any JSON") + like;
}

// The object with fields that a schema is, or consists of; null if there is none.
function object_in(schema, document) {
  const {schema: found} = resolved(schema, document);
  if (found.properties) return found;
  for (const inner of [found.items, ...(found.anyOf ?? []),
    typeof found.additionalProperties === "object" && found.additionalProperties]) {
    const object = inner && object_in(inner, document);
    if (object) return object;
  }
  return null;
}

// The fields of the schema as a list; an object within is a line that can be opened.
export function schema_element(schema, document) {
  const object = object_in(schema, document);
  const {schema: found} = resolved(schema, document);
  const text = found.description && h("p", {class: "dim"}, found.description);
  if (!object) return h("div", {class: "schema"}, h("p", {}, type_text(schema, document)), text);
  return h("div", {class: "schema"}, found === object ? null : h("p", {}, type_text(schema, document)), text,
    h("ul", {}, Object.entries(object.properties).map(([name, field]) => {
      const {schema: of_field} = resolved(field, document);
      const line = [h("code", {}, name), " ", h("span", {class: "dim"}, type_text(field, document),
        object.required?.includes(name) && ", always there"), of_field.description && h("span", {class: "dim"}, `. ${of_field.description}`)];
      if (!object_in(field, document)) return h("li", {}, line);
      return h("li", {}, lazy_details(line, () => schema_element(field, document)));
    })));
}

// A <details> whose content is made when it is opened for the first time. With open: at once, since
// the browser tells of an opening only later, and keys pressed until then would find nothing in it.
export function lazy_details(summary, make, {open = false, ...properties} = {}) {
  const fill = () => details.open && details.children.length === 1 && details.append(make());
  const details = h("details", {...properties, ontoggle: (event) => event.target === details && fill()}, h("summary", {}, summary));
  details.open = open;
  fill();
  return details;
}

// A value of the schema, as an example: its first few plain fields.
export function example_of(schema, document, depth = 0) {
  const {schema: found} = resolved(schema, document);
  if (found.examples) return found.examples[0];
  if (found.enum) return found.enum.find((word) => !/unspecified/i.test(word)) ?? found.enum[0];
  if (found.anyOf) return example_of(found.anyOf[0], document, depth);
  if (found.type === "array") return depth > 2 ? [] : [example_of(found.items, document, depth + 1)];
  if (found.type === "object") {
    const fields = Object.entries(found.properties ?? {}).filter(([name]) => name !== "namespace").slice(0, depth === 0 ? 4 : 2);
    return depth > 2 ? {} : Object.fromEntries(fields.map(([name, field]) => [name, example_of(field, document, depth + 1)]));
  }
  if (found.format === "date-time") return "2026-11-18T12:00:00Z";
  return {integer: 1, number: 1, boolean: true, string: found.format === "int64" ? "1" : "…"}[found.type] ?? "…";
}
