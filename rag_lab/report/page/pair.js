"use strict";
// Two variants in one question, from what its card shows: scores, the difference of the answers, ranks as lines between
// two lists. Everything is written as text, never as HTML.
const pairOfVariants = (() => {
  const MOST_WORDS = 1500;
  const ROW = 28;

  const make = (name, attributes, ...children) => {
    const node = document.createElement(name);
    Object.entries(attributes || {}).forEach(([key, value]) => node.setAttribute(key, value));
    node.append(...children);
    return node;
  };
  const draw = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    return node;
  };
  const letter = (code) => make("b", {class: "letter"}, code);
  const isOf = (node, code) => (node.dataset.who || "").split(" ").some((who) => who === code || who.startsWith(code + "·"));
  const find = (body, selector, code) => Array.from(body.querySelectorAll(selector)).find((node) => isOf(node, code));

  // The longest common subsequence of two lists of words, as [kept, removed, added] runs.
  const difference = (before, after) => {
    let head = 0;
    while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
    let tail = 0;
    while (tail < before.length - head && tail < after.length - head
      && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
    const a = before.slice(head, before.length - tail), b = after.slice(head, after.length - tail);
    const runs = [["", before.slice(0, head)]];
    if (a.length > MOST_WORDS || b.length > MOST_WORDS) runs.push(["del", a], ["ins", b]);
    else {
      const width = b.length + 1, longest = new Uint16Array((a.length + 1) * width);
      for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) {
        longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
      let i = 0, j = 0;
      while (i < a.length || j < b.length) {
        if (i < a.length && j < b.length && a[i] === b[j]) { runs.push(["", [a[i]]]); i += 1; j += 1; }
        else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) { runs.push(["del", [a[i]]]); i += 1; }
        else { runs.push(["ins", [b[j]]]); j += 1; }
      }
    }
    runs.push(["", tail ? before.slice(-tail) : []]);
    const merged = [];
    runs.filter(([, run]) => run.length).forEach(([kind, run]) => {
      const last = merged[merged.length - 1];
      if (last && last[0] === kind) last[1] = last[1].concat(run);
      else merged.push([kind, run]);
    });
    return merged;
  };
  const words = (text) => text.split(/\s+/).filter(Boolean);
  const said = (body, code) => {
    const reply = find(body, ".reply", code);
    const text = reply && reply.querySelector(".said");
    return text ? text.textContent.trim() : null;
  };

  const answers = (body, variant, against) => {
    const ours = said(body, variant), theirs = said(body, against);
    if (ours === null && theirs === null) return [];
    const title = make("h3", {class: "part"}, "Answers: what ", letter(variant), "says otherwise than ", letter(against));
    if (ours === null || theirs === null) return [title, make("p", {}, letter(ours === null ? variant : against), "gave no answer.")];
    if (ours === theirs) return [title, make("p", {}, "Nothing: both say the same, word for word.")];
    const text = make("p", {class: "text diff"});
    difference(words(theirs), words(ours)).forEach(([kind, run]) => {
      const piece = make("bdi", {}, run.join(" "));
      text.append(kind ? make(kind, {}, piece) : piece, " ");
    });
    return [title, text];
  };

  // [{where, gold, rank}] in the order of the ranking, without candidates that were dropped.
  const ranking = (body, code) => {
    const table = body.querySelector("table.places");
    if (!table) return [];
    const column = Array.from(table.tHead.rows[0].cells).findIndex((cell) => isOf(cell, code));
    if (column < 0) return [];
    return Array.from(table.tBodies[0].rows)
      .map((row, key) => ({key, where: row.cells[0].querySelector(".where").textContent, gold: row.classList.contains("holds"), rank: Number(row.cells[column].textContent)}))
      .filter((one) => Number.isFinite(one.rank))
      .sort((one, other) => one.rank - other.rank);
  };
  const list = (ranked, code, others) => make("ol", {"aria-label": "Ranking of " + code}, ...ranked.map((one) => {
    const there = others.find((other) => other.key === one.key);
    const moved = !there ? "not in the other" : there.rank === one.rank ? "" : there.rank + " in the other";
    const item = make("li", {class: one.gold ? "holds" : ""}, make("span", {class: "rank"}, String(one.rank)), one.gold ? "★ " : "", make("bdi", {}, one.where));
    item.append(make("span", {class: "hear"}, (one.gold ? ", holds evidence" : "") + (moved ? ", " + moved : "")));
    item.title = one.where;
    return item;
  }));
  const ranks = (body, variant, against) => {
    const left = ranking(body, against), right = ranking(body, variant);
    if (!left.length && !right.length) return [];
    const height = Math.max(left.length, right.length) * ROW;
    const svg = draw("svg", {viewBox: "0 0 100 " + height, preserveAspectRatio: "none", "aria-hidden": "true", style: "height:" + height + "px"});
    const middle = (place) => place * ROW + ROW / 2;
    const line = (x1, y1, x2, y2, kind) => svg.append(draw("line", {x1, y1, x2, y2, class: kind, "vector-effect": "non-scaling-stroke"}));
    right.forEach((one, place) => {
      const from = left.findIndex((other) => other.key === one.key);
      const gold = one.gold ? " holds" : "";
      if (from < 0) line(78, middle(place), 100, middle(place), "new" + gold);
      else line(0, middle(from), 100, middle(place), (place < from ? "up" : place > from ? "down" : "") + gold);
    });
    left.forEach((one, place) => {
      if (!right.some((other) => other.key === one.key)) line(0, middle(place), 22, middle(place), "gone" + (one.gold ? " holds" : ""));
    });
    return [make("h3", {class: "part"}, "Passages: from the ranking of ", letter(against), "to that of ", letter(variant)),
      make("div", {class: "slopes"}, list(left, against, right), svg, list(right, variant, left))];
  };

  const scores = (body, variant, against) => {
    const table = body.querySelector("table.lines");
    const ours = find(body, "table.lines tr", variant), theirs = find(body, "table.lines tr", against);
    if (!ours || !theirs) return [];
    const changed = Array.from(table.tHead.rows[0].cells).map((cell, place) => [cell.textContent.trim(), theirs.cells[place].textContent.trim(), ours.cells[place].textContent.trim()])
      .slice(1).filter(([, before, after]) => before !== after);
    if (!changed.length) return [];
    const facts = make("dl", {class: "facts"});
    changed.forEach(([name, before, after]) => facts.append(make("dt", {}, name), make("dd", {}, before + " → " + after)));
    return [make("h3", {class: "part"}, "Numbers: from ", letter(against), "to ", letter(variant)), facts];
  };

  // Put the pair at the top of a card's body, in the place of the one before.
  const show = (body, variant, against) => {
    body.querySelectorAll(":scope > .pair").forEach((node) => node.remove());
    if (!variant || !against || variant === against) return;
    const parts = [...answers(body, variant, against), ...ranks(body, variant, against), ...scores(body, variant, against)];
    if (parts.length) body.prepend(make("section", {class: "pair", "aria-label": variant + " against " + against}, ...parts));
  };

  return {show, make, draw, letter};
})();

// On a question's own page the address holds the pair: #variant=B&against=A.
(() => {
  const form = document.querySelector("form.filter"), body = document.querySelector("main > .body");
  if (!body || !form) return;
  const read = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    ["variant", "against"].forEach((name) => { form.elements[name].value = wanted.get(name) || ""; if (form.elements[name].selectedIndex < 0) form.elements[name].value = ""; });
    pairOfVariants.show(body, form.elements.variant.value, form.elements.against.value);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    const wanted = new URLSearchParams(Array.from(new FormData(form)).filter(([, value]) => value));
    history.replaceState(null, "", "#" + wanted);
    read();
  });
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
})();
