package history

import (
	"github.com/go-json-experiment/json"
	v1 "github.com/go-json-experiment/json/v1"
)

// encodingJSONOptions makes the decoder accept names and values as encoding/json does,
// which the recorder uses.
var encodingJSONOptions = json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))

// Unmarshal decodes JSON of a history as json.Unmarshal does, but several times faster.
// On an error, it stops, and into holds the values decoded before the error.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, encodingJSONOptions) }
