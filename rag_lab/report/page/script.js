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
  const buttons = Array.from(form.querySelectorAll("[data-outcome]"));
  const words = lines.map((line) => (line.querySelector(".id").textContent + " " + line.querySelector(".ask").textContent).toLowerCase());
  const bodies = lines.map((line) => line.querySelector(".body"));
  const MARKS = {fallback: 1, failed: 2, answered: 4, abstained: 8};
  const head = document.querySelector(".q-head");
  let outcome = "", order = "";

  const place = (code) => data.variants.indexOf(code);
  const wanted = () => ({
    text: field("text").value.trim().toLowerCase(), class: field("class").value,
    tag: field("tag") ? field("tag").selectedIndex - 1 : -1,
    variant: place(field("variant").value), against: place(field("against").value),
    metric: Math.max(0, field("metric").selectedIndex), state: field("state").value, outcome,
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
    return by === null ? "" : by > 0 ? "better" : by < 0 ? "worse" : "tied";
  };
  const looked = (w) => {
    const chosen = [w.variant, w.against].filter((one) => one >= 0);
    return chosen.length ? chosen : data.variants.map((_, one) => one);
  };
  const isIn = (i, w) => {
    if (!w.state) return w.variant < 0 || w.evidence >= 0 || looked(w).every((one) => row(i, w)[one] !== null && row(i, w)[one] !== undefined);
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
      w.state && {failed: "failed in a stage", fallback: "fell back in a stage", unscored: "could not be scored in " + chosen("metric"), answered: "was answered", abstained: "was abstained from"}[w.state] + under,
      w.evidence >= 0 && "has evidence that ended as “" + chosen("evidence") + "”" + under,
      !w.state && w.evidence < 0 && w.variant >= 0 && "is scored in " + chosen("metric") + under.replace(" or ", " and "),
      w.outcome && "is " + (w.outcome === "tied" ? "tied between " + who.replace(" or ", " and ") : w.outcome + " under " + data.variants[w.variant] + " than under " + data.variants[w.against]),
    ].filter(Boolean).join(" and ");
  };

  const show = () => {
    const w = wanted();
    const isPair = w.variant >= 0 && w.against >= 0 && w.variant !== w.against;
    if (!isPair) w.outcome = outcome = "";
    const counts = {better: 0, worse: 0, tied: 0};
    let shown = 0;
    sort(w);
    if (head) head.hidden = w.variant >= 0;
    lines.forEach((line, i) => {
      const could = fits(i, w), came = isPair ? outcomeOf(i, w) : "";
      if (could && came) counts[came] += 1;
      const does = could && (!w.outcome || came === w.outcome);
      line.hidden = !does;
      shown += does;
      show_values(i, w);
      show_pair(i, w);
    });
    const names = {better: "better", worse: "worse", tied: "tied"};
    buttons.forEach((button) => {
      const name = button.dataset.outcome;
      button.disabled = !isPair;
      button.setAttribute("aria-pressed", String(name === w.outcome));
      button.textContent = isPair ? names[name] + " " + counts[name] : names[name];
    });
    const asked = said(w);
    count.textContent = shown ? shown + " of " + lines.length + " questions" + (asked ? ": each " + asked : "")
      : "No question is left: none of the " + lines.length + " " + asked + ". Clear the filters to see all.";
    form.querySelector("[type=reset]").disabled = !asked && !w.order;
  };

  const address = () => {
    const values = new URLSearchParams();
    fields.forEach((one) => { if (one.value && !(one.name === "metric" && one.selectedIndex === 0 && !field("variant").value)) values.append(one.name, one.value); });
    if (outcome) values.append("outcome", outcome);
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
    outcome = buttons.some((button) => button.dataset.outcome === values.get("outcome")) ? values.get("outcome") : "";
    show();
    if (!query) return;
    heading.tabIndex = -1;
    document.getElementById("questions").scrollIntoView();
    heading.focus({preventScroll: true});
  };

  document.querySelectorAll("a[data-words]").forEach((link) => { link.hash = "questions?" + link.dataset.words; });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => changed(event.target.name === "text"));
  form.addEventListener("reset", () => { outcome = ""; setTimeout(() => changed(false)); });
  buttons.forEach((button) => button.addEventListener("click", () => {
    outcome = outcome === button.dataset.outcome ? "" : button.dataset.outcome;
    changed(false);
  }));
  list.addEventListener("toggle", (event) => {
    const i = lines.indexOf(event.target);
    if (i >= 0 && event.target.open) show_pair(i, wanted());
  }, true);
  list.addEventListener("keydown", (event) => {
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
  show();
  read();
})();
