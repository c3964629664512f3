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

// names maps real names of objects to stable names, which are the same in every run of a
// scenario. The real names of ReplicaSets, pods and objects with generateName have suffixes
// that are random or depend on the implementation. The stable name of a ReplicaSet of a
// Deployment is derived from its template, and the stable name of a pod from its owner. The
// stable name of another object with generateName is derived from its owner and from the
// order in which the objects of its kind were created for that owner.
type names struct {
	stable map[string]string // stable names by resource and real name
	// aliases maps a real name to the stable name if the two differ. It is used to replace
	// real names in texts, such as messages of conditions.
	aliases map[string]string
	// ownerOf maps the stable name of an object to the stable name of its first owner. Both
	// names include the resource. The owner of Endpoints is the Service with the same name.
	ownerOf   map[string]string
	generated map[string]int // number of objects with generateName, by resource and owner
	owners    kube.Owners
	decoder   *objects.Decoder
}

func newNames(decoder *objects.Decoder) *names {
	return &names{decoder: decoder, stable: map[string]string{}, aliases: map[string]string{}, ownerOf: map[string]string{}, generated: map[string]int{}}
}

// observe records the stable name of an object and its owner. It ignores later versions of
// the same object. The caller must pass owners before their dependents.
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

// stableName returns the stable name of an object with its resource.
func (n *names) stableName(o *history.Object) string {
	if name, ok := n.stable[o.Resource+" "+o.Name]; ok {
		return name
	}
	return o.Resource + " " + o.Name
}

// endStateName returns the name under which Side.End has an object. All pods of one owner
// share one name, because their real names are random.
func (n *names) endStateName(o *history.Object) string {
	if o.Resource == pods {
		return podsOf + n.ownerName(o)
	}
	return n.stableName(o)
}

// noOwner stands for the owner of an orphan.
const noOwner = "no owner"

// ownerName returns the stable name of the owner of an object, or noOwner.
func (n *names) ownerName(o *history.Object) string {
	owner := o.ControllerRef()
	if owner == nil {
		return noOwner
	}
	return n.stableName(&history.Object{Ref: history.Ref{Resource: n.owners.Resource(owner.UID, owner.Kind), Name: owner.Name}})
}

// ownerPrefix returns the beginning of the stable name of an object with generateName. It is
// the stable name of the owner without the resource, or generateName if there is no owner.
func (n *names) ownerPrefix(o *history.Object) string {
	if o.ControllerRef() == nil {
		return o.GenerateName
	}
	_, name, _ := strings.Cut(n.ownerName(o), " ")
	return name + "-"
}

// templateHash returns a short hash of a ReplicaSet's template. The hash ignores the label
// that the Deployment controller adds, because its value depends on the implementation.
func (n *names) templateHash(o *history.Object) string {
	set, err := n.decoder.Owner(objects.OwnerKindByResource(o.Resource), o)
	if err != nil {
		return "?"
	}
	hash := fnv.New32a()
	hash.Write([]byte(set.Template.Text))
	return fmt.Sprintf("<%04x>", hash.Sum32()&0xffff)
}

// These patterns match parts of texts that differ from run to run.
var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ipPattern   = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	namePattern = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)
)

// normalize replaces the parts of a text that differ from run to run, so that texts can be
// compared.
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
