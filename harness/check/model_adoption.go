package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// ownershipChange says whether a write of a pod adopts or releases the pod. An adoption sets the
// pod's controllerRef; a release removes it. If both fields are false, the write does neither.
type ownershipChange struct {
	adopts   bool
	releases bool
	// notBlocking is true if the request sets a controllerRef without blockOwnerDeletion.
	notBlocking bool
	// anyPod is true if the request is a merge patch without the UID and the resourceVersion of the pod.
	// The patch then also applies to another pod with the same name.
	anyPod bool
	owner  types.UID // the UID of the owner that adopts or releases the pod; empty if the request does not contain the UID
}

// ownershipChangeOf says whether a patch or update of a pod adopts the pod, releases it, or does
// neither. It returns an error if the patch cannot be decoded.
func ownershipChangeOf(r *history.Request) (ownershipChange, error) {
	if r.Verb == "update" {
		if r.Object == nil {
			return ownershipChange{}, nil
		}
		if ref := r.Object.ControllerRef(); ref != nil {
			return ownershipChange{adopts: true, notBlocking: ref.DoesNotBlock, owner: ref.UID}, nil
		}
		return ownershipChange{releases: true}, nil
	}
	if len(r.Patch) == 0 {
		return ownershipChange{}, nil
	}
	if strings.Contains(r.PatchType, "json-patch") {
		return ownershipChangeOfOperations(r.Patch)
	}
	var patch struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			OwnerReferences json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Patch, &patch); err != nil {
		return ownershipChange{}, fmt.Errorf("decoding a patch of a pod with type %q: %w", r.PatchType, err)
	}
	if len(patch.Metadata.OwnerReferences) == 0 {
		return ownershipChange{}, nil
	}
	change, err := ownershipChangeOfReferences(patch.Metadata.OwnerReferences)
	change.anyPod = patch.Metadata.UID == "" && patch.Metadata.ResourceVersion == ""
	return change, err
}

// ownershipChangeOfReferences says whether the ownerReferences in a request adopt or release the
// pod. The parameter raw is a JSON list, from a merge patch or from an operation of a JSON patch.
// The function returns an error if the list cannot be decoded.
func ownershipChangeOfReferences(raw json.RawMessage) (ownershipChange, error) {
	var references []struct {
		UID                types.UID
		Controller         bool
		BlockOwnerDeletion bool
		Patch              string `json:"$patch"`
	}
	if err := json.Unmarshal(raw, &references); err != nil {
		return ownershipChange{}, fmt.Errorf("decoding the ownerReferences in a write of a pod: %w", err)
	}
	result := ownershipChange{releases: true}
	for _, ref := range references {
		switch {
		case ref.Patch == "delete":
			result.owner = ref.UID
		case ref.Controller:
			return ownershipChange{adopts: true, notBlocking: !ref.BlockOwnerDeletion, owner: ref.UID}, nil
		}
	}
	return result, nil
}

// ownershipChangeOfOperations says whether the operations of a JSON patch adopt the pod, release
// it, or do neither. It returns an error if the patch cannot be decoded.
func ownershipChangeOfOperations(raw json.RawMessage) (ownershipChange, error) {
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(raw, &operations); err != nil {
		return ownershipChange{}, fmt.Errorf("decoding a JSON patch of a pod: %w", err)
	}
	var result ownershipChange
	for _, op := range operations {
		if op.Op == "test" || !strings.HasPrefix(op.Path, "/metadata/ownerReferences") {
			continue
		}
		references := op.Value
		if len(references) > 0 && references[0] == '{' { // the value is one ownerReference, not a list
			references = append(append(json.RawMessage("["), references...), ']')
		}
		if op.Op == "remove" || len(references) == 0 {
			result.releases = true
			continue
		}
		found, err := ownershipChangeOfReferences(references)
		if err != nil {
			return ownershipChange{}, err
		}
		if found.adopts {
			return found, nil
		}
		result.releases = result.releases || found.releases
	}
	return result, nil
}
