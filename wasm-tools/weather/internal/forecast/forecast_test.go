package forecast_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/weather/internal/forecast"
)

const paris = `{"results":[
	{"id":2988507,"name":"Paris","latitude":48.85341,"longitude":2.3488,"elevation":42.0,"country_code":"FR","timezone":"Europe/Paris","population":2138551,"country":"France","admin1":"Île-de-France"},
	{"id":4717560,"name":"Paris","latitude":33.66094,"longitude":-95.55551,"country_code":"US","population":24171,"country":"United States","admin1":"Texas"},
	{"id":1,"name":"Parisot","latitude":44.2,"longitude":1.8,"country_code":"FR","country":"France"}],"generationtime_ms":0.5}`

const springfield = `{"results":[
	{"name":"Springfield","latitude":37.2,"longitude":-93.3,"country_code":"US","population":166810,"country":"United States","admin1":"Missouri"},
	{"name":"Springfield","latitude":42.1,"longitude":-72.6,"country_code":"US","population":154341,"country":"United States","admin1":"Massachusetts"},
	{"name":"Springfield","latitude":39.8,"longitude":-89.6,"country_code":"US","population":116565,"country":"United States","admin1":"Illinois"}]}`

// service returns a service that always gives the same response, and records the last request.
func service(answer string, asked *string) forecast.Doer {
	return func(r caisson.Request) (*caisson.Response, error) {
		*asked = strings.TrimPrefix(r.URL, "https://")
		return reply(200, answer)(r)
	}
}

func reply(status int, body string) forecast.Doer {
	return func(caisson.Request) (*caisson.Response, error) {
		return &caisson.Response{Status: status, Body: []byte(body)}, nil
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct{ name, answer, want, err string }{
		{"Paris", paris, "Paris, Île-de-France, France", ""},
		{"paris, texas", paris, "Paris, Texas, United States", ""},
		{"Paris, TX", paris, "", `there is no "Paris" in TX; write one of: Paris, Île-de-France, France; Paris, Texas, United States; Parisot, France`},
		{"Paris, USA", paris, "Paris, Texas, United States", ""},
		{"Paris, FR", paris, "Paris, Île-de-France, France", ""},
		{"Lutetia", paris, "Paris, Île-de-France, France", ""},
		{"Springfield", springfield, "", `several places are called "Springfield"; write one of: Springfield, Missouri, United States; Springfield, Massachusetts, United States; Springfield, Illinois, United States`},
		{"Springfield, Illinois, US", springfield, "Springfield, Illinois, United States", ""},
		{"Springfield, u.s.a.", springfield, "", `several places are called "Springfield"`},
		{"Nowhere", `{"generationtime_ms":0.4}`, "", `no place is called "Nowhere"; write a city's name alone or with its region or country`},
		{"Broken", `{"results":[{"name":"Broken","latitude":91,"longitude":0},{"name":"Broken"}]}`, "", `no place is called "Broken"`},
		{"Broken", `<html>`, "", "the weather service's answer could not be read"},
		{" x , y", paris, "", `"x , y" is not the name of a place`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked string
			place, err := forecast.Find(service(test.answer, &asked), test.name)
			if test.err != "" {
				assert.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, place.Name())
		})
	}
	var asked string
	_, err := forecast.Find(service(paris, &asked), " São Paulo , Brazil")
	require.Error(t, err)
	assert.Equal(t, "geocoding-api.open-meteo.com/v1/search?count=20&format=json&language=en&name=S%C3%A3o+Paulo", asked)
}

const weather = `{"latitude":48.86,"longitude":2.3599997,"generationtime_ms":0.1,"utc_offset_seconds":3600,"timezone":"Europe/Paris","timezone_abbreviation":"GMT+1","elevation":38.0,
	"current_units":{"time":"iso8601","interval":"seconds","temperature_2m":"°C","apparent_temperature":"°C","relative_humidity_2m":"%","precipitation":"mm","weather_code":"wmo code","wind_speed_10m":"km/h","wind_direction_10m":"°"},
	"current":{"time":"2026-03-01T12:15","interval":900,"temperature_2m":9.4,"apparent_temperature":6.1,"relative_humidity_2m":71,"precipitation":0.00,"weather_code":3,"wind_speed_10m":14.8,"wind_direction_10m":331},
	"daily_units":{"time":"iso8601"},
	"daily":{"time":["2026-03-01","2026-03-02"],"weather_code":[61,null],"temperature_2m_max":[11.2,null],"temperature_2m_min":[4.8,3.0],"precipitation_sum":[2.40,0.00],
		"precipitation_probability_max":[88,null],"wind_speed_10m_max":[21.3],"sunrise":["2026-03-01T07:33"],"sunset":["2026-03-01T18:36"]}}`

func pointer(value float64) *float64 { return &value }

func TestAt(t *testing.T) {
	var asked string
	do := service(weather, &asked)
	got, err := forecast.At(do, forecast.Place{City: "Paris", Country: "France", Latitude: 48.853412, Longitude: 2.3488}, 2, forecast.Metric)
	require.NoError(t, err)
	assert.Equal(t, forecast.Weather{
		Place: "Paris, France", Latitude: 48.853412, Longitude: 2.3488, Timezone: "Europe/Paris",
		Units: forecast.Symbols{Temperature: "°C", Wind: "km/h", Precipitation: "mm"},
		Current: forecast.Current{
			Time: "2026-03-01T12:15", Conditions: "overcast", Temperature: pointer(9.4), FeelsLike: pointer(6.1),
			Humidity: pointer(71), Precipitation: pointer(0), Wind: pointer(14.8), WindFrom: "NW",
		},
		Daily: []forecast.Day{
			{Date: "2026-03-01", Conditions: "slight rain", High: pointer(11.2), Low: pointer(4.8), Precipitation: pointer(2.4), PrecipitationChance: pointer(88), Wind: pointer(21.3), Sunrise: "2026-03-01T07:33", Sunset: "2026-03-01T18:36"},
			{Date: "2026-03-02", Conditions: "unknown", Low: pointer(3), Precipitation: pointer(0)},
		},
	}, got)
	question, err := url.Parse("https://" + asked)
	require.NoError(t, err)
	assert.Equal(t, "api.open-meteo.com", question.Host)
	assert.Equal(t, "/v1/forecast", question.Path)
	values := question.Query()
	assert.Equal(t, []string{"48.8534", "2.3488", "2", "auto", ""}, []string{values.Get("latitude"), values.Get("longitude"), values.Get("forecast_days"), values.Get("timezone"), values.Get("temperature_unit")})

	got, err = forecast.At(do, forecast.Place{Latitude: -0.5, Longitude: 179.99999}, 99, forecast.Imperial)
	require.NoError(t, err)
	assert.Equal(t, "-0.5, 180", got.Place)
	question, err = url.Parse("https://" + asked)
	require.NoError(t, err)
	values = question.Query()
	assert.Equal(t, []string{"7", "fahrenheit", "mph", "inch"}, []string{values.Get("forecast_days"), values.Get("temperature_unit"), values.Get("wind_speed_unit"), values.Get("precipitation_unit")})
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		do   forecast.Doer
		want string
	}{
		{reply(400, `{"error":true,"reason":"Cannot initialize\nWeatherVariable"}`), "the weather service: Cannot initialize WeatherVariable"},
		{reply(503, `<html>`), "the weather service: the server answered 503 Service Unavailable; it may work later"},
		{reply(200, `{}`), "the weather service's answer could not be read"},
		{reply(200, `{"current":{},"daily":{"time":[]}}`), "the weather service's answer could not be read"},
		{reply(200, `{"current":{"temperature_2m":"hot"}}`), "the weather service's answer could not be read"},
		{func(caisson.Request) (*caisson.Response, error) { return nil, errors.New("no") }, "no"},
		{func(caisson.Request) (*caisson.Response, error) {
			return &caisson.Response{Status: 200, Body: []byte(weather), Truncated: true}, nil
		}, "the weather service's answer could not be read"},
	} {
		_, err := forecast.At(test.do, forecast.Place{}, 1, forecast.Metric)
		assert.EqualError(t, err, test.want)
	}
}

// FuzzDecode: for any response, the result is bounded and can be encoded.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte(paris))
	f.Add([]byte(springfield))
	f.Add([]byte(`{"current":{"wind_direction_10m":1e308},"daily":{"time":["a"],"weather_code":[-1]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		do := reply(200, string(body))
		if place, err := forecast.Find(do, "Paris"); err == nil {
			require.LessOrEqual(t, len(place.Name()), 1300)
			require.LessOrEqual(t, place.Latitude, 90.0)
		} else {
			require.LessOrEqual(t, len(err.Error()), 8000)
		}
		if w, err := forecast.At(do, forecast.Place{}, 7, forecast.Metric); err == nil {
			encoded, err := json.Marshal(w)
			require.NoError(t, err)
			require.Less(t, len(encoded), 20_000)
			require.LessOrEqual(t, len(w.Daily), forecast.MaxDays)
			require.False(t, strings.ContainsAny(w.Timezone+w.Current.Time, "\n\u200b"))
		}
	})
}
