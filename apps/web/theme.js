// Light, dark, or as the system has it. The choice is kept in this browser.

const stored = "permit.theme";

export function kept(key, otherwise) {
  try {
    return localStorage.getItem(key) ?? otherwise;
  } catch {  // the browser keeps nothing
    return otherwise;
  }
}

export function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // For this tab only, then.
  }
}

export function start_theme(select) {
  const show = () => {
    if (select.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
  };
  const load = () => {
    const theme = kept(stored, "system");
    select.value = ["light", "dark"].includes(theme) ? theme : "system";
    show();
  };
  select.addEventListener("change", () => {
    show();
    keep(stored, select.value);
  });
  addEventListener("storage", load);  // another tab has changed it
  load();
}
