package compare

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// names maps the real names of objects to stable names, which are equal in every run of a
// scenario.
//
// ReplicaSets, pods and objects with generateName need stable names, because their real names
// end with suffixes that are random or depend on the implementation. The stable names are:
//
//   - of a ReplicaSet of a Deployment: a name with a hash of its pod template
//   - of a pod: a name with the name of its owner
//   - of any other object with generateName: the name of its owner and a number, which counts
//     the objects of the kind that the owner has created
type names struct {
	// stable has the stable names. The key is the resource and the real name.
	stable map[string]string
	// aliases maps real names to stable names that differ from them. normalize uses it to
	// replace real names in text, such as messages of conditions.
	aliases map[string]string
	// ownerOf maps the stable name of an object to the stable name of its owner in the
	// object's first version. Both names begin with the resource. The owner of an Endpoints
	// object is the Service with its name.
	ownerOf map[string]string
	// generated is the number of objects with generateName so far. The key is the resource and
	// the name of the owner.
	generated map[string]int
	owners    kube.Owners
	decoder   *objects.Decoder
}

// newNames returns names without any object.
func newNames(decoder *objects.Decoder) *names {
	return &names{decoder: decoder, stable: map[string]string{}, aliases: map[string]string{}, ownerOf: map[string]string{}, generated: map[string]int{}}
}

// observe records the stable name and the owner of an object at its first version, and ignores
// later versions. The caller must call observe for owners before their dependents.
func (n *names) observe(o *history.Object) {
	key := o.Resource + " " + o.Name
	if _, ok := n.stable[key]; ok {
		return
	}
	if o.Resource != pods {
		n.owners.Observe(o.UID, o.Resource)
	}
	name := o.Name
	owner := o.ControllerRef()
	switch {
	case o.Resource == replicaSets && owner != nil && owner.Kind == objects.DeploymentKind:
		name = owner.Name + "-" + n.templateHash(o)
	case o.Resource == pods && (owner == nil || o.GenerateName == ""): // a user chose the name
	case o.Resource == pods:
		name = n.ownerPrefix(o) + "*"
	case o.GenerateName != "" && strings.HasPrefix(o.Name, o.GenerateName):
		name = n.ownerPrefix(o)
		n.generated[o.Resource+" "+name]++
		name += fmt.Sprintf("#%d", n.generated[o.Resource+" "+name])
	}
	n.stable[key] = o.Resource + " " + name
	switch {
	case owner != nil:
		n.ownerOf[n.stable[key]] = n.ownerName(o)
	case o.Resource == endpoints:
		n.ownerOf[n.stable[key]] = services + " " + name
	}
	if name != o.Name {
		n.aliases[o.Name] = name
	}
}

// stableName returns the resource and the stable name of an object, such as "replicasets.apps
// web-<a1b2>". An object that names does not know keeps its real name.
func (n *names) stableName(o *history.Object) string {
	if name, ok := n.stable[o.Resource+" "+o.Name]; ok {
		return name
	}
	return o.Resource + " " + o.Name
}

// endStateName returns the name under which the end state of a run (Side.End) contains an
// object. All pods of one owner have the same name there, because the real names of pods are
// random.
func (n *names) endStateName(o *history.Object) string {
	if o.Resource == pods {
		return podsOf + n.ownerName(o)
	}
	return n.stableName(o)
}

// noOwner stands for the name of the owner in the keys of pods that have no controller.
const noOwner = "no owner"

// ownerName returns the stable name of the controller of an object. It returns noOwner if the
// object has no controller.
func (n *names) ownerName(o *history.Object) string {
	owner := o.ControllerRef()
	if owner == nil {
		return noOwner
	}
	return n.stableName(&history.Object{Ref: history.Ref{Resource: n.owners.Resource(owner.UID, owner.Kind), Name: owner.Name}})
}

// ownerPrefix returns the beginning of the stable name of an object with generateName: the
// owner's name and a hyphen. If the object has no controller, it returns the generateName.
func (n *names) ownerPrefix(o *history.Object) string {
	if o.ControllerRef() == nil {
		return o.GenerateName
	}
	_, name, _ := strings.Cut(n.ownerName(o), " ")
	return name + "-"
}

// templateHash returns a short hash of a ReplicaSet's pod template.
//
// It ignores the label pod-template-hash, because its value depends on the implementation of
// the Deployment controller.
func (n *names) templateHash(o *history.Object) string {
	set, err := n.decoder.Owner(objects.OwnerKindByResource(o.Resource), o)
	if err != nil {
		return "?"
	}
	hash := fnv.New32a()
	hash.Write([]byte(set.Template.Text))
	return fmt.Sprintf("<%04x>", hash.Sum32()&0xffff)
}

// These patterns match text that differs between two runs even if the subjects behave alike.
// They match times, IP addresses and names of objects.
var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ipPattern   = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	namePattern = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
)

// normalize replaces times, IP addresses and real names in a text with placeholders and stable
// names. The texts of two runs can then be compared.
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
