"use strict";
// Sends what is clicked or pressed to the server of the report, and shows the page that comes back.
(() => {
  const page = document.getElementById("clicked");
  const act = async button => {
    if (!button || button.disabled) return;
    const typed = Object.fromEntries([...page.querySelectorAll("[name]")].map(each => [each.name, each.value]));
    const message = { do: button.dataset.do, value: button.dataset.value ?? "", typed };
    try {
      const answer = await fetch(location.href, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message) });
      const text = await answer.text();
      if (!answer.ok) throw new Error(text);
      page.innerHTML = text;
      page.querySelector("[data-focus]")?.focus({ preventScroll: true });
    } catch (error) {
      const said = page.querySelector(".said") ?? page.firstElementChild.appendChild(document.createElement("p"));
      said.className = "said bad";
      said.textContent = error instanceof TypeError ? "The server has ended: nothing was kept of this click." : error.message;
    }
  };
  page.addEventListener("click", event => act(event.target.closest("[data-do]")));
  document.addEventListener("keydown", event => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const button = page.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!button) return;
    event.preventDefault();
    act(button);
  });
})();
