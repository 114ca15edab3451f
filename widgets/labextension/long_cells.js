// How long each cell ran and how it ended, by what its kernel says to every page.

/**
 * Follow the cells of all kernels. `ended` is called with `{link, number, seconds, outcome}` of each that ends,
 * by the kernel's own clock; the outcome is "done", "failed" or "cancelled".
 */
export function followCells(kernels, ended) {
  const followed = new WeakSet();
  const follow = () => {
    for (const { link } of kernels.all()) {
      if (followed.has(link)) continue;
      followed.add(link);
      const cells = new Cells((cell) => ended({ link, ...cell }));
      link.kernel.iopubMessage.connect((_, message) => cells.hear(message));
    }
  };
  kernels.listen(follow);
  follow();
}

/** The cells that one kernel runs; `ended` as above. */
export class Cells {
  #running = new Map(); // id of a request -> {number, since, outcome}
  #ended;

  constructor(ended) {
    this.#ended = ended;
  }

  hear({ header, parent_header: request, content }) {
    if (request?.msg_type !== "execute_request") return;
    const at = Date.parse(header.date) / 1000;
    const cell = this.#running.get(request.msg_id);
    if (header.msg_type === "execute_input") {
      this.#running.set(request.msg_id, { number: content.execution_count, since: at, outcome: "done" });
    } else if (cell && header.msg_type === "error") {
      cell.outcome = content.ename === "KeyboardInterrupt" ? "cancelled" : "failed";
    } else if (cell && header.msg_type === "status" && content.execution_state === "idle") {
      this.#running.delete(request.msg_id);
      this.#ended({ number: cell.number, seconds: at - cell.since, outcome: cell.outcome });
    }
  }
}
