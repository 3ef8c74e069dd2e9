package manifests_test

import (
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
)

func ExampleParse() {
	m, err := manifests.Parse("fetch.tool.yaml", []byte(`
schema: caisson/v1
name: fetch
description: Fetch a page.
module: {path: fetch.wasm}
permissions:
  network: [{host: "*.example.com", paths: [/docs]}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Name, m.Permissions.Network[0])
	// Output: fetch GET https://*.example.com/docs
}

func ExampleParse_problems() {
	_, err := manifests.Parse("fetch.tool.yaml", []byte("schema: caisson/v1\nname: fetch\ndescripton: Fetch a page.\nmodule: {path: fetch.wasm}\n"))
	var invalid *manifests.Error
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			fmt.Printf("%s:%d: %s; %s\n", p.File, p.Line, p.Message, p.Fix)
		}
	}
	// Output:
	// fetch.tool.yaml:1: the key description is required; add description: and a sentence that tells a model what the tool does
	// fetch.tool.yaml:3: unknown key "descripton"; did you mean description?
}

func ExampleParsePolicy() {
	policy, err := manifests.ParsePolicy("caisson.yaml", []byte(`
schema: caisson-config/v1
grants:
  - tools: [fetch]
    network: [{host: www.example.com}]
deny:
  - network: {paths: [/admin]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	given := policy.For("fetch", "wasm-tools/fetch.tool.yaml")
	fmt.Println(given.Network[0].Host, given.Network[0].Origin)
	fmt.Println(given.Deny[0].Network.Paths, given.Deny[0].Origin)
	// Output:
	// www.example.com caisson.yaml:5
	// [/admin] caisson.yaml:7
}

func ExampleGrants_Elements() {
	grants := manifests.Grants{
		Files: []manifests.FileGrant{manifests.GrantDirectory("/project", "/srv/project", manifests.AccessRead)},
		Calls: []manifests.NameGrant{{Name: "fetch"}},
	}
	m := &manifests.Manifest{Permissions: manifests.Permissions{Tools: []string{"fetch"}}}
	for _, s := range grants.Elements() {
		fmt.Println(s.Key, s.Concerns(m))
	}
	// Output:
	// files[0] false
	// calls[0] true
}

func ExamplePolicyLine() {
	rule := manifests.Grants{Files: []manifests.FileGrant{{Path: permission.NewGuestPath("/project")}}}.Rule("fetch")
	fmt.Println(string(rule))
	fmt.Println(manifests.PolicyLine(rule))
	// Output:
	// {"tools":["fetch"],"files":[{"path":"/project","host":null,"access":"read"}]}
	// - {tools: [fetch], files: [{path: /project, host: HOSTDIR, access: read}]}
}

func ExampleManifestLine() {
	rule := manifests.Permissions{Env: []string{"LANG"}}.Rule()
	fmt.Println(manifests.ManifestLine(rule))
	// Output: permissions: {env: [LANG]}
}

func ExamplePolicy_ProfileNamed() {
	var policy *manifests.Policy // none
	strict, err := policy.ProfileNamed("strict")
	fmt.Println(strict.Limits.Timeout, strict.Limits.Memory, strict.NoNetwork, err)
	_, err = policy.ProfileNamed("careless")
	fmt.Println(err)
	// Output:
	// 5s 32MiB true <nil>
	// no such profile: "careless"; there are strict, standard, lenient
}

func ExampleParseBytes() {
	size, err := manifests.ParseBytes("64MiB")
	fmt.Println(int64(size), size, err)
	// Output: 67108864 64MiB <nil>
}

func ExampleParseDuration() {
	length, err := manifests.ParseDuration("1m30s")
	fmt.Println(length.Seconds(), err)
	// Output: 90 <nil>
}
