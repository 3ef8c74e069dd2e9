module github.com/caisson-run/caisson/internal/plugins/go

go 1.26.0

require github.com/extism/go-pdk v1.1.3
