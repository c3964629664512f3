// Package existing uses an existing cluster, which the user selects with a kubeconfig.
//
// A run uses a namespace of its own and restores the state of the cluster at its end.
//
// The controllers under test act on the whole cluster, so only one run at a time can
// use it. The namespace of the run serves as the lock: creating it acquires the
// lock (lock.go).
//
// No other instance of the controllers under test may be active at the same time. [Start]
// creates one object for each controller to see whether the controller reacts
// (probe.go). If one does, Start fails, unless the user has named a program that turns
// the cluster's own controllers off and on (controller_switch.go).
//
// Faults that damage the cluster are not available on an existing cluster.
package existing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options configures the use of an existing cluster.
type Options struct {
	cluster.Existing
	// Controllers are the controllers under test, which must not be active on the cluster.
	// If it is empty, these are the default controllers.
	Controllers []kube.Controller
	// Pods is the maximum number of pods of the run. The nodes must have capacity for
	// them.
	Pods int
}

const (
	// Namespace contains the objects of the run: its workload, the ServiceAccount of
	// the subject and its Lease.
	Namespace = "gauntlet"
	// serviceAccount is the name of the subject's ServiceAccount in this namespace.
	serviceAccount = "subject"
	// tokenLifetime is the lifetime of the subject's token. It is longer than any run,
	// so the token needs no renewal.
	tokenLifetime = 24 * time.Hour
	// requestTimeout limits a single request to the API server.
	requestTimeout = 15 * time.Second
	// pollInterval is the time between two checks of a condition.
	pollInterval = 200 * time.Millisecond
)

// Cluster is an existing cluster that a run uses exclusively. See [Start].
type Cluster struct {
	config           *rest.Config // of the Admin role
	admin            kubernetes.Interface
	token            string            // of the subject
	controllerSwitch *controllerSwitch // nil if the controllers were not turned off
	lock             *namespaceLock
	failed           chan struct{} // never closed
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider.
const Name = "existing"

// Capabilities are the capabilities of this provider. It is unknown whether the kubelets of
// the cluster are real.
var Capabilities = cluster.Capabilities{cluster.SubjectAsProcess, cluster.PausesSubject}

// Start acquires an existing cluster for a run.
// It creates the namespace of the run, ensures that no other instance of the controllers
// under test is active, and creates a ServiceAccount for the subject. If it returns
// an error, it has restored the state of the cluster.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	config, err := Config(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	if _, err := probesFor(o.Controllers); err != nil {
		return nil, err
	}
	c := &Cluster{config: config, failed: make(chan struct{})}
	if c.admin, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("existing cluster: %w", err)
	}
	if err := c.Health(ctx); err != nil {
		return nil, err
	}
	if err := checkCapacity(ctx, c.admin, o.Pods); err != nil {
		return nil, fmt.Errorf("existing cluster: %w", err)
	}
	if c.lock, err = acquireLock(ctx, c.admin, config.Host, o.CleanupCommand); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}()
	if err := c.turnOffControllers(ctx, o); err != nil {
		return nil, err
	}
	return c, c.createServiceAccount(ctx)
}

// Config loads a kubeconfig by the rules of kubectl.
func Config(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("existing cluster: loading the kubeconfig (set --kubeconfig, --context or KUBECONFIG): %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("existing cluster: reading the certificates in the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "gauntlet-" + string(cluster.Admin)
	return config, nil
}

// Preflight returns an error if the options do not allow a start. It sends no request.
func Preflight(o Options) error {
	if _, err := probesFor(o.Controllers); err != nil {
		return err
	}
	_, err := Config(o.Kubeconfig, o.Context)
	return err
}

// Version returns the version of the API server in a kubeconfig.
func Version(kubeconfig, context string) (string, error) {
	config, err := Config(kubeconfig, context)
	if err != nil {
		return "", err
	}
	config.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("existing cluster: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("existing cluster: reading the version of the API server at %s: %w", config.Host, err)
	}
	return version.GitVersion, nil
}

// createServiceAccount creates the ServiceAccount of the subject and a token for it.
func (c *Cluster) createServiceAccount(ctx context.Context) error {
	accounts := c.admin.CoreV1().ServiceAccounts(Namespace)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: serviceAccount}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("existing cluster: creating ServiceAccount %s/%s of the subject: %w", Namespace, serviceAccount, err)
	}
	request, err := accounts.CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("existing cluster: creating a token for ServiceAccount %s/%s: %w", Namespace, serviceAccount, err)
	}
	c.token = request.Status.Token
	return nil
}

// Account returns the ServiceAccount of the subject, for use in role bindings.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: serviceAccount}
}

// Name returns [Name].
func (c *Cluster) Name() string { return Name }

// Capabilities returns [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// Namespace returns the namespace of the run, which [Start] has created.
func (c *Cluster) Namespace() string { return Namespace }

// SubjectAccount returns the result of [Account].
func (c *Cluster) SubjectAccount() rbacv1.Subject { return Account() }

// Config returns a client configuration for a role.
// The subject uses its own ServiceAccount. All other roles use the user of the kubeconfig.
func (c *Cluster) Config(role cluster.Role) *rest.Config {
	if role != cluster.Subject {
		return rest.CopyConfig(c.config)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = c.token
	config.QPS = -1
	config.UserAgent = "gauntlet-" + string(role)
	return config
}

// Health returns nil if the API server reports that it is ready.
func (c *Cluster) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var status int
	result := c.admin.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
	if err := result.Error(); err != nil || status != http.StatusOK {
		return fmt.Errorf("existing cluster: the API server at %s is not ready (status %d): %w", c.config.Host, status, err)
	}
	return nil
}

// Failed returns a channel that is never closed. gauntlet runs no component of an
// existing cluster, so none can exit unexpectedly.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err returns nil.
func (c *Cluster) Err() error { return nil }

// Stop removes the namespace of the run and turns the cluster's own controllers on again.
// It takes at most stopTimeout, even if ctx is canceled.
func (c *Cluster) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(c.lock.release(ctx), c.controllerSwitch.turnOn(ctx))
}

// stopTimeout limits the duration of Stop. It includes the grace period of pods.
const stopTimeout = 2 * time.Minute
