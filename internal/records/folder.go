package records

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/folder"
)

const suffix = ".json"

// Folder is the path of a folder of records. The folder need not exist.
type Folder string

func (f Folder) open() (*os.Root, error) { return folder.Open(string(f)) }

// idsOf returns the ids of the records among files, newest first.
func idsOf(files []fs.DirEntry) []string {
	var found []string
	for _, file := range files {
		if id, ok := strings.CutSuffix(file.Name(), suffix); ok && folder.IsID(id, false) {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(b, a) })
	return found
}
