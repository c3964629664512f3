package history

import (
	"github.com/go-json-experiment/json"
	v1 "github.com/go-json-experiment/json/v1"
)

// asV1 has names and values read as encoding/json reads them, which wrote them.
var asV1 = json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))

// Unmarshal reads JSON of a history, as json.Unmarshal does, in a fraction of the time.
// It stops at the first value that does not fit, and leaves there what it has read.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, asV1) }
