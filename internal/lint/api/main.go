// Command api prints how many identifiers each public package of a Go module exports. It fails unless their total is
// the number in a file, so that a change of the public API shows in a diff.
//
// Usage: api MODULE NUMBER
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: api MODULE NUMBER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(module, number string) error {
	packages, err := publicPackages(module)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(number)
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", number, err)
	}
	total := 0
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		fmt.Printf("%5d  %s\n", len(packages[folder]), folder)
		total += len(packages[folder])
	}
	fmt.Printf("%5d  total\n", total)
	return compare(total, want, number)
}

// compare returns an error that says what to do if the total is not the committed number.
func compare(total, want int, file string) error {
	switch {
	case total > want:
		return fmt.Errorf("the public packages export %d identifiers, and %s allows %d: "+
			"unexport what no other module needs, or move it to a package in internal", total, file, want)
	case total < want:
		return fmt.Errorf("the public packages export only %d identifiers: write %d instead of %d to %s", total, total, want,
			file)
	}
	return nil
}

// names are what a package exports: NAME or TYPE.METHOD.
type names map[string]struct{}

// publicPackages returns the packages of a module that other modules can import, by their slash-separated folders.
// Files count whatever platform they are for.
func publicPackages(module string) (map[string]names, error) {
	found := map[string]names{}
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(module, path)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if file.Name.Name == "main" {
			return nil
		}
		folder, err := filepath.Rel(module, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if found[folder] == nil {
			found[folder] = names{}
		}
		for _, name := range exported(file) {
			found[folder][name] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no public package", module)
	}
	return found, nil
}

// enter returns [fs.SkipDir] for a folder whose packages no other module can import, or that belongs to another module.
func enter(module, folder string) error {
	if folder == module {
		return nil
	}
	name := filepath.Base(folder)
	if name == "internal" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	if err == nil {
		return fs.SkipDir
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// exported returns the types, functions, variables and constants that a file exports, and the methods that it declares
// for exported types. Fields of structs and methods of interfaces are parts of their types, and do not count.
func exported(file *ast.File) []string {
	ast.FileExports(file)
	var names []string
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			if ast.IsExported(name) {
				names = append(names, name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // a generic type
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	}
	return ""
}
