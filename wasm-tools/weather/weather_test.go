package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
)

func TestRun(t *testing.T) {
	m, err := manifests.Load("tool.yaml")
	require.NoError(t, err)
	var asked []string
	do := func(r caisson.Request) (*caisson.Response, error) {
		asked = append(asked, strings.SplitN(r.URL, "?", 2)[0])
		if strings.HasPrefix(r.URL, "https://geocoding-api.open-meteo.com/") {
			return &caisson.Response{Status: 200, Body: []byte(`{"results":[{"name":"Oslo","latitude":59.91,"longitude":10.75,"country":"Norway","country_code":"NO","population":580000}]}`)}, nil
		}
		return &caisson.Response{Status: 200, Body: []byte(`{"timezone":"Europe/Oslo","current_units":{"temperature_2m":"°C","wind_speed_10m":"km/h","precipitation":"mm"},
			"current":{"time":"2026-03-01T12:15","weather_code":71,"temperature_2m":-1.5,"wind_speed_10m":10,"wind_direction_10m":2,"relative_humidity_2m":90},
			"daily":{"time":["2026-03-01","2026-03-02"],"weather_code":[75,0],"temperature_2m_max":[0.5,null],"temperature_2m_min":[-4,null],"precipitation_sum":[12.25],"precipitation_probability_max":[100],"wind_speed_10m_max":[20]}}`)}, nil
	}
	for _, test := range []struct{ arguments, output, err string }{
		{`{"city":"Oslo","days":2}`, "Oslo, Norway (times in Europe/Oslo)\n" +
			"now (2026-03-01T12:15): slight snowfall, -1.5°C, humidity 90%, wind 10 km/h from N\n" +
			"2026-03-01: heavy snowfall, -4 to 0.5°C, precipitation 12.25 mm (100%), wind up to 20 km/h\n" +
			"2026-03-02: clear sky", ""},
		{`{"latitude":0,"longitude":0}`, "0, 0 (times in Europe/Oslo)\n", ""},
		{`{"city":"Oslo","latitude":1}`, "", "not both"},
		{`{"longitude":1}`, "", "give city"},
		{`{"city":"Bergen, Sweden"}`, "", `there is no "Bergen" in Sweden; write one of: Oslo, Norway`},
	} {
		t.Run(test.arguments, func(t *testing.T) {
			require.NoError(t, m.Parameters.Validate(t.Context(), []byte(test.arguments)))
			var out bytes.Buffer
			require.NoError(t, call.Answer(strings.NewReader(test.arguments), &out, answerWith(do)))
			var result struct {
				Success       bool
				Output, Error string
				Data          json.RawMessage
			}
			require.NoError(t, json.Unmarshal(out.Bytes(), &result))
			assert.Equal(t, test.err == "", result.Success, result.Error)
			assert.True(t, strings.HasPrefix(result.Output, test.output), result.Output)
			assert.Contains(t, result.Error, test.err)
			if result.Success {
				assert.NoError(t, m.Result.Validate(t.Context(), result.Data))
			}
		})
	}
	asked = nil
	require.NoError(t, call.Answer(strings.NewReader(`{"latitude":0,"longitude":0}`), &bytes.Buffer{}, answerWith(do)))
	assert.Equal(t, []string{"https://api.open-meteo.com/v1/forecast"}, asked, "coordinates need no lookup")
}
