// Package existing lets a run use a cluster of the user, who selects the cluster with a kubeconfig.
//
// A run creates its objects in the namespace [Namespace]. At the end, the run deletes the namespace
// and turns the cluster's own controllers on again.
//
// The controllers under test act on the whole cluster, so only one run at a time can use the
// cluster. The run's namespace is the lock: the run that has created the namespace holds the lock
// (lock.go).
//
// No other instance of the controllers under test may be active at the same time. [Start] creates
// one object for each controller, and watches whether the controller reacts to the object
// (probe.go). If a controller reacts, Start calls the program of the flag --controller-switch,
// which turns the cluster's own controllers off (controller_switch.go). Without such a program,
// Start fails.
//
// Faults that change the control plane or the nodes are not available on an existing cluster.
package existing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options says which existing cluster a run uses, and what the run needs from the cluster.
type Options struct {
	cluster.Existing
	// Controllers lists the controllers under test. The cluster itself must not run them. Nil means
	// [kube.DefaultControllers].
	Controllers []kube.Controller
	// Pods is the maximum number of pods that the run has at one time. The nodes must have capacity
	// for this number of additional pods.
	Pods int
}

const (
	// Namespace is the name of the run's namespace. It contains the workload, and the
	// ServiceAccount and leader-election Lease of the controllers under test.
	Namespace = "gauntlet"
	// serviceAccount is the name of the ServiceAccount of the controllers under test in
	// [Namespace].
	serviceAccount = "subject"
	// tokenLifetime is the lifetime of the ServiceAccount token of the controllers under test. The
	// lifetime is longer than any run, so gauntlet never renews the token.
	tokenLifetime = 24 * time.Hour
	// requestTimeout limits a single request to the API server.
	requestTimeout = 15 * time.Second
	// pollInterval is the time between two checks of a condition for which this package waits.
	pollInterval = 200 * time.Millisecond
)

// Cluster is an existing cluster that one run uses. [Start] returns it.
type Cluster struct {
	config           *rest.Config         // client configuration of a user with all permissions (role Admin)
	admin            kubernetes.Interface // client of a user with all permissions (role Admin)
	token            string               // bearer token of the controllers under test (role Subject)
	controllerSwitch *controllerSwitch    // nil if Start did not have to turn off controllers
	lock             *namespaceLock       // nil until Start has acquired the lock
	failed           chan struct{}        // the channel that the method Failed returns; never closed
}

var _ cluster.Cluster = (*Cluster)(nil)

// Name is the name of this provider, as in the flag --provider=existing.
const Name = "existing"

// Capabilities lists what gauntlet can do on every existing cluster. The list has neither
// RealKubelets nor SimulatedKubelets, because an existing cluster may have either.
var Capabilities = cluster.Capabilities{cluster.ControlsAdmission, cluster.SubjectAsProcess, cluster.PausesSubject}

// Start prepares an existing cluster for a run, and locks the cluster against other runs. Start
// creates the run's namespace, turns off the cluster's own controllers if necessary, and creates
// the ServiceAccount of the controllers under test. If Start fails, it undoes these changes.
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

// Config returns the client configuration of a context in a kubeconfig file. Clients with this
// configuration have no client-side rate limit.
//
// Empty arguments mean the kubeconfig file and the context that kubectl would use.
func Config(kubeconfig, context string) (*rest.Config, error) {
	config, _, err := cluster.Existing{Kubeconfig: kubeconfig, Context: context}.Load()
	if err != nil {
		return nil, fmt.Errorf("existing cluster: %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("existing cluster: reading the certificates in the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "gauntlet-" + string(cluster.Admin)
	return config, nil
}

// Preflight checks the kubeconfig and the list of controllers without a request to the cluster. It
// returns the error that [Start] would return for them.
func Preflight(o Options) error {
	if _, err := probesFor(o.Controllers); err != nil {
		return err
	}
	_, err := Config(o.Kubeconfig, o.Context)
	return err
}

// Version asks the API server for its version, such as "v1.36.3". Empty arguments mean the
// kubeconfig file and the context that kubectl would use.
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
	found, err := serverVersion(client)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("existing cluster: found no path /version at %s; expected the URL of a Kubernetes API server in the kubeconfig", config.Host)
	}
	if err != nil {
		return "", fmt.Errorf("existing cluster: reading the version of the API server at %s: %w", config.Host, requestReason(err))
	}
	return found.GitVersion, nil
}

// serverVersion asks an API server for its version. It waits at most requestTimeout, also if a
// credential plugin of the kubeconfig does not end.
func serverVersion(client kubernetes.Interface) (*version.Info, error) {
	type answer struct {
		version *version.Info
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		found, err := client.Discovery().ServerVersion()
		answers <- answer{found, err}
	}()
	timer := time.NewTimer(requestTimeout)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.version, a.err
	case <-timer.C:
		return nil, fmt.Errorf("no answer within %s; look at the server and the credential plugin of the kubeconfig", requestTimeout)
	}
}

// requestReason returns why a request got no usable response, without the request's method and URL.
// Of the messages of client-go, the result has the first line: the other lines are advice about
// credential plugins.
func requestReason(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused; expected a running API server at this address")
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return errors.New("no response in time; expected an API server that this machine can reach")
	case strings.Contains(err.Error(), "getting credentials: decoding stdout"):
		return errors.New("the credential plugin of the kubeconfig: found no ExecCredential in its output; expected one in JSON")
	}
	line, _, _ := strings.Cut(cluster.ConnectionReason(err), "\n")
	return errors.New(strings.Replace(inputfile.JSONReason(errors.New(line)), "exec: fork/exec ", "the credential plugin of the kubeconfig: ", 1))
}

// createServiceAccount creates the ServiceAccount of the controllers under test, and a token with
// which they authenticate.
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

// Account returns the ServiceAccount of the controllers under test in the form that role bindings
// need.
func Account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: serviceAccount}
}

// Name returns "existing", the name of the provider.
func (c *Cluster) Name() string { return Name }

// Capabilities returns the variable [Capabilities].
func (c *Cluster) Capabilities() cluster.Capabilities { return Capabilities }

// Namespace returns the name of the run's namespace, which [Start] has created.
func (c *Cluster) Namespace() string { return Namespace }

// SubjectAccount returns the ServiceAccount of the controllers under test; see [Account].
func (c *Cluster) SubjectAccount() rbacv1.Subject { return Account() }

// Config returns a client configuration for a role, which is a user of the cluster. Clients of the
// role cluster.Subject (the controllers under test) authenticate with the token of their
// ServiceAccount. Clients of all other roles authenticate as the user of the kubeconfig.
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

// Health returns nil if the API server's /readyz returns status 200.
func (c *Cluster) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var status int
	result := c.admin.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
	if err := result.Error(); err != nil {
		return fmt.Errorf("existing cluster: the API server at %s is not ready (status %d): %w", c.config.Host, status, err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("existing cluster: the API server at %s is not ready: found status %d of /readyz; expected %d", c.config.Host, status, http.StatusOK)
	}
	return nil
}

// Failed returns a channel that is never closed, because gauntlet started no component of the
// cluster.
func (c *Cluster) Failed() <-chan struct{} { return c.failed }

// Err returns nil, because the channel that [Cluster.Failed] returns is never closed.
func (c *Cluster) Err() error { return nil }

// Stop deletes the namespace of the run and turns the cluster's own controllers on again. Stop
// completes even if ctx is canceled. It takes at most 2 minutes ([stopTimeout]).
func (c *Cluster) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(c.lock.release(ctx), c.controllerSwitch.turnOn(ctx))
}

// stopTimeout limits how long [Cluster.Stop] and [Clean] wait until the namespace is deleted. The
// timeout is longer than the grace period of the pods in the namespace.
const stopTimeout = 2 * time.Minute
