// Command weather is the tool get_weather.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/call"
	"github.com/caisson-run/caisson/wasm-tools/weather/internal/forecast"
)

func main() { call.Main(answerWith(caisson.Do)) }

// arguments are the tool's arguments: a place by its city or by its coordinates.
type arguments struct {
	City      string   `json:"city"`
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Days      int      `json:"days"`
	Units     string   `json:"units"`
}

const defaultDays = 3

// answerWith returns the tool, which sends its requests with do.
func answerWith(do forecast.Doer) func(arguments) (call.Result, error) {
	return func(a arguments) (call.Result, error) {
		place, err := a.where(do)
		if err != nil {
			return call.Result{}, err
		}
		weather, err := forecast.At(do, place, cmp.Or(a.Days, defaultDays), forecast.Units(a.Units))
		if err != nil {
			return call.Result{}, err
		}
		return call.Result{Success: true, Output: describe(weather), Data: weather}, nil
	}
}

func (a arguments) where(do forecast.Doer) (forecast.Place, error) {
	switch {
	case a.City != "" && (a.Latitude != nil || a.Longitude != nil):
		return forecast.Place{}, errors.New("give either city or latitude and longitude, not both")
	case a.City != "":
		return forecast.Find(do, a.City)
	case a.Latitude == nil || a.Longitude == nil:
		return forecast.Place{}, errors.New("give city, such as Paris, or latitude and longitude")
	}
	return forecast.Place{Latitude: *a.Latitude, Longitude: *a.Longitude}, nil
}

// describe words the weather.
func describe(w forecast.Weather) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (times in %s)\n", w.Place, w.Timezone)
	now := []string{w.Current.Conditions}
	add := func(value *float64, unit, format string) {
		if value != nil {
			now = append(now, fmt.Sprintf(format, number(*value)+unit))
		}
	}
	add(w.Current.Temperature, w.Units.Temperature, "%s")
	add(w.Current.FeelsLike, w.Units.Temperature, "feels like %s")
	add(w.Current.Humidity, "%", "humidity %s")
	add(w.Current.Wind, " "+w.Units.Wind, strings.TrimSuffix("wind %s from "+w.Current.WindFrom, " from "))
	add(w.Current.Precipitation, " "+w.Units.Precipitation, "precipitation %s")
	fmt.Fprintf(&b, "now (%s): %s\n", w.Current.Time, strings.Join(now, ", "))
	for _, day := range w.Daily {
		b.WriteString(describeDay(day, w.Units) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func describeDay(day forecast.Day, units forecast.Symbols) string {
	parts := []string{day.Conditions}
	if day.Low != nil && day.High != nil {
		parts = append(parts, fmt.Sprintf("%s to %s%s", number(*day.Low), number(*day.High), units.Temperature))
	}
	if day.Precipitation != nil {
		part := fmt.Sprintf("precipitation %s %s", number(*day.Precipitation), units.Precipitation)
		if day.PrecipitationChance != nil {
			part += fmt.Sprintf(" (%s%%)", number(*day.PrecipitationChance))
		}
		parts = append(parts, part)
	}
	if day.Wind != nil {
		parts = append(parts, fmt.Sprintf("wind up to %s %s", number(*day.Wind), units.Wind))
	}
	return day.Date + ": " + strings.Join(parts, ", ")
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', 6, 64) }
