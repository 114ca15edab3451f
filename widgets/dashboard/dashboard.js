// The systems of a dashboard. State: {systems: [{key, name, program, folder, pid, up_s, …}], shown};
// what is zero or absent is left out. Choosing one sends {do: "choose", system: key}.

import { mountDashboard } from "./mount.js";
import { standalone } from "../shared/standalone.js";

export default standalone(mountDashboard);
