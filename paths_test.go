package caisson_test

import (
	"go/ast"
	"go/types"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestArchitecturePaths: the functions and types on the paths through the code exist, and are as many as ARCHITECTURE.md
// says. A row of a table links to the folders of its functions.
func TestArchitecturePaths(t *testing.T) {
	declared := map[string]bool{} // "folder: name"; a method with and without its type; for types, "type package.name"
	for _, s := range sources(t) {
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if s.test {
					continue
				}
				declared[s.folder()+": "+d.Name.Name] = true
				if d.Recv != nil {
					receiver := strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
					declared[s.folder()+": "+receiver+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if of, ok := spec.(*ast.TypeSpec); ok {
						declared["type "+s.syntax.Name.Name+"."+of.Name.Name] = true
					}
				}
			}
		}
	}
	page := string(noerr.Get(os.ReadFile("ARCHITECTURE.md"))(t))
	_, page, _ = strings.Cut(page, "\n## Three paths through the code\n")
	page, _, _ = strings.Cut(page, "\n## ")
	title := regexp.MustCompile(`(?m)^\*\*.*: (\d+) (functions|types)\.\*\*`)
	code, link := regexp.MustCompile("`([A-Za-z.]+)`"), regexp.MustCompile(`\]\(([^)]*)\)`)
	titles := title.FindAllStringSubmatchIndex(page, -1)
	require.Len(t, titles, 3)
	for i, at := range titles {
		text := page[at[1]:]
		if i+1 < len(titles) {
			text = page[at[1]:titles[i+1][0]]
		}
		found := 0
		if page[at[4]:at[5]] == "types" {
			for _, name := range code.FindAllStringSubmatch(text, -1) {
				found++
				in := name[1]
				if !strings.Contains(in, ".") {
					in = "permit." + in // the package of the file that is linked
				}
				assert.True(t, declared["type "+in], "there is no type %s", name[1])
			}
		}
		for line := range strings.Lines(text) {
			cells := strings.Split(line, " | ")
			if len(cells) != 2 || page[at[4]:at[5]] == "types" {
				continue
			}
			for _, name := range code.FindAllStringSubmatch(cells[1], -1) {
				found++
				exists := false
				for _, file := range link.FindAllStringSubmatch(cells[0], -1) {
					exists = exists || declared[path.Dir(file[1])+": "+name[1]]
				}
				assert.True(t, exists, "no function %s in %s", name[1], cells[0])
			}
		}
		assert.Equal(t, page[at[2]:at[3]], strconv.Itoa(found), page[at[0]:at[1]])
	}
}
