// The timeline, live. State: as `TimelineView.fold` says, as JSON in bytes; columns: as `Tally.pack` says.

import { standalone } from "./standalone.js";
import { mountTimeline } from "./timeline_mount.js";

export default standalone(mountTimeline);
