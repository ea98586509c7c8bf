// What has been learnt, anew whenever the service says that it has changed.

export function renew(told) {
  if (!told) return;
  const source = new EventSource(told.dataset.changes);
  let isRunning = false;
  let isOld = false;

  async function again() {
    isOld = true;
    if (isRunning) return;
    isRunning = true;
    while (isOld) {
      isOld = false;
      try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-part]")) {
          const fresh = page.getElementById(part.id);
          // Whoever stands on a link of it keeps it until the next change.
          if (fresh && !part.contains(document.activeElement)) part.replaceChildren(...fresh.childNodes);
        }
      } catch {
        // The console has ended; the source comes again when it is back.
      }
    }
    isRunning = false;
  }

  source.addEventListener("changed", again);
  window.addEventListener("pagehide", () => source.close());
}
