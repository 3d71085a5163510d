"use strict";
// The what-if section: sliders, the prediction at their place, and its chart over one parameter.
const leadlineWhatIf = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const asked = read("leadline-what-if");
  const { looks } = read("leadline-charts");
  const expect = leadlineModels[asked.model.kind](asked.model);
  const parameters = asked.sliders.map((slider) => slider.parameter);
  const find = (name) => document.getElementById(`what-if-${name}`);

  // ---- where the survey measured: leadline/models/ranges.py ------------------------------------

  const within = (value, [low, high]) => low <= value && value <= high;

  const regionOf = (bytes) =>
    asked.regions.find((region) => bytes <= region.high_bytes) ?? asked.regions.at(-1);

  // The least and the most that a parameter may be beside so many working set.
  const spanOf = (parameter, bytes) => {
    if (parameter === "unique_bytes") return asked.unique_bytes;
    const region = regionOf(bytes);
    const [low, high] = region.spans[parameter];
    if (parameter !== "size_mean") return [low, high];
    return [low, Math.min(high, Math.max(asked.size_share_max * bytes, region.focal_size))];
  };

  const surveyed = (workload) =>
    regionOf(workload.unique_bytes).surveyed &&
    parameters.every((name) => within(workload[name], spanOf(name, workload.unique_bytes)));

  // ---- as people write them: leadline/units.py --------------------------------------------------

  // Python rounds a tie to even, toFixed away from zero; a tie is an odd number of halves.
  const fixed = (value, digits) => {
    const halves = value * 2 ** (digits + 1);
    if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(digits);
    const below = Math.floor(value * 10 ** digits);
    return ((below + (below % 2)) / 10 ** digits).toFixed(digits);
  };

  const three = (value) => {
    if (value === 0) return "0";
    const text = fixed(value, Math.max(0, 2 - Math.floor(Math.log10(value))));
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  };

  const sayBytes = (bytes) => {
    let value = bytes;
    for (const unit of ["B", "KiB", "MiB", "GiB"]) {
      if (value < 1000) return `${three(value)} ${unit}`;
      value /= 1024;
    }
    return `${three(value)} TiB`;
  };

  const sayRate = (rate) => rate >= 1000 ? `${three(rate / 1000)} GB/s`
    : rate >= 1 ? `${three(rate)} MB/s` : `${three(rate * 1000)} kB/s`;

  const saySeconds = (seconds) => seconds >= 1 ? `${three(seconds)} s`
    : seconds >= 1e-3 ? `${three(seconds * 1e3)} ms` : `${three(seconds * 1e6)} µs`;

  const sayCount = (count) => count >= 100
    ? Number(count.toPrecision(3)).toLocaleString("en-US") : three(count);

  const sayValue = (parameter, value) => {
    if (parameter.endsWith("_frac")) return `${three(100 * value)}%`;
    if (parameter === "process_num") return value === 1 ? "1 process" : `${value} processes`;
    return sayBytes(value);
  };

  // leadline/units.py: format_ci behind a value, format_ends where none stands before it.
  const sayRange = ({ low, high }, say, value) => {
    const ends = [say(low), say(high)], unitOf = (text) => text.split(" ").slice(1).join(" ");
    const unit = unitOf(value ?? ends[0]);
    if (ends.some((end) => unitOf(end) !== unit)) return `[${ends.join(", ")}]`;
    const bare = `[${ends.map((end) => end.split(" ")[0]).join(", ")}]`;
    return value === undefined && unit ? `${bare} ${unit}` : bare;
  };

  // ---- one prediction: leadline/models/predictor.py --------------------------------------------

  const interval = (lnMbS, lnSd) => ({
    value: Math.exp(lnMbS),
    low: Math.exp(lnMbS - asked.t * lnSd),
    high: Math.exp(lnMbS + asked.t * lnSd),
    n: asked.model.n,
  });

  const warningsAt = (bytes) => {
    const zone = asked.boundary_zones.find((each) => within(bytes, each));
    return zone === undefined ? [] : [
      `region boundary: unique_bytes=${sayBytes(bytes)} lies between two levels ` +
      `(${sayBytes(zone[0])} to ${sayBytes(zone[1])}), where errors are largest`,
    ];
  };

  // As `Predictor.predict`; null where that refuses.
  const predict = (workload) => {
    if (!surveyed(workload)) return null;
    const { lnMbS, lnSd, noiseLnSd } = expect(workload);
    return {
      throughput_mb_s: interval(lnMbS, lnSd),
      run_throughput_mb_s: interval(lnMbS, Math.hypot(lnSd, noiseLnSd)),
      region: regionOf(workload.unique_bytes).index,
      warnings: warningsAt(workload.unique_bytes),
    };
  };

  // ---- sliders ----------------------------------------------------------------------------------

  const valuesOf = Object.fromEntries(asked.sliders.map((each) => [each.parameter, each.values]));
  // What was asked for. A slider stops at the range of its level and returns with it.
  const wished = Object.fromEntries(asked.sliders.map((each) => [each.parameter, each.start]));

  const allowed = (parameter, bytes) => {
    const span = spanOf(parameter, bytes), values = valuesOf[parameter];
    return [values.findIndex((value) => within(value, span)),
      values.findLastIndex((value) => within(value, span))];
  };

  const place = (parameter, bytes) => {
    const [first, last] = allowed(parameter, bytes);
    return Math.min(Math.max(wished[parameter], first), last);
  };

  const current = () => {
    const bytes = valuesOf.unique_bytes[wished.unique_bytes];
    return Object.fromEntries(parameters.map((name) => [name,
      name === "unique_bytes" ? bytes : valuesOf[name][place(name, bytes)]]));
  };

  const showSlider = (parameter, workload) => {
    const input = find(parameter), words = sayValue(parameter, workload[parameter]);
    const bytes = workload.unique_bytes;
    const [first, last] = parameter === "unique_bytes"
      ? [0, valuesOf.unique_bytes.length - 1] : allowed(parameter, bytes);
    [input.min, input.max, input.disabled] = [first, last, first === last];
    input.value = parameter === "unique_bytes" ? wished.unique_bytes : place(parameter, bytes);
    input.setAttribute("aria-valuetext", words);
    find(`${parameter}-value`).textContent = words;
  };

  // ---- what is said at the sliders' place -------------------------------------------------------

  const show = (workload, found) => {
    const rate = found.throughput_mb_s, perRequest = workload.size_mean / 1e6;
    const requests = { low: rate.low / perRequest, high: rate.high / perRequest };
    const seconds = { low: workload.process_num / requests.high,
      high: workload.process_num / requests.low };
    const middle = rate.value / perRequest;
    const say = (name, value, range) => {
      find(name).textContent = value;
      find(`${name}-range`).textContent = range;
    };
    say("throughput", sayRate(rate.value), sayRange(rate, sayRate, sayRate(rate.value)));
    find("run").textContent = sayRange(found.run_throughput_mb_s, sayRate);
    say("requests", `${sayCount(middle)} /s`, sayRange(requests, sayCount));
    say("response", saySeconds(workload.process_num / middle), sayRange(seconds, saySeconds));
    find("region").textContent = asked.regions.find((each) => each.index === found.region).name;
    const warnings = find("warnings");
    warnings.replaceChildren(...found.warnings.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
    warnings.hidden = found.warnings.length === 0;
    const spelled = parameters.map((name) => `${name}=${workload[name]}`).join(",");
    find("command").textContent = `leadline predict ${asked.survey_id} ` +
      `--model ${asked.model.kind} --workload ${spelled}`;
  };

  // ---- the chart --------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let drawn = null; // { key, view } of the chart on the page

  const row = (parameter, x, found) => {
    const { value, low, high } = found.throughput_mb_s;
    const rate = `${sayRate(value)} ${sayRange({ low, high }, sayRate, sayRate(value))}`;
    return { x, y: value, low, high, region: found.region, where: sayValue(parameter, x), rate };
  };

  const xsOf = (parameter) =>
    parameter === "unique_bytes" ? asked.chart_bytes : valuesOf[parameter];

  const curve = (parameter, workload) => xsOf(parameter).flatMap((x) => {
    const found = predict({ ...workload, [parameter]: x });
    return found === null ? [] : [row(parameter, x, found)];
  });

  const logEnds = (bottom, top) => {
    const mantissas = top / bottom > 40 ? [1] : [1, 2, 5];
    const powers = Array.from({ length: 16 }, (_, at) => 10 ** (at - 6));
    const ticks = powers.flatMap((power) => mantissas.map((mantissa) => mantissa * power));
    return { bottom, top, ticks: ticks.filter((tick) => within(tick, [bottom, top])) };
  };

  const axis = (rows) => {
    const values = rows.map((each) => each.y);
    const log = Math.max(...values) > asked.log_ratio * Math.min(...values);
    const top = Math.max(...rows.map((each) => each.high));
    const least = Math.min(...rows.map((each) => each.low));
    return log ? { kind: "log", ends: logEnds(least / 1.2, top * 1.2) }
      : { kind: "linear", ends: { bottom: 0, top: top * 1.05, ticks: [] } };
  };

  const fill = async (parameter, rows, here) => {
    const { kind, ends } = axis(rows);
    const tone = dark.matches ? "dark" : "light";
    const key = `${parameter} ${kind} ${tone}`;
    if (drawn?.key !== key) {
      const bare = asked.charts[parameter][kind];
      const spec = { ...bare, datasets: { ...bare.datasets, curve: rows, here: [here] },
        params: bare.params.map(({ name }) => ({ name, value: ends[name] })) };
      drawn?.finalize();
      drawn = await vegaEmbed(find("chart"), spec, { renderer: "svg", actions: false,
        config: looks[tone], tooltip: { theme: tone } });
      drawn.key = key;
    } else {
      for (const [name, value] of Object.entries(ends)) drawn.view.signal(name, value);
      drawn.view.data("curve", rows).data("here", [here]);
      await drawn.view.runAsync();
    }
    find("chart").dataset.drawn = key;
  };

  // ---- putting it together ----------------------------------------------------------------------

  const over = find("over");
  let drawing = Promise.resolve(), waiting = false;

  const draw = () => {
    const workload = current(), found = predict(workload), parameter = over.value;
    const here = row(parameter, workload[parameter], found);
    const rows = curve(parameter, workload);
    find("gaps").hidden = rows.length === xsOf(parameter).length;
    drawing = drawing.then(() => fill(parameter, rows, here));
    return drawing;
  };

  // Several moves between two pictures are drawn once.
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  const update = () => {
    const workload = current();
    for (const name of parameters) showSlider(name, workload);
    show(workload, predict(workload));
    soon();
  };

  for (const name of parameters)
    find(name).addEventListener("input", (event) => {
      wished[name] = Number(event.target.value);
      update();
    });
  for (const button of document.querySelectorAll("#what-if [data-kind]"))
    button.addEventListener("click", () => {
      Object.assign(wished, asked.kinds[Number(button.dataset.kind)].wished);
      update();
    });
  over.addEventListener("change", soon);
  dark.addEventListener("change", soon);
  find("controls").hidden = false;
  update();
  return { predict, current, draw, sayBytes, sayRate, saySeconds };
})();
