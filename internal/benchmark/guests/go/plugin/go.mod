module github.com/caisson-run/caisson/internal/benchmark/guests/go/plugin

go 1.26.0

require (
	github.com/caisson-run/caisson v0.0.0
	github.com/extism/go-pdk v1.1.3
)

replace github.com/caisson-run/caisson => ../../../../..
