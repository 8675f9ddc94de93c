// Shows the HTML that Python sends, and tells Python what was clicked or typed. It holds no state of its own.

function render({ model, el }) {
  el.dataset.lmSuppressShortcuts = "true"; // JupyterLab would take keys for commands on cells
  const hides = document.createElement("style"); // what the file keeps for readers without a kernel is not shown twice
  hides.textContent = `.rl-kept[data-kept="${model.get("kept")}"]{display:none}`;
  const page = document.createElement("div");
  el.append(hides, page);
  const draw = () => {
    const hadFocus = el.contains(document.activeElement);
    page.innerHTML = model.get("html");
    if (hadFocus) el.querySelector("[data-focus]")?.focus({ preventScroll: true });
  };
  const act = button => {
    if (!button || button.disabled) return;
    const typed = Object.fromEntries([...el.querySelectorAll("[name]")].map(each => [each.name, each.value]));
    model.send({ do: button.dataset.do, value: button.dataset.value ?? "", typed });
  };
  el.addEventListener("click", event => act(event.target.closest("[data-do]")));
  el.addEventListener("keydown", event => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const isPressed = event.key === "Enter" || event.key === " ";
    if (isPressed && event.target.matches("button")) return; // the browser clicks it
    const button = isPressed ? event.target.closest("[role=button]") : el.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!button) return;
    event.preventDefault();
    event.stopPropagation();
    act(button);
  });
  model.on("change:html", draw);
  draw();
}

export default { render };
