// What does the page gain when scripts run? Checks while typing, one sending per click,
// a word that work is under way, buttons to print and to copy. Without scripts everything works too.

import { checkForm } from "./check.js";

function announce(text) {
  const place = document.getElementById("working");
  if (place) place.textContent = text;
}

function sendOnce(form) {
  form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const pressed = event.submitter;
    announce(document.body.dataset.working);
    if (pressed) pressed.setAttribute("aria-disabled", "true");
  });
}

function restore() {
  for (const form of document.forms) delete form.dataset.sent;
  for (const button of document.querySelectorAll("[aria-disabled]")) {
    button.removeAttribute("aria-disabled");
  }
  announce("");
}

function oneOpen(details) {
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    for (const other of document.querySelectorAll("details.cannot[open]")) {
      if (other !== details) other.open = false;
    }
    details.querySelector("form")?.scrollIntoView({ block: "nearest" });
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    shut(details);
  });
  details.querySelector("[data-leave]")?.addEventListener("click", (event) => {
    event.preventDefault();
    shut(details);
  });
}

function shut(details) {
  details.open = false;
  details.querySelector("summary").focus();
}

function offerPrinting(place) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = place.dataset.print;
  button.addEventListener("click", () => window.print());
  place.replaceChildren(button);
}

function offerCopying(button) {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
    button.textContent = button.dataset.copied;
    announce(button.dataset.copied);
  });
}

for (const form of document.querySelectorAll("form[data-check]")) checkForm(form);
for (const form of document.querySelectorAll("form[method=post]")) sendOnce(form);
for (const details of document.querySelectorAll("details.cannot")) oneOpen(details);
for (const place of document.querySelectorAll("[data-print]")) offerPrinting(place);
for (const button of document.querySelectorAll("[data-copy]")) offerCopying(button);
document.querySelector("#errors:not([hidden])")?.focus();
window.addEventListener("pageshow", (event) => { if (event.persisted) restore(); });
