// Package existing is a cluster that somebody else made: reached by a kubeconfig,
// used in a namespace of our own, and left as it was found.
//
// The controllers under test act on a whole cluster. So there is one run on a
// cluster at a time, which the namespace stands for: who makes it has the
// cluster. And nobody else may run the four controllers meanwhile: whether
// somebody does is found out by asking them for work, and a cluster on which
// they run is refused, unless a command is named that turns them off and on.
//
// Nothing here can be broken on purpose: faults that need a cluster of the run's
// own do not happen on this one.
//
// To read it: [Start] is the procedure, claim.go whose the cluster is, acting.go
// who acts on it, displace.go how they are turned off.
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
)

// Options says which cluster to use, and how.
type Options struct {
	// Kubeconfig is the path of one whose user may do everything; empty is what
	// kubectl would take. Context is one of its contexts; empty is the current one.
	Kubeconfig, Context string
	// ControllerSwitch is a program that turns the cluster's own four controllers off when
	// its argument is "off", and on again when it is "on". Its environment has
	// KUBECONFIG and, as CONTEXT, the context, empty for the current one. Empty is
	// none.
	ControllerSwitch string
	// Pods is how many pods the run has at once, for which there must be room.
	Pods int
	// CleanupCommand is the command that removes what a killed run leaves, with an
	// absolute path first; empty leaves it to the user. See [Clean].
	CleanupCommand []string
}

const (
	// Namespace is the run's own: its workload, the subject's account and its lease.
	Namespace = "gauntlet"
	// account is the subject's, in that namespace.
	account = "subject"
	// tokenLifetime is more than a run can take.
	tokenLifetime = 24 * time.Hour
	// answerWithin bounds a single question to the cluster.
	answerWithin = 15 * time.Second
	// pollInterval is how often it is asked about what is to come.
	pollInterval = 200 * time.Millisecond
)

// Cluster is a cluster that a run has claimed. See [Start].
type Cluster struct {
	config    *rest.Config // the admin's
	admin     kubernetes.Interface
	token     string // the subject's
	displaced *displacement
	claim     *claim
	failed    chan struct{} // never closed: no part of it is ours
}

var _ cluster.Cluster = (*Cluster)(nil)

// Start claims the cluster, sees that nobody runs the four controllers on it, and
// makes an account for those under test. After an error the cluster is as it was.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	config, err := Config(o.Kubeconfig, o.Context)
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, failed: make(chan struct{})}
	if c.admin, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("existing cluster: %w", err)
	}
	if err := c.Health(ctx); err != nil {
		return nil, err
	}
	if err := takesPods(ctx, c.admin, o.Pods); err != nil {
		return nil, fmt.Errorf("existing cluster: %w", err)
	}
	if c.claim, err = claimCluster(ctx, c.admin, config.Host, o.CleanupCommand); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}()
	if err := c.displace(ctx, o); err != nil {
		return nil, err
	}
	return c, c.makeAccount(ctx)
}

// Config reads a kubeconfig, as kubectl would.
func Config(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("existing cluster: expected a kubeconfig (--kubeconfig, --context, or KUBECONFIG): %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("existing cluster: reading the certificates of the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "gauntlet-" + string(cluster.Admin)
	return config, nil
}

// Version is that of the API server that a kubeconfig leads to.
func Version(kubeconfig, context string) (string, error) {
	config, err := Config(kubeconfig, context)
	if err != nil {
		return "", err
	}
	config.Timeout = answerWithin
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("existing cluster: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("existing cluster: the API server at %s does not answer: %w", config.Host, err)
	}
	return version.GitVersion, nil
}

// makeAccount makes the account of the subject and a token for it.
func (c *Cluster) makeAccount(ctx context.Context) error {
	accounts := c.admin.CoreV1().ServiceAccounts(Namespace)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("existing cluster: making the subject's account: %w", err)
	}
	request, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("existing cluster: asking for the subject's token: %w", err)
	}
	c.token = request.Status.Token
	return nil
}

// Account is who the subject is to the cluster.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}
}

// Name is "existing".
func (c *Cluster) Name() string { return "existing" }

// Namespace is that of the run, which stands already.
func (c *Cluster) Namespace() string { return Namespace }

// Config returns a client configuration for a role. The subject has an account of
// its own; everybody else is the user of the kubeconfig.
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

// Health asks the API server whether it is ready.
func (c *Cluster) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var status int
	answer := c.admin.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
	if err := answer.Error(); err != nil || status != http.StatusOK {
		return fmt.Errorf("existing cluster: the API server at %s is not ready (status %d): %w", c.config.Host, status, err)
	}
	return nil
}

// Failed is never closed: no part of the cluster is ours to watch.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err is nil.
func (c *Cluster) Err() error { return nil }

// Stop removes the run's namespace, and turns the cluster's own controllers on
// again if they were turned off. It takes up to stopWithin, whatever ctx says.
func (c *Cluster) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(c.claim.release(ctx), c.displaced.undo(ctx))
}

// stopWithin bounds the end: pods take their grace period.
const stopWithin = 2 * time.Minute
