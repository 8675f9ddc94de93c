// Another variant as the baseline of the first table. Without JavaScript the choice stays hidden.
(() => {
  const form = document.querySelector("form.baseline"), holder = document.getElementById("pairs");
  const table = document.querySelector("#verdict table.modules");
  if (!form || !holder || !table) return;
  const rows = JSON.parse(holder.textContent), field = form.elements.baseline, note = form.querySelector("output");
  const planned = Array.from(table.tBodies), ticks = table.querySelector("th.axis svg"), rest = form.parentElement.querySelectorAll(".rest");
  const heading = table.tHead.rows[0].cells[0], title = heading.textContent;
  const INSET = 4, MOST_TICKS = 5;

  const digits = (size) => size < 10 ? 3 : size < 1000 ? 1 : 0;
  const signed = (value, size) => (value > 0 && Number(value.toFixed(digits(size))) ? "+" : "") + value.toFixed(digits(size)).replace("-", "−");
  // [mean, low, high, n, won, lost] of a variant against another, by their places in the plan.
  const numbers = (variant, against) => {
    if (variant > against) return rows[variant][against];
    const found = rows[against][variant];
    if (!found) return found;
    const [mean, low, high, n, won, lost] = found;
    return [-mean, high === null ? null : -high, low === null ? null : -low, n, lost, won];
  };
  const axis = (found) => {
    const ends = found.flatMap(([mean, low, high]) => [mean, low, high]).filter((value) => value !== null);
    let low = Math.min(0, ...ends), high = Math.max(0, ...ends);
    if (high <= low) [low, high] = [-1, 1];
    const rough = (high - low) / MOST_TICKS, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= rough);
    const place = (value) => INSET + (value - low) / (high - low) * (100 - 2 * INSET) + "%";
    const marks = [];
    for (let k = Math.ceil(low / step); k <= Math.floor(high / step); k += 1) marks.push(k * step);
    return {place, marks};
  };
  const svg = (kind) => pairOfVariants.draw("svg", {class: "effect " + kind, "aria-hidden": "true"});
  const drawing = ({place, marks}, word, [mean, low, high]) => {
    const drawn = svg(word.replace(" ", "-"));
    const line = (kind, x1, x2, y1, y2) => drawn.append(pairOfVariants.draw("line", {class: kind, x1, x2, y1, y2}));
    marks.forEach((mark) => line(mark === 0 ? "zero" : "grid", place(mark), place(mark), "0", "100%"));
    if (low !== null) line("reach", place(low), place(high), "50%", "50%");
    if (mean !== null) drawn.append(pairOfVariants.draw("circle", {cx: place(mean), cy: "50%", r: 4.5}));
    return drawn;
  };
  const make = pairOfVariants.make;
  const show = () => {
    table.querySelectorAll("tbody.chosen").forEach((node) => node.remove());
    const against = field.selectedIndex - 1, isPlanned = against < 0;
    planned.forEach((body) => { body.hidden = !isPlanned; });
    rest.forEach((node) => { node.hidden = !isPlanned; });
    note.textContent = isPlanned ? "" : form.dataset.note;
    heading.textContent = isPlanned ? title : "Variant";
    const shown = ticks.cloneNode(false);
    table.querySelector("th.axis svg").replaceWith(isPlanned ? ticks : shown);
    if (isPlanned) return;
    const found = rows.map((_, variant) => variant === against ? null : numbers(variant, against));
    const scale = axis(found.filter(Boolean));
    scale.marks.forEach((mark) => {
      const text = pairOfVariants.draw("text", {x: scale.place(mark), y: "1em", "text-anchor": "middle"});
      text.textContent = mark === 0 ? "0" : signed(mark, 1);
      shown.append(text);
    });
    const body = make("tbody", {class: "chosen"});
    found.forEach((one, variant) => {
      if (variant === against) return;
      const row = make("tr", {}, make("th", {scope: "row"}, field.options[variant + 1].textContent));
      body.append(row);
      if (!one) { row.append(make("td", {colspan: 5, class: "why"}, "no question has a score of both")); return; }
      const [mean, low, high, n, won, lost] = one, size = Math.max(Math.abs(low), Math.abs(high));
      const up = form.dataset.higher === "1" ? 1 : -1;
      const word = low === null || (low <= 0 && high >= 0) ? "cannot tell" : mean * up > 0 ? "better" : "worse";
      const between = low === null ? "" : " [" + signed(low, size) + " to " + signed(high, size) + "]";
      row.append(
        make("td", {class: "axis"}, drawing(scale, word, one)),
        make("td", {class: "num"}, make("b", {}, signed(mean, Math.abs(mean))), make("span", {class: "between"}, between)),
        make("td", {class: "word " + word.replace(" ", "-")}, make("b", {}, word), make("span", {class: "sub"}, won + " won, " + lost + " lost, " + (n - won - lost) + " equal")),
        make("td", {class: "num n"}, String(n)), make("td", {class: "price"}));
    });
    table.append(body);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("change", () => {
    show();
    const questions = document.querySelector("#questions form.filter");
    if (!questions || field.selectedIndex < 1) return;
    questions.elements.against.value = field.value;
    questions.elements.against.dispatchEvent(new Event("input", {bubbles: true}));
  });
  form.hidden = false;
  field.selectedIndex = 0;
})();
