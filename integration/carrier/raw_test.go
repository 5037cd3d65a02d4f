package carrier

import (
	"io"
	"log"

	"github.com/go-json-experiment/json/jsontext"
)

// raw makes JSON texts encode as themselves.
func raw(texts []string) []jsontext.Value {
	values := make([]jsontext.Value, len(texts))
	for i, text := range texts {
		values[i] = jsontext.Value(text)
	}
	return values
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
