// What a page gains where scripts run; without them every form works all the same.
import { follow } from "./garden.js";
import { poll } from "./operations.js";

// A slider beside each number that has a range worth sliding over.
for (const field of document.querySelectorAll("input[data-slider]")) {
  const slider = document.createElement("input");
  slider.type = "range";
  slider.min = field.dataset.min;
  slider.max = field.dataset.max;
  slider.step = field.dataset.step;
  slider.setAttribute("aria-label", document.querySelector(`label[for="${field.id}"]`).textContent);
  if (field.value !== "") slider.value = field.value;
  slider.addEventListener("input", () => { field.value = slider.value; });
  slider.addEventListener("change", () => { if (field.form.reportValidity()) field.form.requestSubmit(); });
  field.addEventListener("input", () => { if (field.value !== "") slider.value = field.value; });
  field.after(slider);
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
  });
}

// Whoever fills in a setting of the second list wants to see it.
for (const field of document.querySelectorAll(".second input:not([type=checkbox]), .second select")) {
  field.addEventListener("input", () => { document.getElementById("compare").checked = true; });
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

follow(document.getElementById("live"));
poll(document.querySelector("[data-now]"), document.querySelector("button[data-pause]"));
