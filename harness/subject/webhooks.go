package subject

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/pki"
)

// DefaultWebhookPort is the port on which programs with controller-runtime serve webhooks by
// default.
const DefaultWebhookPort = 9443

// loopback is the address of gauntlet's listener for webhooks, to which the API server sends its
// webhook requests.
var loopback = net.IPv4(127, 0, 0, 1)

// Webhooks connects the API server with the webhooks that the replicas serve. In a cluster, a
// Service, kube-proxy and cert-manager do this.
//
// The API server connects to a listener of gauntlet. Webhooks forwards each connection to a replica
// that accepts it. Forwarded connections are encrypted; Webhooks does not see the requests.
type Webhooks struct {
	definition *Definition
	dir        string // directory of the serving certificate
	authority  []byte // PEM-encoded certificate of the authority, or nil if a Secret has the certificate
	listener   net.Listener
	reserved   net.Listener // listener that reserves the port of the webhooks on this machine; nil if each replica has its own port or address
	goroutines sync.WaitGroup
	// written has the files that the method write wrote to dir, by name.
	written map[string]os.FileInfo
	// stopCopying ends the goroutine of CopySecret.
	stopCopying context.CancelFunc

	mu          sync.Mutex
	replicas    map[string]string // the address of each replica's webhooks, by replica name
	next        int               // number of forwarded connections
	connections map[net.Conn]bool // open connections; nil after Stop
}

// ServeWebhooks prepares the webhooks of the program that the argument d defines.
//
// It first writes a serving certificate to a directory below home, unless a Secret has the
// certificate. The argument home must be the temporary directory of the replicas, where programs
// with controller-runtime read the certificate by default. If d contains no webhook configuration,
// ServeWebhooks then returns, without a listener.
//
// By default, all replicas listen on the same port, so only one replica can run on this machine.
// ServeWebhooks then returns an error for several replicas. It also waits until other runs with
// this port have ended. Replicas have ports or addresses of their own if d contains {{.Webhook}},
// {{.WebhookPort}} or {{.Address}} with the port.
func ServeWebhooks(ctx context.Context, d *Definition, home string, replicas int) (*Webhooks, error) {
	w := &Webhooks{
		definition: d, dir: filepath.Join(home, "k8s-webhook-server", "serving-certs"),
		replicas: map[string]string{}, connections: map[net.Conn]bool{}, stopCopying: func() {},
		written: map[string]os.FileInfo{},
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	if d.CertificateSecret == (types.NamespacedName{}) {
		if err := w.createCertificate(); err != nil {
			return nil, err
		}
	}
	if !d.HasWebhooks() {
		return w, nil
	}
	if err := w.reservePort(ctx, replicas); err != nil {
		return nil, err
	}
	var err error
	if w.listener, err = net.Listen("tcp4", net.JoinHostPort(loopback.String(), "0")); err != nil {
		return nil, errors.Join(err, w.Stop(ctx))
	}
	w.goroutines.Go(w.accept)
	return w, nil
}

// createCertificate writes a serving certificate, its key and the authority's certificate to w.dir.
// The certificate is valid for all Services in the webhook configurations.
func (w *Webhooks) createCertificate() error {
	authority, err := pki.NewAuthority("gauntlet webhooks", time.Now())
	if err != nil {
		return err
	}
	names := []string{"localhost"}
	for service := range w.definition.WebhookServices() {
		host := service.Name + "." + service.Namespace + ".svc"
		names = append(names, host, host+".cluster.local")
	}
	pair, err := authority.Sign(pki.Leaf{
		Name: "gauntlet subject", Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: names, IPs: []net.IP{loopback},
	})
	if err != nil {
		return err
	}
	w.authority = authority.PEM()
	return w.write(map[string][]byte{"ca.crt": w.authority, "tls.crt": pair.Certificate, "tls.key": pair.Key})
}

// write writes files, such as a certificate and its key, to w.dir. A program that reads a file
// meanwhile gets the complete old or the complete new content.
//
// If w.dir has a file that write did not write, the program manages the directory itself. write then
// changes nothing.
func (w *Webhooks) write(files map[string][]byte) error {
	if own, err := w.ownsDirectory(); err != nil || !own {
		return err
	}
	for name, content := range files {
		if err := w.writeFile(filepath.Join(w.dir, name), content); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// writeFile writes a file. If another program has created a file or a symbolic link at this path,
// it returns [os.ErrExist].
func (w *Webhooks) writeFile(path string, content []byte) error {
	created := path + ".new"
	if err := os.WriteFile(created, content, 0o600); err != nil {
		return err
	}
	defer os.Remove(created) // after the rename, there is no such file
	info, err := os.Lstat(created)
	if err != nil {
		return err
	}
	put := os.Link // unlike os.Rename, it does not replace a file
	if found, err := os.Lstat(path); err == nil && w.wrote(found) {
		put = os.Rename
	}
	if err := put(created, path); err != nil {
		return err
	}
	w.written[filepath.Base(path)] = info
	return nil
}

// ownsDirectory reports whether writeFile wrote all files in w.dir.
func (w *Webhooks) ownsDirectory() (bool, error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && !w.wrote(info) {
			return false, nil
		}
	}
	return true, nil
}

// wrote reports whether writeFile wrote a file of w.dir, and nobody changed or replaced it later. A
// new file may have the inode of a removed one, so wrote also compares the time and the mode.
func (w *Webhooks) wrote(found os.FileInfo) bool {
	info := w.written[found.Name()]
	return info != nil && os.SameFile(info, found) && info.ModTime().Equal(found.ModTime()) && info.Mode() == found.Mode()
}

// CheckReplicas returns an error if this machine cannot run several replicas of the program. All of
// them would then serve webhooks on the same port.
func (d *Definition) CheckReplicas(replicas int) error {
	if replicas <= 1 || !d.HasWebhooks() || !d.sharesWebhookPort() {
		return nil
	}
	return fmt.Errorf("program %s serves webhooks on port %d of all addresses, so %d replicas cannot run on one machine; set the port in args, env or files with {{.WebhookPort}} or {{.Webhook}}, or run only 1 replica", d.Executable, d.webhookPort(Values{}), replicas)
}

// reservePort waits until no other run on this machine uses the port of the webhooks. If each
// replica has a port or an address of its own, reservePort does nothing.
//
// The reservation is an abstract Unix socket. The kernel removes it when gauntlet ends.
func (w *Webhooks) reservePort(ctx context.Context, replicas int) error {
	if !w.definition.sharesWebhookPort() {
		return nil
	}
	if err := w.definition.CheckReplicas(replicas); err != nil {
		return err
	}
	port := w.definition.webhookPort(Values{})
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		var err error
		if w.reserved, err = net.Listen("unix", fmt.Sprintf("@gauntlet-webhook-port-%d", port)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until no other run on this machine uses the webhook port %d: %w; last error: %w", port, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// Objects returns the objects of the program, changed so that the API server's webhook requests
// reach gauntlet's listener. Without a listener, it returns the objects unchanged.
//
// Objects replaces the address of each webhook, and the certificate authority if gauntlet created
// the certificate. It replaces each Service to which a webhook refers by a Service of the type
// ExternalName, which leads to this machine. It adds this Service if the program has none.
func (w *Webhooks) Objects() []*unstructured.Unstructured {
	if w.listener == nil {
		return w.definition.Objects
	}
	var objects []*unstructured.Unstructured
	services := w.definition.WebhookServices()
	for _, o := range w.definition.Objects {
		name := types.NamespacedName{Namespace: w.definition.namespaceOf(o.GetNamespace()), Name: o.GetName()}
		if o.GetKind() == "Service" && services[name] {
			continue
		}
		o = o.DeepCopy()
		for _, config := range clientConfigs(o) {
			w.redirect(config)
		}
		objects = append(objects, o)
	}
	for service := range services {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"spec": map[string]any{"type": "ExternalName", "externalName": loopback.String()},
		}}
		o.SetNamespace(service.Namespace)
		o.SetName(service.Name)
		objects = append(objects, o)
	}
	return objects
}

// redirect changes the clientConfig of a webhook so that the API server connects to gauntlet's
// listener. It also sets the caBundle if gauntlet created the certificate.
func (w *Webhooks) redirect(config map[string]any) {
	port := w.listener.Addr().(*net.TCPAddr).Port
	if w.authority != nil {
		config["caBundle"] = base64.StdEncoding.EncodeToString(w.authority)
	}
	if service, ok := config["service"].(map[string]any); ok {
		namespace, _ := service["namespace"].(string)
		service["namespace"], service["port"] = w.definition.namespaceOf(namespace), int64(port)
		return
	}
	to := &url.URL{Scheme: "https", Host: net.JoinHostPort(loopback.String(), strconv.Itoa(port)), Path: "/convert"}
	if text, ok := config["url"].(string); ok {
		if given, err := url.Parse(text); err == nil {
			to.Path, to.RawQuery = given.Path, given.RawQuery
		}
	}
	config["url"] = to.String()
}

// Listening returns nil if all replicas accept TLS connections to their webhooks. It does not
// verify the certificates of the replicas.
func (w *Webhooks) Listening(ctx context.Context) error {
	if w.listener == nil {
		return nil
	}
	for replica, address := range w.addresses() {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // only the API server verifies the replicas
		conn, err := dialer.DialContext(ctx, "tcp4", address)
		if err != nil {
			return fmt.Errorf("%s does not serve the webhooks of the subject's manifests on %s: %w", replica, address, err)
		}
		_ = conn.Close()
	}
	return nil
}

// CopySecret copies the Secret Definition.CertificateSecret to the directory of the serving
// certificate, and again when the Secret changes. In a cluster, a kubelet does this. CopySecret
// returns at once; [Webhooks.Stop] ends the copying.
//
// A program may write the Secret and the directory itself. CopySecret therefore waits until the
// Secret did not change for one period, and changes nothing in a directory with files of the program.
func (w *Webhooks) CopySecret(ctx context.Context, admin kubernetes.Interface) {
	name := w.definition.CertificateSecret
	if name == (types.NamespacedName{}) {
		return
	}
	ctx, w.stopCopying = context.WithCancel(context.WithoutCancel(ctx))
	w.goroutines.Go(func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		seen, copied := "", ""
		for {
			secret, err := admin.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
			if err == nil && secret.ResourceVersion == seen && seen != copied && w.write(secret.Data) == nil {
				copied = seen
			}
			if err == nil {
				seen = secret.ResourceVersion
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// add registers the address on which a replica serves webhooks. Webhooks then forwards connections
// of the API server to this address.
func (w *Webhooks) add(replica, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas[replica] = address
}

// addresses returns the addresses of the replicas' webhooks, by replica name.
func (w *Webhooks) addresses() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.replicas)
}

// acceptRetryDelay is the time between two attempts to accept a connection.
const acceptRetryDelay = 50 * time.Millisecond

// accept accepts connections of the API server and forwards each to a replica, until the
// listener is closed.
func (w *Webhooks) accept() {
	for {
		conn, err := w.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example, too many open files
			<-time.After(acceptRetryDelay)
			continue
		}
		w.goroutines.Go(func() { w.forward(conn.(*net.TCPConn)) })
	}
}

// forward connects a connection of the API server with a replica. If no replica accepts the
// connection, forward resets it, so the API server applies the webhook's failurePolicy at once.
func (w *Webhooks) forward(from *net.TCPConn) {
	defer from.Close()
	to := w.dial()
	if to == nil {
		_ = from.SetLinger(0)
		return
	}
	defer to.Close()
	if !w.track(from, to) {
		return
	}
	defer w.untrack(from, to)
	ended := make(chan struct{}, 2)
	for _, direction := range [][2]net.Conn{{from, to}, {to, from}} {
		w.goroutines.Go(func() {
			_, _ = io.Copy(direction[0], direction[1])
			ended <- struct{}{}
		})
	}
	<-ended
}

// dial returns a connection to a replica that accepts it, or nil if no replica does. It begins
// with another replica each time, as kube-proxy does.
func (w *Webhooks) dial() net.Conn {
	w.mu.Lock()
	addresses := make([]string, 0, len(w.replicas))
	for _, address := range w.replicas {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	first := w.next
	w.next++
	w.mu.Unlock()
	for i := range addresses {
		if conn, err := net.Dial("tcp4", addresses[(first+i)%len(addresses)]); err == nil {
			return conn
		}
	}
	return nil
}

// track adds open connections, which Stop closes. After Stop, it returns false.
func (w *Webhooks) track(connections ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range connections {
		if w.connections == nil {
			return false
		}
		w.connections[conn] = true
	}
	return true
}

// untrack removes connections that track has added, because they are closed.
func (w *Webhooks) untrack(connections ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range connections {
		delete(w.connections, conn)
	}
}

// Stop closes the listener and all connections. It returns when no goroutine of w runs.
func (w *Webhooks) Stop(context.Context) error {
	w.stopCopying()
	var all []error
	for _, listener := range []net.Listener{w.listener, w.reserved} {
		if listener != nil {
			all = append(all, listener.Close())
		}
	}
	w.mu.Lock()
	for conn := range w.connections {
		_ = conn.Close()
	}
	w.connections = nil
	w.mu.Unlock()
	w.goroutines.Wait()
	return errors.Join(all...)
}

// HasWebhooks reports whether Objects contains a webhook configuration or a
// CustomResourceDefinition with a conversion webhook.
func (d *Definition) HasWebhooks() bool {
	return slices.ContainsFunc(d.Objects, func(o *unstructured.Unstructured) bool { return len(clientConfigs(o.DeepCopy())) > 0 })
}

// WebhookServices returns the names of the Services to which the webhooks in Objects refer. For a
// reference without a namespace, the name has the namespace of the program.
func (d *Definition) WebhookServices() map[types.NamespacedName]bool {
	services := map[types.NamespacedName]bool{}
	for _, o := range d.Objects {
		for _, config := range clientConfigs(o.DeepCopy()) {
			if service, ok := config["service"].(map[string]any); ok {
				namespace, _ := service["namespace"].(string)
				name, _ := service["name"].(string)
				services[types.NamespacedName{Namespace: d.namespaceOf(namespace), Name: name}] = true
			}
		}
	}
	return services
}

// namespaceOf returns the given namespace, or the program's namespace if the argument is empty.
func (d *Definition) namespaceOf(namespace string) string {
	return cmp.Or(namespace, d.Namespace, LeaseNamespace)
}

// webhookPort returns the port on which a replica serves webhooks.
func (d *Definition) webhookPort(values Values) int {
	switch {
	case d.usesTemplate(".Webhook"):
		return values.WebhookPort
	case d.WebhookPort != 0:
		return d.WebhookPort
	}
	return DefaultWebhookPort
}

// sharesWebhookPort reports whether all replicas listen for webhooks on the same port of the
// wildcard address 0.0.0.0. Only one replica can then run on this machine.
func (d *Definition) sharesWebhookPort() bool {
	return !d.usesTemplate(".Webhook") && !d.usesTemplate(fmt.Sprintf("{{.Address}}:%d", d.webhookPort(Values{})))
}

// usesTemplate reports whether an argument, an environment variable or a file of the program
// contains the given text. An example of the text is "{{.WebhookPort}}".
func (d *Definition) usesTemplate(text string) bool {
	all := slices.Concat(d.Args, slices.Collect(maps.Values(d.Env)), slices.Collect(maps.Values(d.Files)))
	return slices.ContainsFunc(all, func(value string) bool { return strings.Contains(value, text) })
}

// clientConfigs returns the field clientConfig of each webhook in o. The object o is a webhook
// configuration or a CustomResourceDefinition. Changes of the result change o.
func clientConfigs(o *unstructured.Unstructured) []map[string]any {
	switch o.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		var configs []map[string]any
		webhooks, _ := o.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			if fields, ok := webhook.(map[string]any); ok {
				configs = append(configs, clientConfigOf(fields))
			}
		}
		return configs
	case "CustomResourceDefinition":
		spec, _ := o.Object["spec"].(map[string]any)
		conversion, _ := spec["conversion"].(map[string]any)
		if conversion["strategy"] != "Webhook" {
			return nil
		}
		webhook, ok := conversion["webhook"].(map[string]any)
		if !ok {
			webhook = map[string]any{"conversionReviewVersions": []any{"v1"}}
			conversion["webhook"] = webhook
		}
		return []map[string]any{clientConfigOf(webhook)}
	}
	return nil
}

// clientConfigOf returns the field clientConfig of a webhook. If the field is missing, it adds one.
func clientConfigOf(webhook map[string]any) map[string]any {
	config, ok := webhook["clientConfig"].(map[string]any)
	if !ok {
		config = map[string]any{}
		webhook["clientConfig"] = config
	}
	return config
}
