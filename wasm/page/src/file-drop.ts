// Opens dropped files. Only the last bytes of a data file are read.

import { type RaggedField, newBatch } from "./draft.js";
import { type Schema, type SchemaField, failureText } from "./guest.js";
import type { Model } from "./model.js";
import { count } from "./units.js";

const TAIL = 64 << 10;
const MOST_JSON = 8 << 20;

/** take reads a file into the layout and returns a message about it. */
export async function take(file: File, model: Model): Promise<string> {
  if (/\.json$/i.test(file.name)) {
    if (file.size > MOST_JSON) return `${file.name} is larger than 8 MiB, the limit for a layout.`;
    const error = await model.load(await file.text());
    return error ? `${file.name}: ${failureText(error)}` : `${file.name} is open.`;
  }
  const schema = await schemaOf(file, model);
  if (schema.error) return `${file.name}: ${failureText(schema.error)}`;
  return await adopt(schema, file.name, model);
}

/** schemaOf reads the fields of a data file. If the core needs more bytes from its end, it gets them. */
async function schemaOf(file: File, model: Model): Promise<Schema> {
  let want = Math.min(TAIL, file.size);
  for (let tries = 0; ; tries++) {
    const schema = await model.schema(new Uint8Array(await file.slice(file.size - want).arrayBuffer()), file.size);
    if (!(schema.need > want) || tries === 2) return schema;
    want = Math.min(schema.need, file.size);
  }
}

/** adopt turns the fields of a file into the arrays of the layout. Arrays of the same name keep their
 * specs. */
async function adopt(schema: Schema, name: string, model: Model): Promise<string> {
  const usable = schema.fields.flatMap((f) => (f.loadable && f.dtype && fixed(f.shape) ? [{ name: f.name, shape: f.shape, dtype: f.dtype }] : []));
  const ragged = schema.fields.flatMap(raggedField);
  if (usable.length + ragged.length === 0) return `${name} has no field that can be loaded: ${schema.fields.map(refusal).join(", ")}`;
  await model.edit((d) => {
    const first = d.axes[0] ? [[d.axes[0].name]] : [];
    d.arrays = usable.map((f) => ({
      name: f.name,
      field: null,
      columns: null,
      shape: ["B", ...f.shape],
      names: [],
      dtype: f.dtype,
      spec: d.arrays.find((a) => a.name === f.name)?.spec.slice(0, f.shape.length + 1) ?? first,
    }));
    d.batch = d.batch?.size.length === 1 ? d.batch : newBatch();
    const fields = new Map(usable.map((f) => [f.name, new Map<string, number[] | string>([["shape", f.shape], ["dtype", f.dtype]])]));
    const records = schema.rows ?? d.dataset?.records ?? null;
    [d.files, d.ragged] = [name, ragged];
    d.dataset = records === null ? null : { records, fields, fingerprint: null, order: d.dataset?.order ?? null, seed: d.dataset?.seed ?? 0 };
  });
  const rest = schema.fields.filter((f) => ![...usable, ...ragged].some((u) => u.name === f.name)).map(refusal);
  const rows = schema.rows === null ? "" : `, ${count(schema.rows, "record")}`;
  const lengths = ragged.length > 0 ? ` Rows of different lengths: ${ragged.map((f) => f.name).join(", ")}; choose a length under "Arrays".` : "";
  return `${name}: ${count(usable.length, "field")}${rows}.${lengths}${rest.length > 0 ? ` Not loadable: ${rest.join(", ")}` : ""}`;
}

/** raggedField returns a field that a view can pad: the length of its rows is unknown, and all further sizes are known. */
function raggedField(f: SchemaField): RaggedField[] {
  const [first, ...element] = f.shape ?? [0];
  return first === null && f.dtype && fixed(element) ? [{ name: f.name, dtype: f.dtype, element }] : [];
}

function refusal(f: SchemaField): string {
  return `${f.name} (${f.why || `${f.type} has no fixed shape`})`;
}

function fixed(shape: (number | null)[] | null): shape is number[] {
  return shape !== null && shape.every((n) => n !== null);
}
