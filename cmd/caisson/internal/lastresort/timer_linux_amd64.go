package lastresort

// saRestorer says that there is a restorer, which amd64 needs to return from a handler.
const saRestorer = 0x04000000
