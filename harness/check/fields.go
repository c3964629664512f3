package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// fieldsOf returns the fields of an object as text, by path. A path is a JSON pointer without
// the first slash, such as spec/replicas. Metadata that the API server sets is left out.
//
// The items of a list have their own paths if the field uid, type or name identifies each of
// them. The path then contains the value of this field in place of the index. Each finalizer
// also has its own path. Any other list is one field.
//
// A field that is null or empty counts as absent. The result is nil if the body of the object
// is not a JSON object.
func fieldsOf(o *history.Object) map[string]string {
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

// addFields adds a JSON value and all fields in it to a map of fields.
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

// itemsByKey returns the items of a list by their field uid, type or name. It returns nil if the
// list is empty, or if none of these fields identifies each item.
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

// escapePath and unescapePath convert a key to a part of a JSON pointer and back.
var (
	escapePath   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePath = strings.NewReplacer("/", ".", "~1", "/", "~0", "~")
)

// joinPath appends a key to a path.
func joinPath(path, key string) string {
	return strings.TrimPrefix(path+"/"+escapePath.Replace(key), "/")
}

// patchSets reports whether a patch sets the field with the given path to a value. A patch that
// replaces or edits a list that contains the field counts, too.
//
// A patch that removes just this field does not count: it names the field, so it does not set
// it by accident. A JSON patch with an operation test does not count either, because the
// operation is a precondition.
func patchSets(r *history.Request, path, value string) bool {
	if strings.Contains(r.PatchType, "json-patch") {
		return jsonPatchSets(r.Patch, path)
	}
	var patch any
	decoder := json.NewDecoder(bytes.NewReader(r.Patch))
	decoder.UseNumber()
	if decoder.Decode(&patch) != nil {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		fields, ok := patch.(map[string]any)
		if !ok {
			_, list := patch.([]any)
			return list
		}
		patch = fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	if list, ok := patch.([]any); ok {
		return len(list) > 0
	}
	return patch != nil && fmt.Sprint(patch) == value
}

// patchHasVersion reports whether a merge patch contains a resourceVersion. The API server then
// refuses the patch if the object has another version.
func patchHasVersion(patch json.RawMessage) bool {
	var fields struct {
		Metadata struct{ ResourceVersion string }
	}
	return json.Unmarshal(patch, &fields) == nil && fields.Metadata.ResourceVersion != ""
}

// jsonPatchSets is patchSets for a JSON patch.
func jsonPatchSets(patch json.RawMessage, path string) bool {
	var operations []struct{ Op, Path string }
	if json.Unmarshal(patch, &operations) != nil {
		return false
	}
	sets := false
	for _, operation := range operations {
		if operation.Op == "test" {
			return false
		}
		edited := strings.TrimPrefix(operation.Path, "/")
		list, item := edited, edited[strings.LastIndex(edited, "/")+1:]
		if item == "-" || strings.Trim(item, "0123456789") == "" { // the operation edits an item of a list
			list = strings.TrimSuffix(strings.TrimSuffix(edited, item), "/")
		}
		within := path == list || strings.HasPrefix(path, list+"/")
		sets = sets || within && (operation.Op != "remove" || list != edited)
	}
	return sets
}
