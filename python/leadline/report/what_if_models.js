"use strict";
// One evaluator per kind of model. Each takes what the Python model embedded and returns
// workload -> { lnMbS, lnSd, noiseLnSd }: ln of MB/s, its standard deviation, that of one run.
const leadlineModels = (() => {
  const square = (number) => number * number;

  // ---- product of curves: leadline/predict/product.py -------------------------------------------

  const addWeights = (weights, line, value) => {
    const { places, nodes } = line;
    if (places.length === 1) {
      weights[nodes[0]] += 1;
      return;
    }
    const at = line.log ? Math.log(value) : value;
    const x = Math.min(Math.max(at, places[0]), places[places.length - 1]);
    let right = 1;
    while (right < places.length - 1 && places[right] < x) right += 1;
    const share = (x - places[right - 1]) / (places[right] - places[right - 1]);
    weights[nodes[right - 1]] += 1 - share;
    weights[nodes[right]] += share;
  };

  const product = (model) => {
    const { ln_mb_s: lnMbS, variance } = model.nodes;
    const regionOf = (bytes) =>
      model.regions.findLast((region, at) => at === 0 || region.low_bytes < bytes);
    return (workload) => {
      const region = regionOf(workload.unique_bytes);
      const weights = new Float64Array(lnMbS.length);
      addWeights(weights, model.unique_bytes, workload.unique_bytes);
      for (const [parameter, line] of Object.entries(region.curves)) {
        addWeights(weights, line, workload[parameter]);
        weights[region.focal_node] -= 1;
      }
      let mean = 0, spread = square(model.interaction_ln_sd);
      weights.forEach((weight, node) => {
        mean += weight * lnMbS[node];
        spread += square(weight) * variance[node];
      });
      return { lnMbS: mean, lnSd: Math.sqrt(spread), noiseLnSd: region.noise_ln_sd };
    };
  };

  // ---- linear algebra on packed matrices --------------------------------------------------------

  const unpack = ({ rows, columns, symmetric, float64 }) => {
    const text = atob(float64);
    const bytes = new DataView(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
    const numbers = new Float64Array(bytes.byteLength / 8);
    for (let at = 0; at < numbers.length; at += 1) numbers[at] = bytes.getFloat64(8 * at, true);
    return { rows, columns, symmetric, numbers };
  };

  const dot = (left, right) => {
    let sum = 0;
    for (let at = 0; at < left.length; at += 1) sum += left[at] * right[at];
    return sum;
  };

  const times = (matrix, vector) => matrix.map((row) => dot(row, vector));

  const rowsOf = ({ rows, columns, numbers }) =>
    Array.from({ length: rows }, (_, row) =>
      numbers.subarray(row * columns, (row + 1) * columns));

  // v' M v; a symmetric M holds its rows from the diagonal on.
  const quadratic = ({ rows, columns, symmetric, numbers }, vector) => {
    let sum = 0, at = 0;
    for (let row = 0; row < rows; row += 1) {
      let inner = symmetric ? vector[row] * numbers[at++] / 2 : 0;
      for (let column = symmetric ? row + 1 : 0; column < columns; column += 1)
        inner += numbers[at++] * vector[column];
      sum += inner * vector[row];
    }
    return symmetric ? 2 * sum : sum;
  };

  const matern32 = (distance) => {
    const scaled = Math.sqrt(3) * distance;
    return (1 + scaled) * Math.exp(-scaled);
  };

  const covariance = (kernel, left, right) => {
    let sum = 0, apart = 0;
    for (let axis = 0; axis < left.length; axis += 1) {
      const gap = Math.abs(left[axis] - right[axis]);
      sum += kernel.additive_var[axis] * matern32(gap / kernel.additive_scale[axis]);
      apart += square(gap / kernel.joint_scale[axis]);
    }
    return sum + kernel.joint_var * matern32(Math.sqrt(apart));
  };

  return { product, unpack, quadratic, covariance, times, rowsOf, dot };
})();
