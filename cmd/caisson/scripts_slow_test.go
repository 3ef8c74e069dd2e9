//go:build slow

package main

import "testing"

// TestSlowScripts runs the scripts that take long, as [TestScripts] runs the others.
func TestSlowScripts(t *testing.T) { runScripts(t, "slow") }
