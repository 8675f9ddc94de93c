"use strict";
// Loads the page anew once the run has more to show; while somebody types or reads a question, it offers to.
(() => {
  const notice = document.getElementById("live");
  const busy = () => document.activeElement.matches("input, select, textarea") || document.querySelector("#cards [open]");
  const look = async () => {
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (!answer.ok || (await answer.text()) === notice.dataset.state) return;
      if (busy()) notice.querySelector("a").hidden = false;
      else location.reload();
    } catch {
      notice.querySelector("span").textContent = "The server has ended; the page stays as it is.";
    }
  };
  setInterval(look, 2000);
})();
