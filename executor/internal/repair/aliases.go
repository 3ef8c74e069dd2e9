package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Rename replaces aliases of parameters by the parameters' names, and returns the changes, in an order in which they
// can be applied. It fails, with an error worded for a model, if a parameter is written under two names.
func Rename(
	ctx context.Context, own tool.Arguments, aliases []manifests.ParameterAlias,
) (tool.Arguments, []tool.Repair, error) {
	isWritten := func(a manifests.ParameterAlias) bool { _, ok := own.Get(a.Name); return ok }
	if !slices.ContainsFunc(aliases, isWritten) {
		return own, nil, nil
	}
	text, err := own.MarshalJSON()
	if err != nil {
		return own, nil, err
	}
	doc, err := jsontext.Read(ctx, string(text), jsontext.Limits{Depth: tool.MaxArgumentsDepth, Values: len(text) + 1})
	if err != nil {
		return own, nil, err
	}
	renamed, repairs, err := rename(doc.Root(), aliases)
	if err != nil {
		return own, nil, err
	}
	arguments, err := tool.ParseArguments(renamed)
	return arguments, repairs, err // it may have become too long
}

// rename is Rename for an object, and returns its text.
func rename(v jsontext.Value, aliases []manifests.ParameterAlias) (string, []tool.Repair, error) {
	byName := map[string]manifests.ParameterAlias{}
	for _, a := range aliases {
		byName[a.Name] = a
	}
	written := map[string]string{} // by parameter, the name under which it is written
	var members []string
	var repairs []tool.Repair
	for key, value := range v.Members() {
		name, text := key.String(), value.Text()
		parameter := name
		if a, ok := byName[name]; ok {
			meant := meaning(a, value)
			parameter = a.Parameter
			repairs = append(repairs, change(name, text, absent), change(parameter, absent, meant))
			text = meant
		}
		if other, twice := written[parameter]; twice {
			return "", nil, writtenTwice(parameter, other, name)
		}
		written[parameter] = name
		members = append(members, jsontext.Quote(parameter)+":"+text)
	}
	return "{" + strings.Join(members, ",") + "}", repairs, nil
}

func change(name, from, to string) tool.Repair {
	return tool.Repair{Path: schema.MemberPath("", name), Rule: string(Alias), From: json.RawMessage(from),
		To: json.RawMessage(to)}
}

// meaning returns the parameter's value for one that is written under an alias.
func meaning(a manifests.ParameterAlias, value jsontext.Value) string {
	written := value.Text()
	if value.Kind() == jsontext.String {
		written = value.String()
	}
	for _, v := range a.Values {
		if v.Written == written {
			return string(v.Means)
		}
	}
	return value.Text()
}

func writtenTwice(parameter, first, second string) error {
	if first == parameter {
		first, second = second, first
	}
	if second == parameter {
		return &tool.ArgumentsError{Err: fmt.Errorf("%s is another name for %s, and both are given; write only %[2]s", first,
			parameter)}
	}
	return &tool.ArgumentsError{Err: fmt.Errorf("%s and %s are both other names for %s; write only %[3]s", first, second,
		parameter)}
}
