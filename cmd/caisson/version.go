package main

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what is known of the build.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the version control system; empty where unknown
	Modified bool   `json:"modified"` // whether the checkout had changes
	Go       string `json:"go"`
	Wazero   string `json:"wazero"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readVersion() version {
	v := version{Version: "(unknown)", Go: goruntime.Version(), Wazero: "(unknown)", OS: goruntime.GOOS, Arch: goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/tetratelabs/wazero" {
			v.Wazero = dependency.Version
		}
	}
	return v
}

func newVersion(env environment) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "version",
		Short: "print the versions of caisson and what it is built with",
		Args:  positional(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if o.json {
				return env.printJSON(v)
			}
			return env.print(v.String())
		},
	}
	o.outputFlags(command, "print one JSON object")
	return command
}

// String returns the version for people, on lines of its own.
func (v version) String() string {
	text := "caisson " + v.Version + "\n"
	if v.Revision != "" {
		changes := ""
		if v.Modified {
			changes = " with changes"
		}
		text += "revision " + v.Revision + changes + "\n"
	}
	return text + fmt.Sprintf("go %s\nwazero %s\nplatform %s/%s\n", v.Go, v.Wazero, v.OS, v.Arch)
}
