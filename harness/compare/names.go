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

// names maps the real names of objects to stable names, which are equal in every run of a scenario.
//
// ReplicaSets, pods and objects with generateName need stable names. Their real names end with
// suffixes that are random or depend on the implementation. The stable names are:
//
//   - a Deployment's ReplicaSet: the Deployment's name and a hash of the pod template,
//     such as web-<a1b2> for the Deployment web and the hash a1b2
//   - a pod: the owner's name and an asterisk, such as web-* for each pod of the
//     ReplicationController web
//   - another object with generateName: the owner's name and a number, such as web-#2
//     for the second object of this Kind that web owns
type names struct {
	// stable maps the real name of each object to its stable name. Both names begin with the
	// resource: for example, the key "pods web-x7k2p" has the value "pods web-*".
	stable map[string]string
	// aliases maps each real name to its stable name if the names differ. The method normalize
	// replaces real names in texts, such as messages of conditions.
	aliases map[string]string
	// ownerOf maps an object's stable name to the stable name of the owner that the object's first
	// version had. Each name begins with the resource. The owner of an Endpoints object is the
	// Service with the same name.
	ownerOf map[string]string
	// generated counts the objects with generateName that were observed so far. The key has the
	// resource and the owner's name.
	generated map[string]int
	owners    kube.Owners
	decoder   *objects.Decoder
}

// newNames returns a value of type names that has observed no object yet.
func newNames(decoder *objects.Decoder) *names {
	return &names{decoder: decoder, stable: map[string]string{}, aliases: map[string]string{}, ownerOf: map[string]string{}, generated: map[string]int{}}
}

// observe records the stable name (equal in every run) and the owner of a new object. It ignores
// later versions of the object. The caller must call observe for an owner before its dependents.
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

// stableName returns the resource of an object and a name that is equal in every run, such as
// "deployments.apps web". An object that was not observed keeps its real name.
func (n *names) stableName(o *history.Object) string {
	if name, ok := n.stable[o.Resource+" "+o.Name]; ok {
		return name
	}
	return o.Resource + " " + o.Name
}

// endStateName returns the key of an object in Side.End, the objects at the end of a run. All pods
// of one owner have one key, such as "pods of replicationcontrollers web", because pod names are
// random.
func (n *names) endStateName(o *history.Object) string {
	if o.Resource == pods {
		return podsOf + n.ownerName(o)
	}
	return n.stableName(o)
}

// noOwner stands for the owner's name in the stable names of pods that have no controller. A stable
// name is equal in every run.
const noOwner = "no owner"

// ownerName returns the stable name (equal in every run) of the owner that controls an object, such
// as "deployments.apps web". It returns noOwner if the object has no controller.
func (n *names) ownerName(o *history.Object) string {
	owner := o.ControllerRef()
	if owner == nil {
		return noOwner
	}
	return n.stableName(&history.Object{Ref: history.Ref{Resource: n.owners.Resource(owner.UID, owner.Kind), Name: owner.Name}})
}

// ownerPrefix returns the beginning of the stable name (equal in every run) of an object with
// generateName. This is the owner's name and a hyphen, such as "web-". Without a controller, it is
// the generateName.
func (n *names) ownerPrefix(o *history.Object) string {
	if o.ControllerRef() == nil {
		return o.GenerateName
	}
	_, name, _ := strings.Cut(n.ownerName(o), " ")
	return name + "-"
}

// templateHash returns a short hash of a ReplicaSet's pod template, for the ReplicaSet's stable
// name. The hash has four hexadecimal digits in angle brackets, such as "<a1b2>".
//
// The hash ignores the label pod-template-hash, because the label's value depends on the
// implementation of the Deployment controller. templateHash returns "?" if the ReplicaSet cannot
// be decoded.
func (n *names) templateHash(o *history.Object) string {
	set, err := n.decoder.Owner(objects.OwnerKindByResource(o.Resource), o)
	if err != nil {
		return "?"
	}
	hash := fnv.New32a()
	hash.Write([]byte(set.Template.Text))
	return fmt.Sprintf("<%04x>", hash.Sum32()&0xffff)
}

// These patterns match times, IP addresses and names of objects in a text. Such values differ
// between two runs even if the controllers behave alike.
var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ipPattern   = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	namePattern = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
)

// normalize replaces times, IP addresses and objects' real names in a text with placeholders and
// stable names. The texts of two runs can then be compared.
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
