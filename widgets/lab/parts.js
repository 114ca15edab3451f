// The parts of the lab view, in the order in which they are read: a name (of the part's state), a
// title, what mounts it, whether it `pins` controls below all parts, whether it `scrolls` as a whole,
// and what it draws in an `absent` state, as of a past without it; `layout.js` says where they stand.

import { mountAgents } from "../agents/mount.js";
import { mountCollectives } from "../collectives/mount.js";
import { mountHealth } from "../health/mount.js";
import { mountJournal } from "../journal/mount.js";
import { mountKernels } from "../kernels/mount.js";
import { mountPatterns } from "../patterns/mount.js";
import { mountSupervision } from "../supervision/mount.js";
import { mountTimeline } from "../timeline/mount.js";
import { mountTopology } from "../topology/mount.js";
import { mountTraining } from "../training/mount.js";
import { mountTree } from "../tree/mount.js";
import { mountValues } from "../values/mount.js";
import { mountVram } from "../vram/mount.js";

export const LAB_PARTS = [
  { name: "tree", title: "Actors", mount: mountTree },
  { name: "supervision", title: "Supervision", mount: mountSupervision },
  { name: "timeline", title: "Timeline", mount: mountTimeline },
  { name: "kernels", title: "Kernels", mount: mountKernels },
  { name: "vram", title: "Memory", mount: mountVram, scrolls: true },
  { name: "health", title: "Health", mount: mountHealth },
  { name: "training", title: "Training", mount: mountTraining, absent: ({ closed }) => ({ lab: "", runs: [], closed, past: true }) },
  { name: "values", title: "Values", mount: mountValues, absent: ({ closed }) => ({ lab: "", series: [], closed, past: true }) },
  { name: "collectives", title: "Collectives", mount: mountCollectives, absent: ({ closed }) => ({ lab: "", worlds: [], closed, past: true }) },
  { name: "topology", title: "Peers", mount: mountTopology, absent: ({ closed }) => ({ lab: "", devices: [], closed, past: true }) },
  { name: "patterns", title: "Patterns", mount: mountPatterns, absent: ({ closed }) => ({ lab: "", patterns: [], closed, past: true }) },
  { name: "agents", title: "Agents", mount: mountAgents, absent: ({ closed }) => ({ lab: "", agents: [], closed, past: true }) },
  { name: "journal", title: "Journal", mount: mountJournal, pins: true },
];
