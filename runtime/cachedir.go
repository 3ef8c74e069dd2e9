package runtime

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultCacheDir returns the folder for compiled code below the user's cache folder.
// It does not create it.
func DefaultCacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("runtime: no folder for compiled code: %w", err)
	}
	return filepath.Join(base, "caisson", "compiled"), nil
}
