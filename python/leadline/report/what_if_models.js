"use strict";
// One evaluator per kind of model. Each takes what the Python model embedded and returns
// workload -> { lnMbS, lnSd, noiseLnSd }: ln of MB/s, its standard deviation, that of one run.
const leadlineModels = (() => {
  const square = (number) => number * number;

  // ---- product of curves: leadline/predict/product.py -------------------------------------------

  // A curve between its points: leadline/predict/curve_line.py.
  const between = {
    logarithmic: {
      share: (x, left, right) => Math.log(x / left) / Math.log(right / left),
      mix: (share, left, right) => ({
        lnMbS: (1 - share) * left.lnMbS + share * right.lnMbS, parts: [1 - share, share],
      }),
    },
    mixed: {
      share: (x, left, right) => (x - left) / (right - left),
      mix: (share, left, right) => mixTimes((1 - share) * Math.exp(-left.lnMbS),
        share * Math.exp(-right.lnMbS), 1),
    },
    "per request": {
      share: (x, left, right) => (x - left) / (right - left),
      mix: (share, left, right, x) => mixTimes((1 - share) * left.x * Math.exp(-left.lnMbS),
        share * right.x * Math.exp(-right.lnMbS), x),
    },
  };

  const mixTimes = (left, right, size) => {
    const whole = left + right;
    return { lnMbS: Math.log(size) - Math.log(whole), parts: [left / whole, right / whole] };
  };

  // ln MB/s at a value, and [node, weight] of the points it comes from.
  const readCurve = (curve, value, nodeLn) => {
    const { x: xs, nodes } = curve;
    if (curve.alone !== null && curve.alone[0] === value)
      return { lnMbS: nodeLn[curve.alone[1]], weights: [[curve.alone[1], 1]] };
    if (xs.length === 1) return { lnMbS: nodeLn[nodes[0]], weights: [[nodes[0], 1]] };
    const x = Math.min(Math.max(value, xs[0]), xs[xs.length - 1]);
    let right = 1;
    while (right < xs.length - 1 && xs[right] < x) right += 1;
    const [low, high] = [right - 1, right].map((at) => ({ x: xs[at], lnMbS: nodeLn[nodes[at]] }));
    const { share, mix } = between[curve.between];
    const { lnMbS, parts } = mix(share(x, low.x, high.x), low, high, x);
    return { lnMbS, weights: [[nodes[right - 1], parts[0]], [nodes[right], parts[1]]] };
  };

  const weigh = (weights, variance) =>
    weights.reduce((sum, weight, node) => sum + square(weight) * variance[node], 0);

  // Sum over pairs of one times the other.
  const pairs = (effects) => {
    let sum = 0, before = 0;
    for (const effect of effects) {
      sum += before * effect;
      before += effect;
    }
    return sum;
  };

  const product = (model) => {
    const { ln_mb_s: nodeLn, variance } = model.nodes;
    const regionOf = (bytes) =>
      model.regions.findLast((region, at) => at === 0 || region.low_bytes < bytes);
    return (workload) => {
      const region = regionOf(workload.unique_bytes), focal = region.focal_node;
      const curves = Object.entries({ unique_bytes: model.unique_bytes, ...region.curves });
      const weights = new Float64Array(nodeLn.length);
      let lnMbS = nodeLn[focal];
      weights[focal] = 1;
      const effects = curves.map(([parameter, curve]) => {
        const found = readCurve(curve, workload[parameter], nodeLn);
        const change = found.lnMbS - nodeLn[focal], own = new Float64Array(nodeLn.length);
        for (const [node, weight] of [...found.weights, [focal, -1]]) own[node] += weight;
        own.forEach((weight, node) => { weights[node] += weight; });
        lnMbS += change;
        return Math.sqrt(Math.max(0, square(change) - weigh(own, variance)));
      });
      const spread = weigh(weights, variance) + square(model.interaction) * pairs(effects);
      return { lnMbS, lnSd: Math.sqrt(spread), noiseLnSd: region.noise_ln_sd };
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
