package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EtcdProvider is a cluster whose etcd is within reach.
type EtcdProvider interface {
	// Etcd returns a client of the cluster's etcd, the caller's to close. It may do
	// everything, and goes past the API server.
	Etcd(ctx context.Context) (*clientv3.Client, error)
}

// Bounds on a connection to etcd: a member that is gone without a word is found
// out in the time of both keepalives together.
const (
	etcdDialWithin        = 10 * time.Second
	etcdKeepAliveInterval = 10 * time.Second
	etcdKeepAliveWithin   = 5 * time.Second
)

// DialEtcd makes a client of the etcd at a URL. It connects when it is first
// used, and again by itself whenever the connection breaks.
func DialEtcd(url string, config *tls.Config) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, TLS: config,
		DialTimeout: etcdDialWithin, DialKeepAliveTime: etcdKeepAliveInterval, DialKeepAliveTimeout: etcdKeepAliveWithin,
		// What matters comes back as an error.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of the etcd at %s: %w", url, err)
	}
	return client, nil
}
