package lastresort

const saRestorer = 0

var immediately timespec // for ppoll
