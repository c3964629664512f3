// Package apiserver runs the API server of a control plane in virtual time.
//
// It consists of the registries, strategies, storage and handlers of kube-apiserver, linked as
// libraries, on an etcd in memory. It opens no socket, so it works in a bubble of testing/synctest.
// [Server.Handler] serves requests; package faults/inprocess carries them.
//
// It authorizes every request. It has no admission, no discovery and no eviction yet.
//
// resources.go creates the registries, storage.go their storage, and handler.go the filters.
package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/emicklei/go-restful/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
)

// Options are the properties of a Server.
type Options struct {
	// WatchCache serves lists and watches from kube-apiserver's watch cache. Without it, etcd
	// serves them, which takes less time.
	WatchCache bool
}

// Server is an API server. Create it with [New], and call [Server.Stop] at the end.
type Server struct {
	// Handler serves the requests of clients.
	Handler http.Handler

	stores []rest.Storage
	cancel context.CancelFunc
}

// New starts an API server on etcd, and waits until its watch caches are ready. Call [Prepare]
// before, outside of the bubble.
func New(ctx context.Context, etcd func(context.Context) *clientv3.Client, options Options) (*Server, error) {
	serving, cancel := context.WithCancel(ctx)
	s := &Server{cancel: cancel}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	client := &kubernetes.Client{Client: etcd(serving)}
	client.Kubernetes = client
	groups, err := newGroups(&storageOptions{client: client, watchCache: options.WatchCache})
	for _, g := range groups {
		for _, store := range g.stores {
			s.stores = append(s.stores, store)
		}
		if err == nil {
			err = g.install(container)
		}
	}
	if err == nil {
		err = s.waitUntilReady(ctx)
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.Handler = withFilters(container)
	return s, nil
}

// Stop ends the watch caches and the watches. The caller must have closed its clients before.
//
// It takes [readLimit], because the watch cache starts a goroutine with this time limit for each
// read of the newest version.
func (s *Server) Stop() {
	s.cancel()
	for _, store := range s.stores {
		store.Destroy()
	}
	time.Sleep(readLimit)
}

// readLimit is the time for which the watch cache waits for the version of a read.
const readLimit = 4 * time.Second

// waitUntilReady waits until each watch cache has its first list.
func (s *Server) waitUntilReady(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for _, store := range s.stores {
			if r, ok := store.(rest.StorageWithReadiness); ok && r.ReadinessCheck() != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// Prepare initializes what all Servers of a process share. Call it outside of a bubble.
//
// The storage serves WatchList only after etcd's version was checked. The check runs in a
// goroutine of its own, whose result is no event of a bubble.
func Prepare(ctx context.Context) error {
	newTypeConverter()
	checker := feature.DefaultFeatureSupportChecker
	checker.CheckClient(ctx, supportedEtcd{}, storage.RequestWatchProgress)
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return checker.Supports(storage.RequestWatchProgress), nil
	})
}

// supportedEtcd is an etcd whose version supports progress requests.
type supportedEtcd struct{}

func (supportedEtcd) Endpoints() []string { return []string{"memory"} }

func (supportedEtcd) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Version: "3.6.8"}, nil
}
