package history

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDecodeFast requires that decodeFast rejects a line, or decodes it to the same record as
// Unmarshal.
func TestDecodeFast(t *testing.T) {
	fast := map[string]bool{
		"in full": true, "response": true, "list": true, "delivery": true, "a bare delivery": true, "escapes in a body": true, "a deep body": true,
	}
	all := maps.Clone(lines)
	maps.Copy(all, map[string]string{
		"in full": `{"seq":2,"at":-5,"commit":{"type":"ADDED","object":{"resource":"pods","version":999999999999999999,"created":"2026-01-02T03:04:05Z",` +
			`"deleting":"2026-01-02T03:04:05.123456789+01:00","labels":{"a":"b","":""},"owners":[],"body":{"a":[{},[],-1,0,true,false,null,""]}}}}`,
		"a bare delivery":   `{"seq":2,"delivery":{"type":"BOOKMARK","object":{"version":3}}}` + "\n",
		"an object twice":   `{"seq":2,"delivery":{"object":{"name":"a"},"object":{"uid":"u"}}}`,
		"owners twice":      `{"seq":2,"commit":{"object":{"owners":[{"name":"a"}],"owners":[{"kind":"b"}]}}}`,
		"escapes in a body": `{"seq":2,"commit":{"object":{"body":{"a\"":"\\b\n"}}}}`,
		"a deep body":       `{"seq":2,"commit":{"object":{"body":` + nested(depthMax) + `}}}`,
		"a deeper body":     `{"seq":2,"commit":{"object":{"body":` + nested(depthMax+1) + `}}}`,
		"no digits":         `{"seq":-,"closed":{"id":1}}`,
		"a leading zero":    `{"seq":02,"commit":{}}`,
		"19 digits":         `{"seq":1000000000000000000,"commit":{}}`,
		"a bad escape":      `{"seq":2,"commit":{"object":{"body":"\x"}}}`,
		"a comma too many":  `{"seq":2,"commit":{},}`,
		"no comma":          `{"seq":2"commit":{}}`,
		"an unknown field":  `{"seq":2,"commit":{"kind":"a"}}`,
		"an odd time":       `{"seq":2,"commit":{"object":{"created":"2026-01-02 03:04:05"}}}`,
		"two lines":         `{"seq":2,"commit":{}}` + "\n\n",
	})
	for name, line := range all {
		t.Run(name, func(t *testing.T) {
			if got := checkDecodeFast(t, []byte(line)); got != fast[name] {
				t.Errorf("decodeFast accepts the line: %t, want %t", got, fast[name])
			}
		})
	}
}

// nested returns JSON arrays inside of each other, such as "[[[]]]" for the depth 3.
func nested(depth int) string {
	return string(slices.Repeat([]byte("["), depth)) + string(slices.Repeat([]byte("]"), depth))
}

// checkDecodeFast reports whether decodeFast accepts the line. If decodeFast does, its record
// must equal that of Unmarshal.
func checkDecodeFast(t *testing.T, line []byte) bool {
	t.Helper()
	var got, want Record
	if !got.decodeFast(new(scanner), line) {
		return false
	}
	if err := Unmarshal(line, &want); err != nil {
		t.Fatalf("decodeFast accepts an invalid line: %+v; Unmarshal: %v", got, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decodeFast and Unmarshal differ (-Unmarshal +decodeFast):\n%s", diff)
	}
	return true
}

// TestDecodeFastKnowsEveryField requires that decodeFast decodes every field of the record types
// that it knows.
func TestDecodeFastKnowsEveryField(t *testing.T) {
	for _, want := range []Record{
		{Commit: new(Commit)},
		{Request: new(Request)},
		{Response: new(Response)},
		{List: new(List)},
		{Delivery: new(Delivery)},
	} {
		kind := reflect.ValueOf(&want).Elem()
		for i := range kind.NumField() {
			if field := kind.Field(i); field.Kind() != reflect.Pointer || !field.IsNil() {
				fill(t, field)
			}
		}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Record
		if !got.decodeFast(new(scanner), line) {
			t.Errorf("decodeFast rejects %s", line)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", line, diff)
		}
	}
}

// fill sets v and everything in it, such as fields and elements, to values other than the zero
// value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch value := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*value = json.RawMessage(`{"a":["b",1]}`)
		return
	case *time.Time:
		*value = epoch
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(8)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}

// TestStringsAreCopied requires that decoded strings share no memory with the line, whose buffer
// is used again.
func TestStringsAreCopied(t *testing.T) {
	line := []byte(`{"seq":2,"delivery":{"subject":"a","object":{"body":{"b":1}}}}`)
	var s scanner
	var first, second Record
	if !first.decodeFast(&s, line) {
		t.Fatal("decodeFast rejects the line")
	}
	clear(line)
	if !second.decodeFast(&s, []byte(`{"seq":3,"delivery":{"subject":"a"}}`)) {
		t.Fatal("decodeFast rejects the line")
	}
	if got := first.Delivery.Subject + second.Delivery.Subject + string(first.Delivery.Object.Body); got != `aa{"b":1}` {
		t.Errorf("read %q, want %q", got, `aa{"b":1}`)
	}
}

func FuzzDecodeFast(f *testing.F) {
	for _, line := range lines {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) { checkDecodeFast(t, line) })
}
