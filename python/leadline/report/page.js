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

  const draw = async (box) => {
    const name = box.dataset.chart;
    views.get(name)?.finalize();
    const tone = dark.matches ? "dark" : "light";
    const made = await vegaEmbed(box, specs[name], {
      renderer: "svg", actions: false, config: looks[tone], tooltip: { theme: tone },
    });
    views.set(name, made);
    box.dataset.drawn = tone;
  };

  const drawAll = async () => {
    for (const box of document.querySelectorAll("[data-chart]")) await draw(box);
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
  drawAll();
})();
