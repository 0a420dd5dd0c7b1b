// Follows documents that are being indexed: asks for their states until none changes by itself any more.
"use strict";
(() => {
  const FIRST_DELAY_MS = 700;
  const LONGEST_DELAY_MS = 5000;
  let delay = FIRST_DELAY_MS;

  const live = () => [...document.querySelectorAll('[data-document][data-live="yes"]')];

  function show(row, view) {
    const badge = row.querySelector("[data-badge]");
    if (badge.textContent !== view.label) {
      badge.textContent = view.label;
      badge.className = `badge badge-${view.state}`;
      delay = FIRST_DELAY_MS;
    }
    const progress = row.querySelector("[data-progress]");
    progress.hidden = view.total === null;
    progress.max = view.total || 1;
    progress.value = view.done || 0;
    const reason = row.querySelector("[data-reason]");
    reason.hidden = view.reason === null;
    reason.textContent = view.reason || "";
    row.dataset.live = view.live ? "yes" : "no";
  }

  async function poll() {
    const rows = live();
    if (rows.length === 0) return;
    const query = new URLSearchParams(rows.map((row) => ["id", row.dataset.document]));
    try {
      const response = await fetch(`/portal/states?${query}`, { credentials: "same-origin" });
      if (response.status === 401) {
        window.location.reload();
        return;
      }
      if (response.ok) {
        const states = await response.json();
        for (const row of rows) {
          const view = states[row.dataset.document];
          if (view) show(row, view);
          else row.dataset.live = "no";
        }
      }
    } catch {
      delay = LONGEST_DELAY_MS;
    }
    delay = Math.min(delay * 1.3, LONGEST_DELAY_MS);
    if (live().length > 0) setTimeout(poll, delay);
  }

  function guardUnsavedText() {
    const editor = document.querySelector("[data-editor]");
    if (!editor) return;
    let changed = false;
    editor.addEventListener("input", () => { changed = true; });
    editor.addEventListener("submit", () => { changed = false; });
    window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  }

  for (const select of document.querySelectorAll("[data-submit-on-change]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }
  guardUnsavedText();
  if (live().length > 0) setTimeout(poll, delay);
})();
