package known_test

import (
	"fmt"

	"github.com/caisson-run/caisson/dialects/known"
)

func ExampleDetect() {
	dialect, _ := known.Detect([]byte(`{"object":"chat.completion","choices":[]}`))
	fmt.Println(dialect.Name())
	_, ok := known.Detect([]byte(`{"answer":42}`))
	fmt.Println(ok)
	// Output:
	// openai
	// false
}
