// median.js - of measurements; of two in the middle the upper one.

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
