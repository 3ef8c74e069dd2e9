//go:build !wasip1

package caisson

func netRequest() hostFunction    { return outside("caisson:net@1.request") }
func netSend() hostFunction       { return outside("caisson:net@1.send") }
func netReceive() hostFunction    { return outside("caisson:net@1.receive") }
func secretsExists() hostFunction { return outside("caisson:secrets@1.exists") }
func toolsCall() hostFunction     { return outside("caisson:tools@1.call") }
func streamEmit() hostFunction    { return outside("caisson:stream@1.emit") }
func contextGet() hostFunction    { return outside("caisson:context@1.get") }

// outside is a host function in a program without a host.
func outside(name string) hostFunction {
	return hostFunction{
		name: name,
		call: func(_, _ []byte) (uint64, error) { return 0, ErrOutside },
		read: func([]byte) int { return 0 },
	}
}
