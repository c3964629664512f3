// Package operator reads subject files. A subject file describes a program under test whose flags
// differ from those of kube-controller-manager, such as an operator. The file names the executable,
// its arguments and environment variables, and manifests.
//
// gauntlet creates most objects of the manifests before the program starts: custom resource
// definitions, roles, role bindings, configuration and so on. It does not create the Deployment. It
// runs the program as a local process, with the arguments and environment variables of the
// Deployment. It ignores objects of some kinds, which [Operator.Ignored] lists.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// file is the content of a subject file, which describes a program under test in YAML.
type file struct {
	Subject struct {
		// Exec is the path of the program. A relative path starts at the directory of the
		// subject file.
		Exec string `yaml:"exec,omitempty"`
		// Module is a Go main package with a version, such as example.com/operator@v1.2.3.
		// gauntlet builds this package.
		Module string `yaml:"module,omitempty"`
		// Args and Env are templates; see [subject.Definition]. Args replaces the arguments in
		// the Deployment. Env is added to the environment variables of the Deployment, and takes
		// precedence.
		Args []string          `yaml:"args,omitempty"`
		Env  map[string]string `yaml:"env,omitempty"`
		// Files maps names of files to contents, which are templates. {{.Files}} is their directory.
		Files map[string]string `yaml:"files,omitempty"`
		// Namespace is the namespace of the program's own objects, such as its Lease. The
		// default is the namespace of the Deployment.
		Namespace string `yaml:"namespace,omitempty"`
		// Manifests lists files, directories and kustomizations. A relative path starts at the
		// directory of the subject file. With Module, a relative path starts at the root
		// directory of the Go module, unless the path begins with ./ or ../.
		Manifests []string `yaml:"manifests,omitempty"`
	} `yaml:"subject"`
	// Operator lists the controllers and kinds of the program. It is needed only if the
	// manifests do not contain enough information.
	Operator *scenario.Operator `yaml:"operator,omitempty"`
}

// Operator is a program under test, together with a description of its controllers.
type Operator struct {
	Target subject.Target
	// Scenario describes the program's controllers and kinds, in the form that scenarios use.
	Scenario scenario.Operator
	// Ignored lists the kinds in the manifests whose objects a run does not create, such as
	// "Service".
	Ignored []string
}

// Load reads the subject file at path, which describes a program under test. If the file names a Go
// module, Load builds the program. Load does not start the program.
func Load(ctx context.Context, path string) (*Operator, error) {
	var f file
	document, err := scenario.LoadDocument(path, &f)
	if err != nil {
		return nil, fmt.Errorf("reading the subject file: %w", err)
	}
	if err := f.validate(document); err != nil {
		return nil, fmt.Errorf("reading the subject file: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	manifestDir, executable := dir, within(dir, f.Subject.Exec)
	switch {
	case f.Subject.Exec == "" && f.Subject.Module == "":
		return nil, document.Errorf("subject", "found neither exec nor module; expected exec, the path of a program, or module, a Go main package with a version")
	case f.Subject.Exec != "" && f.Subject.Module != "":
		return nil, document.Errorf("subject", "found both exec and module; expected one of them: exec, the path of a program, or module, a Go main package with a version")
	case f.Subject.Module != "":
		built, err := setup.MainPackage(ctx, f.Subject.Module)
		if err != nil {
			return nil, document.Errorf("subject.module", "%w", err)
		}
		manifestDir, executable = built.ModuleDir, built.Executable
	}
	var objects []manifest
	for i, name := range f.Subject.Manifests {
		from := manifestDir
		if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
			from = dir
		}
		read, err := readManifests(from, name)
		if err != nil {
			return nil, document.Errorf(fmt.Sprintf("subject.manifests[%d]", i), "%w", err)
		}
		objects = append(objects, read...)
	}
	deployed, err := sort(objects)
	if err == nil {
		err = deployed.checkNamesakes(f.Operator)
	}
	if err != nil {
		return nil, document.Errorf("subject.manifests", "%w", err)
	}
	described := deployed.operator(f.Operator)
	if err := document.CheckOperator(&described); err != nil {
		return nil, err
	}
	if len(described.Controllers) == 0 {
		return nil, document.Errorf("operator.controllers", "found no controller here, and no CustomResourceDefinition in subject.manifests; list at least one controller, with its name and the kind that it reconciles")
	}
	environment := map[string]string{}
	maps.Copy(environment, deployed.env)
	maps.Copy(environment, f.Subject.Env)
	arguments := deployed.args
	if f.Subject.Args != nil {
		arguments = f.Subject.Args
	}
	definition := subject.Definition{
		Executable: executable, Args: arguments, Env: environment, Files: f.Subject.Files, Volumes: deployed.volumes(f.Subject.Files),
		Namespace: cmp.Or(f.Subject.Namespace, deployed.namespace), Objects: deployed.install, Places: deployed.places, File: path,
	}
	deployed.serveWebhooks(&definition)
	target, err := subject.Operator(definition)
	if field := new(subject.FieldError); errors.As(err, &field) {
		return nil, document.Errorf("subject."+field.Path, "%w", field.Err)
	}
	if err != nil {
		return nil, document.Errorf("subject.exec", "%w", err)
	}
	slices.Sort(deployed.ignored)
	return &Operator{Target: target, Scenario: described, Ignored: slices.Compact(deployed.ignored)}, nil
}

// validate returns an error for each field whose value Kubernetes or the kernel would refuse.
func (f *file) validate(document scenario.Document) error {
	var errs []error
	if name := f.Subject.Namespace; name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		errs = append(errs, document.Errorf("subject.namespace", "found %.80q; expected %s", name, dnsLabel))
	}
	for i, arg := range f.Subject.Args {
		if strings.ContainsRune(arg, 0) {
			errs = append(errs, document.Errorf(fmt.Sprintf("subject.args[%d]", i), "found %.80q; expected a text without NUL characters", arg))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Subject.Env)) {
		if name == "" || strings.ContainsRune(name, '=') || strings.ContainsFunc(name, unicode.IsControl) {
			errs = append(errs, document.Errorf("subject.env", "found the key %.80q; expected the name of an environment variable: not empty, without = and without control characters", name))
		}
		if value := f.Subject.Env[name]; strings.ContainsRune(value, 0) {
			errs = append(errs, document.Errorf("subject.env", "found the value %.80q of %.80q; expected a text without NUL characters", value, name))
		}
	}
	return scenario.JoinErrors(errs...)
}

// within resolves path relative to the directory dir. If path is absolute or empty, within returns
// path unchanged.
func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
