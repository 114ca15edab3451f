// The lab: the useful views of one system side by side. State: {tree, vram, …, closed}, of each part
// what its own view has, and so the columns; `labPacks` says how they are told apart.

import { LAB_PARTS } from "./parts.js";
import { mountLab } from "./mount.js";
import { standalone } from "../shared/standalone.js";

export default standalone((root, bus) => mountLab(root, bus, LAB_PARTS));
