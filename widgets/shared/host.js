// What anywidget and Panel's AnyWidgetComponent have in common, as one small object.

const RESTARTED = "kernel restarted";
const GONE = { restarting: RESTARTED, autorestarting: RESTARTED, dead: "kernel died", terminating: "kernel shut down" };

/** Wrap the argument of `render`. `close` removes every listener that was added through it. */
export function adaptHost({ model, el, view }) {
  const undo = [];
  const on = (event, callback) => {
    model.on(event, callback);
    undo.push(() => model.off(event, callback));
  };
  return {
    el,
    get: (name) => model.get(name),
    // The callback's own arguments differ between the hosts, so the value is always read anew.
    listen: (name, callback) => on(`change:${name}`, () => callback(model.get(name))),
    set(name, value) {
      model.set(name, value);
      model.save_changes();
    },
    /** Call `callback(words)` when the kernel that the view is of is no more; Panel has no such word. */
    whenGone(callback) {
      if (!model.send) return;
      on("comm_live_update", () => callback(RESTARTED));
      const changed = model.widget_manager?.kernel?.statusChanged;
      const told = (_, status) => GONE[status] && callback(GONE[status]);
      changed?.connect(told);
      undo.push(() => changed?.disconnect(told));
    },
    send(message) {
      if (model.send) model.send(message);
      // Bokeh's first message of a component that came later brings all of it along; a value does not.
      else if (message.do === "shown") this.set("shown", message.frame);
      else view.model_proxy.send_msg(message);
    },
    close: () => undo.splice(0).forEach((remove) => remove()),
  };
}

/** Read JSON that travelled as bytes. Nothing sent yet is `null`. */
export function decode(value) {
  if (!value || !value.byteLength) return null;
  return JSON.parse(new TextDecoder().decode(value));
}
