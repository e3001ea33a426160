// Is what a person types usable? The same rules as the service, said beside the field.

const MONEY = ["€", "$", "£", "¥"];
const NUMBER = /^[+-]?\d{1,18}(\.\d{1,12})?$/;

function withoutUnit(text, unit) {
  let compact = text.replace(/[\s\u00a0\u202f'’]/g, "");
  for (const sign of unit ? [unit.replaceAll(" ", "")] : MONEY) {
    if (compact.startsWith(sign)) compact = compact.slice(sign.length);
    if (compact.endsWith(sign)) compact = compact.slice(0, -sign.length);
  }
  return compact;
}

export function plainNumber(text, language, unit = "") {
  const [thousands, decimals] = language === "en" ? [",", "."] : [".", ","];
  const grouped = new RegExp(`^[+-]?\\d{1,3}(\\${thousands}\\d{3})+(\\${decimals}\\d+)?$`);
  const pointed = new RegExp(`^[+-]?\\d+\\${decimals}\\d+$`);
  const doubtful = new RegExp(`^[+-]?\\d{1,3}\\${decimals}\\d{3}$`);
  let compact = withoutUnit(text, unit);
  if (grouped.test(compact)) compact = compact.replaceAll(thousands, "").replace(decimals, ".");
  else if (/^[+-]?\d+[.,]\d{1,2}$/.test(compact)) compact = compact.replace(",", ".");
  else if (MONEY.includes(unit) && doubtful.test(compact)) return null;
  else if (pointed.test(compact)) compact = compact.replace(decimals, ".");
  return NUMBER.test(compact) ? Number(compact) : null;
}

export function problemWith(field) {
  const text = field.value.trim();
  if (!text) return field.required ? field.dataset.missing : "";
  if (!field.dataset.number) return "";
  const number = plainNumber(text, document.documentElement.lang, field.dataset.unit);
  if (number === null) return field.dataset.notNumber;
  if (field.dataset.number === "whole" && !Number.isInteger(number)) return field.dataset.notNumber;
  const { lower, upper } = field.dataset;
  const low = lower !== undefined && number < Number(lower);
  const high = upper !== undefined && number > Number(upper);
  return low || high ? field.dataset.range : "";
}

function show(field) {
  const words = problemWith(field);
  const place = document.getElementById(`error-${field.name}`);
  if (!place) return words;
  place.hidden = !words;
  place.querySelector(".message").textContent = words;
  field.closest(".field").classList.toggle("wrong", Boolean(words));
  if (words) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
  return words;
}

function summarise(wrong) {
  const summary = document.getElementById("errors");
  if (!summary) return;
  const items = wrong.map(([field, words]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `#${field.id}`;
    link.textContent = `${field.labels[0].textContent.trim()}: ${words}`;
    item.append(link);
    return item;
  });
  summary.querySelector("ul").replaceChildren(...items);
  summary.hidden = !wrong.length;
  if (wrong.length) summary.focus();
}

export function checkForm(form) {
  const fields = [...form.elements].filter((field) => field.dataset?.missing);
  for (const field of fields) {
    let visited = field.hasAttribute("aria-invalid");
    field.addEventListener("blur", () => { visited = true; show(field); });
    field.addEventListener("input", () => { if (visited) show(field); });
  }
  form.addEventListener("submit", (event) => {
    const wrong = fields.map((field) => [field, show(field)]).filter(([, words]) => words);
    if (wrong.length) event.preventDefault();
    summarise(wrong);
  });
}
