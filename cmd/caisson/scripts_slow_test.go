//go:build slow

package main

import "testing"

// TestSlowScripts runs the scripts that take long. [TestScripts] runs the rest.
func TestSlowScripts(t *testing.T) { runScripts(t, "slow") }
