"use strict";
// One evaluator per kind of model. Each takes what the Python model embedded and returns
// workload -> { lnMbS, lnSd, noiseLnSd }: ln of MB/s, its standard deviation, that of one run.
const leadlineModels = (() => {
  const square = (number) => number * number;

  // ---- product of curves: leadline/models/product.py -------------------------------------------

  // A curve between its points: leadline/models/product.py.
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

  // Sum over pairs of the lesser of two: in ascending order each is that of all after it.
  const lesserOfPairs = (effects) => effects.toSorted((one, other) => one - other)
    .reduce((sum, effect, at) => sum + effect * (effects.length - 1 - at), 0);

  // ln MB/s and its variance by the curves of one region.
  const readRegion = (model, region, workload) => {
    const { ln_mb_s: nodeLn, variance } = model.nodes, focal = region.focal_node;
    const weights = new Float64Array(nodeLn.length), effects = [];
    let lnMbS = nodeLn[focal];
    weights[focal] = 1;
    const curves = { unique_bytes: model.unique_bytes, ...region.curves };
    for (const [parameter, curve] of Object.entries(curves)) {
      const found = readCurve(curve, workload[parameter], nodeLn);
      const change = found.lnMbS - nodeLn[focal], own = new Float64Array(nodeLn.length);
      for (const [node, weight] of [...found.weights, [focal, -1]]) own[node] += weight;
      own.forEach((weight, node) => { weights[node] += weight; });
      lnMbS += change;
      if (parameter === "unique_bytes") continue;
      effects.push(Math.max(0,
        square(change) - square(model.noise_sds) * weigh(own, variance)));
    }
    const unseen = square(model.interaction) * lesserOfPairs(effects);
    return { lnMbS, variance: weigh(weights, variance) + unseen };
  };

  const product = (model) => {
    const { regions } = model;
    const regionOf = (bytes) =>
      regions.findLast((region, at) => at === 0 || region.low_bytes < bytes);
    const disagreement = (zone, workload) =>
      readRegion(model, regions[zone.below], workload).lnMbS -
      readRegion(model, regions[zone.above], workload).lnMbS;
    return (workload) => {
      const bytes = workload.unique_bytes, region = regionOf(bytes);
      let { lnMbS, variance } = readRegion(model, region, workload);
      for (const zone of model.boundary_zones)
        if (zone.low_bytes <= bytes && bytes <= zone.high_bytes)
          variance += square(model.boundary * disagreement(zone, workload));
      return { lnMbS, lnSd: Math.sqrt(variance), noiseLnSd: region.noise_ln_sd };
    };
  };

  // ---- packed matrices ------------------------------------------------------------------------

  // The rows of a matrix; of a triangular one up to the diagonal.
  const unpack = ({ rows, columns, triangular, float64 }) => {
    const bytes = Uint8Array.from(atob(float64), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    let at = 0;
    return Array.from({ length: rows }, (_, row) =>
      Float64Array.from({ length: triangular ? row + 1 : columns }, () => {
        at += 8;
        return view.getFloat64(at - 8, true);
      }));
  };

  // Over the left one's length.
  const dot = (left, right) => {
    let sum = 0;
    for (let at = 0; at < left.length; at += 1) sum += left[at] * right[at];
    return sum;
  };

  const squaredLength = (rows, vector) =>
    rows.reduce((sum, row) => sum + square(dot(row, vector)), 0);

  // ---- time per request: leadline/models/operation_time.py -------------------------------------

  const PLACE = 12, BOUNDARY = 3, RUN = 8, SIZE_REFERENCE_BYTES = 32768, PAGE_BYTES = 4096;
  // What of a page the granule of 512 bytes leaves: so often an edge of a request tears one.
  const EDGE = 1 - 512 / PAGE_BYTES;
  // Kinds of operation; what a write covers of a page in part is read first.
  const READ = 0, WRITE = 1, TORN = 2;
  const expit = (value) => 1 / (1 + Math.exp(-value));

  // The workload as the formula takes it; a request is never larger than the working set.
  const requestOf = (workload, paged) => {
    const size = Math.min(workload.size_mean, workload.unique_bytes), own = size / PAGE_BYTES;
    const q = workload.seq_frac;
    return {
      lnUnique: Math.log(workload.unique_bytes),
      lnSize: Math.log(size),
      // Bytes of a request past the first place.
      moved: paged ? (own + EDGE * (1 - q)) * PAGE_BYTES : size,
      // Pages that a write tears.
      torn: paged ? Math.min(own + EDGE, 2 * EDGE) * (1 - q) + Math.min(own, EDGE) * q : 0,
      read: workload.read_frac,
      sequential: q,
      lnOutstanding: Math.log(workload.process_num),
    };
  };

  // Units that one request keeps busy, and derivatives of logarithms by the parameters.
  const busyUnits = (size, gain, lnUnit) => {
    const half = expit(gain), g = 2 * half, byGain = 1 - half;
    const disks = Math.max(1, 1 / g), ratio = size * Math.exp(-lnUnit);
    const near = Math.exp(-1 / ratio), far = Math.exp(-disks / ratio);
    const units = 1 + ratio * (near - far);
    const byRatio = near * (1 + 1 / ratio) - far * (1 + disks / ratio);
    const byDisks = disks > 1 ? -disks * byGain : 0;
    return { queued: g * units, units, gainByGain: byGain,
      unitsByGain: far * byDisks / units, unitsByUnit: -byRatio * ratio / units };
  };

  // Time per request of n at once over that of one, and derivatives of its logarithm.
  const stretch = (lnN, queued, power) => {
    const p = 1 + Math.exp(power), nP = Math.exp(-p * lnN), gP = queued ** p;
    const inner = nP * (1 - gP) + gP;
    const innerByP = -lnN * nP * (1 - gP) + (1 - nP) * gP * Math.log(queued);
    return { e: inner ** (1 / p), byQueued: (1 - nP) * gP / inner,
      byPower: (innerByP / inner / p - Math.log(inner) / p ** 2) * (p - 1) };
  };

  const uniformMiss = (distance) => {
    const held = Math.exp(-Math.max(distance, 0));
    return { miss: 1 - held, byCentre: distance > 0 ? -held : 0, byWidth: 0 };
  };

  const smearedMiss = (distance, lnWidth) => {
    const scaled = distance * Math.exp(-lnWidth), miss = expit(scaled);
    const steep = miss * (1 - miss);
    return { miss, byCentre: -steep * Math.exp(-lnWidth), byWidth: -steep * scaled };
  };

  // Share that misses past a boundary, with its derivatives by ln C and ln width.
  const missPast = (request, [lnBytes, lnWidth, addedByWrites], smeared, added) => {
    const distance = request.lnUnique - (lnBytes + added * addedByWrites);
    const drawn = smeared ? smearedMiss(distance, lnWidth) : uniformMiss(distance);
    const passes = Math.exp(Math.max(request.lnUnique - request.lnSize, 0));
    const whole = request.sequential ** passes, beyond = distance > 0 ? 1 : 0;
    return { miss: whole * beyond + (1 - whole) * drawn.miss,
      byCentre: (1 - whole) * drawn.byCentre, byWidth: (1 - whole) * drawn.byWidth };
  };

  // Time that one kind of operation spends at one place; its derivatives are added to `slope`. A
  // limit of dirty data is one for writes alone, and the first place tears no pages.
  const spentAt = (model, request, place, kind, slope) => {
    const added = kind === WRITE ? 1 : 0, queues = kind === READ ? 0 : 1;
    if (place > 0 && !added && model.of_writes[place - 1]) return 0;
    if (place === 0 && kind === TORN) return 0;
    const first = PLACE * place, t = model.theta.slice(first, first + PLACE);
    const q = kind === TORN ? 0 : request.sequential;
    const own = place === 0 ? Math.exp(request.lnSize) : request.moved;
    const size = (kind === TORN ? PAGE_BYTES : own) / SIZE_REFERENCE_BYTES;
    const random = Math.exp(t[0] + added * t[3]) * (1 - q);
    const sequential = Math.exp(t[0] + t[1] + added * (t[3] + t[4])) * q;
    const busy = busyUnits(size, t[6] + queues * t[7], t[10]);
    const transfer = Math.exp(t[2] + added * t[5]) * size / busy.units;
    const work = random + sequential + transfer;
    const { e, byQueued, byPower } = stretch(request.lnOutstanding, busy.queued, t[8]);
    const distance = request.lnUnique - model.ln_unique_reference;
    const share = [request.read, 1 - request.read, (1 - request.read) * request.torn][kind];
    const running = q ** RUN, run = running * Math.exp(t[11]), inRuns = 1 - running + run;
    const reached = share * Math.exp(t[9] * distance) * e * inRuns;
    let miss = 1;
    if (place > 0) {
      const at = PLACE * (model.smeared.length + 1) + BOUNDARY * (place - 1);
      const past = missPast(request, model.theta.slice(at, at + BOUNDARY),
        model.smeared[place - 1], added);
      miss = past.miss;
      slope[at] += reached * work * past.byCentre;
      slope[at + 1] += reached * work * past.byWidth;
      slope[at + 2] += added * reached * work * past.byCentre;
    }
    const common = reached * miss, spent = common * work, moving = common * transfer;
    const fixed = common * (random + sequential);
    const byGain = spent * byQueued * (busy.gainByGain + busy.unitsByGain)
      - moving * busy.unitsByGain;
    const byUnit = (spent * byQueued - moving) * busy.unitsByUnit;
    [fixed, common * sequential, moving, added * fixed, added * common * sequential,
      added * moving, byGain, queues * byGain, spent * byPower, spent * distance, byUnit,
      spent * run / inRuns,
    ].forEach((derivative, at) => { slope[first + at] += derivative; });
    return spent;
  };

  // Seconds of the cache and of writes behind it, which overlap the more the greater `r`, and the
  // slopes by each of the two and by ln(r - 1).
  const overlap = (memory, behind, lnOverOne) => {
    const r = 1 + Math.exp(lnOverOne), longer = Math.max(memory, behind);
    const both = longer * ((memory / longer) ** r + (behind / longer) ** r) ** (1 / r);
    const entropy = [memory, behind].map((each) => (each / both) ** r)
      .reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0);
    return { both, byMemory: (memory / both) ** (r - 1), byBehind: (behind / both) ** (r - 1),
      byOverlap: both * entropy * (r - 1) / square(r) };
  };

  // ln MB/s, and its derivatives by the parameters.
  const operationTime = (model, request) => {
    const parts = [0, 1, 2].map(() =>
      ({ seconds: 0, slope: new Float64Array(model.theta.length) }));
    const [memory, behind, missed] = parts;
    for (let place = 0; place <= model.smeared.length; place += 1)
      for (const kind of model.paged ? [READ, WRITE, TORN] : [READ, WRITE]) {
        const part = place === 0 ? memory : kind === WRITE ? behind : missed;
        part.seconds += spentAt(model, request, place, kind, part.slope);
      }
    const last = model.theta.length - 1;
    const { both, byMemory, byBehind, byOverlap } =
      overlap(memory.seconds, behind.seconds, model.theta[last]);
    const seconds = both + missed.seconds;
    const slope = missed.slope.map((own, at) =>
      own + byMemory * memory.slope[at] + byBehind * behind.slope[at]);
    slope[last] += byOverlap;
    return { lnMbS: request.lnSize - Math.log(seconds) - Math.log(1e6),
      jacobian: slope.map((each) => -each / seconds) };
  };

  // ---- the joint model: leadline/models/joint.py, gaussian_process.py --------------------------

  const matern = (distance) => {
    const root = Math.sqrt(3) * distance;
    return (1 + root) * Math.exp(-root);
  };

  const covariance = (kernel, left, right) => {
    let single = 0, apart = 0;
    for (let axis = 0; axis < left.length; axis += 1) {
      const gap = (left[axis] - right[axis]) / kernel.scales[axis];
      single += matern(Math.abs(gap));
      apart += square(gap);
    }
    return kernel.additive_var * single + kernel.joint_var * matern(Math.sqrt(apart));
  };

  const joint = (model) => {
    const whitening = unpack(model.whitening), slopes = unpack(model.jacobian);
    const { kernel, places, levels, axes, prior_sd: priorSd } = model;
    const anywhere = 5 * kernel.additive_var + kernel.joint_var;
    const levelOf = (bytes) => model.noise_edges_bytes.filter((edge) => edge <= bytes).length;
    return (workload) => {
      const request = requestOf(workload, model.paged);
      const { lnMbS, jacobian } = operationTime(model, request);
      const own = jacobian.map((slope, at) => slope * priorSd[at]);
      const raw = [request.lnUnique, request.lnSize, request.read, request.sequential,
        request.lnOutstanding];
      const place = raw.map((value, at) => (value - axes.low[at]) / (axes.high[at] - axes.low[at]));
      const level = levelOf(workload.unique_bytes);
      const strong = square(kernel.strengths[level]);
      const near = places.map((each, at) =>
        (levels[at] === level ? strong * covariance(kernel, place, each) : 0));
      const known = near.map((each, at) => each + dot(own, slopes[at]));
      const variance = dot(own, own) + strong * anywhere - squaredLength(whitening, known);
      return { lnMbS: lnMbS + dot(near, model.weights),
        lnSd: Math.sqrt(Math.max(variance, 1e-12)) * model.widening[level],
        noiseLnSd: model.noise_ln_sd[level] };
    };
  };

  return { product, joint, unpack };
})();
