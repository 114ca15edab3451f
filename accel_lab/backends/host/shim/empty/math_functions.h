// The host needs nothing of it: the shim stands before every source.
#pragma once
