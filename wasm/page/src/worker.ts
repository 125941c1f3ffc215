// The worker of the layout core, which is Go code compiled to WebAssembly.

import { Answers } from "./answers.js";
import { serve } from "./serve.js";

serve((module) => new Answers(module));
