// Tables that are wider than the page can be scrolled by the keyboard: only those are in the order of the tab key.
(() => {
  const scrollers = document.querySelectorAll(".scroll");
  const mark = () => {
    for (const one of scrollers) {
      if (one.scrollWidth > one.clientWidth) {
        one.tabIndex = 0;
        one.setAttribute("role", "group");
        one.setAttribute("aria-label", "Table, wider than the page");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) one.removeAttribute(name);
      }
    }
  };
  addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true);
  mark();
})();
