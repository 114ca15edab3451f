// The sidebar, live. State: {lab, devices, faults, closed}; `sidebar.py` says what a device is.

import { mountSidebar } from "./mount.js";
import { standalone } from "../shared/standalone.js";

export default standalone(mountSidebar);
