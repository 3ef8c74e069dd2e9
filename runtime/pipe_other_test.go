//go:build !unix

package runtime

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
