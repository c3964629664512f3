package history

import (
	"github.com/go-json-experiment/json"
	v1 "github.com/go-json-experiment/json/v1"
)

// encodingJSONOptions has names and values read as encoding/json reads them, which wrote them.
var encodingJSONOptions = json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))

// Unmarshal reads JSON of a history, as json.Unmarshal does, in a fraction of the time.
// It stops at the first value that does not fit, and leaves there what it has read.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, encodingJSONOptions) }
