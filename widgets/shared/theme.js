// Light or dark, measured: the one thing that JupyterLab, Panel and a bare page all have is a
// background colour. `theme.css` holds the two palettes.

/** Relative luminance (WCAG 2) of 0..255 red, green and blue. */
export function luminance(red, green, blue) {
  const [r, g, b] = [red, green, blue].map((c) => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The palette that reads well on a background; `null` when it is transparent. */
export function palette([red, green, blue, alpha]) {
  if (alpha < 128) return null;
  // 0.18 is where black and white text have the same contrast.
  return luminance(red, green, blue) > 0.18 ? "light" : "dark";
}

const FIRST_MS = 25;
const LATEST_MS = 15_000;

/** Keep `data-theme` of `root` in step with the page. Returns a function that stops it. */
export function followTheme(root) {
  const page = root.ownerDocument;
  const window = page.defaultView;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const measure = () => {
    const colour = window.getComputedStyle(root).backgroundColor; // none before it is on the page
    const measured = colour ? palette(pixel(page, colour)) : null;
    const theme = measured ?? (prefersDark.matches ? "dark" : "light");
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
  };
  // A theme's style sheet may arrive after the attribute that announces it, on a busy machine long after.
  let later = 0;
  const measureAgain = (wait) => {
    measure();
    if (wait < LATEST_MS) later = window.setTimeout(() => measureAgain(2 * wait), wait);
  };
  const changed = () => {
    window.clearTimeout(later);
    measureAgain(FIRST_MS);
  };
  const observer = new window.MutationObserver(changed);
  for (const node of [page.documentElement, page.body]) {
    observer.observe(node, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-jp-theme-name"] });
  }
  observer.observe(page.head, { childList: true });
  prefersDark.addEventListener("change", changed);
  changed();
  return () => {
    observer.disconnect();
    prefersDark.removeEventListener("change", changed);
    window.clearTimeout(later);
  };
}

/** Any CSS colour as [red, green, blue, alpha], 0..255. */
function pixel(page, colour) {
  const canvas = page.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}
