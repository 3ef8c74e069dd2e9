package lastresort

// saRestorer says that there is a restorer, without which amd64 has no way back from a handler.
const saRestorer = 0x04000000
