// Is what a person types usable? The same rules as the service, said beside the field.

const THOUSANDS = /^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/;
const COMMA = /^[+-]?\d+,\d{1,2}$/;
const NUMBER = /^[+-]?\d{1,18}(\.\d{1,12})?$/;

export function plainNumber(text) {
  let compact = text.replace(/[\s\u00a0\u202f']/g, "");
  if (THOUSANDS.test(compact)) compact = compact.replaceAll(",", "");
  else if (COMMA.test(compact)) compact = compact.replace(",", ".");
  return NUMBER.test(compact) ? Number(compact) : null;
}

export function problemWith(field) {
  const text = field.value.trim();
  if (!text) return field.required ? field.dataset.missing : "";
  if (!field.dataset.number) return "";
  const number = plainNumber(text);
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

export function checkForm(form) {
  const fields = [...form.elements].filter((field) => field.dataset?.missing);
  for (const field of fields) {
    let visited = field.hasAttribute("aria-invalid");
    field.addEventListener("blur", () => { visited = true; show(field); });
    field.addEventListener("input", () => { if (visited) show(field); });
  }
  form.addEventListener("submit", (event) => {
    const wrong = fields.filter((field) => show(field));
    if (!wrong.length) return;
    event.preventDefault();
    wrong[0].focus();
  });
}
