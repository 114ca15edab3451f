"""A small actor kernel: messages, replies, mailboxes, supervision, events. It knows no GPU.

A user's own actor takes what is exported here; `System.spawn` starts it.

Runs in both.
"""

from accel_lab.actor.actor import Actor as Actor
from accel_lab.actor.actor import ActorContext as ActorContext
from accel_lab.actor.actor import ActorRef as ActorRef
from accel_lab.actor.actor import Sight as Sight
from accel_lab.actor.actor import Terminated as Terminated
from accel_lab.actor.actor import handles as handles
from accel_lab.actor.letter import Promise as Promise
from accel_lab.actor.message import Message as Message
from accel_lab.actor.reply import Reply as Reply
from accel_lab.actor.supervision import AllForOne as AllForOne
from accel_lab.actor.supervision import Backoff as Backoff
from accel_lab.actor.supervision import OneForOne as OneForOne
from accel_lab.actor.supervision import RestForOne as RestForOne
from accel_lab.actor.supervision import Strategy as Strategy

__all__ = [
    "Actor",
    "ActorContext",
    "ActorRef",
    "AllForOne",
    "Backoff",
    "Message",
    "OneForOne",
    "Promise",
    "Reply",
    "RestForOne",
    "Sight",
    "Strategy",
    "Terminated",
    "handles",
]
