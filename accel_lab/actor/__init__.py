"""A small actor kernel: messages, replies, mailboxes, supervision, events. It knows no GPU."""
