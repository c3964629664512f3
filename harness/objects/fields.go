package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Fields returns the fields of an object as text, such as "3" for the path spec/replicas. The
// keys of the map are paths. A path is a JSON pointer without the first slash. The result does
// not contain metadata that the API server sets.
//
// The items of a list have paths of their own if the field uid, type or name identifies each item.
// Such a path contains the value of this field in place of the index, as in
// spec/containers/web/image. Each finalizer also has a path of its own. Any other list is a single
// field.
//
// A field that is null or empty counts as absent. The result is nil if the body of the object is
// not a JSON object.
func Fields(o *history.Object) map[string]string {
	fields := map[string]string{}
	if len(o.Body) > 0 {
		var body map[string]any
		decoder := json.NewDecoder(bytes.NewReader(o.Body))
		decoder.UseNumber()
		if decoder.Decode(&body) != nil {
			return nil
		}
		addFields(fields, "", body)
	}
	for key, value := range o.Labels {
		fields[joinPath("metadata/labels", key)] = value
	}
	for key, value := range o.Annotations {
		fields[joinPath("metadata/annotations", key)] = value
	}
	for _, finalizer := range o.Finalizers {
		fields[joinPath("metadata/finalizers", finalizer)] = "set"
	}
	for _, owner := range o.Owners {
		fields[joinPath("metadata/ownerReferences", string(owner.UID))] = fmt.Sprintf("%s %s controller=%t", owner.Kind, owner.Name, owner.Controller)
	}
	return fields
}

// PodSpecFields returns the fields of a pod's spec as text, in the form of [Fields]. The keys are
// paths below the spec, such as containers/main/image. The result is nil if the argument is not a
// JSON object.
func PodSpecFields(spec json.RawMessage) map[string]string {
	return Fields(&history.Object{Body: spec})
}

// addFields adds a JSON value to the map fields. The argument path is the key. If the value is a
// JSON object, addFields adds each inner value under a longer path, such as spec/replicas.
func addFields(fields map[string]string, path string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for key, inner := range value {
			addFields(fields, joinPath(path, key), inner)
		}
	case []any:
		if items := itemsByKey(value); items != nil {
			addFields(fields, path, items)
		} else if len(value) > 0 {
			text, _ := json.Marshal(value) // a value that was decoded from JSON can be encoded
			fields[path] = string(text)
		}
	default:
		fields[path] = fmt.Sprint(value)
	}
}

// itemsByKey returns the items of a list as a map, if one field identifies each item. This field
// is uid, type or name. The key of the map is the item's value of that field. The result is nil
// if the list is empty or none of the three fields identifies each item.
func itemsByKey(list []any) map[string]any {
	for _, field := range []string{"uid", "type", "name"} {
		items := map[string]any{}
		for _, item := range list {
			if fields, ok := item.(map[string]any); ok {
				if key, ok := fields[field].(string); ok {
					items[key] = item
				}
			}
		}
		if len(items) == len(list) && len(list) > 0 {
			return items
		}
	}
	return nil
}

// escapePath escapes a map key for a JSON pointer. fieldName does the reverse for a whole path
// and makes it readable: it turns spec/replicas into spec.replicas.
var (
	escapePath = strings.NewReplacer("~", "~0", "/", "~1")
	fieldName  = strings.NewReplacer("/", ".", "~1", "/", "~0", "~")
)

// FieldName converts a path from [Fields] to the form that users write. For example, it returns
// spec.replicas for spec/replicas.
func FieldName(path string) string { return fieldName.Replace(path) }

// joinPath appends a map key to a path and escapes the key. For example, it returns
// spec/replicas for spec and replicas.
func joinPath(path, key string) string {
	return strings.TrimPrefix(path+"/"+escapePath.Replace(key), "/")
}
