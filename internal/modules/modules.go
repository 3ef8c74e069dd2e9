// Package modules has the part of a manifest about its module: the file and its kind, and how its input and output are
// passed.
package modules

import (
	"encoding/json"
	"regexp"
)

const (
	// MaxBytes is the maximum size of a module with its libraries, in bytes.
	MaxBytes = 128 << 20
	// MaxVariables is the default and the maximum of the bytes that the variables of a plug-in may have, as in Extism.
	MaxVariables = 1 << 20
	// MaxLibraries is the maximum number of libraries that a plug-in can have.
	MaxLibraries = 4
)

// LibraryName matches the names that [Module.Libraries] can have. A library's name is that of a module in the imports
// of other modules, which may be any text.
var LibraryName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Module configures the module that runs the tool, and its input and output.
type Module struct {
	Path string // a file, relative to the manifest, or an OCI reference ("oci://…")
	// Language is the language of the script that Path is; empty for a WebAssembly module. An
	// interpreter runs the script.
	Language Language
	// Packages are folders and wheels next to the manifest that the script can import from.
	Packages []string
	// Sample are arguments that the script is called with once, before the snapshot that calls resume; nil for none.
	Sample json.RawMessage `json:",omitempty"`
	// SHA256 pins the module, with its packages or libraries: 64 lower-case hex digits; empty if it is not pinned.
	SHA256 string
	ABI    ABI
	Entry  string // extism: the exported function
	// Args is the argv template without the program's name; nil for none.
	Args   []ArgTemplate
	Stdin  Stdin
	Stdout Stdout
	Stderr Stderr
	// Config is the configuration of an extism plug-in; nil for none.
	Config map[string]string
	// Variables is the maximum size, in bytes, of the variables of a call of an extism plug-in, with their names and 40
	// bytes for each; 0 means [MaxVariables].
	Variables int64
	// Libraries are files of modules, relative to the manifest, by the names under which an extism plug-in
	// and other libraries import their functions; nil for none.
	Libraries map[string]string
	// SuccessCodes are the exit codes besides 0 that are a success, sorted. Programs such as grep use
	// one to say that they found nothing.
	SuccessCodes []int
}

// Language is a language of scripts. The zero value means that the module is not a script.
type Language string

// Supported languages.
const (
	LanguageNone Language = ""
	Python       Language = "python"
	JavaScript   Language = "javascript"
)

// ABI is a guest contract. The zero value means that it is detected.
type ABI string

// Supported guest contracts.
const (
	ABIDetect ABI = ""
	ABIWASI   ABI = "wasi"
	ABIExtism ABI = "extism"
)

// Stdin configures a program's standard input: the arguments object, one argument or nothing.
type Stdin struct {
	Mode  StdinMode
	Param string // for StdinParam
}

// StdinMode is a kind of standard input.
type StdinMode string

// Kinds of standard input.
const (
	StdinArguments StdinMode = "arguments"
	StdinParam     StdinMode = "param"
	StdinNone      StdinMode = "none"
)

// Stdout says how a program's standard output is converted to a result.
type Stdout string

// Ways of reading standard output.
const (
	StdoutAuto   Stdout = "auto"
	StdoutResult Stdout = "result"
	StdoutJSON   Stdout = "json"
	StdoutText   Stdout = "text"
)

// Stderr says who may read a program's standard error. The zero value means that its end is quoted in failures for
// which the tool gave no reason; models read these.
type Stderr string

// StderrPrivate keeps standard error out of what models read. People find it in the call's log.
const StderrPrivate Stderr = "private"
