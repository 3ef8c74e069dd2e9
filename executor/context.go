package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// contextValue is the host's value of one parameter, as JSON.
type contextValue struct {
	name string
	text json.RawMessage
}

// contextValues returns the host's values of the parameters that belong to it. It refuses
// the call if the model set one of them or if the host has no value for one.
func (c *call) contextValues(arguments tool.Arguments) ([]contextValue, bool) {
	m := c.entry.Manifest
	var values []contextValue
	var reasons []string
	var denials []tool.Denial
	for _, written := range arguments.Names() {
		if len(denials) == maxDenials {
			break
		}
		for _, name := range m.Context {
			if passesFor(written, name) {
				reasons = append(reasons, fmt.Sprintf("leave out the argument %q: the host fills in %s", written, name))
				denials = append(denials, tool.Denial{
					Permission: "context", Value: written,
					Rule: fmt.Sprintf("the host fills in %s; a model cannot set it", name),
				})
			}
		}
	}
	for _, name := range m.Context {
		value, ok := c.batch.session.context[name]
		if !ok {
			rule := "the host has no value for " + name
			reasons = append(reasons, rule)
			denials = append(denials, contextDenial(name, rule))
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			c.refuseFailed(err)
			return nil, false
		}
		values = append(values, contextValue{name, text})
	}
	if len(denials) > 0 {
		c.refuse(tool.Denied, strings.Join(reasons, "; "), denials...)
		return nil, false
	}
	return values, true
}

// maxDenials is of how many spellings of the host's parameters a receipt is written.
const maxDenials = 16

// complete adds the host's values to what the model wrote.
func complete(own tool.Arguments, values []contextValue) tool.Arguments {
	for _, v := range values {
		own = own.With(v.name, v.text)
	}
	return own
}

// passesFor reports whether a decoder that matches keys without regard to case may take
// one key for the other. Unicode's simple folding is what Go's encoding/json uses; it
// equates "k" with the Kelvin sign and "s" with "ſ". Lower and upper case as such are
// what decoders in other languages compare: "ı" is an "I" in upper case.
func passesFor(written, name string) bool {
	if strings.EqualFold(written, name) {
		return true
	}
	for _, inCase := range []func(string) string{strings.ToLower, strings.ToUpper} {
		if inCase(written) == inCase(name) {
			return true
		}
	}
	return false
}

// refuseMisfit says why the complete arguments, the model's and the host's, do not fit the
// schema. own is the model's part, repaired, and misfit what is wrong with the complete ones.
func (c *call) refuseMisfit(ctx context.Context, own tool.Arguments, misfit error) error {
	m := c.entry.Manifest
	if len(m.Context) == 0 {
		c.refuse(tool.InvalidArguments, misfit.Error())
		return nil
	}
	// The model knows nothing of the host's parameters and must not learn of them from
	// a message, so it is told what is wrong in the terms of the schema that it was shown.
	shown, err := c.batch.executor.shown.of(ctx, m, func() (*schema.Schema, error) { return schema.Compile(m.ModelParameters) })
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = shown.FindIntegers(ctx, own)
	if c.isTooLate(ctx) {
		return nil
	}
	if err != nil {
		c.refuse(tool.InvalidArguments, err.Error())
		return nil
	}
	denials := misfits(m, misfit)
	c.refuse(tool.Denied, denials[0].Rule, denials...)
	return nil
}

// inDigits returns arguments that fit the schema with their integers in digits. All that follows sees them
// like this: approvals, caches and the tool. It is no repair, since the values are the same.
func inDigits(arguments tool.Arguments, integers schema.Integers) (tool.Arguments, error) {
	plain, err := integers.InDigits()
	if err != nil || plain == nil {
		return arguments, err
	}
	return tool.ParseArguments(string(plain)) // they may have become too long
}

// misfits returns a receipt for each of the host's values that the schema refuses, or for
// all of them where the schema does not say which. A receipt names no value: receipts
// reach the model.
func misfits(m *manifests.Manifest, err error) []tool.Denial {
	var violations *schema.ViolationError
	var refused []string
	if errors.As(err, &violations) {
		for _, name := range m.Context {
			if slices.ContainsFunc(violations.Violations, func(v schema.Violation) bool { return v.Path == name }) {
				refused = append(refused, name)
			}
		}
	}
	if len(refused) == 0 {
		refused = m.Context
	}
	denials := make([]tool.Denial, len(refused))
	for i, name := range refused {
		denials[i] = contextDenial(name, fmt.Sprintf("the host's value of %s does not fit the tool's parameters", name))
	}
	return denials
}

func contextDenial(name, rule string) tool.Denial {
	return tool.Denial{
		Permission: "context", Value: name, Rule: rule,
		Allow: tool.Allow{Grant: manifests.ContextSource{Name: name, From: manifests.FromFixed}.Rule()},
	}
}
