package subject

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Target says which program is tested, as in the flag --subject: ours, upstream, exec:PATH,
// image:REF or go:PATH. "ours" are the controllers of this repository, and "upstream" is
// kube-controller-manager. Go programs can also use [Program], [Operator] and [Command].
type Target struct {
	kind string // "ours", "upstream", "program", execKind, imageKind, goKind or operatorKind
	// definition describes the program of a target from [Operator]. It is nil for all other
	// targets.
	definition *Definition
	// name is the path of an executable, the name of an image, or the directory of a Go package. It
	// is empty for Ours, Upstream and Program.
	name string
}

// These are the targets (programs to test) that have neither a path nor an image name.
var (
	// Ours is the workload-controller-manager built from controllers/.
	Ours = Target{kind: "ours"}
	// Upstream is kube-controller-manager with only the controllers under test.
	Upstream = Target{kind: "upstream"}
	// Program is for a Go program that runs the controllers under test in its own process. gauntlet
	// starts no replica. The controllers' clients must connect to the fault proxy; see
	// environment.Environment.ProxyConfig. The flag --subject does not accept this target.
	Program = Target{kind: "program"}
)

// These are the kinds of targets (programs to test) with a path or an image name.
const (
	execKind  = "exec"
	imageKind = "image"
	goKind    = "go"
	// operatorKind is an executable with flags of its own; see [Operator].
	operatorKind = "operator"
)

// ParseTarget parses the value of the flag --subject: ours, upstream, exec:PATH, image:REF or
// go:PATH. In exec:PATH, PATH is an executable. In image:REF, REF is the name of a container image
// with an entrypoint. Both programs must accept the flags of kube-controller-manager. In go:PATH,
// PATH is a directory with a Go package; see [Target.Package].
//
// For any other value, ParseTarget returns an error that lists the valid values. If the caller
// accepts further values, the argument others adds them to this list.
func ParseTarget(s string, others ...string) (Target, error) {
	switch kind, named, ok := strings.Cut(s, ":"); {
	case s == Ours.kind:
		return Ours, nil
	case s == Upstream.kind:
		return Upstream, nil
	case (kind == execKind || kind == goKind) && ok && named == "":
		return Target{}, fmt.Errorf("found %q; expected %[1]sPATH with the path of %s", s, map[string]string{execKind: "a program", goKind: "a directory with a Go package"}[kind])
	case kind == execKind && ok:
		return parseExec(named)
	case kind == imageKind && ok:
		return parseImage(named)
	case kind == goKind && ok:
		return parsePackage(named)
	default:
		if strings.Contains(s, ",") {
			return Target{}, fmt.Errorf("found %q, which has a comma; expected one subject, such as %s", s, Ours.kind)
		}
		known := append([]string{Ours.kind, Upstream.kind, "exec:PATH", "image:REF", "go:PATH"}, others...)
		return Target{}, fmt.Errorf("found %q; expected %s%s", s, nearest.List(known, "or"), nearest.Suggestion(s, known))
	}
}

// parseExec returns the target exec:PATH for an executable file. It returns an error if this
// machine cannot run the file.
func parseExec(path string) (Target, error) {
	if err := executable.Check(path); err != nil {
		return Target{}, fmt.Errorf("exec:%s: %w", path, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Target{}, fmt.Errorf("exec:%s: %w", path, err)
	}
	return Target{kind: execKind, name: absolute}, nil
}

// repositoryPart matches a part of the path of an image in a registry, and tagPattern a tag. Package
// name also accepts other texts, such as "..", which every registry and container engine refuses.
var (
	repositoryPart = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	tagPattern     = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_.-]*$`)
)

// CheckImage returns an error if a text is not the reference of a container image.
func CheckImage(reference string) error {
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq(parsed.Context().RepositoryStr(), "/") {
		if !repositoryPart.MatchString(part) {
			return fmt.Errorf("found the part %q of a name; expected lower-case letters and digits, with one of . _ __ or - between them", part)
		}
	}
	if tag, ok := parsed.(name.Tag); ok && !tagPattern.MatchString(tag.TagStr()) {
		return fmt.Errorf("found the tag %q; expected one that begins with a letter, a digit or _", tag.TagStr())
	}
	return nil
}

// parseImage returns the target image:REF for a container image. It checks only the syntax of the
// image name.
func parseImage(reference string) (Target, error) {
	if err := CheckImage(reference); err != nil {
		return Target{}, fmt.Errorf("found %q; expected image:REF with the reference of an image, such as image:example.com/manager:v1", "image:"+reference)
	}
	return Target{kind: imageKind, name: reference}, nil
}

// parsePackage returns the target go:PATH for a directory with Go files.
func parsePackage(dir string) (Target, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Target{}, fmt.Errorf("go:%s: %w", dir, err)
	}
	entries, err := os.ReadDir(absolute)
	if errors.Is(err, syscall.ENOTDIR) {
		return Target{}, fmt.Errorf("go:%s: found a file; expected the directory of a Go package", dir)
	}
	if err != nil {
		return Target{}, fmt.Errorf("go:%s: expected a directory with a Go package: %w", dir, inputfile.Reason(err))
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".go" }) {
		return Target{}, fmt.Errorf("go:%s: found no Go file in the directory; expected a Go package", dir)
	}
	return Target{kind: goKind, name: absolute}, nil
}

// Package returns the directory of a target go:PATH. The Go package in this directory has the
// function Run(context.Context, *rest.Config) error, which runs the controllers under test. For all
// other targets, ok is false.
func (t Target) Package() (dir string, ok bool) { return t.name, t.kind == goKind }

// ownLease reports whether the program may use another Lease than the one that gauntlet expects, or
// no Lease at all. A replica of such a program is ready when it watches the resources that its
// controllers need.
func (t Target) ownLease() bool { return t.definition != nil || t.kind == goKind }

// Image returns the image name REF of a target image:REF. For all other targets, the result ok
// is false.
func (t Target) Image() (reference string, ok bool) { return t.name, t.kind == imageKind }

// String returns the target as text, such as "upstream" or "exec:/bin/manager". The flag --subject
// accepts this text, except for [Program] and for a [Definition] in Go code.
func (t Target) String() string {
	switch d := t.definition; {
	case d != nil && d.File != "":
		return d.File
	case d != nil:
		return strings.Join(append([]string{t.kind + ":" + t.name}, d.Args...), " ")
	}
	if t.name != "" {
		return t.kind + ":" + t.name
	}
	return t.kind
}

// CheckControllers returns an error if the target's program cannot run one of the given
// controllers.
//
// The target [Ours] contains only the controllers of controllers/CONTRACT.md. CheckControllers
// assumes that all other targets contain all given controllers.
func (t Target) CheckControllers(controllers []kube.Controller) error {
	if t != Ours {
		return nil
	}
	for _, c := range kube.OrDefault(controllers) {
		if !c.Contract {
			return fmt.Errorf("subject %s: cannot run %s: expected only the controllers %s, or the subject upstream, exec:PATH or image:REF",
				t, c.Name, strings.Join(kube.DefaultControllers(), ", "))
		}
	}
	return nil
}

// Executable returns the path of the executable that the replicas run as local processes. The
// argument ours is the path for the target [Ours], and upstream the path for [Upstream]. If the
// file is missing, the error names the command that builds it. A target image:REF is an error.
func (t Target) Executable(ours, upstream string) (string, error) {
	var path, remedy string
	switch {
	case t == Ours:
		path, remedy = ours, "make build"
	case t == Upstream:
		path, remedy = upstream, "gauntlet setup"
	case t.kind == imageKind:
		return "", fmt.Errorf("subject %s: an image can only run in pods; expected a provider that runs the subject in pods, such as --provider=kind, or the subject exec:PATH", t)
	default:
		return t.name, nil
	}
	if err := executable.Check(path); err != nil {
		return "", fmt.Errorf("subject %s: %s: %w; run `%s`", t, path, err, remedy)
	}
	return path, nil
}
