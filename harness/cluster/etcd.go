package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EtcdProvider is a cluster whose etcd accepts clients of the harness.
type EtcdProvider interface {
	// Etcd returns a client of the cluster's etcd with all permissions. The caller
	// closes it. Its requests bypass the API server.
	Etcd(ctx context.Context) (*clientv3.Client, error)
}

// Timeouts of a connection to etcd. A client detects an unreachable member after at
// most etcdKeepAliveInterval + etcdKeepAliveTimeout.
const (
	etcdDialTimeout       = 10 * time.Second
	etcdKeepAliveInterval = 10 * time.Second
	etcdKeepAliveTimeout  = 5 * time.Second
)

// DialEtcd returns a client of the etcd at a URL.
// The client connects on its first request and reconnects automatically.
func DialEtcd(url string, config *tls.Config) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, TLS: config,
		DialTimeout: etcdDialTimeout, DialKeepAliveTime: etcdKeepAliveInterval, DialKeepAliveTimeout: etcdKeepAliveTimeout,
		// Requests return all relevant failures as errors.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the etcd at %s: %w", url, err)
	}
	return client, nil
}
