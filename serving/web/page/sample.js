// An illustration of attention, shown until the model has an output.

import { drawAttention } from "./attention.js";

const CONTRACT = { looks: { rows: "target", columns: "source", weights: "weights" }, inputs: [] };
const OUTPUTS = {
  source: ["▁Ich", "▁bin", "▁nicht", "▁müde", "."],
  target: ["▁I", "'m", "▁not", "▁tired", "."],
  weights: [
    [0.86, 0.1, 0.02, 0.01, 0.01],
    [0.24, 0.68, 0.05, 0.02, 0.01],
    [0.02, 0.06, 0.87, 0.04, 0.01],
    [0.01, 0.03, 0.09, 0.85, 0.02],
    [0.01, 0.02, 0.02, 0.07, 0.88],
  ],
};

export const drawSample = () => drawAttention(CONTRACT, OUTPUTS, {});
