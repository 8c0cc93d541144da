// The button that switches between a light and a dark theme.

// A browser may deny storage to a local file; the theme is then not remembered.
function storeTheme(theme) {
  try {
    if (theme) localStorage.setItem("theme", theme);
    return localStorage.getItem("theme");
  } catch {
    return theme;
  }
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

document.getElementById("theme").addEventListener("click", () => {
  const { theme } = document.documentElement.dataset;
  const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = isDark ? "light" : "dark";
  storeTheme(next);
  applyTheme(next);
});
applyTheme(storeTheme());
