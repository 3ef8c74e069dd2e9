package schema_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/schema"
)

func ExampleCompile() {
	_, err := schema.Compile([]byte(`{"type": "object", "properties": {"n": {"type": "integr"}}}`))
	var wrong *schema.Error
	if errors.As(err, &wrong) {
		for _, problem := range wrong.Problems {
			fmt.Println(problem.Path, "·", problem.Message)
		}
	}
	// Output: properties.n.type · unknown type "integr"; want one of string, number, integer, boolean, object, array, null
}

func ExampleSchema_Validate() {
	parameters, err := schema.Compile([]byte(`{
		"type": "object", "required": ["city"], "additionalProperties": false,
		"properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(parameters.Validate(ctx, []byte(`{"city": "Oslo", "days": 3}`)))
	fmt.Println(parameters.Validate(ctx, []byte(`{"city": "Oslo", "days": 30, "town": true}`)))
	// Output:
	// <nil>
	// days: must be at most 14, got 30; town: unknown parameter (known: city, days)
}

func ExampleProbe_Fits() {
	colour, err := schema.Compile([]byte(`{"enum": ["red", "green"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var probe schema.Probe
	fmt.Println(probe.Fits(context.Background(), colour.Structure(), `"red"`), probe.Fits(context.Background(), colour.Structure(), `"blue"`))
	// Output: true false
}
