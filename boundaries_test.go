package caisson_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The architecture is a test: this file says which package may import which, and who
// may know a dependency. ARCHITECTURE.md draws the same picture.

const modulePath = "github.com/caisson-run/caisson"

// layers lists for each folder the other folders of this module that its packages may import.
var layers = map[string][]string{
	"tool":                  {"internal/jsontext"},
	"dialects":              {"tool", "internal/jsontext", "internal/noerr"},
	"manifests":             {"tool", "internal/hostfile", "internal/jsontext", "internal/keypath", "internal/mistake", "internal/modules", "internal/permission", "internal/schema", "internal/spelling"},
	"internal/permission":   {"tool"},
	"hostfuncs":             {"manifests", "tool", "internal/agefile", "internal/errno", "internal/guestfiles", "internal/hostfile", "internal/journal", "internal/jsontext", "internal/masking", "internal/permission"},
	"registry":              {"internal/jsontext", "internal/modules", "internal/spelling", "manifests", "tool"},
	"native":                {"registry", "manifests", "tool"},
	"agents":                {"registry", "tool", "internal/ledger"},
	"executor":              {"registry", "manifests", "tool", "internal/jsontext", "internal/planning", "internal/rates", "internal/sampling", "internal/schema", "internal/swept"},
	"runtime":               {"hostfuncs", "manifests", "tool", "internal/errno", "internal/folder", "internal/guestfiles", "internal/hostfile", "internal/interpreter", "internal/journal", "internal/jsontext", "internal/keypath", "internal/mistake", "internal/modules", "internal/permission", "internal/planning", "internal/replay", "internal/spelling"},
	".":                     {"executor", "registry", "runtime", "manifests", "tool", "internal/folder", "internal/holding", "internal/interpreter", "internal/ledger", "internal/redact", "internal/unapplied"},
	"sdk":                   {},
	"wasm-tools":            {"sdk"},
	"wasm-tools/json":       {"wasm-tools", "internal/jsontext"},
	"internal/guests":       {"sdk"},
	"internal/guestfiles":   {"tool", "internal/errno", "internal/permission"},
	"internal/hostfile":     {},
	"internal/jsontext":     {},
	"internal/interpreter":  {"internal/folder", "internal/hostfile"},
	"internal/interpreters": {"runtime", "manifests", "tool", "internal/cases"},
	"internal/thirdparty":   {"runtime", "manifests", "tool", "internal/cases", "internal/interpreter"},
	"internal/errno":        {},
	"internal/folder":       {"internal/hostfile"},
	"internal/mistake":      {},
	"internal/modules":      {"tool"},
	"internal/holding":      {},
	"internal/ledger":       {"tool", "internal/folder", "internal/hostfile"},
	"internal/batches":      {"executor", "internal/agefile", "internal/folder"},
	"internal/agefile":      {"internal/hostfile"},
	"internal/masking":      {},
	"internal/redact":       {"executor", "manifests", "tool", "internal/jsontext", "internal/masking", "internal/schema", "internal/replay"},
	"internal/names":        {"registry", "manifests", "tool"},
	"internal/unapplied":    {"runtime", "hostfuncs", "manifests", "internal/permission", "internal/redact"},
	"internal/check":        {".", "registry", "runtime", "hostfuncs", "manifests", "internal/keypath", "internal/mistake", "internal/modules", "internal/names", "internal/schema", "internal/terminal", "internal/unapplied"},
	"internal/terminal":     {"tool"},
	"internal/view":         {"registry", "runtime", "manifests", "tool", "internal/check", "internal/jsontext", "internal/permission", "internal/modules", "internal/ledger", "internal/terminal"},
	"internal/clients":      {"dialects", "executor", "registry", "manifests", "tool"},
	"internal/cases":        {"executor", "registry", "runtime", "manifests", "tool", "internal/permission", "internal/replay"},
	"internal/manual":       {"internal/jsontext"},
	"internal/journal":      {"tool"},
	"internal/planning":     {},
	"internal/keypath":      {},
	"internal/noerr":        {},
	"internal/rates":        {"internal/swept"},
	"internal/replay":       {"tool"},
	"internal/sampling":     {},
	"internal/swept":        {},
	"internal/schema":       {"tool", "internal/jsontext", "internal/keypath", "internal/spelling"},
	"internal/spelling":     {},
	"internal/programs":     {},
	"internal/overlay":      {},
	"internal/testcluster":  {},
	"internal/testsize":     {},
	"internal/tooltest":     {".", "agents", "internal/ledger", "manifests", "registry", "tool", "internal/noerr"},
	"internal/plugins":      {"internal/guests"},
	"internal/benchmark":    {"executor", "registry", "runtime", "manifests", "tool", "hostfuncs", "internal/guests", "wasm-tools", "internal/interpreter", "internal/modules"},
	"server":                {".", "agents", "dialects", "executor", "registry", "manifests", "tool", "internal/folder", "internal/mistake", "internal/ledger", "internal/jsontext", "internal/rates", "internal/sampling"},
	"examples":              {".", "server", "agents", "native", "sdk", "dialects", "executor", "registry", "runtime", "manifests", "tool", "hostfuncs", "internal/guests"},
	"cmd":                   {".", "server", "agents", "dialects", "executor", "registry", "runtime", "manifests", "tool", "hostfuncs", "internal/batches", "internal/benchmark", "internal/check", "internal/errno", "internal/folder", "internal/interpreter", "internal/jsontext", "internal/mistake", "internal/permission", "internal/ledger", "internal/replay", "internal/schema", "internal/spelling", "internal/terminal", "internal/unapplied", "internal/view", "internal/agefile"},
}

// owners lists for each dependency the only folders that may import it outside tests. A dependency
// that is not listed may not be imported at all.
var owners = map[string][]string{
	"github.com/tetratelabs/wazero":            {"runtime/internal/engine", "internal/benchmark", "internal/plugins"},
	"github.com/extism/go-sdk":                 {"internal/benchmark", "runtime/extism"},
	"github.com/extism/go-pdk":                 {"internal/benchmark/guests/go/plugin", "internal/plugins/go"},
	"github.com/santhosh-tekuri/jsonschema/v5": {"internal/schema"},
	"go.yaml.in/yaml/v3":                       {"manifests", "wasm-tools/skills/internal/skill"},
	"modernc.org/sqlite":                       {"internal/ledger/internal/database"},
	"github.com/jackc/pgx/v5":                  {"internal/ledger/internal/database"},
	"github.com/spf13/cobra":                   {"cmd"},
	"github.com/spf13/pflag":                   {"cmd"}, // the type of cobra's flags
	"github.com/google/uuid":                   {"executor", "server"},
	"github.com/google/jsonschema-go":          {"native"},
	"github.com/prometheus/client_golang":      {"server/metrics"},
	"github.com/rogpeppe/go-internal":          {"internal/guests"},
	"github.com/modelcontextprotocol/go-sdk":   {"server/mcp"},
	"golang.org/x/sys":                         {"runtime/internal/engine", "hostfuncs/files", "server"},
	"golang.org/x/time":                        {"internal/rates", "internal/sampling"},
	"golang.org/x/sync":                        {"internal/ledger", "server/auth"},
	"github.com/hashicorp/golang-lru/v2":       {"executor", "server"},
	"golang.org/x/term":                        {"cmd"},
	"golang.org/x/net":                         {"wasm-tools/internal/page"},
	"golang.org/x/text":                        {"internal/terminal", "wasm-tools/files/internal/charset", "wasm-tools/internal/page", "wasm-tools/knowledge/internal/words", "wasm-tools/text"},
	"github.com/clipperhouse/uax29/v2":         {"wasm-tools/text"},
	"code.dny.dev/ssrf":                        {"hostfuncs/network"},
	"filippo.io/age":                           {"internal/agefile"},
	"github.com/openai/openai-go/v3":           {"examples/agent/openaitest"},
	"github.com/dop251/goja":                   {"internal/interpreters/javascript"},
}

// testOnly are the dependencies of tests, which any test may use.
var testOnly = []string{
	"github.com/stretchr/testify", "go.uber.org/goleak", "github.com/rogpeppe/go-internal", "github.com/google/uuid",
	"github.com/extism/go-sdk", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/net", "filippo.io/age", "go.yaml.in/yaml/v3",
}

var meaningless = []string{"util", "utils", "common", "types", "helpers", "core", "models", "misc", "shared", "base"}

type source struct {
	file   string // below the root, slash-separated
	test   bool
	syntax *ast.File
}

func (s source) folder() string { return path.Dir(s.file) }

func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	set := token.NewFileSet()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		found = append(found, source{name, strings.HasSuffix(name, "_test.go"), syntax})
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(found), 50, "the walk must find the code")
	return found
}

func imports(s source) []string {
	var paths []string
	for _, spec := range s.syntax.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

func isThirdParty(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".") && !within(imported, modulePath)
}

// layerOf returns the innermost layer that a folder is in.
func layerOf(folder string) (string, bool) {
	innermost, known := "", false
	for layer := range layers {
		if within(folder, layer) && len(layer) >= len(innermost) {
			innermost, known = layer, true
		}
	}
	return innermost, known
}

func TestImportsPointDownwards(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || within(s.folder(), "internal/lint") {
			continue // tests may import higher layers, which are built only for them
		}
		layer, known := layerOf(s.folder())
		if !assert.True(t, known, "%s is in no layer of boundaries_test.go", s.file) {
			continue
		}
		for _, imported := range imports(s) {
			if !within(imported, modulePath) {
				continue
			}
			target := path.Clean("." + strings.TrimPrefix(imported, modulePath))
			allowed := within(target, layer) || slices.ContainsFunc(layers[layer], func(below string) bool { return within(target, below) })
			assert.True(t, allowed, "%s imports %s, which its layer may not", s.file, target)
		}
	}
}

// TestExecutorDoesNotKnowTheRuntime: the executor sees an interface, so that a call can
// be answered by a worker elsewhere as well as by the runtime in this process.
func TestExecutorDoesNotKnowTheRuntime(t *testing.T) {
	for _, s := range sources(t) {
		if within(s.folder(), "executor") {
			assert.NotContains(t, imports(s), modulePath+"/runtime", s.file)
		}
	}
}

// TestProgramsWireNothing: only the root package connects runtime, registry and executor, so that
// no program forgets a part.
func TestProgramsWireNothing(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !within(s.folder(), "cmd") && !within(s.folder(), "examples") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "New" {
				if x, ok := selector.X.(*ast.Ident); ok {
					assert.NotContains(t, []string{"runtime", "registry", "executor"}, x.Name, "%s wires what caisson.Open does", s.file)
				}
			}
			return true
		})
	}
}

func TestDependenciesHaveOneOwner(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range imports(s) {
			if !isThirdParty(imported) {
				continue
			}
			if s.test && slices.ContainsFunc(testOnly, func(m string) bool { return within(imported, m) }) {
				continue
			}
			allowed := false
			for dependency, folders := range owners {
				if within(imported, dependency) {
					allowed = slices.ContainsFunc(folders, func(f string) bool { return within(s.folder(), f) })
				}
			}
			assert.True(t, allowed, "%s imports %s, which it does not own", s.file, imported)
		}
	}
}

// TestVocabularyIsStandard: package tool, the dialects, permissions and the SDK are for everyone, so they bring nothing
// along. The tools are small, and only what reads HTML, encodings, characters and YAML has a library for it.
func TestVocabularyIsStandard(t *testing.T) {
	for _, s := range sources(t) {
		bare := slices.ContainsFunc([]string{"dialects", "internal/jsontext", "tool", "internal/permission", "sdk", "wasm-tools"}, func(folder string) bool { return within(s.folder(), folder) })
		if !bare || s.test || within(s.folder(), "wasm-tools/internal/page") || within(s.folder(), "wasm-tools/files/internal/charset") || within(s.folder(), "wasm-tools/knowledge/internal/words") || within(s.folder(), "wasm-tools/text") || within(s.folder(), "wasm-tools/skills/internal/skill") {
			continue
		}
		for _, imported := range imports(s) {
			assert.False(t, isThirdParty(imported), "%s imports %s; it may use only the standard library", s.file, imported)
		}
	}
}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	for _, s := range sources(t) {
		assert.NotContains(t, meaningless, s.syntax.Name.Name, "%s: a package's name describes its content", s.file)
	}
}

// TestNoDependencyShowsInTheAPI: an embedding program must not have to follow our
// dependencies' versions.
func TestNoDependencyShowsInTheAPI(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || strings.Contains(s.file, "internal/") || within(s.folder(), "cmd") || within(s.folder(), "examples") {
			continue
		}
		foreign := map[string]bool{}
		for _, spec := range s.syntax.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); isThirdParty(imported) {
				name := path.Base(imported)
				if strings.HasPrefix(name, "v") && len(name) == 2 {
					name = path.Base(path.Dir(imported))
				}
				if spec.Name != nil {
					name = spec.Name.Name
				}
				foreign[name] = true
			}
		}
		for _, declaration := range s.syntax.Decls {
			for _, exposed := range exposedTypes(declaration) {
				ast.Inspect(exposed, func(n ast.Node) bool {
					if selector, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := selector.X.(*ast.Ident); ok {
							assert.False(t, foreign[x.Name], "%s shows %s.%s in its API", s.file, x.Name, selector.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// exposedTypes returns the type expressions that a declaration shows to importers.
func exposedTypes(declaration ast.Decl) []ast.Node {
	var exposed []ast.Node
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverIsExported(d) {
			exposed = append(exposed, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if spec.Type != nil && spec.Names[0].IsExported() {
					exposed = append(exposed, spec.Type)
				}
			case *ast.TypeSpec:
				if !spec.Name.IsExported() {
					continue
				}
				structure, ok := spec.Type.(*ast.StructType)
				if !ok {
					exposed = append(exposed, spec.Type)
					continue
				}
				for _, field := range structure.Fields.List {
					if len(field.Names) == 0 || field.Names[0].IsExported() {
						exposed = append(exposed, field.Type)
					}
				}
			}
		}
	}
	return exposed
}

func receiverIsExported(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return true
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	name, ok := receiver.(*ast.Ident)
	return !ok || name.IsExported()
}
