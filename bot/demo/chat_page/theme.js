// Dark and light: the system's choice until somebody makes their own.

const KEY = "theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

/** Let a button switch between them. */
export function themeButton(button) {
  const show = () => {
    button.ariaPressed = String(isDark());
  };
  const chosen = localStorage.getItem(KEY);
  if (chosen) document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem(KEY, next);
    show();
  });
  system.addEventListener("change", show);
  show();
}
