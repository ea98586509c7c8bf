// Rows that come, change and go while the list is looked at.

export function follow(status) {
  if (!status) return;
  const rows = document.getElementById("memories");
  const source = new EventSource(status.dataset.live);
  let told = 0;

  function rowOf(html) {
    const holder = document.createElement("template");
    // The server's own template, with all that is stored escaped.
    holder.innerHTML = html;
    return holder.content.querySelector("tr");
  }

  function make({ id, change, row }) {
    const there = [...rows.children].find((each) => each.dataset.id === id);
    if (change === "deleted") {
      there?.classList.add("gone");
    } else if (there) {
      there.replaceWith(rowOf(row));
    } else if (status.dataset.top) {
      rows.prepend(rowOf(row));
    }
  }

  source.addEventListener("events", (event) => {
    const changes = JSON.parse(event.data);
    changes.forEach(make);
    told += changes.length;
    if (told) status.textContent = `${status.dataset.told} ${told}`;
  });
  source.addEventListener("reset", () => { status.textContent = status.dataset.reset; });
  source.addEventListener("failed", (event) => { status.textContent = JSON.parse(event.data); });
  window.addEventListener("pagehide", () => source.close());
}
