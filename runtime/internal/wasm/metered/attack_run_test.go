package metered_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

func TestHolesRun(t *testing.T) {
	for name, source := range holes() {
		t.Run(name, func(t *testing.T) {
			t.Log(metered.Verify(source))
			ctx := context.Background()
			r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig())
			defer r.Close(ctx)
			last := time.Now()
			n := 0
			lastc := int64(0)
			var worst int64
			r.NewHostModuleBuilder("caisson:meter@1").NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
				now := time.Now()
				if n < 6 {
					t.Log("refill after", now.Sub(last), "charged", lastc-int64(stack[0]))
				}
				worst = max(worst, lastc-int64(stack[0]))
				last, n = now, n+1
				stack[0] = 0
				lastc = 0
				if n > 1000 {
					panic("end")
				}
			}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).Export("refill").Instantiate(ctx)
			m, err := r.Instantiate(ctx, source)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { _, err := m.ExportedFunction("run").Call(ctx); done <- err }()
			select {
			case err := <-done:
				s := ""
				if err != nil {
					s = err.Error()[:min(100, len(err.Error()))]
				}
				t.Log(n, "refills, worst", worst, s)
			case <-time.After(5 * time.Second):
				t.Fatal("still running; refills:", n)
			}
		})
	}
}
