package wasi

// Starting describes the directories of a program that is started without a call.
type Starting struct {
	// Preopens are the guest paths of the directories that will be preopened in each call, in
	// order. The program sees their paths but cannot use them while it starts.
	Preopens []string
}

// StartError ends a program that is started without a call and, before it reads its input, calls a
// function that depends on the call or has an effect.
type StartError struct{ Function string }

func (e *StartError) Error() string { return "it calls " + e.Function + " before it reads its input" }

// Flags returns the fdflags of the descriptors, by number, as set by the guest.
func (s *System) Flags() []uint16 {
	flags := make([]uint16, len(s.descriptors))
	for number, d := range s.descriptors {
		if d != nil {
			flags[number] = d.flags
		}
	}
	return flags
}

// SetFlags restores the fdflags of the descriptors, by number, for a guest that set them before it
// was resumed. It ignores flags of numbers that are not open.
func (s *System) SetFlags(flags []uint16) {
	for number, d := range s.descriptors[:min(len(s.descriptors), len(flags))] {
		if d != nil {
			d.flags = flags[number]
		}
	}
}

// atStart holds the functions that a program may call while it starts without a call.
var atStart = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true,
	"clock_res_get": true, "clock_time_get": true, "random_get": true, "sched_yield": true,
	"fd_fdstat_get": true, "fd_fdstat_set_flags": true, "fd_prestat_get": true, "fd_prestat_dir_name": true,
}
