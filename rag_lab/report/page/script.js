"use strict";
// Filtering and ordering of the questions. Without JavaScript the form stays hidden and every question is there.
(() => {
  const list = document.getElementById("cards");
  const cards = Array.from(list.children);
  const form = document.querySelector("form.filter");
  const field = (name) => document.getElementById("f-" + name);
  const words = cards.map((card) => card.querySelector("summary").textContent.toLowerCase());
  const spread = (card) => Number(card.dataset.spread);
  const show = () => {
    const text = field("text").value.trim().toLowerCase();
    const wanted = field("class").value;
    let shown = 0;
    cards.forEach((card, i) => {
      const fits = words[i].includes(text) && (!wanted || card.dataset.class === wanted)
        && (!field("differ").checked || spread(card) > 0);
      card.hidden = !fits;
      shown += fits;
    });
    field("count").textContent = shown + " of " + cards.length;
  };
  const order = () => {
    const sorted = cards.slice();
    if (field("order").value === "spread") sorted.sort((a, b) => spread(b) - spread(a));
    list.append(...sorted);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", show);
  field("order").addEventListener("change", order);
  const read = () => {
    const [place, wanted] = decodeURI(location.hash).split("?");
    if (place !== "#questions" || wanted === undefined) return;
    document.getElementById("questions").scrollIntoView();
  };
  document.querySelectorAll("a[data-words]").forEach((link) => { link.hash = "questions?" + link.dataset.words; });
  addEventListener("hashchange", read);
  form.hidden = false;
  show();
  read();
})();
