// What JupyterLab loads: a module container as webpack makes them, here by hand. JupyterLab's own
// modules come from the page, so there is nothing to bundle and nothing to build.

(() => {
  const here = document.currentScript.src;
  let shared = {};

  /** A module of the page's; an empty one where the page has none, as Notebook has no launcher. */
  async function take(name) {
    const versions = Object.values(shared[name] ?? {});
    return versions.length ? (await versions.at(-1).get())() : {};
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB["accel-lab"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const { plugin } = await import(new URL("./plugin.js", here).href);
      const made = await plugin(take);
      return () => ({ __esModule: true, default: made });
    },
  };
})();
