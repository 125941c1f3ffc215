// The form of the cluster: kind and number of devices, own numbers, the bounds of the search, and the input.

import { html } from "lit";
import type { Device } from "./advice.js";
import { Fields, powers } from "./fields.js";
import { decimal } from "./quantities.js";
import { textAt } from "./strategy-draft.js";

const DEVICES = powers(1, 1 << 16, true);
const AXES = ["pipe", "data", "fsdp", "expert", "context", "tensor"];

export class ClusterFields extends Fields {
  protected override inputs(): unknown {
    const name = textAt(this.model.wanted, "/cluster/device");
    const kind = this.model.catalog.devices.find((d) => d.name === name) ?? null;
    const kinds = this.model.catalog.devices.map((d): [string, string] => [d.name, d.title]);
    return html`<h2>Cluster</h2><div class="grid">
      <div class="wide">${this.choice("device", "/cluster/device", [["", "own numbers"], ...kinds], "")}</div>
      ${this.slider("devices", "/cluster/devices", DEVICES, null)}
      ${this.number("devices per node", "/cluster/per_node", kind ? String(kind.per_node) : "all")}
      ${this.quantity("memory", "/cluster/memory_bytes", memoryOf(kind), "B")}
    </div>
    ${this.more("own numbers of the devices", OWN.map((key) => `/cluster/${key}`), html`
      ${this.quantity("FLOP/s", "/cluster/flops_per_second", usual(kind), "FLOP/s")}
      ${this.quantity("HBM per second", "/cluster/hbm_bytes_per_second", usual(kind), "B/s")}
      ${this.quantity("node link, one way", "/cluster/node_bytes_per_second", usual(kind), "B/s")}
      ${this.quantity("network, one way", "/cluster/network_bytes_per_second", usual(kind), "B/s")}
      ${this.number("node latency, ns", "/cluster/node_latency_ns", "default", 0)}
      ${this.number("network latency, ns", "/cluster/network_latency_ns", "default", 0)}
      ${this.quantity("host memory", "/cluster/host_bytes", "unknown", "B")}`)}
    ${this.more("bounds of the search", ["/search"], html`
      ${AXES.map((axis) => this.numbers(`sizes of ${axis}`, `/search/axes/${axis}`, "any"))}
      ${this.numbers("ZeRO stages", "/search/zero", "0, 1, 2")}
      ${this.decimalNumber("free memory", "/search/margin", "0.1")}
      ${this.number("candidates shown", "/search/keep", "20")}`)}
    ${this.more("the input", ["/input"], html`
      ${this.number("rows per second", "/input/rows_per_second", "unknown")}
      ${this.number("processes", "/input/processes", "one per node")}`)}`;
  }
}

const OWN = ["flops_per_second", "hbm_bytes_per_second", "node_bytes_per_second", "network_bytes_per_second", "node_latency_ns", "network_latency_ns", "host_bytes"];

function memoryOf(kind: Device | null): string {
  return kind?.memory ? decimal(kind.memory, "B") : "unknown";
}

function usual(kind: Device | null): string {
  return kind ? "of the device" : "unknown";
}

customElements.define("cluster-fields", ClusterFields);
