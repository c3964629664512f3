package history

import (
	"github.com/go-json-experiment/json"
	v1 "github.com/go-json-experiment/json/v1"
)

// encodingJSONOptions makes the decoder accept the same names and values as encoding/json, with
// which the Recorder writes.
var encodingJSONOptions = json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))

// Unmarshal decodes JSON from a history. It has the same results as json.Unmarshal of
// encoding/json, but is several times faster. At an error it stops. The value into which it
// decodes then contains what came before the error.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, encodingJSONOptions) }
