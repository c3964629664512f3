package observe

import (
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// prefixes is what a run observes, what the workload controllers read and write,
// and where the API server keeps it; the namespace and the name follow. The
// places are the API server's own affair, but no release may change them.
var prefixes = map[string]string{
	"pods":                   "/registry/pods/",
	"replicationcontrollers": "/registry/controllers/",
	"replicasets.apps":       "/registry/replicasets/",
	"deployments.apps":       "/registry/deployments/",
	"services":               "/registry/services/specs/",
	"endpoints":              "/registry/services/endpoints/",
}

// decode reads an object as the API server stored it, and gives it the version
// that the API server reads from where it stands.
func decode(resource string, kv *mvccpb.KeyValue) (history.Object, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
	if err != nil {
		return history.Object{}, err
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return history.Object{}, fmt.Errorf("an object of %s: %w", resource, err)
	}
	m.SetResourceVersion(strconv.FormatInt(kv.ModRevision, 10))
	return history.Project(resource, object)
}
