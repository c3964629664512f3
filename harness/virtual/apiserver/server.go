// Package apiserver runs the API server of a control plane in virtual time.
//
// The API server consists of kube-apiserver's registries, strategies, storage and handlers,
// linked as libraries. It stores objects in an in-memory etcd. It opens no socket, so it works
// in a bubble of testing/synctest, where the clock is virtual. [Server.Handler] serves requests;
// package faults/inprocess carries the requests.
//
// The API server permits every request without RBAC, and has no admission plugins. It does not track
// managed fields, so it refuses server-side apply.
//
// resources.go creates the registries, storage.go creates their storage, handler.go adds the HTTP
// filters, and discovery.go lists the API groups.
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
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults/inprocess"
)

// Options contains the settings of a [Server].
type Options struct {
	// WatchCache makes kube-apiserver's watch cache serve lists and watches. If it is false,
	// etcd serves lists and watches, which is faster.
	WatchCache bool
}

// Server is an API server in this process. Create it with [New], and call [Server.Stop] at the
// end.
type Server struct {
	// Handler serves the requests of clients.
	Handler http.Handler

	stores []rest.Storage
	cancel context.CancelFunc
}

// New starts an API server that stores its objects in etcd, and waits until the watch caches are
// ready. The function etcd returns a client that works until its context ends. Call [Prepare]
// first, outside of any bubble of testing/synctest.
func New(ctx context.Context, etcd func(context.Context) *clientv3.Client, options Options) (*Server, error) {
	serving, cancel := context.WithCancel(ctx)
	s := &Server{cancel: cancel}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	client := &kubernetes.Client{Client: etcd(serving)}
	client.Kubernetes = client
	policy, err := policyclient.NewForConfig(&restclient.Config{
		Host: "http://apiserver", QPS: -1,
		Transport: inprocess.Direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Handler.ServeHTTP(w, r) })),
	})
	if err != nil {
		return nil, err
	}
	groups, err := newGroups(&storageOptions{client: client, watchCache: options.WatchCache, policyClient: policy})
	for _, g := range groups {
		for _, store := range g.stores {
			s.stores = append(s.stores, store)
		}
		if err == nil {
			err = g.install(container)
		}
	}
	installDiscovery(container, groups)
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

// Stop ends the watch caches and all watches. The caller must close the clients of the Server
// first.
//
// Stop then waits for the time [readLimit]. For each read of the newest version, the watch cache
// has started a goroutine that can run for this time.
func (s *Server) Stop() {
	s.cancel()
	for _, store := range s.stores {
		store.Destroy()
	}
	time.Sleep(readLimit)
}

// readLimit is the maximum time for which a read waits until the watch cache has the requested
// resourceVersion.
const readLimit = 4 * time.Second

// waitUntilReady waits until each watch cache has received its first list from etcd.
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

// Prepare initializes global variables that all Servers of a process share. Call Prepare outside
// of any bubble of testing/synctest.
//
// The storage serves WatchList only after kube-apiserver's code has checked etcd's version. The
// check runs in a goroutine that belongs to no bubble, so a bubble could not wait for its
// result.
func Prepare(ctx context.Context) error {
	checker := feature.DefaultFeatureSupportChecker
	checker.CheckClient(ctx, supportedEtcd{}, storage.RequestWatchProgress)
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return checker.Supports(storage.RequestWatchProgress), nil
	})
}

// supportedEtcd answers like an etcd whose version supports progress requests. Prepare passes it to
// kube-apiserver's check of etcd's version.
type supportedEtcd struct{}

func (supportedEtcd) Endpoints() []string { return []string{"memory"} }

func (supportedEtcd) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Version: "3.6.8"}, nil
}
