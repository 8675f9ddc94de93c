// The list of questions: filters, the order, and two variants, all in the page's address. Without JavaScript the form
// stays hidden and every question is there.
(() => {
  const form = document.querySelector("#questions form.filter"), holder = document.getElementById("values");
  if (!form || !holder) return;
  const data = JSON.parse(holder.textContent);
  const list = document.getElementById("cards"), lines = Array.from(list.children);
  const count = document.getElementById("f-count"), heading = document.getElementById("h-questions");
  const fields = Array.from(form.elements).filter((field) => field.name);
  const field = (name) => form.elements[name];
  const buttons = Array.from(form.querySelectorAll("[data-show]"));
  const words = lines.map((line) => (line.querySelector(".id").textContent + " " + line.querySelector(".ask").textContent).toLowerCase());
  const bodies = lines.map((line) => line.querySelector(".body"));
  const MARKS = {fallback: 1, failed: 2, answered: 4, abstained: 8};
  const head = document.querySelector(".q-head");
  let shown = "", order = "";

  const idOf = (i) => lines[i].querySelector(".id").textContent;
  const STORE = "rag_lab starred " + list.dataset.run;
  let stars = new Set();
  try { stars = new Set(JSON.parse(localStorage.getItem(STORE)) || []); } catch { /* a browser that keeps nothing */ }
  const star = (i, isNew) => {
    if (isNew) stars[stars.has(idOf(i)) ? "delete" : "add"](idOf(i));
    const isOn = stars.has(idOf(i)), button = lines[i].querySelector("button.star");
    lines[i].classList.toggle("starred", isOn);
    if (button) { button.hidden = false; button.setAttribute("aria-pressed", String(isOn)); button.textContent = isOn ? "★ Starred" : "☆ Star"; }
    if (!isNew) return;
    try { localStorage.setItem(STORE, JSON.stringify([...stars])); } catch { /* as above */ }
    show();
  };
  const place = (code) => data.variants.indexOf(code);
  const wanted = () => ({
    text: field("text").value.trim().toLowerCase(), class: field("class").value,
    tag: field("tag") ? field("tag").selectedIndex - 1 : -1,
    variant: place(field("variant").value), against: place(field("against").value),
    metric: Math.max(0, field("metric").selectedIndex), state: field("state").value, show: shown,
    evidence: field("evidence") ? field("evidence").selectedIndex - 1 : -1, order: field("order").value,
  });
  const row = (i, w) => (data.values[w.metric] || [])[i] || [];
  const isNumber = (value) => typeof value === "number";
  // How much better (above 0) the variant is than the other; null where they cannot be compared.
  const gain = (i, w) => {
    const ours = row(i, w)[w.variant], theirs = row(i, w)[w.against];
    if (!isNumber(ours) || !isNumber(theirs)) return null;
    return data.higher[w.metric] ? ours - theirs : theirs - ours;
  };
  const outcomeOf = (i, w) => {
    const by = gain(i, w);
    return by === null ? "" : by > 0 ? "won" : by < 0 ? "lost" : "tied";
  };
  // The pairs that are compared: the one that was chosen, else each variant with the baseline.
  const pairs = (w) => {
    if (w.variant >= 0 && w.against >= 0) return w.variant === w.against ? [] : [[w.variant, w.against]];
    const base = w.against >= 0 ? w.against : 0;
    return (w.variant >= 0 ? [w.variant] : data.variants.map((_, one) => one)).filter((one) => one !== base).map((one) => [one, base]);
  };
  const differ = (kinds, w) => pairs(w).some(([one, other]) => kinds[one] >= 0 && kinds[other] >= 0 && kinds[one] !== kinds[other]);
  const came = (i, w) => pairs(w).map(([variant, against]) => outcomeOf(i, {...w, variant, against})).filter(Boolean);
  const SHOWN = {
    "": () => true,
    answers: (i, w) => differ(data.answers[i], w),
    evidence: (i, w) => differ(data.read[i], w),
    won: (i, w) => came(i, w).includes("won"),
    tied: (i, w) => { const all = came(i, w); return all.length > 0 && all.every((one) => one === "tied"); },
    lost: (i, w) => came(i, w).includes("lost"),
    failed: (i, w) => looked(w).some((one) => row(i, w)[one] === "x" || parseInt(data.marks[i][one], 16) & MARKS.failed),
    starred: (i) => stars.has(idOf(i)),
  };
  const looked = (w) => {
    const chosen = [w.variant, w.against].filter((one) => one >= 0);
    return chosen.length ? chosen : data.variants.map((_, one) => one);
  };
  const UNSCORED = ["answers", "evidence", "failed", "starred"];  // what is shown whether it has a score or not
  const isIn = (i, w) => {
    if (!w.state) return w.variant < 0 || UNSCORED.includes(w.show) || w.evidence >= 0 || looked(w).every((one) => row(i, w)[one] !== null && row(i, w)[one] !== undefined);
    if (w.state === "unscored") return looked(w).some((one) => row(i, w)[one] === "x");
    return looked(w).some((one) => parseInt(data.marks[i][one], 16) & MARKS[w.state]);
  };
  const fits = (i, w) => words[i].includes(w.text) && (!w.class || data.classes[i] === w.class)
    && (w.tag < 0 || data.tags[i].includes(w.tag)) && isIn(i, w)
    && (w.evidence < 0 || looked(w).some((one) => data.evidence[i][one] & (1 << w.evidence)));

  const spread = (i, w) => {
    if (w.variant >= 0 && w.against >= 0) return Math.abs(gain(i, w) || 0);
    const there = row(i, w).filter(isNumber);
    return there.length ? Math.max(...there) - Math.min(...there) : 0;
  };
  const goodness = (i, w) => {
    const there = (w.variant >= 0 ? [row(i, w)[w.variant]] : row(i, w)).filter((value) => value !== null);
    const known = there.map((value) => isNumber(value) ? (data.higher[w.metric] ? value : -value) : -Infinity);
    return known.length ? Math.min(...known) : Infinity;
  };
  const sort = (w) => {
    const key = [w.order, w.metric, w.variant, w.against].join();
    if (key === order || (!w.order && order === "")) return;
    order = w.order ? key : "";
    const cell = (i) => row(i, w)[place(w.order.slice(w.order.indexOf(":") + 1))];
    const column = (i) => isNumber(cell(i)) ? (w.order.startsWith("low:") ? cell(i) : -cell(i)) : Infinity;
    const by = w.order.includes(":") ? column : w.order === "changed" ? (i) => -spread(i, w) : w.order === "worst" ? (i) => goodness(i, w) : (i) => i;
    const keyed = lines.map((line, i) => [by(i), i, line]);
    keyed.sort(([one, i], [other, j]) => one < other ? -1 : one > other ? 1 : i - j);
    list.append(...keyed.map(([, , line]) => line));
  };

  const written = (value) => value === "x" ? "failed" : isNumber(value) ? value.toFixed(Math.abs(value) < 10 ? 3 : Math.abs(value) < 1000 ? 1 : 0).replace("-", "−") : "–";
  const show_values = (i, w) => {
    const line = lines[i], strip = line.querySelector(".got");
    line.querySelectorAll(".values").forEach((node) => node.remove());
    strip.hidden = w.variant >= 0;
    if (w.variant < 0) return;
    const values = pairOfVariants.make("span", {class: "values " + (w.against >= 0 ? outcomeOf(i, w) : "")});
    if (w.against >= 0) values.append(pairOfVariants.letter(data.variants[w.against]), written(row(i, w)[w.against]), " → ");
    values.append(pairOfVariants.letter(data.variants[w.variant]), written(row(i, w)[w.variant]));
    strip.after(values);
  };
  const show_pair = (i, w) => {
    const codes = [data.variants[w.variant] || "", data.variants[w.against] || ""];
    if (bodies[i]) { if (lines[i].open) pairOfVariants.show(bodies[i], ...codes); return; }
    const link = lines[i].querySelector("a");
    link.hash = codes[0] && codes[1] ? "variant=" + codes[0] + "&against=" + codes[1] : "";
  };

  const chosen = (name) => field(name) && field(name).value ? field(name).selectedOptions[0].textContent : "";
  // What is asked for, as a sentence goes on: "has the class fuzzy and failed in a stage under B".
  const said = (w) => {
    const who = [w.variant, w.against].filter((one) => one >= 0).map((one) => data.variants[one]).join(" or ");
    const under = who ? " under " + who : "";
    return [
      w.text && "holds the words “" + w.text + "”", w.class && "has the class " + chosen("class"), w.tag >= 0 && "has the tag " + chosen("tag"),
      w.state && {fallback: "fell back in a stage", unscored: "could not be scored in " + chosen("metric"), answered: "was answered", abstained: "was abstained from"}[w.state] + under,
      w.evidence >= 0 && "has evidence that ended as “" + chosen("evidence") + "”" + under,
      !w.state && w.evidence < 0 && w.variant >= 0 && !UNSCORED.includes(w.show) && "is scored in " + chosen("metric") + under.replace(" or ", " and "),
      w.show && {answers: "has different answers", evidence: "has different passages to read", won: "is better", tied: "is tied", lost: "is worse", failed: "failed" + under, starred: "is starred"}[w.show] + (["failed", "starred"].includes(w.show) ? "" : between(w)),
    ].filter(Boolean).join(" and ");
  };

  const between = (w) => {
    const [[one, other] = []] = pairs(w).length === 1 ? pairs(w) : [];
    if (one !== undefined) return ["won", "lost"].includes(w.show) ? " under " + data.variants[one] + " than under " + data.variants[other] : " between " + data.variants[one] + " and " + data.variants[other];
    const base = data.variants[w.against >= 0 ? w.against : 0];
    return ["won", "lost"].includes(w.show) ? " under some variant than under " + base : " between variants and " + base;
  };

  const show = () => {
    const w = wanted();
    const counts = {};
    let left = 0;
    sort(w);
    if (head) head.hidden = w.variant >= 0;
    lines.forEach((line, i) => {
      const could = fits(i, w);
      if (could) for (const name of Object.keys(SHOWN)) counts[name] = (counts[name] || 0) + SHOWN[name](i, w);
      const does = could && SHOWN[w.show](i, w);
      line.hidden = !does;
      left += does;
      show_values(i, w);
      show_pair(i, w);
    });
    buttons.forEach((button) => {
      const name = button.dataset.show;
      button.setAttribute("aria-pressed", String(name === w.show));
      button.dataset.title = button.dataset.title || button.textContent;
      button.textContent = button.dataset.title + " " + (counts[name] || 0);
    });
    const asked = said(w);
    count.textContent = left ? left + " of " + lines.length + " questions" + (asked ? ": each " + asked : "")
      : "No question is left: none of the " + lines.length + " " + asked + ". Clear the filters to see all.";
    form.querySelector("[type=reset]").disabled = !asked && !w.order;
  };

  const address = () => {
    const values = new URLSearchParams();
    fields.forEach((one) => { if (one.value && !(one.name === "metric" && one.selectedIndex === 0 && !field("variant").value)) values.append(one.name, one.value); });
    if (shown) values.append("show", shown);
    return "#questions" + (String(values) ? "?" + values : "");
  };
  const changed = (keep) => {
    show();
    history[keep ? "replaceState" : "pushState"](null, "", address());
  };
  const set = (one, value) => {
    one.value = value;
    if (one.tagName === "SELECT" && one.selectedIndex < 0) one.selectedIndex = 0;  // the address of another run
  };
  const open = (target) => {
    const line = target.closest(".q");
    if (!line) return;
    line.hidden = false;
    if ("open" in line) line.open = true;
    line.scrollIntoView();
    line.querySelector("summary, a").focus({preventScroll: true});
  };
  const read = () => {
    const [where, query] = [location.hash.slice(1).split("?")[0], location.hash.split("?").slice(1).join("?")];
    if (where.startsWith("q-")) {
      const target = document.getElementById(where);
      if (target) open(target);
      return;
    }
    if (where !== "questions" && where !== "") return;
    const values = new URLSearchParams(where ? query : "");
    fields.forEach((one) => set(one, values.get(one.name) || ""));
    shown = Object.hasOwn(SHOWN, values.get("show") || "") ? values.get("show") || "" : "";
    show();
    if (!query) return;
    heading.tabIndex = -1;
    document.getElementById("questions").scrollIntoView();
    heading.focus({preventScroll: true});
  };

  document.querySelectorAll("a[data-words]").forEach((link) => { link.hash = "questions?" + link.dataset.words; });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => changed(event.target.name === "text"));
  form.addEventListener("reset", () => { shown = ""; setTimeout(() => changed(false)); });
  buttons.forEach((button) => button.addEventListener("click", () => {
    shown = button.dataset.show;
    changed(false);
  }));
  list.addEventListener("toggle", (event) => {
    const i = lines.indexOf(event.target);
    if (i >= 0 && event.target.open) show_pair(i, wanted());
  }, true);
  list.addEventListener("click", (event) => {
    if (event.target.matches("button.star")) star(lines.indexOf(event.target.closest(".q")), true);
  });
  list.addEventListener("keydown", (event) => {
    if (event.key === "s" && event.target.matches(".q > summary, .q > a")) star(lines.indexOf(event.target.closest(".q")), true);
    const line = event.target.closest("details.q[open]");
    if (event.key !== "Escape" || !line) return;
    line.open = false;
    line.querySelector("summary").focus();
  });
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  if (head) {
    head.addEventListener("click", (event) => {
      const code = event.target.dataset.column;
      if (!code) return;
      set(field("order"), (field("order").value === "low:" + code ? "high:" : "low:") + code);
      changed(false);
    });
  }
  form.hidden = false;
  lines.forEach((_, i) => star(i, false));
  show();
  read();
})();
