// Package script reads scripts: the files that an interpreter gets in place of a module of the tool's own, with its
// command line.
package script

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/guestfiles"
	"github.com/caisson-run/caisson/internal/hostfile"
	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Script holds the files and the interpreter of a script tool. It takes the place of a module. It is immutable.
type Script struct {
	Interpreter interpreter.Interpreter
	Arguments   []string         // the interpreter's command line
	Tree        *guestfiles.Tree // mounted at [Folder]
	Bytes       int64            // of the tree
	// Digest is of the files, the command line and the interpreter.
	Digest engine.Digest
	folder interpreter.Folder
}

// Folder is the guest's path of a script tool's own files.
const Folder = "/caisson"

// Program is the path in [Folder] of the script and of its packages that are not wheels.
const Program = "tool"

// The contents of [Folder].
const (
	scriptPackages = "packages" // the files of wheels
	scriptLibrary  = "lib"      // the module "caisson"
	scriptSample   = "sample.json"
)

// drivers are the programs that call scripts, and the module with which scripts call host functions.
//
//go:embed drivers
var drivers embed.FS

// Read reads a script, its packages and its driver, below the manifest's folder. The interpreter need not be installed.
func Read(m *manifests.Manifest, folder interpreter.Folder) (*Script, error) {
	interpreter, found := interpreter.For(string(m.Module.Language))
	if !found {
		return nil, fmt.Errorf("%s: there is no interpreter of %s", m.Module.Path, m.Module.Language)
	}
	s := &Script{Interpreter: interpreter, folder: folder}
	b := bundle{written: map[string]bool{}}
	b.archive = zip.NewWriter(&b.bytes)
	if err := b.fill(m, s); err != nil {
		return nil, err
	}
	content, err := zip.NewReader(bytes.NewReader(b.bytes.Bytes()), int64(b.bytes.Len()))
	if err == nil {
		s.Tree, err = guestfiles.NewTree(content)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Module.Path, err)
	}
	s.Bytes = b.read
	h := sha256.New()
	tree := s.Tree.Digest()
	fmt.Fprintf(h, "caisson-script/v1\n%s\n%x\n%q\n", interpreter.SHA256, tree, s.Arguments)
	h.Sum(s.Digest[:0])
	return s, nil
}

// bundle collects the files of a script tool in an archive, which keeps one copy of each and is a file system.
type bundle struct {
	archive *zip.Writer
	bytes   bytes.Buffer
	written map[string]bool
	read    int64
}

// fill adds everything and sets the command line.
func (b *bundle) fill(m *manifests.Manifest, s *Script) error {
	root, err := os.OpenRoot(filepath.Dir(m.File))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := b.file(root, m.Module.Path); err != nil {
		return err
	}
	// The folders in which packages lie.
	places := []string{path.Dir(m.Module.Path)}
	for _, name := range m.Module.Packages {
		switch {
		case strings.HasSuffix(name, ".whl"):
			if err := b.wheel(root, name, m.Module.Language); err != nil {
				return err
			}
		default:
			if err := b.folder(root, name); err != nil {
				return err
			}
			if place := path.Dir(name); !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	if m.Module.Sample != nil {
		if err := b.add(scriptSample, int64(len(m.Module.Sample)), bytes.NewReader(m.Module.Sample)); err != nil {
			return err
		}
	}
	driver := map[modules.Language]string{modules.Python: "driver.py", modules.JavaScript: "driver.mjs"}[m.Module.Language]
	library := map[modules.Language]string{modules.Python: "caisson.py",
		modules.JavaScript: "caisson.mjs"}[m.Module.Language]
	for from, to := range map[string]string{driver: driver, library: path.Join(scriptLibrary, library)} {
		content, err := drivers.ReadFile(path.Join("drivers", from))
		if err == nil {
			err = b.add(to, int64(len(content)), bytes.NewReader(content))
		}
		if err != nil {
			return err
		}
	}
	s.Arguments = []string{"-I", "-B", path.Join(Folder, driver)}
	if m.Module.Language == modules.JavaScript {
		s.Arguments = []string{"--module", path.Join(Folder, driver)}
	}
	s.Arguments = append(s.Arguments, path.Join(Folder, Program, m.Module.Path))
	for _, place := range places {
		s.Arguments = append(s.Arguments, path.Join(Folder, Program, place))
	}
	return b.archive.Close()
}

// add adds a file of some size, unless it is there: of two wheels with the same file, the first wins. The size may be
// wrong.
func (b *bundle) add(name string, size int64, from io.Reader) error {
	if b.written[name] {
		return nil
	}
	switch {
	case strings.Contains(name, `\`): // which the archive would read as a slash
		return fmt.Errorf("the name of %q cannot be used in a guest's path", clipName(name))
	case len(b.written) == guestfiles.MaxTreeNames:
		return fmt.Errorf("with %s, there are more than %d files; leave out what the tool does not need", name,
			guestfiles.MaxTreeNames)
	}
	b.written[name] = true
	left := guestfiles.MaxTreeBytes - b.read
	if size > left {
		return tooLong(name)
	}
	b.bytes.Grow(int(size) + spareBytes)
	w, err := b.archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(from, left+1))
	if b.read += n; err == nil && n > left {
		err = tooLong(name)
	}
	return err
}

// spareBytes is room in an archive for the bytes after a long file, for which its buffer would be doubled.
const spareBytes = 1 << 20

func tooLong(name string) error {
	return fmt.Errorf("with %s, the script and its packages are longer than %d bytes", clipName(name),
		guestfiles.MaxTreeBytes)
}

func (b *bundle) file(root *os.Root, name string) error {
	file, info, err := hostfile.OpenIn(root, filepath.FromSlash(name), hostfile.Follow)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", name)
	case errors.Is(err, hostfile.ErrIrregular):
		return fmt.Errorf("%s is not a regular file", name)
	case err != nil:
		return err
	}
	defer file.Close()
	return b.add(path.Join(Program, name), info.Size(), file)
}

// folder adds a folder from the manifest's folder, without the __pycache__ folders that Python adds to sources.
func (b *bundle) folder(root *os.Root, name string) error {
	found := false
	err := fs.WalkDir(root.FS(), name, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && at == name:
			return fmt.Errorf("the package %s does not exist", name)
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "__pycache__":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is neither a regular file nor a folder; a package must hold its own files", at)
		case at == name:
			return fmt.Errorf("the package %s is a file; name a folder, or a wheel that ends in .whl", name)
		}
		found = true
		return b.file(root, at)
	})
	if err == nil && !found {
		err = fmt.Errorf("the package %s has no files", name)
	}
	return err
}

// wheel adds the files of a wheel of pure Python (PyPA's binary distribution format, 1.0).
func (b *bundle) wheel(root *os.Root, name string, language modules.Language) error {
	stem := strings.TrimSuffix(path.Base(name), ".whl")
	tags := strings.Split(stem, "-")
	switch {
	case language != modules.Python:
		return fmt.Errorf("the package %s is a wheel, which only Python has; name a folder", name)
	case len(tags) < 5 || tags[len(tags)-1] != "any" || tags[len(tags)-2] != "none" ||
		!strings.Contains(tags[len(tags)-3], "py3"):
		return fmt.Errorf("the wheel %s is not of pure Python 3; take one whose name ends in -py3-none-any.whl", name)
	}
	file, info, err := hostfile.OpenIn(root, filepath.FromSlash(name), hostfile.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the package %s does not exist", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer file.Close()
	if info.Size() > guestfiles.MaxTreeBytes-b.read {
		return tooLong(name)
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return fmt.Errorf("%s is not a wheel: %w", name, err)
	}
	data := strings.Join(tags[:2], "-") + ".data/"
	own := map[string]bool{}
	for _, member := range archive.File {
		to, isData := strings.CutPrefix(member.Name, data)
		if isData { // scripts and headers are for installed programs
			to, isData = strings.CutPrefix(to, "purelib/")
			if !isData {
				continue
			}
		}
		switch {
		case strings.HasSuffix(member.Name, "/"):
			continue
		case !fs.ValidPath(to) || !member.Mode().IsRegular():
			return fmt.Errorf("%s holds %q, which is not a plain file", name, clipName(member.Name))
		}
		if own[to] { // tools differ in which of them they install
			return fmt.Errorf("%s holds %q twice", name, clipName(member.Name))
		}
		own[to] = true
		if b.written[path.Join(scriptPackages, to)] {
			continue // before it is unpacked, which takes time
		}
		if err := b.member(member, path.Join(scriptPackages, to)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// member adds a file of a wheel. archive/zip refuses a file that does not have its declared length.
func (b *bundle) member(member *zip.File, to string) error {
	opened, err := member.Open()
	if err != nil {
		return err
	}
	defer opened.Close()
	return b.add(to, int64(min(member.UncompressedSize64, 1<<40)), opened)
}

const maxShown = 80 // bytes of a name that an error shows

func clipName(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxShown)], "")
}

// Module reads the interpreter.
func (s *Script) Module() ([]byte, error) {
	if s.folder == "" {
		return nil, errors.New("no folder for interpreters is configured")
	}
	source, err := s.folder.Read(s.Interpreter)
	if errors.Is(err, interpreter.ErrNotInstalled) {
		return nil, errors.New(s.missingText())
	}
	return source, err
}

// Code returns the digest of the interpreter, which is the module that is compiled.
func (s *Script) Code() engine.Digest {
	var digest engine.Digest
	_, _ = hex.Decode(digest[:], []byte(s.Interpreter.SHA256)) // it is a constant
	return digest
}

// Missing returns the reason and the fix if the interpreter is not installed, or "".
func (s *Script) Missing() string {
	if s.folder != "" && s.folder.Has(s.Interpreter) {
		return ""
	}
	return s.missingText()
}

func (s *Script) missingText() string {
	return fmt.Sprintf("needs the interpreter %s, which is not installed: run \"caisson interpreters install %s\"",
		s.Interpreter.Name, s.Interpreter.Language)
}
