package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EtcdProvider is a cluster that lets the test harness connect to its etcd. The harness then
// records every commit, and faults can compact etcd.
type EtcdProvider interface {
	// Etcd returns a client of the cluster's etcd with all permissions. The client connects
	// directly to etcd, not through the API server. The caller must close the client.
	Etcd(ctx context.Context) (*clientv3.Client, error)
}

// The timeouts of connections to etcd. A client closes a connection on which etcd has not responded
// for etcdKeepAliveInterval + etcdKeepAliveTimeout.
const (
	etcdDialTimeout       = 10 * time.Second
	etcdKeepAliveInterval = 10 * time.Second
	etcdKeepAliveTimeout  = 5 * time.Second
)

// DialEtcd returns a client of the etcd server at a URL. The client connects when it sends its
// first request, and reconnects automatically.
func DialEtcd(url string, config *tls.Config) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, TLS: config,
		DialTimeout: etcdDialTimeout, DialKeepAliveTime: etcdKeepAliveInterval, DialKeepAliveTimeout: etcdKeepAliveTimeout,
		// The client needs no logger, because each request returns its failure as an error.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating a client of etcd at %s: %w", url, err)
	}
	return client, nil
}
