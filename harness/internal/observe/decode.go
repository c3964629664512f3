package observe

import (
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// decode decodes an object as the API server stores it in etcd. Like the API server, decode sets
// the object's resourceVersion to the etcd key's ModRevision.
func decode(kind kube.Kind, kv *mvccpb.KeyValue) (history.Object, error) {
	object, _, err := decoderOf(kind).Decode(kv.Value, nil, nil)
	if err != nil {
		return history.Object{}, err
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return history.Object{}, fmt.Errorf("found an object of %s without metadata: %w", kind.Resource(), err)
	}
	m.SetResourceVersion(strconv.FormatInt(kv.ModRevision, 10))
	return history.Project(kind.Resource(), object)
}

// decoderOf returns the decoder for objects of the given Kind in etcd. The API server stores
// built-in objects as protobuf or JSON, and custom resources as JSON.
func decoderOf(kind kube.Kind) runtime.Decoder {
	if kind.Builtin() {
		return scheme.Codecs.UniversalDeserializer()
	}
	return unstructured.UnstructuredJSONScheme
}
