// Package operator reads subject files. A subject file describes a program under test whose flags
// differ from those of kube-controller-manager, such as an operator: its executable, arguments,
// environment variables and manifests.
//
// The manifests are read as a user would apply them. Custom resource definitions, roles, role
// bindings and configuration exist before the program starts. A Deployment is not applied: it says
// with which arguments and environment variables the program runs, which gauntlet starts as a local
// process instead.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// file is the content of a subject file.
type file struct {
	Subject struct {
		// Exec is the path of the program, relative to the directory of the file.
		Exec string `yaml:"exec,omitempty"`
		// Module is a main package and its version: example.com/operator@v1.2.3.
		Module string `yaml:"module,omitempty"`
		// Args and Env are templates; see [subject.Definition]. Env is added to the variables
		// of the Deployment, and Args take the place of its arguments.
		Args []string          `yaml:"args,omitempty"`
		Env  map[string]string `yaml:"env,omitempty"`
		// Namespace is the namespace of the program's own objects, such as its Lease. By
		// default, it is that of the Deployment.
		Namespace string `yaml:"namespace,omitempty"`
		// Manifests are files, directories and kustomizations, relative to the directory of
		// the file. With Module, they are relative to the directory of the module.
		Manifests []string `yaml:"manifests,omitempty"`
	} `yaml:"subject"`
	// Operator has the controllers and kinds, if the manifests do not say enough.
	Operator *scenario.Operator `yaml:"operator,omitempty"`
}

// Operator is a program under test with its controllers.
type Operator struct {
	Target subject.Target
	// Scenario is what a scenario needs to know about the operator.
	Scenario scenario.Operator
	// Ignored lists the kinds of objects in the manifests that a run does not create.
	Ignored []string
}

// Load reads the subject file at path. It builds the program if the file names a module. It starts
// nothing.
func Load(ctx context.Context, path string) (*Operator, error) {
	var f file
	document, err := scenario.LoadDocument(path, &f)
	if err != nil {
		return nil, fmt.Errorf("reading the subject file: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	executable := within(dir, f.Subject.Exec)
	switch {
	case (f.Subject.Exec == "") == (f.Subject.Module == ""):
		return nil, document.Errorf("subject", "expected either exec, the path of a program, or module, a main package with a version")
	case f.Subject.Module != "":
		built, err := setup.MainPackage(ctx, f.Subject.Module)
		if err != nil {
			return nil, document.Errorf("subject.module", "%w", err)
		}
		dir, executable = built.ModuleDir, built.Executable
	}
	var objects []*unstructured.Unstructured
	for i, name := range f.Subject.Manifests {
		read, err := readManifests(within(dir, name))
		if err != nil {
			return nil, document.Errorf(fmt.Sprintf("subject.manifests[%d]", i), "%w", err)
		}
		objects = append(objects, read...)
	}
	deployed, err := sort(objects)
	if err != nil {
		return nil, document.Errorf("subject.manifests", "%w", err)
	}
	described := deployed.operator(f.Operator)
	if err := document.CheckOperator(&described); err != nil {
		return nil, err
	}
	if len(described.Controllers) == 0 {
		return nil, document.Errorf("operator.controllers", "found none, and no CustomResourceDefinition in subject.manifests; expected at least one controller, with its name and the kind that it reconciles")
	}
	environment := map[string]string{}
	maps.Copy(environment, deployed.env)
	maps.Copy(environment, f.Subject.Env)
	arguments := deployed.args
	if f.Subject.Args != nil {
		arguments = f.Subject.Args
	}
	target, err := subject.Operator(subject.Definition{
		Executable: executable, Args: arguments, Env: environment,
		Namespace: cmp.Or(f.Subject.Namespace, deployed.namespace), Objects: deployed.install, File: path,
	})
	if err != nil {
		return nil, document.Errorf("subject", "%w", err)
	}
	slices.Sort(deployed.ignored)
	return &Operator{Target: target, Scenario: described, Ignored: slices.Compact(deployed.ignored)}, nil
}

// within returns the absolute form of a path that is relative to a directory.
func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
