package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// metadata reports an error for each owner reference and each finalizer that the API server refuses. It considers the steps of
// all users.
func (v *validator) metadata() {
	v.metadataOf("workload", v.scenario.Workload)
	for i, fault := range v.scenario.Faults {
		v.metadataOf(fmt.Sprintf("faults[%d].%s.steps", i, fault.Name), fault.Params.Steps())
	}
}

// metadataOf is like metadata, for the steps at a path such as "workload".
func (v *validator) metadataOf(path string, steps []Step) {
	for i, step := range steps {
		switch op := step.Operation.(type) {
		case *Create:
			v.metadataFields(fmt.Sprintf("%s[%d].create.manifest.metadata", path, i), op.Kind, op.Manifest)
		case *Patch:
			v.metadataFields(fmt.Sprintf("%s[%d].patch.merge.metadata", path, i), op.Kind, op.Merge)
		}
	}
}

// metadataFields reports the errors about the metadata of a manifest or a patch. The argument path is the place of the metadata.
func (v *validator) metadataFields(path string, kind Kind, fields Fields) {
	metadata, _ := fields.Copy()["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	controllers := 0
	for i, item := range owners {
		owner, ok := item.(map[string]any)
		missing := slices.DeleteFunc([]string{"apiVersion", "kind", "name", "uid"}, func(name string) bool {
			text, isText := owner[name].(string)
			return isText && text != "" || !isText && owner[name] != nil // fieldTypes reports other values than texts
		})
		at := fmt.Sprintf("%s.ownerReferences[%d]", path, i)
		v.check(!ok || len(missing) == 0, at, "found an owner reference without %s; expected apiVersion, kind, name and uid, because the API server refuses others", nearest.List(missing, "and"))
		if owner["controller"] == true {
			controllers++
			v.check(controllers < 2, at+".controller", "found a second owner reference with controller: true; expected at most one")
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for i, item := range finalizers {
		if name, ok := item.(string); ok {
			v.finalizer(fmt.Sprintf("%s.finalizers[%d]", path, i), kind, name)
		}
	}
}

// finalizersWithoutDomain has the finalizers of Kubernetes, which need no domain.
var finalizersWithoutDomain = []string{"kubernetes", "orphan", "foregroundDeletion"}

// finalizer reports an error if the API server refuses the name of a finalizer. Custom resources and the kinds of some groups
// may have finalizers without a domain.
func (v *validator) finalizer(at string, kind Kind, name string) {
	v.check(len(validation.IsQualifiedName(name)) == 0, at, "found the finalizer %.80q; expected a name with a domain, such as example.com/cleanup", name)
	domain := strings.Contains(name, "/") || slices.Contains(finalizersWithoutDomain, name) || v.newObject(kind) == nil || kind == "Lease" || strings.HasSuffix(string(kind), "WebhookConfiguration") || strings.Contains(string(kind), "AdmissionPolicy")
	v.check(domain, at, "found the finalizer %.80q, which has no domain; expected a name such as example.com/%.60s, because the API server refuses others", name, name)
}
