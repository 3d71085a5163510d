"use strict";
(() => {
  const read = (id) => document.getElementById(id).textContent;
  const { specs, looks } = JSON.parse(read("leadline-charts"));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();

  const save = (name, href) => {
    const link = document.createElement("a");
    link.href = href;
    link.download = name;
    link.click();
  };

  const draw = async (box, spec) => {
    const name = box.dataset.chart;
    views.get(name)?.finalize();
    const tone = dark.matches ? "dark" : "light";
    const made = await vegaEmbed(box, spec, {
      renderer: "svg", actions: false, config: looks[tone], tooltip: { theme: tone },
    });
    views.set(name, made);
    box.dataset.drawn = tone;
  };

  // The chart below the verdict is made lower, to a limit, where it would not end on the first
  // screen; what stands above it is as high as its words.
  const LEAST_PX = 150;
  const fitted = (box, spec) => {
    if (!box.closest("figure.first") || typeof spec.height !== "number") return spec;
    const bottom = box.querySelector("svg").getBoundingClientRect().bottom + scrollY;
    const over = Math.ceil(bottom - innerHeight);
    const height = Math.max(Math.min(LEAST_PX, spec.height), spec.height - over);
    return over > 0 && height < spec.height ? { ...spec, height } : spec;
  };

  const drawBox = async (box) => {
    const spec = specs[box.dataset.chart];
    await draw(box, spec);
    const lower = fitted(box, spec);
    if (lower !== spec) await draw(box, lower);
  };

  const folded = (box) => box.closest("details:not([open])");

  // A table that is cut says so.
  const sayCut = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      const tall = box.scrollHeight > box.clientHeight + 1;
      let words = box.nextElementSibling;
      if (!words?.classList.contains("more")) {
        words = document.createElement("p");
        words.className = "more";
        box.after(words);
      }
      const ways = [wide && "sideways for more columns", tall && "down for more rows"];
      words.textContent = `Scroll ${ways.filter(Boolean).join(", and ")}.`;
      words.hidden = !wide && !tall;
      box.classList.toggle("cut", wide);
      if (wide || tall) box.tabIndex = 0;
    }
  };

  const drawAll = async () => {
    for (const box of document.querySelectorAll("[data-chart]")) {
      if (folded(box)) delete box.dataset.drawn;
      else await drawBox(box);
    }
    sayCut();
    document.documentElement.dataset.charts = dark.matches ? "dark" : "light";
  };

  for (const button of document.querySelectorAll("[data-save]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const svg = await views.get(button.dataset.save).view.toSVG();
      save(`${button.dataset.save}.svg`, `data:image/svg+xml,${encodeURIComponent(svg)}`);
    });
  }
  const data = document.getElementById("save-json");
  data.hidden = false;
  data.href = `data:application/json;charset=utf-8,${encodeURIComponent(read("leadline-data"))}`;

  dark.addEventListener("change", drawAll);
  addEventListener("resize", sayCut);
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", async () => {
      for (const box of fold.querySelectorAll("[data-chart]")) {
        if (fold.open && !box.dataset.drawn) await drawBox(box);
      }
      sayCut();
    });
  }
  drawAll();
})();
