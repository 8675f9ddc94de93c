// Copying the configuration. Without JavaScript the button stays hidden and the text can be selected.
(() => {
  for (const button of document.querySelectorAll("button.copy")) {
    const text = button.parentElement.querySelector("pre");
    const said = button.textContent;
    const select = () => getSelection().selectAllChildren(text);
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        select();
        button.textContent = "Selected: copy with the keyboard";
      }
      setTimeout(() => { button.textContent = said; }, 2500);
    });
  }
})();
