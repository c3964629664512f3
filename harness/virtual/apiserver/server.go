// Package apiserver runs the API server of a control plane in virtual time.
//
// The API server consists of kube-apiserver's registries, strategies, storage and handlers,
// linked as libraries. It stores objects in an in-memory etcd. It opens no socket, so it works
// in a bubble of testing/synctest, where the clock is virtual. [Server.Handler] serves requests;
// package faults/inprocess carries the requests.
//
// The API server permits every request without RBAC. Of kube-apiserver's admission plugins, it has
// those that refuse requests because of terminating namespaces, admission policies or quotas, and
// those that complete pods and nodes. It does not track managed fields, so it refuses server-side
// apply.
//
// resources.go creates the registries, and storage.go creates their storage. admission.go starts the
// admission plugins, services.go allocates the addresses of Services, handler.go adds the HTTP
// filters, and discovery.go lists the API groups.
package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/emicklei/go-restful/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"
	clientset "k8s.io/client-go/kubernetes"
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

	stores   []rest.Storage
	loopback *inprocess.Client // carries the requests that the API server sends to itself
	cancel   context.CancelFunc
}

// New starts an API server that stores its objects in etcd, and waits until the watch caches are
// ready. If etcd contains the objects of an earlier API server, the new one continues with them. The
// function etcd returns a client that works until its context ends. Call [Prepare]
// first, outside of any bubble of testing/synctest.
func New(ctx context.Context, etcd func(context.Context) *clientv3.Client, options Options) (*Server, error) {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{cancel: cancel}
	s.loopback = inprocess.Direct(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Handler.ServeHTTP(w, r) }))
	if err := s.start(ctx, serving, &kubernetes.Client{Client: etcd(serving)}, options); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// start starts the API server, which serves until the context serving ends. After an error, the
// caller must call Stop. The context ctx limits only the start.
func (s *Server) start(ctx, serving context.Context, etcd *kubernetes.Client, options Options) error {
	etcd.Kubernetes = etcd
	config := s.loopbackConfig()
	api, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	plugins, err := newAdmissionPlugins(serving, config, api)
	if err != nil {
		return err
	}
	services, err := newServiceRanges()
	if err != nil {
		return err
	}
	groups, err := newGroups(&storageOptions{client: etcd, watchCache: options.WatchCache, api: api, services: services})
	for _, g := range groups {
		for _, store := range g.stores {
			s.stores = append(s.stores, store)
		}
	}
	if err != nil {
		return err
	}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	for _, g := range groups {
		if err := g.install(container, plugins.chain); err != nil {
			return err
		}
	}
	installDiscovery(container, groups)
	if err := s.waitUntilReady(ctx); err != nil {
		return err
	}
	s.Handler = withFilters(container)
	if err := plugins.start(ctx, serving); err != nil {
		return err
	}
	return services.restore(ctx, api)
}

// loopbackConfig returns the configuration of the clients with which the API server sends requests
// to itself.
func (s *Server) loopbackConfig() *restclient.Config {
	config := &restclient.Config{Host: "http://apiserver", QPS: -1, Transport: s.loopback, UserAgent: "kube-apiserver"}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// Abort breaks the requests that the API server has sent to itself, and cancels its work. Handlers
// that wait for such requests then return. Abort does not wait until they have returned.
func (s *Server) Abort() {
	s.cancel()
	s.loopback.Abort()
}

// Stop ends the watch caches and all watches. The caller must close the clients of the Server
// first.
//
// Stop then waits for the time [readLimit]. For each read of the newest version, the watch cache
// has started a goroutine that can run for this time.
func (s *Server) Stop() {
	s.cancel()
	s.loopback.Close()
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
