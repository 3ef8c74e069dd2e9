package main

import (
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
)

// networkFlag collects --allow-net flags.
type networkFlag []manifests.NetworkGrant

func (f *networkFlag) String() string { return "" }
func (f *networkFlag) Type() string   { return "host" }

// Set adds one grant: [SCHEME://]HOST[:PORT].
func (f *networkFlag) Set(text string) error {
	grant, err := parseNetwork(text)
	*f = append(*f, grant)
	return err
}

// secretFlag collects --secret flags. What is wrong with them is for check to report: the
// message for what Set refuses repeats the whole flag, in which somebody may have put the
// secret itself.
type secretFlag struct {
	grants []manifests.SecretGrant
	wrong  []message
}

func (f *secretFlag) String() string { return "" }
func (f *secretFlag) Type() string   { return "secret" }

// Set adds one grant: NAME=env:VAR@[SCHEME://]HOST[:PORT].
func (f *secretFlag) Set(text string) error {
	grant, err := parseSecret(text)
	if err == nil && slices.ContainsFunc(f.grants, func(other manifests.SecretGrant) bool {
		return other.Name == grant.Name && other.Host == grant.Host && slices.Equal(other.Ports, grant.Ports) && slices.Equal(other.Schemes, grant.Schemes)
	}) {
		err = fmt.Errorf("%s is bound to %s twice", grant.Name, grant.Host)
	}
	if err != nil {
		f.wrong = append(f.wrong, message{"--secret: " + err.Error(), nil})
		return nil
	}
	f.grants = append(f.grants, grant)
	return nil
}

// check returns what is wrong with the flags.
func (f *secretFlag) check() error {
	if len(f.wrong) == 0 {
		return nil
	}
	return &failure{exitUsage, f.wrong}
}
