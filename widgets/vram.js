// The memory of every device, live. State: see `vram_draw.js`, as JSON in bytes.

import { standalone } from "./standalone.js";
import { mountVram } from "./vram_mount.js";

export default standalone(mountVram);
