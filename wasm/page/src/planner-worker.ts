// The worker of the strategy planner.

import { Planner } from "./planner.js";
import { serve } from "./serve.js";

serve((module) => new Planner(module));
