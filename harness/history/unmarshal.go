package history

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// encodingJSONOptions makes the decoder accept the same names and values as encoding/json, with
// which the Recorder writes.
var encodingJSONOptions = json.JoinOptions(v1.DefaultOptionsV1(), v1.ReportErrorsWithLegacySemantics(false))

// unmarshalRecord decodes a line of a history, as Unmarshal does. In addition, a key that occurs twice in an
// object is an error.
func unmarshalRecord(line []byte, into any) error {
	return json.Unmarshal(line, into, encodingJSONOptions, jsontext.AllowDuplicateNames(false))
}

// Unmarshal decodes JSON from a history. It has the same results as json.Unmarshal of
// encoding/json, but is several times faster. At an error it stops. The value into which it
// decodes then contains what came before the error.
func Unmarshal(data []byte, into any) error { return json.Unmarshal(data, into, encodingJSONOptions) }
