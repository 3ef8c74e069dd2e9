package permission_test

import (
	"fmt"

	"github.com/caisson-run/caisson/internal/permission"
)

func ExampleParseHost() {
	below, err := permission.ParseHost("*.Example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	one, err := permission.ParseHost("api.example.com")
	fmt.Println(below, below.Covers(one), one.Covers(below), err)
	_, err = permission.ParseHost("https://example.com")
	fmt.Println(err)
	// Output:
	// *.example.com true false <nil>
	// host "https://example.com" is not a host alone
}

func ExampleParseURLPath() {
	docs, err := permission.ParseURLPath("/docs")
	fmt.Println(docs.Matches(permission.ReadRequestPath("/docs/a", "/docs/a")), err)
	fmt.Println(docs.Matches(permission.ReadRequestPath("/docs/../admin", "/docs/%2e%2e/admin")))
	// Output:
	// true <nil>
	// false
}

func ExampleParseGuestPath() {
	project, err := permission.ParseGuestPath("/project")
	fmt.Println(project.Matches("/project/notes.txt"), project.Matches("/projects"), err)
	// Output: true false <nil>
}

func ExampleParseHostTemplate() {
	workspaces, err := permission.ParseHostTemplate("/srv/workspaces/{project_id}")
	fmt.Println(workspaces.Base(), workspaces.Keys(), err)
	_, err = workspaces.Elements(map[string]string{"project_id": ".."})
	fmt.Println(err)
	// Output:
	// /srv/workspaces [project_id] <nil>
	// the value of project_id is a step in a path, not a name
}

func ExampleRules_Decide() {
	name := func(variable string) permission.Rule { return permission.NewName("env", variable) }
	rules := permission.Rules{
		Requests: []permission.Rule{name("LANG"), name("HOME"), name("PATH")},
		Grants:   []permission.Statement{{Rule: name("LANG")}, {Rule: name("HOME")}},
		Denials:  []permission.Statement{{Rule: name("HOME")}},
	}
	for i, outcome := range rules.Decide() {
		fmt.Println(rules.Requests[i], len(outcome.Effective) > 0, len(outcome.Granted), len(outcome.Taken))
	}
	// Output:
	// LANG true 1 0
	// HOME false 1 1
	// PATH false 0 0
}
