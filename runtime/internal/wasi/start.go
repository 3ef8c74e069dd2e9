package wasi

// Starting is what a program that is started without a call sees in place of its
// directories.
type Starting struct {
	// Preopens are the guest paths of the directories that each call will find open, in
	// order.
	Preopens []string
}

// StartError ends a program that calls a function before it reads its input whose answer
// depends on the call, or which does something.
type StartError struct{ Function string }

func (e *StartError) Error() string { return "it calls " + e.Function + " before it reads its input" }

// Flags returns the flags of the descriptors, by number, as the guest has set them.
func (s *System) Flags() []uint16 {
	flags := make([]uint16, len(s.descriptors))
	for number, d := range s.descriptors {
		if d != nil {
			flags[number] = d.flags
		}
	}
	return flags
}

// SetFlags sets the flags of the descriptors, by number, as far as there are any: for a guest
// that has set them before.
func (s *System) SetFlags(flags []uint16) {
	for number, d := range s.descriptors[:min(len(s.descriptors), len(flags))] {
		if d != nil {
			d.flags = flags[number]
		}
	}
}

// atStart are the functions that do the same for all calls.
var atStart = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true,
	"clock_res_get": true, "clock_time_get": true, "random_get": true, "sched_yield": true,
	"fd_fdstat_get": true, "fd_fdstat_set_flags": true, "fd_prestat_get": true, "fd_prestat_dir_name": true,
}
