package engine

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// constantAddress is a module with so many pages of memory, whose function "run" stores 42 at a constant address, calls
// a function, and returns the value that it loads from the address.
func constantAddress(address int32, pages int) []byte {
	body := join([]byte{0x41}, signed(int(address)), []byte{0x21, 0, 0x20, 0, 0x41, 42, 0x36, 2, 0, 0x10, 1, 0x20, 0, 0x28, 2, 0})
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 2, 0x60, 0, 1, 0x7f, 0x60, 0, 0), section(3, 2, 0, 1),
		section(5, join([]byte{1, 0}, leb(pages))...), section(7, join([]byte{1}, name("run"), []byte{0, 0})...),
		section(10, join([]byte{2}, function([]byte{1, 1, 0x7f}, body), function(nil, []byte{0x03, 0x40, 0x0b}))...))
}

// splitMemory is a guest's memory after memory of the host.
type splitMemory struct{ host, guest []byte }

func (m splitMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }
func (m splitMemory) Reallocate(size uint64) []byte                  { return m.guest[:size] }
func (m splitMemory) Free()                                          {}

// TestAttackConstantAddresses: a guest with more than 2 GiB of memory would read the host's memory, and write to it,
// through constant addresses. No guest has so much, whatever its limit. The control is plain wazero.
func TestAttackConstantAddresses(t *testing.T) {
	const address, pages = -1 << 31, maxMemory>>16 + 1
	e := newEngine(t, Options{}, nil)
	_, err := compileSource(t, e, constantAddress(address, pages)).Run(t.Context(), Run{Function: "run", MemoryLimit: 3 << 30})
	assert.ErrorIs(t, err, ErrMemory, "it starts with more")

	grows := program{memory: 1, body: join([]byte{0x41}, signed(maxMemory>>16), []byte{0x40, 0, 0x41, 0x7f, 0x47, 0x04, 0x40, 0x00, 0x0b})}
	mustRun(t, compile(t, e, grows), Run{Function: "run", MemoryLimit: 3 << 30}) // traps unless memory.grow fails

	if goruntime.GOARCH != "amd64" {
		return
	}
	all, err := reserve(2*maxMemory + 1<<16)
	require.NoError(t, err)
	defer release(all)
	split := splitMemory{all[:maxMemory], all[maxMemory:]}
	split.host[0] = 7
	ctx := experimental.WithMemoryAllocator(t.Context(), split)
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	instance, err := runtime.Instantiate(ctx, constantAddress(address, pages))
	require.NoError(t, err)
	got, err := instance.ExportedFunction("run").Call(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 7, got[0], "the control: if wazero reads the guest's 42 now, maxMemory may be larger")
}
