package subject

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Definition describes a program whose flags differ from those of kube-controller-manager, such
// as an operator. Its replicas run as local processes.
//
// The elements of Args and the values of Env are Go templates. They may use the fields of [Values],
// such as {{.Kubeconfig}}.
type Definition struct {
	// Executable is the path of the program.
	Executable string
	// Args are the arguments of the program.
	Args []string
	// Env maps names of environment variables to values. gauntlet also sets HOME, TMPDIR, PATH and
	// KUBECONFIG.
	Env map[string]string
	// Namespace is the namespace of the program's own objects, such as its Lease. gauntlet creates
	// the namespace if necessary. Empty means [LeaseNamespace].
	Namespace string
	// Objects are objects that the program needs, such as CustomResourceDefinitions and roles.
	// gauntlet creates these objects before it starts the program. In role bindings, gauntlet
	// replaces the subjects by the user of the replicas. Without a role binding, the replicas get
	// all permissions.
	Objects []*unstructured.Unstructured
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
	Metrics    string // Address with the port 8080
	Health     string // Address with the port 8081
}

// The ports in the fields Metrics and Health of [Values]. They are below the ephemeral port range
// of Linux, so no client connection uses them.
const (
	metricsPort = 8080
	healthPort  = 8081
)

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
	return Target{kind: operatorKind, name: t.name, definition: &d}, nil
}

// Command returns the [Target] for an executable with flags of its own. Its replicas get all
// RBAC permissions. The arguments are Go templates; see [Definition].
func Command(path string, args ...string) (Target, error) {
	return Operator(Definition{Executable: path, Args: args})
}

// Definition returns the definition of a target that [Operator] has returned, and nil for all other
// targets. The caller must not change the definition.
func (t Target) Definition() *Definition { return t.definition }

// GrantsAll reports whether the replicas get all RBAC permissions. They do if Objects contains no
// role binding.
func (d *Definition) GrantsAll() bool {
	return !slices.ContainsFunc(d.Objects, func(o *unstructured.Unstructured) bool {
		return strings.HasSuffix(o.GetKind(), "RoleBinding")
	})
}

// command returns a replica's arguments and environment variables. It replaces the fields in the
// templates by values, but takes the namespace from d.
func (d *Definition) command(values Values) (args, env []string, err error) {
	values.Namespace = d.Namespace
	for i, text := range d.Args {
		arg, err := expand(text, values)
		if err != nil {
			return nil, nil, fmt.Errorf("args[%d]: %w", i, err)
		}
		args = append(args, arg)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		value, err := expand(d.Env[name], values)
		if err != nil {
			return nil, nil, fmt.Errorf("env.%s: %w", name, err)
		}
		env = append(env, name+"="+value)
	}
	return args, env, nil
}

// expand executes a template such as "--kubeconfig={{.Kubeconfig}}" with values.
func expand(text string, values Values) (string, error) {
	t, err := template.New("").Parse(text)
	var out bytes.Buffer
	if err == nil {
		err = t.Execute(&out, values)
	}
	if err != nil {
		return "", fmt.Errorf("found %q; expected text with {{.Kubeconfig}}, {{.Namespace}}, {{.Replica}}, {{.Address}}, {{.Metrics}} or {{.Health}}: %w", text, err)
	}
	return out.String(), nil
}

// valuesOf returns the Values of one replica, except the Namespace. It chooses a free loopback
// address, on which the replica can serve metrics and health checks.
func valuesOf(replica, kubeconfig string) (Values, error) {
	address, err := freeAddress()
	if err != nil {
		return Values{}, err
	}
	at := func(port int) string { return net.JoinHostPort(address.String(), strconv.Itoa(port)) }
	return Values{Kubeconfig: kubeconfig, Replica: replica, Address: address.String(), Metrics: at(metricsPort), Health: at(healthPort)}, nil
}
