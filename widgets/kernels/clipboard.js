// Text for other programs, on pages that browsers trust and on those that they do not.

/** Copy text. Returns whether the browser let that happen. */
export async function copyText(page, text) {
  const { clipboard } = page.defaultView.navigator;
  if (clipboard) {
    try {
      await clipboard.writeText(text);
      return true;
    } catch {
      // It may be forbidden here; the older way needs no leave.
    }
  }
  const field = page.createElement("textarea");
  const before = page.activeElement;
  field.value = text;
  field.setAttribute("readonly", "");
  field.style.cssText = "position: fixed; opacity: 0";
  page.body.append(field);
  field.select();
  const isDone = page.execCommand("copy");
  field.remove();
  before?.focus?.({ preventScroll: true });
  return isDone;
}
