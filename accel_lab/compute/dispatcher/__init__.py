"""The context's loop: decode, order, enqueue, complete, report."""
