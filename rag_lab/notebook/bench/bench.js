// The bench as it is seen: draws what Python sends and sends what its user does. It holds no state of its own.

const element = (tag, properties = {}, ...children) => {
  const { dataset, ...others } = properties;
  const made = Object.assign(document.createElement(tag), others);
  Object.assign(made.dataset, dataset);
  made.append(...children);
  return made;
};

function render({ model, el }) {
  const send = message => model.send(message);
  const button = (text, act, title = "") => element("button", { type: "button", textContent: text, title, onclick: act });
  const controls = {}; // by dotted key: what shows a value
  const seen = {}; // what the controls show: only what has changed is drawn again, so nothing that is typed or pressed
  const boxes = {};

  // A control tells Python what was chosen and is set back to what Python has, be it the new value or the old one.
  const control = (field, title = "") => {
    const change = value => {
      delete seen[field.key];
      send({ do: "set", key: field.key, value });
    };
    const id = `${model.get("kept")}-${field.key}`;
    let input;
    let show;
    if (field.kind === "flags") {
      input = element("span", { className: "flags" });
      const ticks = field.choices.map(name => {
        const tick = element("input", { type: "checkbox", onchange: () =>
          change(Object.fromEntries(ticks.map(each => [each.value, each.checked]))), value: name });
        input.append(element("label", {}, tick, ` ${name}`));
        return tick;
      });
      show = value => ticks.forEach(tick => { tick.checked = value[tick.value]; });
    } else if (field.kind === "flag") {
      input = element("input", { type: "checkbox", onchange: () => change(input.checked) });
      show = value => { input.checked = value; };
    } else if (field.kind === "choice" || field.kind === "module") {
      const own = "your own …";
      const choice = element("select", { id, onchange: () => choice.value === own ? typing(true) : change(choice.value) });
      const typed = element("input", { type: "text", placeholder: "module:Class", ariaLabel: `${field.label} of your own`,
        onchange: () => change(typed.value), onblur: () => typed.value || typing(false) });
      const typing = own => { typed.hidden = !own; choice.hidden = own; own ? typed.focus() : show(model.get("state").values[field.key]); };
      input = element("span", {}, choice, typed);
      show = value => {
        const names = field.choices.includes(value) ? field.choices : [...field.choices, value];
        const options = field.kind === "module" ? [...names, own] : names;
        choice.replaceChildren(...options.map(name => element("option", { textContent: name, value: name })));
        choice.value = value;
        typed.value = "";
        typed.hidden = true;
        choice.hidden = false;
      };
    } else if (field.kind === "int" || field.kind === "float") {
      input = element("input", { type: "number", min: field.low ?? "", max: field.high ?? "",
        step: field.kind === "int" ? 1 : "any", onchange: () => change(input.value === "" ? null : Number(input.value)) });
      show = value => { input.value = value; };
    } else {
      input = element("input", { type: "text", spellcheck: false, onchange: () => change(input.value) });
      show = value => { input.value = value; };
    }
    if (!input.querySelector("select")) input.id = id;
    const label = element(field.kind === "flags" ? "span" : "label", { className: "label", textContent: field.label });
    if (field.kind === "flags") { input.role = "group"; input.ariaLabel = field.label; } else label.htmlFor = id;
    if (title) label.textContent = `${title}: ${field.label}`; // the box says it already
    const row = element("div", { className: `field ${field.kind}${title ? " plain" : ""}`, title: `${field.key}: ${field.help}`,
      dataset: { key: field.key } }, label, input);
    controls[field.key] = { row, show };
    return row;
  };

  const box = drawn => {
    const main = drawn.fields.filter(field => drawn.mains.includes(field.key));
    const folded = drawn.fields.filter(field => !drawn.mains.includes(field.key));
    const status = element("p", { className: "status" });
    const made = element("fieldset", { className: "bench-box", dataset: { box: drawn.name } },
      element("legend", { textContent: drawn.title }), 
      ...main.map(field => control(field, field.kind === "int" || main.length > 1 ? "" : drawn.title)), status);
    if (folded.length) {
      const more = element("summary");
      made.append(element("details", {}, more, ...folded.map(field => control(field))));
      boxes[drawn.name] = { made, status, more, folded: folded.map(field => field.key) };
    } else boxes[drawn.name] = { made, status };
    return made;
  };

  const drawing = model.get("drawing");
  const pipeline = element("div", { className: "bench-stages" }, ...drawing.filter(one => one.stage).map(box));
  const rest = element("div", { className: "bench-stages rest" }, ...drawing.filter(one => !one.stage).map(box));

  const questions = model.get("questions");
  const text = element("textarea", { rows: 2, ariaLabel: "Question", placeholder: "Ask something of these documents",
    onchange: () => send({ do: "ask", value: text.value }),
    onkeydown: event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault(); runNow(); } } });
  const pick = element("select", { ariaLabel: "Questions of the data set", onchange: () => {
    if (pick.value !== "") send({ do: "choose", value: Number(pick.value) }); } },
    element("option", { value: "", textContent: questions.length ? `${questions.length} of the data set's questions …` : "no questions" }),
    ...questions.map(([id, words], place) => element("option", { value: place, textContent: `${id}: ${words}` })));
  pick.disabled = !questions.length;

  const runNow = () => { send({ do: "ask", value: text.value }); send({ do: "run" }); };
  const run = button("Run", runNow, "answer the question as the toggles stand (Ctrl+Enter in the question)");
  run.className = "primary";
  const stop = button("Stop", () => send({ do: "stop" }), "end at the next step; what was computed is remembered");
  const bar = element("progress", { max: 1, value: 0, ariaLabel: "Progress" });
  const step = element("span", { className: "step" });
  const said = element("p", { className: "said", role: "status" });

  const number = element("input", { type: "number", min: 2, value: 20, ariaLabel: "Number of questions", oninput: () => offerTry() });
  const metrics = element("input", { type: "text", ariaLabel: "Metrics", spellcheck: false });
  const tryOn = button("Try on", () => send({ do: "try", value: Number(number.value), metrics: metrics.value }),
    "compare the settings side by side on a stratified sample of the data set's questions");

  const offerTry = () => { // how many questions, and about how long
    const n = Math.min(Number(number.value) || 0, questions.length || Infinity), s = n * model.get("state").try_s;
    const long = s >= 90 ? `${Math.round(s / 60)} min` : s >= 5 ? `${Math.round(s)} s` : "";
    tryOn.textContent = `Try on ${n}${long && ` (about ${long})`}`;
  };

  const copy = async (what, name) => {
    const words = model.get("state")[what];
    try {
      await navigator.clipboard.writeText(words);
      note(`Copied: ${name}.`);
    } catch { // a page that is not served safely has no clipboard
      const area = element("textarea", { className: "copied", readOnly: true, rows: 8, value: words, ariaLabel: name });
      said.replaceChildren(`Press Ctrl+C to copy: `, area);
      area.select();
    }
  };
  const note = sentence => { said.textContent = sentence; said.classList.remove("bad"); };
  const file = element("input", { type: "text", ariaLabel: "Experiment file", spellcheck: false, value: model.get("state").experiment });
  const runFolder = element("input", { type: "text", ariaLabel: "Run folder", placeholder: "results/…", spellcheck: false,
    onchange: () => send({ do: "variants", value: runFolder.value }) });
  runFolder.setAttribute("list", `${model.get("kept")}-runs`);
  const runs = element("datalist", { id: `${model.get("kept")}-runs` },
    ...model.get("runs").map(value => element("option", { value })));
  const variant = element("select", { ariaLabel: "Variant", onchange: () =>
    variant.value && send({ do: "load", run: runFolder.value, value: variant.value }) });
  const pins = element("span", { className: "pins" });

  const bars = element("div", { className: "bars" },
    element("div", { className: "asking" }, text, pick),
    element("div", { className: "row" }, run, stop, tryOn, bar, step, pins),
    said,
    element("details", { className: "more" }, element("summary", { textContent: "Try on more questions, copy, load" }),
      element("div", { className: "row" }, element("span", { textContent: "Try on" }), number, element("span", { textContent: "questions by" }), metrics),
      element("div", { className: "row" }, button("Copy as YAML", () => copy("yaml", "YAML")),
        button("Copy as Python", () => copy("python", "Python")),
        button("Reset toggles", () => send({ do: "reset" }), "back to where the bench started")),
      element("div", { className: "row" }, button("Add to experiment", () => send({ do: "add", value: file.value }),
        "write the settings side by side into this file as variants"), file),
      element("div", { className: "row" }, element("span", { textContent: "Load variant of run" }), runFolder, runs, variant)));
  const out = element("div", { className: "out" });
  // What the notebook's file keeps for readers without a kernel is not shown twice.
  const hides = element("style", { textContent: `.rl-kept[data-kept="${model.get("kept")}"]{display:none}` });
  const root = element("div", { className: "rl bench" }, hides, pipeline, rest, bars, out);
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's own keys would add cells while one types
  el.append(root);

  const seconds = value => value < 0.1 ? value.toFixed(3) : value < 10 ? value.toFixed(2) : value.toFixed(0);
  function refresh() {
    const state = model.get("state");
    for (const [key, { row, show }] of Object.entries(controls)) {
      const value = JSON.stringify(state.values[key]);
      if (seen[key] !== value) show(state.values[key]);
      seen[key] = value;
      row.classList.toggle("changed", state.changed.includes(key));
    }
    const at = state.running ? state.box : "";
    for (const [name, { made, status, more, folded }] of Object.entries(boxes)) {
      const done = state.done[name];
      made.classList.toggle("off", state.off.includes(name));
      made.classList.toggle("at", at === name);
      made.classList.toggle("bad", !!done?.bad);
      status.textContent = at === name ? "running …" : state.off.includes(name) ? "off" : !done ? "" :
        `${seconds(done.seconds)} s${done.remembered ? ", remembered" : ""}${done.bad ? `, ${done.bad}` : ""}`;
      if (more) {
        const n = folded.filter(key => state.changed.includes(key)).length;
        more.textContent = n ? `${folded.length} more, ${n} changed` : `${folded.length} more`;
      }
    }
    if (document.activeElement !== text || state.question !== text.dataset.sent) text.value = state.question;
    text.dataset.sent = state.question;
    pick.value = String(questions.findIndex(([, words]) => words === state.question)).replace("-1", "");
    offerTry();
    run.disabled = tryOn.disabled = state.running;
    stop.disabled = !state.running || state.stopping;
    bar.hidden = !state.running;
    bar.value = state.share;
    step.textContent = !state.running ? "" : state.stopping ? `stopping after ${state.step} …` : state.step;
    said.textContent = state.said;
    said.classList.toggle("bad", state.bad);
    if (document.activeElement !== metrics && !metrics.value) metrics.value = state.metrics;
    const columns = JSON.stringify(state.columns);
    // A button that is replaced while it is pressed hears no click.
    if (seen.columns !== columns) pins.replaceChildren(...state.columns.map(([letter, pinned]) => {
      const pin = button(`${pinned ? "Unpin" : "Pin"} ${letter}`, () => send({ do: "pin", value: letter }),
        pinned ? "let it go at the next run" : "keep it beside all that is run later");
      pin.ariaPressed = pinned;
      return pin;
    }));
    seen.columns = columns;
  }
  function draw() {
    const open = new Set([...out.querySelectorAll("details[open]")].map(one => one.querySelector("summary").textContent));
    out.innerHTML = model.get("html");
    for (const one of out.querySelectorAll("details")) if (open.has(one.querySelector("summary").textContent)) one.open = true;
  }
  function offer() {
    const found = model.get("variants");
    variant.hidden = !found.length;
    variant.replaceChildren(element("option", { value: "", textContent: `${found.length} variants …` }),
      ...found.map(([value, label]) => element("option", { value, textContent: label })));
  }
  const listens = { "change:state": refresh, "change:heard": refresh, "change:html": draw, "change:variants": offer };
  for (const [event, call] of Object.entries(listens)) model.on(event, call);
  refresh();
  draw();
  offer();
  return () => { for (const [event, call] of Object.entries(listens)) model.off(event, call); };
}

export default { render };
