// The timeline, live. State: as `TimelineView.fold` says, as JSON in bytes; columns: as `Tally.pack` says.

import { standalone } from "../shared/standalone.js";
import { mountTimeline } from "./mount.js";

export default standalone(mountTimeline);
