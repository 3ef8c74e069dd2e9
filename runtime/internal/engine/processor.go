package engine

import "errors"

// errProcessor means that guests cannot run safely on this processor.
var errProcessor = errors.New("the processor lacks BMI1, BMI2 or POPCNT, which Intel's have since 2013 " +
	"and AMD's since 2015; a virtual machine may hide them")

// checkProcessor refuses processors without lzcnt and tzcnt, as wazero v1.12.0 detects them. For those, wazero compiles
// clz and ctz to code after which a guest may read addresses of the host.
func checkProcessor(architecture string, bmi1, bmi2, popcnt bool) error {
	if architecture == "amd64" && !(bmi1 && bmi2 && popcnt) {
		return errProcessor
	}
	return nil
}
