package lastresort

const saRestorer = 0
