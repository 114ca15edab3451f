// The memory of every device, live. State: see `draw.js`, as JSON in bytes.

import { standalone } from "../shared/standalone.js";
import { mountVram } from "./mount.js";

export default standalone(mountVram);
