package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// claim is what a write to a pod does about who controls it.
type claim struct {
	adopts   bool
	releases bool
	owner    types.UID // for whom, as far as the write says
}

// claimOf reads a patch or update of a pod.
func claimOf(r *history.Request) (claim, error) {
	if r.Verb == "update" {
		if r.Object == nil {
			return claim{}, nil
		}
		if ref := r.Object.ControllerRef(); ref != nil {
			return claim{adopts: true, owner: ref.UID}, nil
		}
		return claim{releases: true}, nil
	}
	if len(r.Patch) == 0 {
		return claim{}, nil
	}
	if strings.Contains(r.PatchType, "json-patch") {
		return claimOfOperations(r.Patch)
	}
	var patch struct {
		Metadata struct {
			OwnerReferences json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Patch, &patch); err != nil {
		return claim{}, fmt.Errorf("a patch of type %q: %w", r.PatchType, err)
	}
	if len(patch.Metadata.OwnerReferences) == 0 {
		return claim{}, nil
	}
	return claimOfReferences(patch.Metadata.OwnerReferences)
}

// claimOfReferences reads ownerReferences as a patch sets them.
func claimOfReferences(raw json.RawMessage) (claim, error) {
	var references []struct {
		UID        types.UID
		Controller bool
		Patch      string `json:"$patch"`
	}
	if err := json.Unmarshal(raw, &references); err != nil {
		return claim{}, fmt.Errorf("ownerReferences: %w", err)
	}
	result := claim{releases: true}
	for _, ref := range references {
		switch {
		case ref.Patch == "delete":
			result.owner = ref.UID
		case ref.Controller:
			return claim{adopts: true, owner: ref.UID}, nil
		}
	}
	return result, nil
}

// claimOfOperations reads a JSON patch.
func claimOfOperations(raw json.RawMessage) (claim, error) {
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(raw, &operations); err != nil {
		return claim{}, fmt.Errorf("a JSON patch: %w", err)
	}
	var result claim
	for _, op := range operations {
		if op.Op == "test" || !strings.HasPrefix(op.Path, "/metadata/ownerReferences") {
			continue
		}
		references := op.Value
		if len(references) > 0 && references[0] == '{' { // one element of the list
			references = append(append(json.RawMessage("["), references...), ']')
		}
		if op.Op == "remove" || len(references) == 0 {
			result.releases = true
			continue
		}
		found, err := claimOfReferences(references)
		if err != nil {
			return claim{}, err
		}
		if found.adopts {
			return found, nil
		}
		result.releases = result.releases || found.releases
	}
	return result, nil
}
