package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoundTables(t *testing.T) {
	header := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	tables := []byte{4, 18, 4, 0x70, 0, 1, 0x6f, 1, 2, 5, 0x70, 1, 3, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x70, 0}
	tables = append(tables, 100) // the last has a minimum of 100
	tables[1] = byte(len(tables) - 2)
	memory := []byte{5, 3, 1, 0, 1}
	source := append(append(append([]byte(nil), header...), tables...), memory...)
	m, err := Inspect(source)
	require.NoError(t, err)

	bounded := BoundTables(source, m, 50)
	again, err := Inspect(bounded)
	require.NoError(t, err)
	assert.Equal(t, []Table{
		{FuncRef, Limits{Min: 1, Max: 50, HasMax: true}},
		{ExternRef, Limits{Min: 2, Max: 5, HasMax: true}},
		{FuncRef, Limits{Min: 3, Max: 50, HasMax: true}},
		{FuncRef, Limits{Min: 100, Max: 100, HasMax: true}},
	}, again.Tables)
	assert.Equal(t, memory, bounded[len(bounded)-len(memory):], "the rest stays as it is")

	without := append(append([]byte(nil), header...), memory...)
	m, err = Inspect(without)
	require.NoError(t, err)
	assert.Equal(t, without, BoundTables(without, m, 50))
}
