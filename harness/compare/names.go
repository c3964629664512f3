package compare

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// names gives objects names that are the same in every run of a scenario. A
// ReplicaSet of a Deployment is called by its template, a pod by its owner: what
// is left of their own names is drawn at random, or a hash of one's own making.
type names struct {
	stable map[string]string // by "resource name"
	// aliases is what texts may call objects by, and their stable names.
	aliases map[string]string
	// ownerOf has the owner that each object had when it was first seen, both by their
	// stable names with their resources. Endpoints are taken to be of the Service of
	// their name.
	ownerOf map[string]string
}

func newNames() *names {
	return &names{stable: map[string]string{}, aliases: map[string]string{}, ownerOf: map[string]string{}}
}

// observe takes in a version of an object. Owners are seen before what they own.
func (n *names) observe(o *history.Object) {
	key := o.Resource + " " + o.Name
	if _, ok := n.stable[key]; ok {
		return
	}
	name := o.Name
	owner := o.ControllerRef()
	switch {
	case owner == nil:
	case o.Resource == replicaSets && owner.Kind == "Deployment":
		name = owner.Name + "-" + templateHash(o)
	case o.Resource == pods && o.GenerateName != "": // the others were named by a user
		_, name, _ = strings.Cut(n.ownerName(o), " ")
		name += "-*"
	}
	n.stable[key] = o.Resource + " " + name
	switch {
	case owner != nil:
		n.ownerOf[n.stable[key]] = n.ownerName(o)
	case o.Resource == "endpoints":
		n.ownerOf[n.stable[key]] = "services " + name
	}
	if name != o.Name {
		n.aliases[o.Name] = name
	}
}

// stableName is the stable name of an object, its resource included.
func (n *names) stableName(o *history.Object) string {
	if name, ok := n.stable[o.Resource+" "+o.Name]; ok {
		return name
	}
	return o.Resource + " " + o.Name
}

// endStateName is the stable name under which the end of an object is told: pods are told of
// together, by their owner.
func (n *names) endStateName(o *history.Object) string {
	if o.Resource == pods {
		return podsOf + n.ownerName(o)
	}
	return n.stableName(o)
}

// noOwner is the owner of orphans.
const noOwner = "nobody"

// ownerName is the stable name of the owner of an object, or nobody.
func (n *names) ownerName(o *history.Object) string {
	owner := o.ControllerRef()
	if owner == nil {
		return noOwner
	}
	resource, ok := resourceOf[owner.Kind]
	if !ok {
		resource = owner.Kind
	}
	return n.stableName(&history.Object{Ref: history.Ref{Resource: resource, Name: owner.Name}})
}

var resourceOf = map[string]string{"ReplicaSet": replicaSets, "ReplicationController": controllers, "Deployment": deployments}

// hashLabel is what a Deployment's controller tells its ReplicaSets apart by.
const hashLabel = "pod-template-hash"

// templateHash is a short word for the template of a ReplicaSet, without the label
// that its controller put there.
func templateHash(o *history.Object) string {
	var body struct {
		Spec struct{ Template map[string]any }
	}
	if err := json.Unmarshal(o.Body, &body); err != nil {
		return "?"
	}
	if metadata, ok := body.Spec.Template["metadata"].(map[string]any); ok {
		if labels, ok := metadata["labels"].(map[string]any); ok {
			delete(labels, hashLabel)
		}
	}
	encoded, err := json.Marshal(body.Spec.Template) // keys are sorted
	if err != nil {
		return "?"
	}
	hash := fnv.New32a()
	hash.Write(encoded)
	return fmt.Sprintf("<%04x>", hash.Sum32()&0xffff)
}

// What differs from run to run wherever it stands.
var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ipPattern   = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	namePattern = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
)

// normalize replaces in a text what differs from run to run.
func (n *names) normalize(text string) string {
	text = timePattern.ReplaceAllString(text, "<time>")
	text = ipPattern.ReplaceAllString(text, "<ip>")
	return namePattern.ReplaceAllStringFunc(text, func(word string) string {
		if stable, ok := n.aliases[word]; ok {
			return stable
		}
		return word
	})
}
