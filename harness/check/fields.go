package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// patchSets reports whether a patch sets the field at path to the given value. path has the form
// of a JSON pointer without the first slash, such as "spec/replicas". A patch that replaces or
// edits a list that contains the field counts as well.
//
// A patch that removes only this field does not count: its author intended the removal. A JSON
// patch with a test operation does not count either, because the test is a precondition. In other
// JSON patches, an operation on the field counts, whatever value it sets.
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

// patchHasVersion reports whether a merge patch contains a metadata.resourceVersion. With it,
// the API server rejects the patch if the object has another resourceVersion.
func patchHasVersion(patch json.RawMessage) bool {
	var fields struct {
		Metadata struct{ ResourceVersion string }
	}
	return json.Unmarshal(patch, &fields) == nil && fields.Metadata.ResourceVersion != ""
}

// jsonPatchSets reports whether a JSON patch changes the field at path, or a list that contains the
// field. It returns false if the patch only removes the field, or contains a test operation. See
// patchSets for the reasons.
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
