package lastresort

// saRestorer is the flag of actions with a restorer, which amd64 needs to return from a handler.
const saRestorer = 0x04000000
