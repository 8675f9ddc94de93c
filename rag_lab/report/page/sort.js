/* A click on a column's head sorts a table, numbers as numbers, where a notebook runs scripts; elsewhere it stands as it is. */
(() => {
  const number = (text) => { const n = parseFloat(text.replace("−", "-").replace(/,/g, "")); return isNaN(n) ? null : n; };
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    if (x !== null && y !== null) return x - y;
    return x !== null ? -1 : y !== null ? 1 : a.localeCompare(b);
  };
  const sort = (head) => {
    const body = head.closest("table").tBodies[0], up = head.getAttribute("aria-sort") !== "ascending";
    const text = (row) => row.cells[head.cellIndex].textContent.trim();
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...[...body.rows].sort((a, b) => compare(text(a), text(b)) * (up ? 1 : -1)));
  };
  for (const head of document.querySelectorAll(".rl table.plain thead th:not([tabindex]),.rl table.scores thead th:not([tabindex])")) {
    head.tabIndex = 0;
    head.title ||= "click to sort";
    head.addEventListener("click", () => sort(head));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
  }
})();
