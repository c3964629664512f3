package apiserver

import (
	"strings"
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// storageOptions tells each registry how to store its resource. It implements
// generic.RESTOptionsGetter.
type storageOptions struct {
	client     *kubernetes.Client // the client of the etcd in memory
	watchCache bool
	// api is a client of this API server. With it, registries read objects of other registries. An
	// eviction, for example, reads PodDisruptionBudgets.
	api clientset.Interface
	// services allocates the cluster IPs and the node ports of Services.
	services *serviceRanges
}

// etcdRoot begins all keys in etcd.
const etcdRoot = "/registry"

// newStorageFactory returns kube-apiserver's storage factory, which knows each resource's codec and etcd
// prefix. The prefixes of a few resources are not their names, such as minions for nodes. Package kube has
// the prefixes of all kinds whose objects a run records.
var newStorageFactory = sync.OnceValue(func() *serverstorage.DefaultStorageFactory {
	resources := serverstorage.NewResourceConfig()
	resources.EnableVersions(versions...)
	prefixes := map[schema.GroupResource]string{}
	for _, kind := range kube.Kinds {
		prefixes[kind.GVR.GroupResource()] = strings.TrimSuffix(strings.TrimPrefix(kind.EtcdPrefix, etcdRoot+"/"), "/")
	}
	all := serverstorage.NewDefaultStorageFactory(*storagebackend.NewDefaultConfig(etcdRoot, nil), runtime.ContentTypeProtobuf,
		legacyscheme.Codecs, serverstorage.NewDefaultResourceEncodingConfig(legacyscheme.Scheme), resources, prefixes)
	// The two groups of Events have the same objects.
	all.AddCohabitatingResources(coreV1.WithResource("events").GroupResource(), eventsV1.WithResource("events").GroupResource())
	return all
})

// GetRESTOptions returns the storage options of one resource, such as its etcd prefix.
func (o *storageOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	storageFactory := newStorageFactory()
	config, err := storageFactory.NewConfig(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	return generic.RESTOptions{
		StorageConfig:           config,
		Decorator:               o.newStorage,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          storageFactory.ResourcePrefix(resource),
	}, nil
}

// newStorage creates the storage of one resource: etcd, with a watch cache in front if
// o.watchCache is true. It implements generic.StorageDecorator.
func (o *storageOptions) newStorage(config *storagebackend.ConfigForResource, prefix string, keyOf func(runtime.Object) (string, error),
	newObject, newList func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	versioner := storage.APIObjectVersioner{}
	etcd, err := etcd3.New(o.client, nil, config.Codec, newObject, newList, config.Prefix, prefix, config.GroupResource,
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, err
	}
	// kube-apiserver has no watch cache for events either.
	if !o.watchCache || config.GroupResource.Resource == "events" {
		return etcd, sync.OnceFunc(etcd.Close), nil
	}
	watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: etcd, Versioner: versioner, Codec: config.Codec, GroupResource: config.GroupResource, ResourcePrefix: prefix,
		EventsHistoryWindow: storagebackend.DefaultEventsHistoryWindow,
		KeyFunc:             keyOf, GetAttrsFunc: attributes, IndexerFuncs: triggers, Indexers: indexers,
		NewFunc: newObject, NewListFunc: newList,
	})
	if err != nil {
		etcd.Close()
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(watchCache, etcd)
	// A resource's store and its subresources' stores share one storage. Each store calls the
	// destroy function, which must act only once.
	return delegator, sync.OnceFunc(func() {
		delegator.Stop()
		watchCache.Stop()
		etcd.Close()
	}), nil
}
