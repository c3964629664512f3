package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestOwnershipChangeOf(t *testing.T) {
	strategic := "application/strategic-merge-patch+json"
	for _, c := range []struct {
		name, kind, patch string
		want              ownershipChange
	}{
		{"adopt", strategic, `{"metadata":{"ownerReferences":[{"uid":"a","controller":true,"blockOwnerDeletion":true}],"uid":"p"}}`, ownershipChange{adopts: true, owner: "a"}},
		{"adopt without blockOwnerDeletion", strategic, `{"metadata":{"ownerReferences":[{"uid":"a","controller":true}],"uid":"p"}}`, ownershipChange{adopts: true, notBlocking: true, owner: "a"}},
		{"release", strategic, `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"a"}],"uid":"p"}}`, ownershipChange{releases: true, owner: "a"}},
		{"release by merge", "application/merge-patch+json", `{"metadata":{"ownerReferences":null}}`, ownershipChange{releases: true, anyPod: true}},
		{"adopt by merge", "application/merge-patch+json", `{"metadata":{"resourceVersion":"7","ownerReferences":[{"uid":"b"},{"uid":"a","controller":true,"blockOwnerDeletion":true}]}}`, ownershipChange{adopts: true, owner: "a"}},
		{"neither", strategic, `{"metadata":{"labels":{"a":"b"}}}`, ownershipChange{}},
		{"adopt by operation", "application/json-patch+json",
			`[{"op":"test","path":"/metadata/uid","value":"p"},{"op":"add","path":"/metadata/ownerReferences/-","value":{"uid":"a","controller":true,"blockOwnerDeletion":true}}]`,
			ownershipChange{adopts: true, owner: "a"}},
		{"release by operation", "application/json-patch+json", `[{"op":"remove","path":"/metadata/ownerReferences/0"}]`, ownershipChange{releases: true}},
		{"neither by operation", "application/json-patch+json", `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, ownershipChange{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ownershipChangeOf(&history.Request{Verb: "patch", PatchType: c.kind, Patch: []byte(c.patch)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fmt.Sprint(c.want), fmt.Sprint(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
