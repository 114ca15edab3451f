// How high a lab may be: as what scrolls it is on the page, so that all of it is seen at once.

const LAB_AROUND_PX = 14; // what a notebook has above and below an output
const LAB_HEAD_SHARE = 0.4; // of a window: so much may stand above a lab that is to fit below it

/** Keep `--al-lab-room` of `root` in step with the page. Returns a function that ends that. */
export function followLabRoom(root) {
  const window = root.ownerDocument.defaultView;
  let watched = null;

  function measure() {
    const scroller = labScroller(root, window);
    if (scroller !== watched) {
      if (watched) sizes.unobserve(watched);
      if (scroller) sizes.observe(scroller);
      watched = scroller;
    }
    const room = scroller ? labWithin(root, scroller) : labBelow(root, window);
    const value = `${Math.round(Math.min(room, window.screen.availHeight || room))}px`;
    if (root.style.getPropertyValue("--al-lab-room") !== value) root.style.setProperty("--al-lab-room", value);
  }

  const sizes = new window.ResizeObserver(measure);
  sizes.observe(root);
  sizes.observe(root.ownerDocument.body); // what stands above it may grow
  window.addEventListener("resize", measure);
  return () => {
    sizes.disconnect();
    window.removeEventListener("resize", measure);
  };
}

/** The outermost element that scrolls `root`: inner ones are as high as what they hold. */
function labScroller(root, window) {
  let found = null;
  for (let node = labParent(root); node; node = labParent(node)) {
    if (node === root.ownerDocument.body || node === root.ownerDocument.documentElement) break;
    if (/auto|scroll/.test(window.getComputedStyle(node).overflowY)) found = node;
  }
  return found;
}

function labParent(node) {
  return node.parentElement ?? node.getRootNode().host ?? null;
}

/** A docked panel holds a lab alone; a notebook has other cells around it. */
function labWithin(root, scroller) {
  return scroller.clientHeight - (root.closest(".al-ext-panel") ? 0 : LAB_AROUND_PX);
}

/** On a page that scrolls as a whole: what is left of the window below what stands above. */
function labBelow(root, window) {
  const top = root.getBoundingClientRect().top + window.scrollY;
  const above = top < LAB_HEAD_SHARE * window.innerHeight ? Math.max(0, top) : 0;
  return window.innerHeight - above - LAB_AROUND_PX;
}
