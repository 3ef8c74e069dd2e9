package forecast

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// Place is a place on Earth.
type Place struct {
	City, Region, Country string // empty for bare coordinates
	CountryCode           string // such as US
	Latitude, Longitude   float64
	Population            int64
}

// Name returns the place's name, which [Find] finds again.
func (p Place) Name() string {
	if p.City == "" {
		return degrees(p.Latitude) + ", " + degrees(p.Longitude)
	}
	name := p.City
	if p.Region != "" && p.Region != p.City {
		name += ", " + p.Region
	}
	if p.Country != "" {
		name += ", " + p.Country
	}
	return name
}

// places is the service's response. It has no results if the place is unknown.
type places struct {
	Results []struct {
		Name        string   `json:"name"`
		Latitude    *float64 `json:"latitude"`
		Longitude   *float64 `json:"longitude"`
		Country     string   `json:"country"`
		CountryCode string   `json:"country_code"`
		Region      string   `json:"admin1"`
		Population  int64    `json:"population"`
	} `json:"results"`
}

const (
	candidates = 20 // to consider
	offered    = 5  // to suggest to a model if the name is ambiguous
	// dominant is the number of times that a place must be larger than the next place of its name to be chosen
	// without asking: Paris is in France.
	dominant = 10
)

// Find returns the place with a name such as "Paris" or "Springfield, Illinois". If there is none or
// the name is ambiguous, the error suggests names to a model.
func Find(do Doer, name string) (Place, error) {
	city, qualifiers := split(name)
	if len([]rune(city)) < 2 {
		return Place{}, fmt.Errorf("%q is not the name of a place", plain.Line(name, 100))
	}
	var answer places
	parameters := url.Values{"name": {city}, "count": {fmt.Sprint(candidates)}, "language": {"en"}, "format": {"json"}}
	if err := get(do, "https://geocoding-api.open-meteo.com/v1/search", parameters, &answer); err != nil {
		return Place{}, err
	}
	found := answer.places()
	if len(found) == 0 {
		return Place{},
			fmt.Errorf(
				"no place is called %q; write a city's name alone or with its region or country, such as Paris or Springfield, "+
					"Illinois, or give latitude and longitude", plain.Line(city, 100))
	}
	if meant := slices.DeleteFunc(slices.Clone(found), func(p Place) bool { return !p.isIn(qualifiers) }); len(meant) > 0 {
		return choose(city, meant)
	}
	return Place{}, fmt.Errorf("there is no %q in %s; %s", plain.Line(city, 100),
		plain.Line(strings.Join(qualifiers, ", "), 100), offer(found))
}

// split separates a city from its region and country.
func split(name string) (city string, qualifiers []string) {
	city, rest, _ := strings.Cut(name, ",")
	for part := range strings.SplitSeq(rest, ",") {
		if part = strings.TrimSpace(part); part != "" {
			qualifiers = append(qualifiers, part)
		}
	}
	return strings.TrimSpace(city), qualifiers
}

func (a places) places() []Place {
	var list []Place
	for _, r := range a.Results[:min(len(a.Results), candidates)] {
		if r.Latitude == nil || r.Longitude == nil || !onEarth(*r.Latitude, *r.Longitude) {
			continue
		}
		list = append(list, Place{
			City: plain.Line(r.Name, 100), Region: plain.Line(r.Region, 100), Country: plain.Line(r.Country, 100),
			CountryCode: plain.Line(r.CountryCode, 10), Latitude: *r.Latitude, Longitude: *r.Longitude, Population: r.Population,
		})
	}
	return list
}

func onEarth(latitude, longitude float64) bool {
	return latitude >= -90 && latitude <= 90 && longitude >= -180 && longitude <= 180
}

// isIn reports whether each qualifier is the place's region, country or country code.
func (p Place) isIn(qualifiers []string) bool {
	return !slices.ContainsFunc(qualifiers, func(q string) bool {
		return !strings.EqualFold(q, p.Region) && !strings.EqualFold(q, p.Country) && !strings.EqualFold(q, p.CountryCode) &&
			!shortNames(q, p)
	})
}

// shortNames knows the common short names of two countries.
func shortNames(name string, p Place) bool {
	switch strings.ToUpper(strings.ReplaceAll(name, ".", "")) {
	case "USA", "UNITED STATES OF AMERICA", "AMERICA":
		return p.CountryCode == "US"
	case "UK", "GREAT BRITAIN", "BRITAIN", "ENGLAND", "SCOTLAND", "WALES":
		return p.CountryCode == "GB"
	}
	return false
}

// choose returns the matching place that is most likely meant.
func choose(city string, fitting []Place) (Place, error) {
	exact := slices.DeleteFunc(slices.Clone(fitting), func(p Place) bool { return !strings.EqualFold(p.City, city) })
	if len(exact) == 0 { // another language or a typo: trust the service's best guess
		return fitting[0], nil
	}
	slices.SortStableFunc(exact, func(a, b Place) int { return cmp.Compare(b.Population, a.Population) })
	if len(exact) == 1 || exact[0].Population > 0 && exact[0].Population/dominant >= max(exact[1].Population, 1) {
		return exact[0], nil
	}
	return Place{}, fmt.Errorf("several places are called %q; %s", plain.Line(city, 100), offer(exact))
}

func offer(list []Place) string {
	var names []string
	for _, p := range list {
		if name := p.Name(); !slices.Contains(names, name) && len(names) < offered {
			names = append(names, name)
		}
	}
	return "write one of: " + strings.Join(names, "; ")
}
