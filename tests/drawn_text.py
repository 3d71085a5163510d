"""Whether texts of the charts on an opened page can be read: inside their chart, over no other."""

from __future__ import annotations

from opened_page import OpenedPage

_SCRIPT = """
const found = [];
for (const box of document.querySelectorAll('[data-chart]')) {
  const svg = box.querySelector('svg');
  if (!svg) continue; // folded away, and not drawn yet
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim() &&
    getComputedStyle(t).opacity !== '0');
  const rects = texts.map(t => t.getBoundingClientRect());
  texts.forEach((text, at) => {
    const r = rects[at];
    if (r.left < frame.left - 1 || r.right > frame.right + 1 ||
        r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
      found.push([box.dataset.chart, text.textContent, 'is cut'].join(' '));
    for (let other = 0; other < at; other++) {
      const o = rects[other];
      const wide = Math.min(r.right, o.right) - Math.max(r.left, o.left);
      const tall = Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top);
      if (wide > 1.5 && tall > 4)
        found.push(
          [box.dataset.chart, text.textContent, 'over', texts[other].textContent].join(' '));
    }
  });
}
return found;
"""


def unreadable(page: OpenedPage) -> list[str]:
    """Return every text of a chart that is cut off or lies over another."""
    found: list[str] = page.ask(_SCRIPT)
    return found
