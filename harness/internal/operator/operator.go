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
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
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
	// Missing lists the environment variables and volumes of the Deployment that the program does not
	// get, such as "variable TOKEN".
	Missing []string
	// Incomplete has texts about probable mistakes for which a run may nevertheless start, such as missing values.
	Incomplete []string
	// Ignored lists the kinds in the manifests whose objects a run does not create, such as
	// "Service".
	Ignored []string
}

// Load reads the subject file at path, which describes a program under test. If the file names a Go
// module, Load builds the program. Load does not start the program.
func Load(ctx context.Context, path string) (*Operator, error) {
	d, err := read(path)
	if err != nil {
		return nil, err
	}
	if d.Subject.Module == "" {
		return d.operator(ctx, d.dir, within(d.dir, d.Subject.Exec))
	}
	built, err := setup.MainPackage(ctx, d.Subject.Module)
	if err != nil {
		return nil, d.document.Errorf("subject.module", "%w", err)
	}
	return d.operator(ctx, built.ModuleDir, built.Executable)
}

// Check reads the subject file at path as [Load] does, but it downloads and builds nothing. If the file
// names a Go module, Check reads no manifests, and returns nil.
func Check(ctx context.Context, path string) (*Operator, error) {
	d, err := read(path)
	if err != nil || d.Subject.Module != "" {
		return nil, err
	}
	return d.operator(ctx, d.dir, within(d.dir, d.Subject.Exec))
}

// subjectFile is the content of a subject file with its path. It describes a program under test.
type subjectFile struct {
	file
	document  scenario.Document
	path, dir string // absolute paths of the file and of its directory
}

// read returns the subject file at path. It reads no manifests.
func read(path string) (*subjectFile, error) {
	var d subjectFile
	var err error
	if d.document, err = scenario.LoadDocument(path, &d.file); err != nil {
		similar := ""
		if name := inputfile.SimilarFile(path); errors.Is(err, fs.ErrNotExist) && name != "" {
			similar = "; did you mean " + filepath.Join(filepath.Dir(path), name) + "?"
		}
		return nil, fmt.Errorf("reading the subject file: %w%s", inputfile.WithExpected(err, "a subject file"), similar)
	}
	if err := d.validate(d.document); err != nil {
		return nil, fmt.Errorf("reading the subject file: %w", err)
	}
	switch {
	case d.Subject.Exec == "" && d.Subject.Module == "":
		return nil, d.document.Errorf("subject", "found neither exec nor module; expected exec, the path of a program, or module, a Go main package with a version")
	case d.Subject.Exec != "" && d.Subject.Module != "":
		return nil, d.document.Errorf("subject", "found both exec and module; expected one of them: exec, the path of a program, or module, a Go main package with a version")
	}
	if d.path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	d.dir = filepath.Dir(d.path)
	return &d, nil
}

// manifests returns the objects of all manifests that the file lists. The argument from is the directory
// of relative paths that do not begin with ./ or ../.
func (d *subjectFile) manifests(from string) ([]manifest, error) {
	var objects []manifest
	for i, name := range d.Subject.Manifests {
		dir := from
		if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
			dir = d.dir
		}
		read, err := readManifests(dir, name)
		if err != nil {
			return nil, d.document.Errorf(fmt.Sprintf("subject.manifests[%d]", i), "%w%s", err, pathHint(dir, name))
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// operator returns the program under test. The argument manifestDir is the directory of the manifests,
// and executable is the path of the program.
func (d *subjectFile) operator(ctx context.Context, manifestDir, executable string) (*Operator, error) {
	objects, err := d.manifests(manifestDir)
	if err != nil {
		return nil, err
	}
	deployed, err := sort(ctx, objects)
	if err == nil {
		err = deployed.checkNamesakes(d.Operator)
	}
	if err != nil {
		return nil, d.document.Errorf("subject.manifests", "%w", err)
	}
	if path, err := deployed.checkListed(d.Operator); err != nil {
		return nil, d.document.Errorf(path, "%w", err)
	}
	described := deployed.operator(d.Operator)
	if err := d.document.CheckOperator(&described); err != nil {
		return nil, err
	}
	if len(described.Controllers) == 0 {
		return nil, d.document.Errorf("operator.controllers", "found no controller here, and no CustomResourceDefinition of a namespaced kind in subject.manifests; list at least one controller, with its name and the kind that it reconciles")
	}
	notes, err := d.checkFiles()
	if err != nil {
		return nil, err
	}
	notes = slices.Concat(deployed.incomplete, notes)
	if !slices.ContainsFunc(deployed.incomplete, func(note string) bool { return strings.HasSuffix(note, permitsNothing) }) { // otherwise, that rule may be the cause
		notes = append(notes, deployed.unreadable(described)...)
	}
	environment, missing := deployed.environment(d.Subject.Env)
	volumes, missingVolumes := deployed.volumes(d.Subject.Files)
	for _, volume := range missingVolumes {
		missing = append(missing, "volume "+volume)
	}
	arguments := deployed.arguments(environment)
	if d.Subject.Args != nil {
		arguments = d.Subject.Args
	}
	notes = append(notes, d.unusedFiles(arguments, environment, volumes)...)
	definition := subject.Definition{
		Executable: executable, Args: arguments, Env: environment, Files: d.Subject.Files, Volumes: volumes,
		Namespace: cmp.Or(d.Subject.Namespace, deployed.namespace), Objects: deployed.install, Places: deployed.places, File: d.path,
	}
	deployed.serveWebhooks(&definition)
	target, err := subject.Operator(definition)
	if field := new(subject.FieldError); errors.As(err, &field) {
		if d.fromDeployment(field.Path) {
			return nil, d.document.Errorf("subject.manifests", "%s: %s: %w", deployed.deployment, field.Path, field.Err)
		}
		return nil, d.document.Errorf("subject."+field.Path, "%w", field.Err)
	}
	if err != nil {
		return nil, d.document.Errorf("subject.exec", "%s%s", strings.TrimPrefix(err.Error(), "exec:"), execHint(d.dir, d.Subject.Exec))
	}
	slices.Sort(deployed.ignored)
	return &Operator{Target: target, Scenario: described, Missing: missing, Incomplete: notes, Ignored: slices.Compact(deployed.ignored)}, nil
}

// fromDeployment reports whether the value at a path of [subject.Definition], such as args[0], comes from the
// Deployment in the manifests.
func (d *subjectFile) fromDeployment(path string) bool {
	name, isVariable := strings.CutPrefix(path, "env.")
	_, set := d.Subject.Env[name]
	return strings.HasPrefix(path, "volumes") || strings.HasPrefix(path, "args") && d.Subject.Args == nil || isVariable && !set
}

// validate returns an error for each field whose value Kubernetes or the kernel would refuse.
func (f *file) validate(document scenario.Document) error {
	var errs []error
	if name := f.Subject.Namespace; name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		errs = append(errs, document.Errorf("subject.namespace", "found %.80q; expected %s", name, dnsLabel))
	}
	if f.Subject.Module != "" && f.Subject.Exec == "" { // with both, that is the mistake
		if err := setup.CheckMainPackage(f.Subject.Module); err != nil {
			errs = append(errs, document.Errorf("subject.module", "%w", err))
		}
	}
	if i := pastProxy(f.Subject.Args); i >= 0 {
		errs = append(errs, document.Errorf(fmt.Sprintf("subject.args[%d]", i), "found %.200q; expected only --kubeconfig={{.Kubeconfig}}, with which the program connects through the fault proxy", f.Subject.Args[i]))
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
		if value := f.Subject.Env[name]; isAddress(name) && value != "" && !strings.Contains(value, "{{") {
			errs = append(errs, document.Errorf("subject.env."+name, "found %.200q; expected a template such as {{.Kubeconfig}}, or no value: a run sets this variable, so that the program connects through the fault proxy", value))
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
