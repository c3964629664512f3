package subject

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Definition describes a program whose flags differ from those of kube-controller-manager, such
// as an operator. Its replicas run as local processes.
//
// The elements of Args and the values of Env are Go templates. Their only actions are the fields of [Values],
// such as {{.Kubeconfig}}.
type Definition struct {
	// Executable is the path of the program, which gauntlet runs as a local process for each
	// replica.
	Executable string
	// Args are the arguments of the program.
	Args []string
	// Env maps names of environment variables to values. gauntlet also sets HOME, TMPDIR, PATH and
	// KUBECONFIG.
	Env map[string]string
	// Files maps names of files to their contents, which are templates. Each replica has the files
	// in its directory {{.Files}}.
	Files map[string]string
	// Volumes are the files that the program finds at fixed paths. Each replica also finds the files
	// of a ServiceAccount. Both need a machine that permits mount namespaces; elsewhere, the program
	// finds none of these files.
	Volumes []Volume
	// Namespace is the namespace of the program's own objects, such as its Lease. gauntlet creates
	// the namespace if necessary. Empty means [LeaseNamespace].
	Namespace string
	// Objects are objects that the program needs, such as CustomResourceDefinitions and roles.
	// gauntlet creates these objects before it starts the program. In role bindings, gauntlet
	// replaces the subjects by the user of the replicas. Without a role binding, the replicas get
	// all permissions.
	//
	// In webhook configurations and conversion webhooks, gauntlet replaces the address by that of
	// its own listener. The listener forwards connections to the replicas. gauntlet also replaces
	// the certificate authority; see [ServeWebhooks].
	Objects []*unstructured.Unstructured
	// Places has the file and line of each of the Objects. The keys are results of [ObjectKey].
	// Errors about an object contain its place.
	Places map[string]string
	// WebhookPort is the port on which a replica serves webhooks; 0 means [DefaultWebhookPort].
	// gauntlet ignores this field if Args, Env or Files contain {{.Webhook}} or {{.WebhookPort}}.
	// With these templates, gauntlet chooses a port for each replica.
	WebhookPort int
	// CertificateSecret is a Secret to which the program itself writes its serving certificate. The
	// program must then also set the certificate authority of its webhooks. If CertificateSecret is
	// empty, gauntlet creates the certificate.
	CertificateSecret types.NamespacedName
	// File is the path of the YAML file that contained the definition. It is empty for a definition
	// in Go code.
	File string
}

// Values are the fields that the templates of a [Definition] may use, such as {{.Kubeconfig}}. Each
// replica has its own Values.
type Values struct {
	Kubeconfig string // path of the replica's kubeconfig, as in the variable KUBECONFIG
	Namespace  string // Definition.Namespace
	Replica    string // name of the replica, such as subject-0
	Address    string // loopback address that only this replica uses, such as 127.66.1.3
	Metrics    string // Address with the port 18080
	Health     string // Address with the port 18081
	// WebhookPort is a port that only this replica uses, and Webhook is Address with this port.
	WebhookPort int
	Webhook     string
	// Certificates is the directory with the serving certificate of the webhooks. Its files are
	// tls.crt, tls.key and ca.crt.
	Certificates string
	// Files is the directory with the replica's Definition.Files.
	Files string
}

// These are the ports in the fields Metrics and Health of [Values]. They are below the ephemeral
// port range of Linux, so no client connection uses them.
const (
	metricsPort = 18080
	healthPort  = 18081
)

// FieldError is an error about one field of a [Definition]. Path is the path of the field in a subject
// file, such as "args[1]".
type FieldError struct {
	Path string
	Err  error
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// fileNameMax is the maximum length of a file's name in bytes, which most file systems of Linux have
// (NAME_MAX).
const fileNameMax = 255

// Operator returns the [Target] for a program with flags of its own, such as an operator. A
// replica of the program is ready when it watches the resources that its controllers need.
func Operator(d Definition) (Target, error) {
	t, err := parseExec(d.Executable)
	if err != nil {
		return Target{}, err
	}
	d.Executable = t.name
	if d.Namespace == "" {
		d.Namespace = LeaseNamespace
	}
	if _, _, err := d.command(Values{}); err != nil {
		return Target{}, err
	}
	if err := checkFiles(d.Files); err != nil {
		return Target{}, &FieldError{"files", err}
	}
	if err := d.checkVolumes(); err != nil {
		return Target{}, err
	}
	return Target{kind: operatorKind, name: t.name, definition: &d}, nil
}

// checkFiles returns an error for an invalid file name, and for content that is not a valid template.
func checkFiles(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
			return fmt.Errorf("found the name %q; expected the name of a file without a directory", name)
		}
		if len(name) > fileNameMax || strings.ContainsRune(name, 0) {
			return fmt.Errorf("found the name %.80q of %d bytes; expected the name of a file: at most %d bytes, without NUL characters", name, len(name), fileNameMax)
		}
		if _, err := expand(files[name], Values{}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Command returns the [Target] for an executable with flags of its own. Its replicas get all
// RBAC permissions. The arguments are Go templates; see [Definition].
func Command(path string, args ...string) (Target, error) {
	return Operator(Definition{Executable: path, Args: args})
}

// Definition returns the definition of a target that [Operator] has returned, and nil for all other
// targets. The caller must not change the definition.
func (t Target) Definition() *Definition { return t.definition }

// CustomResources returns the CustomResourceDefinitions in Objects. It leaves out those with a conversion
// webhook, because its address is only known when a replica starts. A nil definition has none.
func (d *Definition) CustomResources() []*unstructured.Unstructured {
	if d == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.Objects), func(o *unstructured.Unstructured) bool {
		strategy, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
		return o.GetKind() != "CustomResourceDefinition" || strategy == "Webhook"
	})
}

// ObjectKey returns a text that identifies an object of [Definition].Objects.
func ObjectKey(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}, "/")
}

// GrantsAll reports whether the replicas get all RBAC permissions. They do if Objects contains no
// role binding.
func (d *Definition) GrantsAll() bool {
	return !slices.ContainsFunc(d.Objects, func(o *unstructured.Unstructured) bool {
		return strings.HasSuffix(o.GetKind(), "RoleBinding")
	})
}

// command returns a replica's arguments and environment variables. It executes the templates with
// the given values, except that {{.Namespace}} is always d.Namespace.
func (d *Definition) command(values Values) (args, env []string, err error) {
	values.Namespace = d.Namespace
	for i, text := range d.Args {
		arg, err := expand(text, values)
		if err != nil {
			return nil, nil, &FieldError{fmt.Sprintf("args[%d]", i), err}
		}
		args = append(args, arg)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		value, err := expand(d.Env[name], values)
		if err != nil {
			return nil, nil, &FieldError{"env." + name, err}
		}
		env = append(env, name+"="+value)
	}
	return args, env, nil
}

// writeFiles writes the files of a replica to the replica's own directory, values.Files.
func (d *Definition) writeFiles(values Values) error {
	if len(d.Files) == 0 {
		return nil
	}
	values.Namespace = d.Namespace
	return writeTemplates(values.Files, d.Files, values)
}

// writeTemplates writes files to the directory dir, which it creates. The argument files maps their
// names to their contents, which are templates.
func writeTemplates(dir string, files map[string]string, values Values) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		content, err := expand(text, values)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// expand executes a template, such as "--kubeconfig={{.Kubeconfig}}", with the values of one
// replica. The only other action that it accepts is a text, such as {{"{{"}}.
func expand(text string, values Values) (string, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		reason := ""
		if strings.Contains(err.Error(), "unclosed action") || strings.Contains(err.Error(), "U+007D") {
			reason = ": the closing }} is missing"
		}
		return "", templateError(text, reason)
	}
	if t.Tree == nil { // the text is empty
		return text, nil
	}
	if len(t.Templates()) > 1 {
		return "", templateError("{{define}}", "")
	}
	for _, node := range t.Root.Nodes {
		if suggestion, ok := simple(node); !ok {
			return "", templateError(node.String(), suggestion)
		}
	}
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return "", templateError(text, "")
	}
	return out.String(), nil
}

// templateError returns the error for a template with another action than a field of [Values]. The
// argument more is the end of the message.
func templateError(found, more string) error {
	return fmt.Errorf("found %.100q; expected no template fields other than {{.Kubeconfig}}, {{.Namespace}}, {{.Replica}}, {{.Address}}, {{.Metrics}}, {{.Health}}, {{.Webhook}}, {{.WebhookPort}}, {{.Certificates}} and {{.Files}}%s", found, more)
}

// simple reports whether a part of a template is text or a field of [Values]. For another field, it also
// returns a suggestion of a similar one.
func simple(node parse.Node) (suggestion string, ok bool) {
	if node.Type() == parse.NodeText {
		return "", true
	}
	action, ok := node.(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 || len(action.Pipe.Cmds) != 1 || len(action.Pipe.Cmds[0].Args) != 1 {
		return "", false
	}
	switch arg := action.Pipe.Cmds[0].Args[0].(type) {
	case *parse.StringNode:
		return "", true
	case *parse.FieldNode:
		var fields []string
		for field := range reflect.TypeFor[Values]().Fields() {
			fields = append(fields, field.Name)
		}
		if len(arg.Ident) == 1 && slices.Contains(fields, arg.Ident[0]) {
			return "", true
		}
		if name := nearest.Name(arg.Ident[0], fields); name != "" {
			return "; did you mean {{." + name + "}}?", false
		}
	}
	return "", false
}

// valuesOf returns the Values of one replica, except the Namespace. It chooses a free loopback
// address, on which the replica can serve metrics and health checks, and a free port for its
// webhooks.
func valuesOf(replica, kubeconfig, certificates, files string) (Values, error) {
	address, err := freeAddress()
	if err != nil {
		return Values{}, err
	}
	port, err := freePort()
	if err != nil {
		return Values{}, err
	}
	at := func(port int) string { return net.JoinHostPort(address.String(), strconv.Itoa(port)) }
	return Values{
		Kubeconfig: kubeconfig, Replica: replica, Address: address.String(), Metrics: at(metricsPort), Health: at(healthPort),
		WebhookPort: port, Webhook: at(port), Certificates: certificates, Files: files,
	}, nil
}

// freePort returns a random port that is free on all addresses. The port is below the ephemeral
// port range of Linux, so no client connection uses it.
func freePort() (int, error) {
	const tries, first, count = 10, 10000, 20000
	var last error
	for range tries {
		offset, err := rand.Int(rand.Reader, big.NewInt(count))
		if err != nil {
			return 0, err
		}
		port := first + int(offset.Int64())
		listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("finding a free port for webhooks: %w", last)
}
