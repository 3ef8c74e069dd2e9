package repair

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTolerantReadsJSON: valid JSON is read unchanged, letter by letter.
func FuzzTolerantReadsJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.50e+3,"\u0041\\\"\ud800",true,false,null,{},[]]}`, ` { "a" : 1 } `, `{"//":"/*","#":"'"}`, `"x"`, `[[],{"":{}}]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		read, ok := readTolerant(source)
		if !json.Valid([]byte(source)) {
			require.True(t, !ok || json.Valid([]byte(read)))
			return
		}
		if !ok { // it is too deep, or a number is all there is
			return
		}
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, []byte(source)))
		require.Equal(t, compact.String(), read)
	})
}
