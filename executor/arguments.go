package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// parse reads a JSON object, or the free text of a custom call. The error is worded for a model.
func (c *call) parse() (tool.Arguments, error) {
	text, m := c.record.Function.Arguments, c.entry.Manifest
	switch {
	case c.record.Type != tool.CustomCall:
		return c.parseObject(text)
	case m == nil: // plan refuses the call for that
		return tool.Arguments{}, nil
	case m.Type != tool.CustomCall:
		return tool.Arguments{}, &tool.ArgumentsError{Err: fmt.Errorf("%s takes a JSON object, and no free text", c.tool)}
	}
	return freeText(m, text)
}

// freeText makes the text of a custom call the value of its tool's only parameter.
func freeText(m *manifests.Manifest, text string) (tool.Arguments, error) {
	if len(text) > tool.MaxArgumentsBytes {
		err := fmt.Errorf("%d bytes are over the limit of %d", len(text), tool.MaxArgumentsBytes)
		return tool.Arguments{}, &tool.ArgumentsError{Err: err}
	}
	if !utf8.ValidString(text) {
		return tool.Arguments{}, &tool.ArgumentsError{Err: errors.New("the text is not valid UTF-8")}
	}
	var shown struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(m.ModelParameters, &shown); err != nil || len(shown.Required) != 1 {
		return tool.Arguments{}, &tool.ArgumentsError{Err: fmt.Errorf("%s has no parameter for free text", m.Name)}
	}
	return tool.Arguments{}.With(shown.Required[0], json.RawMessage(jsontext.Quote(text))), nil
}

// parseObject parses arguments that are an object. Text that a program wrote is not repaired.
func (c *call) parseObject(text string) (tool.Arguments, error) {
	options := &c.batch.executor.options
	arguments, err := tool.ParseArguments(text)
	if err == nil || options.NoRepair || c.parent != nil {
		return arguments, err
	}
	arguments, repairs, ok := repair.Text(text, options.TolerantJSON)
	if !ok {
		return tool.Arguments{}, err
	}
	c.record.Repairs = repairs
	return arguments, nil
}

// hasContext refuses the call if the model set one of the host's values, or if the host lacks one.
func (c *call) hasContext(arguments tool.Arguments) bool {
	m := c.entry.Manifest
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
		if _, ok := c.batch.session.context[name]; !ok {
			rule := "the host has no value for " + name
			reasons = append(reasons, rule)
			denials = append(denials, contextDenial(name, rule))
		}
	}
	if len(denials) > 0 {
		c.refuse(tool.Denied, strings.Join(reasons, "; "), denials...)
	}
	return len(denials) == 0
}

// maxDenials bounds the denials for arguments of a model that name the host's parameters.
const maxDenials = 16

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

// withContext adds the host's values to the model's arguments.
func (c *call) withContext(own tool.Arguments) tool.Arguments {
	for _, name := range c.entry.Manifest.Context {
		text, _ := json.Marshal(c.batch.session.context[name]) // which never fails for a string
		own = own.With(name, text)
	}
	return own
}

// repair checks the model's arguments together with the host's values, and repairs the model's where they do not fit.
// The result holds the model's arguments, and the reason if they still do not fit. The integers are those of the
// complete arguments, if they fit.
func (c *call) repair(
	ctx context.Context, own tool.Arguments,
) (result repair.Result, integers schema.Integers, err error) {
	if c.brought {
		ctx = c.batch.checks.With(ctx)
	}
	check := func(arguments tool.Arguments) (misfit error) {
		integers, misfit = c.entry.Manifest.Parameters.FindIntegers(ctx, c.withContext(arguments))
		return misfit
	}
	if c.batch.executor.options.NoRepair {
		result = repair.Result{Arguments: own, Misfit: check(own)}
		return result, integers, nil
	}
	repairer, err := c.repairer(ctx)
	if err != nil {
		return repair.Result{}, schema.Integers{}, err
	}
	if c.parent != nil {
		result = repairer.Fill(ctx, own, check)
	} else {
		result = repairer.Repair(ctx, own, []string{c.tool, c.record.Function.Name}, check)
	}
	c.record.Repairs = append(c.record.Repairs, result.Repairs...)
	c.logRepairs(ctx)
	return result, integers, nil
}

func (c *call) repairer(ctx context.Context) (*repair.Repairer, error) {
	m := c.entry.Manifest
	build := func(ctx context.Context) *repair.Repairer {
		return repair.New(ctx, m.Parameters, m.ParameterAliases, func(name string) bool {
			return slices.ContainsFunc(m.Context, func(owned string) bool { return passesFor(name, owned) })
		})
	}
	if !c.brought {
		return c.batch.executor.repairers.of(ctx, m, func() (*repair.Repairer, error) {
			return build(context.WithoutCancel(ctx)), nil
		})
	}
	repairer := c.batch.repairers[m.Name]
	if repairer == nil {
		if repairer = build(ctx); ended(ctx) == nil { // else it may lack defaults
			c.batch.repairers[m.Name] = repairer
		}
	}
	return repairer, nil
}

// logRepairs logs the number of repairs and their rules. The values are only in the record.
func (c *call) logRepairs(ctx context.Context) {
	log := c.batch.executor.log
	if len(c.record.Repairs) == 0 || !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	var rules []string
	for _, r := range c.record.Repairs {
		if !slices.Contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
		}
	}
	log.InfoContext(ctx, "arguments repaired", "call_id", c.record.CallID, "tool", c.tool, "repairs",
		len(c.record.Repairs), "rules", rules)
}

// refuseMisfit refuses a call whose complete arguments do not fit. own are the model's after repair.
func (c *call) refuseMisfit(ctx context.Context, own tool.Arguments, misfit error) error {
	m := c.entry.Manifest
	if len(m.Context) == 0 {
		c.refuse(tool.InvalidArguments, misfit.Error())
		return nil
	}
	// The model knows nothing of the host's parameters and must not learn of them from a message, so the message is
	// the error for the schema that the model was shown.
	shown, err := c.batch.executor.shown.of(ctx, m,
		func() (*schema.Schema, error) { return schema.Compile(m.ModelParameters) })
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

// misfits returns a receipt for each of the host's values that the schema refuses, or for all if it does not say which.
// A receipt names no value, since it reaches the model.
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
