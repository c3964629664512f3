package scenario

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/token"
)

// This file converts Go values to YAML nodes, and nodes to YAML text. It replaces the encoder of
// the YAML library, which omits necessary quotes in some cases.

// nodeEncoder is implemented by types that encode themselves as YAML. The fields of these types
// in YAML differ from the Go fields.
type nodeEncoder interface {
	encodeNode() *node
}

// WorkloadHash returns a hash of the steps of the workload and the number of nodes. They determine the
// objects at the end of a run without faults. WorkloadHash ignores times, and the field operator, which a
// subject file may change. The hash has 16 hexadecimal digits.
func (s *Scenario) WorkloadHash() string {
	steps := slices.Clone(s.Workload)
	for i := range steps {
		steps[i].After = 0
		if steps[i].Await != nil {
			await := *steps[i].Await
			await.Within = 0
			steps[i].Await = &await
		}
	}
	text := write(mapping{{name: "nodes", value: &node{value: s.Cluster.Nodes}}, {name: "workload", value: encode(reflect.ValueOf(steps))}})
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%x", sum[:8])
}

// encode returns the YAML node of a Go value, for [Scenario.Marshal]. It supports the types that
// [decoder] supports.
func encode(from reflect.Value) *node {
	if custom, ok := from.Interface().(nodeEncoder); ok {
		return custom.encodeNode()
	}
	if from.Type() == durationType {
		return &node{value: time.Duration(from.Int()).String()}
	}
	switch from.Kind() {
	case reflect.Pointer:
		return encode(from.Elem())
	case reflect.Struct:
		return &node{value: encodeFields(from)}
	case reflect.Map:
		fields := mapping{}
		keys := slices.SortedFunc(slices.Values(from.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		})
		for _, key := range keys {
			fields = append(fields, entry{name: key.String(), value: encode(from.MapIndex(key))})
		}
		return &node{value: fields}
	case reflect.Slice:
		items := sequence{}
		for i := range from.Len() {
			items = append(items, encode(from.Index(i)))
		}
		return &node{value: items}
	case reflect.String:
		return &node{value: from.String()}
	default:
		return &node{value: from.Interface()}
	}
}

// encodeFields returns the fields of a struct as a mapping. It omits a field with a zero value
// if the yaml tag of the field has omitempty.
func encodeFields(from reflect.Value) mapping {
	fields := mapping{}
	for _, field := range visibleFields(from.Type()) {
		name, value := fieldTag(field), from.FieldByIndex(field.Index)
		if name == "" || value.IsZero() && strings.HasSuffix(field.Tag.Get("yaml"), ",omitempty") {
			continue
		}
		fields = append(fields, entry{name: name, value: encode(value)})
	}
	return fields
}

// write returns the YAML of a scenario. Each top-level field, such as cluster, is one line. A
// top-level field that is a list of mappings, such as workload, has one line for each field of
// each item.
func write(root mapping) []byte {
	var b strings.Builder
	for _, section := range root {
		items, ok := section.value.value.(sequence)
		if !ok || len(items) == 0 || !isMapping(items[0]) {
			fmt.Fprintf(&b, "%s: %s\n", section.name, inline(section.value))
			continue
		}
		fmt.Fprintf(&b, "%s:\n", section.name)
		for _, item := range items {
			lead := "  - "
			for _, field := range item.value.(mapping) {
				fmt.Fprintf(&b, "%s%s: %s\n", lead, quote(field.name), inline(field.value))
				lead = "    "
			}
		}
	}
	return []byte(b.String())
}

func isMapping(n *node) bool {
	_, ok := n.value.(mapping)
	return ok
}

// inline returns a value as YAML on one line, such as {kind: Pod, name: web}.
func inline(n *node) string {
	var words []string
	switch v := n.value.(type) {
	case nil:
		return "null"
	case string:
		return quote(v)
	case mapping:
		for _, field := range v {
			words = append(words, quote(field.name)+": "+inline(field.value))
		}
		return "{" + strings.Join(words, ", ") + "}"
	case sequence:
		for _, item := range v {
			words = append(words, inline(item))
		}
		return "[" + strings.Join(words, ", ") + "]"
	case float64:
		return formatFloat(v)
	default:
		return fmt.Sprint(v)
	}
}

// formatFloat formats a number with a decimal point, so that a YAML reader does not parse it as
// an integer.
func formatFloat(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// plain matches text that needs no quotes in YAML. It also matches some words that need quotes,
// such as true. The function quote therefore checks for these words separately.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// quote returns the text as a YAML string. It uses double quotes only where they are necessary.
func quote(text string) string {
	if plain.MatchString(text) && !token.IsNeedQuoted(text) {
		return text
	}
	return strconv.Quote(text)
}
