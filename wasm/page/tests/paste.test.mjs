// Pasted text: what the page accepts, and its messages for the rest.

import assert from "node:assert/strict";
import { test } from "node:test";
import { modules } from "./modules.mjs";

const { paste, apply, parse, parseSpec, readOrder, setOrder, orderText } = await modules("paste", "draft", "spec-text", "device-order");

const BASE = '{"meshfeed":1,"mesh":{"axes":[["data",4],["model",2]],"processes":4},"arrays":{"image":{"shape":["B",8,8],"dtype":"float32","spec":["data",null,"model"]},"label":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":256}}';

/** pasted returns the mesh and the specs of a draft after a paste. */
function pasted(text, shown = "image") {
  const d = parse(BASE);
  apply(paste(text), d, shown);
  const spec = (a) => a.spec.map((e) => e.join("+") || "-").join(" ");
  const order = d.devices ? ` in order ${orderText(d.devices, 9)}` : "";
  return `${d.axes.map((a) => `${a.name} ${a.size}`).join(", ")} on ${d.processes}${order}; ${d.arrays.map((a) => `${a.name}: ${spec(a)}`).join("; ")}`;
}

const READ = {
  // JAX
  "jax.make_mesh((4, 2), ('x', 'y'))": "x 4, y 2 on 4; image: data - model; label: data",
  'mesh = jax.make_mesh([2, 4], ["x", "y"], axis_types=(AxisType.Auto,) * 2)': "x 2, y 4 on 4; image: data - model; label: data",
  "jax.make_mesh(axis_names=('x',), axis_shapes=(16,))": "x 16 on 4; image: data - model; label: data",
  "jax.make_mesh((3,), ('x',), devices=jax.devices()[:3])": "x 3 on 1; image: data - model; label: data",
  'Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))': "x 4, y 2 on 4; image: data - model; label: data",
  "jax.sharding.Mesh(np.asarray(jax.devices()).reshape((2, 2, 2)), axis_names=('a', 'b', 'c'))": "a 2, b 2, c 2 on 4; image: data - model; label: data",
  "devices = mesh_utils.create_device_mesh((8, 1))\nmesh = Mesh(devices, axis_names=('x', 'y'))": "x 8, y 1 on 4; image: data - model; label: data",
  "Mesh('data': 2, 'model': 8, axis_types=(Auto, Auto))": "data 2, model 8 on 4; image: data - model; label: data",
  "Mesh(axis_sizes=(2, 8), axis_names=('data', 'model'), axis_types=(Explicit, Explicit))": "data 2, model 8 on 4; image: data - model; label: data",
  "AbstractMesh((('x', 4), ('y', 2)))": "x 4, y 2 on 4; image: data - model; label: data",
  "AbstractMesh((4, 2), ('x', 'y'))": "x 4, y 2 on 4; image: data - model; label: data",
  "P('model', ('data',))": "data 4, model 2 on 4; image: model data; label: data",
  "P(('data', 'model'), None, None)": "data 4, model 2 on 4; image: data+model - -; label: data",
  "PartitionSpec()": "data 4, model 2 on 4; image: ; label: data",
  "jax.P(None, 'data')": "data 4, model 2 on 4; image: - data; label: data",
  "P()\nP('model')": "data 4, model 2 on 4; image: ; label: model",
  "label = NamedSharding(mesh, P(None))": "data 4, model 2 on 4; image: data - model; label: -",
  "label: jax.sharding.Sharding = jax.sharding.NamedSharding(\n    mesh,\n    jax.sharding.PartitionSpec('model'),\n)": "data 4, model 2 on 4; image: data - model; label: model",
  "specs = {'label': P('model'), 'image': P()}": "data 4, model 2 on 4; image: ; label: model",
  "NamedSharding(mesh=Mesh('a': 4, 'b': 2, axis_types=(Auto, Auto)), spec=P('a', 'b'), memory_kind=device)": "a 4, b 2 on 4; image: a b; label: -",
  "mesh = jax.make_mesh((2, 4), ('x', 'y'))  # P('z')\nimage = NamedSharding(mesh, P(('x', 'y'), None))\nlabel: P('y')": "x 2, y 4 on 4; image: x+y -; label: y",
  "in_specs=(P('data'), P('model'))": "data 4, model 2 on 4; image: data; label: model",
  "first = NamedSharding(mesh, spec)\nlabel = P('model')": "data 4, model 2 on 4; image: data - model; label: model",
  "P('model')\nimage = P()": "data 4, model 2 on 4; image: ; label: model",
  // XLA
  "{devices=[2,4]<=[8]}": "axis0 2, axis1 4 on 4; image: axis0 axis1; label: -",
  "{devices=[4,1,2]<=[8] last_tile_dim_replicate}": "data 4, model 2 on 4; image: data -; label: data",
  "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}": "data 4, model 2 on 4; image: model -; label: data",
  "mhlo.sharding = \"{devices=[2,2]<=[4]}\"": "axis0 2, axis1 2 on 4; image: axis0 axis1; label: -",
  "{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={replicated}}": "axis0 2, axis1 2, axis2 2 on 4; image: axis1 axis2; label: -",
  "devices=[2,2]0,2,1,3": "axis0 2, axis1 2 on 4 in order p0: 0 · p2: 2 · p1: 1 · p3: 3; image: axis0 axis1; label: -",
  "{devices=[1,1]<=[1]}": " on 1; image: - -; label: -",
  "{replicated}": "data 4, model 2 on 4; image: ; label: data",
  // Shardy
  'sdy.mesh @mesh = <["x"=4, "y"=2]>': "x 4, y 2 on 4; image: data - model; label: data",
  'sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>': "x 2, y 2 on 4 in order p0: 0 · p2: 2 · p1: 1 · p3: 3; image: data - model; label: data",
  '#sdy.sharding<@mesh, [{"model"}, {}]>': "data 4, model 2 on 4; image: model -; label: data",
  '#sdy.sharding<@mesh, []>': "data 4, model 2 on 4; image: ; label: data",
  '#sdy.sharding<@mesh_0, [{"data", "model", ?}p1, {?}], replicated={}>': "data 4, model 2 on 4; image: data+model -; label: data",
  'sdy.mesh @m = <["a"=2, "b"=4]>\n%0 : tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {"a"}]>}': "a 2, b 4 on 4; image: b a; label: -",
  '#sdy.sharding_per_value<[<@mesh, [{"model"}]>, <@mesh, [{}]>]>': "data 4, model 2 on 4; image: model; label: -",
  '#sdy.sharding<mesh<["a"=2]>, [{"a"}]>': "a 2 on 1; image: a; label: -",
};

const REFUSED = {
  "make_mesh((4, 2), ('x',))": "the mesh has 2 sizes and 1 names",
  "make_mesh((n, 2), ('x', 'y'))": "the sizes of the mesh are (n, 2), but numbers are expected: make_mesh((4, 2), …), or reshape(4, 2)",
  "Mesh(devices, ('x', 'y'))": "the sizes of the mesh are devices, but numbers are expected: make_mesh((4, 2), …), or reshape(4, 2)",
  "Mesh(np.array(jax.devices()).reshape(-1, 2), ('x', 'y'))": "the sizes of the mesh are np.array(jax.devices()).reshape(-1, 2), but numbers are expected: make_mesh((4, 2), …), or reshape(4, 2)",
  "jax.make_mesh((4, 2), ('x', 'y')": "a parenthesis is not closed: jax.make_mesh((4, 2), ('x', 'y')…",
  "Mesh('a': 4) Mesh('a': 2)": "the text contains several different meshes; paste one of them",
  "P(P.UNCONSTRAINED, 'x')": "P(P.UNCONSTRAINED, 'x') leaves a dimension to the compiler; expected None or axes",
  "P('x', unreduced={'y'})": "P('x', unreduced={'y'}) is not a spec; expected axes and None, such as P('data', None)",
  "P(*names)": "P(*names) is not a spec; expected axes and None, such as P('data', None)",
  "P('a'), P('b'), P('c')": "there are 3 specs, but 2 arrays; add arrays first, or paste fewer",
  "{devices=[2,2]<=[8]}": "[2,2] are 4 tiles, but [8] are 8 devices",
  "{devices=[2,2]<=[2,2]T(0,0)}": "T(0,0) is not an order of the dimensions of [2,2]",
  "{devices=[2,2]0,1,2}": "[2,2] are 4 tiles, but 3 devices are listed",
  "{devices=[2,2]0,1,2,2}": "device 2 is at positions 2 and 3, counted from 0",
  "{devices=[3,2]<=[2,3]}": "tiles [3,2] do not divide into devices [2,3], so no axes make them",
  "{devices=[0]<=[0]}": "[0] are 0 tiles, but 1 to 1048576 are expected",
  "{devices=[2048,1024]<=[2097152]}": "[2048,1024] are 2097152 tiles, but 1 to 1048576 are expected",
  "{{devices=[2]<=[2]}, {devices=[4]<=[4]}}": "the text contains several shardings; paste them one by one",
  "{maximal device=0}": "only tiles and replicas can be written as a partition spec: expected {devices=[…]…} or {replicated}",
  "{devices=[2,2]<=[4] last_tile_dims={manual}}": "only tiles and replicas can be written as a partition spec: expected {devices=[…]…} or {replicated}",
  '#sdy.sharding<@mesh, [{"x":(1)2}, {}]>': 'a part of an axis, such as "x":(1)2, cannot be written as a partition spec',
  '#sdy.sharding<@mesh, [{}], unreduced={"x"}>': "unreduced sums cannot be an input, so a layout cannot contain them",
};

test("accepted forms are parsed", () => {
  for (const [text, want] of Object.entries(READ)) assert.equal(pasted(text), want, text);
});

test("a spec without a name is set on the array that is shown", () => {
  assert.equal(pasted("P('model')", "label"), "data 4, model 2 on 4; image: data - model; label: model");
  assert.equal(pasted("P('model')\nP()", "label"), "data 4, model 2 on 4; image: ; label: model");
});

test("specs lose the axes that a pasted mesh does not have", () => {
  const d = parse(BASE);
  d.batch.maskSpec = [["data", "model"]];
  apply(paste("make_mesh((4, 2), ('x', 'model')) P('x')"), d, "image");
  assert.deepEqual([...d.arrays.map((a) => a.spec), d.batch.maskSpec], [[["x"]], [[]], [["model"]]]);
});

test("unusable text is rejected with what is expected", () => {
  for (const [text, want] of Object.entries(REFUSED)) assert.throws(() => pasted(text), { message: want }, text);
  for (const text of ["", "hello", "x = 1", "SUP('x')", "Remesh((4,), ('x',))", "devices=", "<>", "[[[["]) assert.equal(paste(text), null, text);
});

/** tile returns the tile of each device of an XLA sharding, by XLA's definition. */
function tile(cut, from, order) {
  const grid = order.map((d) => from[d]);
  const strides = from.map((_, d) => from.slice(d + 1).reduce((a, b) => a * b, 1));
  const out = [];
  for (let i = 0; i < grid.reduce((a, b) => a * b, 1); i++) {
    let device = 0;
    for (let d = grid.length - 1, rest = i; d >= 0; rest = Math.floor(rest / grid[d--])) device += (rest % grid[d]) * strides[order[d]];
    out[device] = cut.map((n, d) => Math.floor(i / cut.slice(d + 1).reduce((a, b) => a * b, 1)) % n).join();
  }
  return out;
}

/** held returns the tile of each device of a mesh by a spec. */
function held(axes, spec, devices) {
  return Array.from({ length: devices }, (_, device) => {
    const at = {};
    for (let i = axes.length - 1, rest = device; i >= 0; rest = Math.floor(rest / axes[i--].size)) at[axes[i].name] = rest % axes[i].size;
    const size = (n) => axes.find((a) => a.name === n).size;
    return spec.map((entry) => entry.reduce((n, name) => n * size(name) + at[name], 0)).join();
  });
}

test("the axes of an XLA sharding put every tile on XLA's device", () => {
  let tried = 0;
  for (const from of [[8], [2, 4], [4, 2], [2, 2, 2], [3, 4], [2, 3, 4], [1, 8]]) {
    for (const order of orders(from.length)) {
      for (const cut of cuts(from.reduce((a, b) => a * b, 1), 3)) {
        let found;
        try {
          found = paste(`{devices=[${cut}]<=[${from}]T(${order})}`);
        } catch (refused) {
          assert.match(refused.message, /do not divide/);
          continue;
        }
        tried++;
        assert.deepEqual(held(found.axes, found.specs[0].spec, from.reduce((a, b) => a * b, 1)), tile(cut, from, order), `[${cut}]<=[${from}]T(${order})`);
      }
    }
  }
  assert.ok(tried > 150, `only ${tried} shardings have axes`);
});

function orders(n) {
  if (n === 0) return [[]];
  return orders(n - 1).flatMap((rest) => Array.from({ length: n }, (_, at) => [...rest.slice(0, at), n - 1, ...rest.slice(at)]));
}

function cuts(total, rank) {
  if (rank === 1) return [[total]];
  return Array.from({ length: total }, (_, i) => i + 1).filter((n) => total % n === 0).flatMap((n) => cuts(total / n, rank - 1).map((rest) => [n, ...rest]));
}

test("a typed spec is parsed, or is null", () => {
  const read = (text) => JSON.stringify(parseSpec(text));
  for (const [text, want] of Object.entries({
    "P('data', None)": '[["data"],[]]',
    "(data, fsdp), model": '[["data","fsdp"],["model"]]',
    "P((), 'x',)": '[[],["x"]]',
    "PartitionSpec(None)": "[[]]",
    "P('a=b', \"it's\")": '[["a=b"],["it\'s"]]',
    "": "[]",
    "P('a' 'b')": "null",
    "P(('a', ('b',)))": "null",
    "P(('a'": "null",
    "P(,)": "null",
    "P(*axes)": "null",
    "P({data})": "null",
    "P(P.UNCONSTRAINED)": "null",
    "P('x', unreduced={'y'})": "null",
  })) assert.equal(read(text), want, text);
});

const ORDERS = [
  ["3, 2, 1, 0", 4, 2, "p1: 3, 2 · p0: 1, 0"],
  ["[[0, 1], [4, 5]]", 4, 2, "p0: 0–1 · p1: 4–5"],
  ["[[[0], [2]], [[1], [3]]]", 4, 1, "p0: 0, 2, 1, 3"],
  ["array([[0, 2],\n       [1, 3]], dtype=int32)", 4, 4, "p0: 0 · p2: 2 · p1: 1 · p3: 3"],
  ["[[0 2]\n [1 3]]", 4, 2, "p0: 0 · p1: 2 · p0: 1 · p1: 3"],
  ["[[0, 0], [1, 4], [1, 5], [0, 1]]", 4, 4, "p0: 0 · p1: 4–5 · p0: 1"],
  ["[[0, 0], [1, 1]]", 2, 2, "p0: 0 · p1: 1"],
  ["[[3, 7]]", 1, 1, "p3: 7"],
  ["array([[CpuDevice(id=1), CpuDevice(id=0)]], dtype=object)", 2, 2, "p1: 1 · p0: 0"],
  ["[TpuDevice(id=3, process_index=7, coords=(0,1,0), core_on_chip=0) TpuDevice(id=0, process_index=2, coords=(0,0,0), core_on_chip=0)]", 2, 1, "p7: 3 · p2: 0"],
  ["0 1 2 3 8 9 10 11 4 5 6 7", 12, 3, "p0: 0–3 · p2: 8–11 · p1: 4–7"],
];

const NO_ORDERS = [
  ["0, 1, 2", 4, 2, "expected 4 ids, or 4 [process, id] pairs, in mesh order, but found 3 numbers"],
  ["0, 1, 2, 1", 4, 2, "device 1 is at positions 1 and 3, counted from 0"],
  ["[[0, 5], [1, 5]]", 2, 2, "device 5 is at positions 0 and 1, counted from 0"],
  ["0, 1, 2, 3", 4, 3, "4 devices cannot be distributed over 3 processes in equal parts; give [process, id] pairs"],
  ["0, 1, -2, 3", 4, 2, "expected 4 ids, or 4 [process, id] pairs, in mesh order"],
  ["a, b", 2, 2, "expected 2 ids, or 2 [process, id] pairs, in mesh order"],
  ["", 2, 2, "expected 2 ids, or 2 [process, id] pairs, in mesh order"],
  ["[CpuDevice(id=1)]", 2, 2, "expected 2 devices, but found 1"],
  ["[CpuDevice(id=1) CpuDevice(id=1)]", 2, 2, "device 1 is at positions 0 and 1, counted from 0"],
];

test("a device order is parsed, and formatted in runs", () => {
  for (const [text, devices, processes, want] of ORDERS) assert.equal(orderText(readOrder(text, devices, processes), 99), want, text);
  assert.equal(orderText(readOrder("5 4 3 2 1 0", 6, 1), 3), "p0: 5, 4, 3, … (3 devices more)");
});

test("a row-major order needs no list", () => {
  for (const [devices, listed] of [[[[0, 0], [0, 1], [1, 2], [1, 3]], false], [[[0, 0], [1, 1], [0, 2], [1, 3]], true], [[[0, 0], [0, 1], [0, 2], [1, 3]], true], [[[0, 0], [0, 2], [1, 1], [1, 3]], true]]) {
    const d = { devices: null, processes: 1 };
    setOrder(d, devices);
    assert.deepEqual(d, { devices: listed ? devices : null, processes: 2 });
  }
});

test("an invalid device order is rejected with what is expected", () => {
  for (const [text, devices, processes, want] of NO_ORDERS) assert.throws(() => readOrder(text, devices, processes), { message: want }, text);
});
