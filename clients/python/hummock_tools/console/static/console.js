// What a page gains where scripts run; without them every form works all the same.
import { slide } from "./ask.js";
import { follow } from "./garden.js";
import { renew } from "./learning.js";
import { poll } from "./operations.js";

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
  });
}

// Ctrl or Cmd with K goes to the question; with Z, outside of fields, it takes back what was done last.
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  const find = document.querySelector("[data-find]");
  const undo = document.querySelector("form[data-undo]");
  if (event.key === "k" && find) {
    event.preventDefault();
    find.focus();
  } else if (event.key === "z" && undo && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    undo.requestSubmit();
  }
});

slide(document.querySelector("form[data-again]"), document.getElementById("results"));
follow(document.getElementById("live"));
renew(document.querySelector("[data-changes]"));
poll(document.querySelector("[data-now]"), document.querySelector("button[data-pause]"));
