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

// decode decodes an object that the API server has stored in etcd. It sets the resourceVersion of
// the object to the revision of the last change of its key, as the API server does.
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

// decoderOf returns the decoder for objects of a kind in etcd. The API server stores
// objects of built-in kinds as protobuf or JSON, and custom resources as JSON.
func decoderOf(kind kube.Kind) runtime.Decoder {
	if kind.Builtin() {
		return scheme.Codecs.UniversalDeserializer()
	}
	return unstructured.UnstructuredJSONScheme
}
