// Where the report is served, each question leads to its answers without the names of variants.
for (const question of document.querySelectorAll("#cards [id^='q-']")) {
  const link = document.createElement("a");
  link.href = `rate?question=${encodeURIComponent(question.id)}`;
  link.textContent = "Rate its answers";
  question.append(" ", link);
}
