package executor

import "runtime/debug"

// apart runs a program's code on a goroutine of its own and waits for it, so that neither a panic nor
// a runtime.Goexit in it can end anything else: both are errors.
func apart(do func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { done <- err }()
		defer func() {
			if value := recover(); value != nil {
				err = &panicError{value: value, stack: debug.Stack()}
			}
		}()
		err = do()
	}()
	return <-done
}
