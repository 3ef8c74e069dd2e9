// Package forecast looks up places and their weather at Open-Meteo (open-meteo.com), which needs no key.
package forecast

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
	"github.com/caisson-run/caisson/wasm-tools/internal/wording"
)

// Doer sends a request.
type Doer func(caisson.Request) (*caisson.Response, error)

// MaxDays is the maximum number of days of a forecast, including today.
const MaxDays = 7

// patience is the timeout of a request. Two requests fit into the tool's own timeout of ten seconds.
const patience = 4500 * time.Millisecond

// Units is a system of units.
type Units string

// The systems of units: degrees Celsius, kilometres per hour and millimetres, or degrees
// Fahrenheit, miles per hour and inches.
const (
	Metric   Units = "metric"
	Imperial Units = "imperial"
)

// Weather is the weather at a place. Numbers that the service does not provide are nil.
type Weather struct {
	Place     string  `json:"place"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Timezone  string  `json:"timezone"` // of all times
	Units     Symbols `json:"units"`
	Current   Current `json:"current"`
	Daily     []Day   `json:"daily"`
}

// Symbols are the symbols of the units.
type Symbols struct {
	Temperature   string `json:"temperature"`
	Wind          string `json:"wind"`
	Precipitation string `json:"precipitation"`
}

// Current is the weather now.
type Current struct {
	Time          string   `json:"time"` // local, as 2026-03-01T12:00
	Conditions    string   `json:"conditions"`
	Temperature   *float64 `json:"temperature"`
	FeelsLike     *float64 `json:"feels_like"`
	Humidity      *float64 `json:"humidity_percent"`
	Precipitation *float64 `json:"precipitation"`
	Wind          *float64 `json:"wind"`
	WindFrom      string   `json:"wind_from,omitempty"` // as NW
}

// Day is one day's forecast.
type Day struct {
	Date                string   `json:"date"` // local, as 2026-03-01
	Conditions          string   `json:"conditions"`
	High                *float64 `json:"high"`
	Low                 *float64 `json:"low"`
	Precipitation       *float64 `json:"precipitation"`
	PrecipitationChance *float64 `json:"precipitation_chance_percent"`
	Wind                *float64 `json:"wind"` // the strongest
	Sunrise             string   `json:"sunrise,omitempty"`
	Sunset              string   `json:"sunset,omitempty"`
}

// errUnreadable means that a response is not as the service documents it.
var errUnreadable = errors.New("the weather service's answer could not be read")

// get sends a request to the service. The error is worded for a model.
func get(do Doer, address string, parameters url.Values, into any) error {
	response, err := do(caisson.Request{
		URL: address + "?" + parameters.Encode(), Timeout: patience,
		Headers: [][2]string{{"Accept", "application/json"}},
	})
	if err != nil {
		return errors.New(wording.Failure(err))
	}
	if response.Status != 200 {
		return refused(response)
	}
	if response.Truncated || json.Unmarshal(response.Body, into) != nil {
		return errUnreadable
	}
	return nil
}

// refused words a status other than success, with the reason if the service gives one.
func refused(response *caisson.Response) error {
	var refusal struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(response.Body, &refusal) == nil && refusal.Reason != "" {
		return fmt.Errorf("the weather service: %s", plain.Line(refusal.Reason, 300))
	}
	return fmt.Errorf("the weather service: %s", wording.Status(response))
}

// answer is the service's response.
type answer struct {
	Timezone string `json:"timezone"`
	Units    struct {
		Temperature   string `json:"temperature_2m"`
		Wind          string `json:"wind_speed_10m"`
		Precipitation string `json:"precipitation"`
	} `json:"current_units"`
	Current *struct {
		Time          string   `json:"time"`
		Code          *int     `json:"weather_code"`
		Temperature   *float64 `json:"temperature_2m"`
		FeelsLike     *float64 `json:"apparent_temperature"`
		Humidity      *float64 `json:"relative_humidity_2m"`
		Precipitation *float64 `json:"precipitation"`
		Wind          *float64 `json:"wind_speed_10m"`
		WindFrom      *float64 `json:"wind_direction_10m"`
	} `json:"current"`
	Daily daily `json:"daily"`
}

type daily struct {
	Time          []string   `json:"time"`
	Code          []*int     `json:"weather_code"`
	High          []*float64 `json:"temperature_2m_max"`
	Low           []*float64 `json:"temperature_2m_min"`
	Precipitation []*float64 `json:"precipitation_sum"`
	Chance        []*float64 `json:"precipitation_probability_max"`
	Wind          []*float64 `json:"wind_speed_10m_max"`
	Sunrise       []string   `json:"sunrise"`
	Sunset        []string   `json:"sunset"`
}

// At returns the weather at a place, for 1 to [MaxDays] days.
func At(do Doer, place Place, days int, units Units) (Weather, error) {
	parameters := url.Values{
		"latitude": {degrees(place.Latitude)}, "longitude": {degrees(place.Longitude)},
		"current": {"temperature_2m,apparent_temperature,relative_humidity_2m,precipitation," +
			"weather_code,wind_speed_10m,wind_direction_10m"},
		"daily": {"weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum," +
			"precipitation_probability_max,wind_speed_10m_max,sunrise,sunset"},
		"timezone": {"auto"}, "forecast_days": {strconv.Itoa(min(max(days, 1), MaxDays))},
	}
	if units == Imperial {
		parameters.Set("temperature_unit", "fahrenheit")
		parameters.Set("wind_speed_unit", "mph")
		parameters.Set("precipitation_unit", "inch")
	}
	var a answer
	if err := get(do, "https://api.open-meteo.com/v1/forecast", parameters, &a); err != nil {
		return Weather{}, err
	}
	if a.Current == nil || len(a.Daily.Time) == 0 {
		return Weather{}, errUnreadable
	}
	return a.weather(place), nil
}

// degrees formats a coordinate with a precision of ten metres.
func degrees(value float64) string {
	return strconv.FormatFloat(math.Round(value*1e4)/1e4, 'f', -1, 64)
}

func (a answer) weather(place Place) Weather {
	w := Weather{
		Place: place.Name(), Latitude: place.Latitude, Longitude: place.Longitude, Timezone: word(a.Timezone),
		Units: Symbols{word(a.Units.Temperature), word(a.Units.Wind), word(a.Units.Precipitation)},
		Current: Current{
			Time: word(a.Current.Time), Conditions: conditions(a.Current.Code), Temperature: a.Current.Temperature,
			FeelsLike: a.Current.FeelsLike, Humidity: a.Current.Humidity, Precipitation: a.Current.Precipitation,
			Wind: a.Current.Wind, WindFrom: compass(a.Current.WindFrom),
		},
	}
	d := a.Daily
	for i, date := range d.Time[:min(len(d.Time), MaxDays)] {
		w.Daily = append(w.Daily, Day{
			Date: word(date), Conditions: conditions(at(d.Code, i)), High: at(d.High, i), Low: at(d.Low, i),
			Precipitation: at(d.Precipitation, i), PrecipitationChance: at(d.Chance, i), Wind: at(d.Wind, i),
			Sunrise: word(at(d.Sunrise, i)), Sunset: word(at(d.Sunset, i)),
		})
	}
	return w
}

// word bounds a text that should be short.
func word(text string) string { return plain.Line(text, 60) }

// at returns an element of a list, or zero if the list is too short.
func at[T any](list []T, i int) T {
	if i < len(list) {
		return list[i]
	}
	var none T
	return none
}

// codes are the weather codes of the World Meteorological Organization (table 4677) that the service
// uses.
var codes = map[int]string{
	0: "clear sky", 1: "mainly clear", 2: "partly cloudy", 3: "overcast",
	45: "fog", 48: "depositing rime fog",
	51: "light drizzle", 53: "moderate drizzle", 55: "dense drizzle",
	56: "light freezing drizzle", 57: "dense freezing drizzle",
	61: "slight rain", 63: "moderate rain", 65: "heavy rain",
	66: "light freezing rain", 67: "heavy freezing rain",
	71: "slight snowfall", 73: "moderate snowfall", 75: "heavy snowfall", 77: "snow grains",
	80: "slight rain showers", 81: "moderate rain showers", 82: "violent rain showers",
	85: "slight snow showers", 86: "heavy snow showers",
	95: "thunderstorm", 96: "thunderstorm with slight hail", 99: "thunderstorm with heavy hail",
}

func conditions(code *int) string {
	if code == nil {
		return "unknown"
	}
	return cmp.Or(codes[*code], "unknown")
}

var points = [...]string{"N", "NE", "E", "SE", "S", "SW", "W", "NW"}

// compass returns the compass point of a direction in degrees, or "".
func compass(degrees *float64) string {
	if degrees == nil || !(*degrees >= 0 && *degrees <= 360) {
		return ""
	}
	return points[int(math.Round(*degrees/45))%len(points)]
}
