package observe

import (
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// prefixes are the etcd key prefixes of the observed resources. Namespace and name
// follow the prefix. The keys are internal to the API server, but they are stable: a
// release cannot change them without a migration.
var prefixes = map[string]string{
	"pods":                   "/registry/pods/",
	"replicationcontrollers": "/registry/controllers/",
	"replicasets.apps":       "/registry/replicasets/",
	"deployments.apps":       "/registry/deployments/",
	"services":               "/registry/services/specs/",
	"endpoints":              "/registry/services/endpoints/",
}

// decode decodes an object that the API server stored in etcd. It sets the
// resourceVersion to the key's revision, as the API server does.
func decode(resource string, kv *mvccpb.KeyValue) (history.Object, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
	if err != nil {
		return history.Object{}, err
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return history.Object{}, fmt.Errorf("reading an object of %s: %w", resource, err)
	}
	m.SetResourceVersion(strconv.FormatInt(kv.ModRevision, 10))
	return history.Project(resource, object)
}
