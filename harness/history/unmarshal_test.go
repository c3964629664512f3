package history

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines contains valid and invalid lines of a history, by a description.
var lines = map[string]string{
	"commit": `{"seq":2,"at":1500000000,"commit":{"type":"ADDED","object":{"resource":"pods","namespace":"n","name":"web-1","uid":"u1","version":18446744073709551615,
		"generation":3,"created":"2026-01-02T03:04:05Z","deleting":"2026-01-02T03:04:05.123456789+01:00","labels":{"a":"b","":""},"annotations":null,
		"finalizers":["x"],"owners":[{"kind":"ReplicaSet","name":"web","uid":"u0","controller":true}],"skewed":true,"body":{"status": {"phase":"R\u00fcn"} }}}}`,
	"request":  `{"seq":2,"at":1,"request":{"id":1,"subject":"subject-0","verb":"patch","patch":[{"op":"test","value":1e3}],"bytes":7,"object":null}}`,
	"response": `{"seq":2,"at":1,"response":{"id":1,"code":429,"serverCode":0,"reached":false,"retryAfter":0,"object":{"resource":"pods"}}}`,
	"list":     `{"seq":2,"at":1,"list":{"id":1,"version":3,"items":[{"name":"a"},{"name":"b","body":null}],"more":true}}`,
	"no items": `{"seq":2,"at":1,"list":{"id":1,"items":null}}`,
	"delivery": `{"seq":2,"at":1,"delivery":{"id":1,"type":"BOOKMARK","object":{"version":3},"initialEventsEnd":true,"held":250000000}}`,
	"process":  `{"seq":2,"at":1,"process":{"name":"subject-0","event":"died","usage":{"cpu":3,"peakMemory":4}}}`,

	"space":               " {\t\"seq\" : 2 ,\r\"gap\":{\"source\":\"s\"} } \n",
	"other cases":         `{"SEQ":2,"Gap":{"SOURCE":"s"}}`,
	"unknown":             `{"seq":2,"novelty":{"a":[{}]}}`,
	"twice":               `{"seq":1,"seq":2,"gap":{"source":"s"},"gap":{"detail":"d"}}`,
	"labels twice":        `{"seq":1,"commit":{"object":{"labels":{"a":"b"},"labels":{"a":"c","d":"e"}}}}`,
	"escapes":             `{"seq":2,"gap":{"source":"\ud83d\ude00\ud83d \"\\\/\b\f\n\r\t<","detail":"\u2028"}}`,
	"invalid UTF-8":       "{\"seq\":2,\"gap\":{\"source\":\"\xff\xc3\"}}",
	"null":                `null`,
	"nothing":             ``,
	"no object":           `[]`,
	"cut short":           `{"seq":2,"gap":{"source":"s"}`,
	"more behind it":      `{"seq":2} {}`,
	"a wrong type":        `{"seq":"2"}`,
	"a fraction":          `{"seq":2.5}`,
	"too large":           `{"seq":9223372036854775808}`,
	"negative":            `{"seq":2,"closed":{"id":-1}}`,
	"no time":             `{"seq":2,"start":{"time":"today"}}`,
	"a bad body":          `{"seq":2,"commit":{"object":{"body":{"a":}}}}`,
	"a control character": "{\"seq\":2,\"gap\":{\"source\":\"\x01\"}}",
}

// TestUnmarshal requires that Unmarshal accepts the same lines as json.Unmarshal of
// encoding/json, and decodes them to the same records.
func TestUnmarshal(t *testing.T) {
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			var got, want Record
			gotErr, wantErr := Unmarshal([]byte(line), &got), json.Unmarshal([]byte(line), &want)
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("got error %v, want %v", gotErr, wantErr)
			}
			if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
				t.Errorf("Unmarshal and encoding/json differ (-encoding/json +Unmarshal):\n%s", diff)
			}
		})
	}
}
