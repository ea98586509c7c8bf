// Sliders beside the numbers of a question, and its answer anew while they are moved.

const PAUSE_MS = 250;

export function slide(form, results) {
  if (!form) return;
  let timer = 0;
  let running = new AbortController();

  async function ask() {
    running.abort();
    running = new AbortController();
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    try {
      const answer = await fetch(address, { signal: running.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("results");
      if (!fresh) return;
      results.replaceChildren(...fresh.childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      // A later move has taken this one's place; all else the button tells.
      if (error.name !== "AbortError") form.requestSubmit();
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(() => { if (form.q.value && form.checkValidity()) ask(); }, PAUSE_MS);
  }

  for (const field of form.querySelectorAll("input[data-slider]")) {
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = field.dataset.min;
    slider.max = field.dataset.max;
    slider.step = field.dataset.step;
    slider.setAttribute("aria-label", form.querySelector(`label[for="${field.id}"]`).textContent);
    // In the middle and pale, while the preset decides.
    slider.value = field.value === "" ? (Number(slider.min) + Number(slider.max)) / 2 : field.value;
    slider.classList.toggle("unset", field.value === "");
    slider.addEventListener("input", () => {
      field.value = slider.value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    field.addEventListener("input", () => {
      if (field.value !== "") slider.value = field.value;
      slider.classList.toggle("unset", field.value === "");
    });
    field.after(slider);
  }

  form.addEventListener("input", (event) => {
    const field = event.target;
    // Whoever sets something of the second list wants to see it.
    if (field.closest(".second") && field !== form.compare) form.compare.checked = true;
    if (field.closest("fieldset") || field === form.compare) soon();
  });
}
