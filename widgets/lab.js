// The lab: the useful views of one system side by side. State: {tree, vram, …, closed}, of each part
// what its own view has, and so the columns; `labPacks` says how they are told apart.

import { LAB_PARTS } from "./lab_parts.js";
import { mountLab } from "./lab_mount.js";
import { standalone } from "./standalone.js";

export default standalone((root, bus) => mountLab(root, bus, LAB_PARTS));
