// The state of the service, asked for every two seconds while the page is seen and nobody has stopped it.

const EVERY_MS = 2000;

export function poll(part, button) {
  if (!part) return;
  let paused = false;
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    const now = button.textContent;
    button.textContent = button.dataset.pause;
    button.dataset.pause = now;
  });

  async function again() {
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(part.dataset.now);
        // The server's own template, with all that is stored escaped.
        if (answer.ok) part.innerHTML = await answer.text();
      } catch {
        // The console has ended; the next time tells.
      }
    }
    setTimeout(again, EVERY_MS);
  }
  setTimeout(again, EVERY_MS);
}
