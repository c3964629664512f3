package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// kustomize builds the kustomization in a directory, and returns the objects.
func kustomize(dir string) ([]manifest, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // files beside the directory are the user's own, too
	built, err := quietly(func() (resmap.ResMap, error) { return krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir) })
	if err != nil {
		return nil, fmt.Errorf("building the kustomization in %s: %s", dir, kustomizeReason(err))
	}
	var objects []manifest
	resources := sync.OnceValue(func() []resource { return resourcesIn(dir) })
	for _, resource := range built.Resources() {
		// The numbers in resource.Map have types that an Unstructured must not have.
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		m := manifest{Unstructured: o, place: "the kustomization in " + dir, resource: func() *document { return findResource(resources(), o) }}
		if err := checkManifest(o); err != nil {
			return nil, m.mistake(err)
		}
		objects = append(objects, m)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("the kustomization in %s: found no object; expected files with manifests in the field resources", dir)
	}
	objects[0].notes = append(deprecated(dir), unmatchedTargets(dir, objects)...)
	return objects, nil
}

// resource is an object in a file of a kustomization.
type resource struct {
	document   *document
	kind, name string
}

// resourcesIn returns the objects in the files of a kustomization.
func resourcesIn(dir string) []resource {
	var all []resource
	visitResources(dir, func(read *document, o *unstructured.Unstructured) {
		all = append(all, resource{read, o.GetKind(), o.GetName()})
	})
	return all
}

// findResource returns the document from which a kustomization reads an object, or nil. Kustomize does not tell the
// name without a prefix or suffix, so that this is the longest name with which the object's name begins or ends.
func findResource(all []resource, o *unstructured.Unstructured) *document {
	var found resource
	for _, r := range all {
		same := strings.HasSuffix(o.GetName(), r.name) || strings.HasPrefix(o.GetName(), r.name+"-")
		if r.kind == o.GetKind() && same && len(r.name) > len(found.name) {
			found = r
		}
	}
	return found.document
}

// visitResources calls visit for each object in the files of a kustomization.
func visitResources(dir string, visit func(*document, *unstructured.Unstructured)) {
	visitKustomizations(dir, map[string]bool{}, func(file string, k types.Kustomization) {
		for _, path := range resourcesOf(k) {
			path = within(filepath.Dir(file), path)
			content, err := inputfile.ReadText(path)
			if err != nil {
				continue // a directory
			}
			decode := documents(path, content)
			for {
				var fields map[string]any
				read, err := decode(&fields)
				if err != nil {
					break
				}
				visit(read, &unstructured.Unstructured{Object: fields})
			}
		}
	})
}

// quietly calls build without the warnings about deprecated fields that kustomize prints to the standard error stream.
// The function deprecated has these warnings in other words. No other goroutine may print meanwhile.
func quietly(build func() (resmap.ResMap, error)) (resmap.ResMap, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return build()
	}
	stderr := os.Stderr
	defer func() {
		os.Stderr = stderr
		null.Close()
	}()
	os.Stderr = null // kustomize has no option for the stream
	return build()
}

// deprecatedFields returns the names of the deprecated fields of a kustomization.
func deprecatedFields(k types.Kustomization) []string {
	var fields []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"bases", k.Bases != nil}, {"commonLabels", k.CommonLabels != nil}, {"imageTags", k.ImageTags != nil}, {"patchesJson6902", k.PatchesJson6902 != nil}, //nolint:staticcheck // users still have the deprecated fields
		{"patchesStrategicMerge", k.PatchesStrategicMerge != nil}, {"vars", k.Vars != nil}, //nolint:staticcheck // as above
	} {
		if field.set {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// deprecated returns a text about the deprecated fields of a kustomization and of those that it contains, or nothing.
func deprecated(dir string) []string {
	var files, fields []string
	visitKustomizations(dir, map[string]bool{}, func(file string, k types.Kustomization) {
		if found := deprecatedFields(k); len(found) > 0 {
			files = append(files, file)
			fields = append(fields, found...)
		}
	})
	if len(files) == 0 {
		return nil
	}
	slices.Sort(fields)
	further := ""
	if n := len(files) - 1; n > 0 {
		further = fmt.Sprintf(" and %d more of its kustomizations", n)
	}
	return []string{fmt.Sprintf("%s%s: found %s, which kustomize deprecates; expected the fields that replace them: run \"kustomize edit fix\" in the directory",
		files[0], further, nearest.List(slices.Compact(fields), "and"))}
}

// visitKustomizations calls visit for a kustomization and for each one that it contains. It ignores the directories in
// seen.
func visitKustomizations(dir string, seen map[string]bool, visit func(file string, k types.Kustomization)) {
	file, kustomization := readKustomization(dir)
	if file == "" || seen[dir] {
		return
	}
	seen[dir] = true
	visit(file, kustomization)
	for _, path := range resourcesOf(kustomization) {
		visitKustomizations(within(dir, path), seen, visit)
	}
}

// resourcesOf returns the paths of the files and kustomizations that a kustomization contains.
func resourcesOf(k types.Kustomization) []string {
	return slices.Concat(k.Resources, k.Components, k.Bases) //nolint:staticcheck // users still have the deprecated field
}

// unmatchedTargets returns a text for each patch whose target matches none of the objects. Kustomize ignores such a
// patch. The function also visits the kustomizations that the kustomization in dir contains.
func unmatchedTargets(dir string, objects []manifest) []string {
	var notes []string
	visitKustomizations(dir, map[string]bool{}, func(file string, k types.Kustomization) {
		for _, list := range []struct {
			name    string
			patches []types.Patch
		}{
			{"patches", k.Patches},
			{"patchesJson6902", k.PatchesJson6902}, //nolint:staticcheck // users still have the deprecated field
		} {
			for i, patch := range list.patches {
				if reason := unmatchedTarget(filepath.Dir(file), patch, objects); reason != "" {
					notes = append(notes, fmt.Sprintf("%s: %s[%d].target.%s", file, list.name, i, reason))
				}
			}
		}
	})
	return notes
}

// unmatchedTarget returns a text about the field of a target for which a patch matches none of the objects. The text is
// empty if the patch matches one, or deletes objects, which are then missing.
func unmatchedTarget(dir string, patch types.Patch, objects []manifest) string {
	text := patch.Patch
	if patch.Path != "" {
		content, _ := os.ReadFile(within(dir, patch.Path))
		text = string(content)
	}
	target := patch.Target
	if target == nil || target.LabelSelector != "" || target.AnnotationSelector != "" || strings.Contains(text, "$patch: delete") {
		return ""
	}
	var kinds, names []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
		if !matchesAll(target.Kind, o.GetKind()) {
			continue
		}
		if matchesPart(target.Name, o.GetName()) {
			return ""
		}
		names = append(names, o.GetName())
	}
	field, value, known := "name", target.Name, names
	if len(names) == 0 {
		field, value, known = "kind", target.Kind, kinds
	}
	return fmt.Sprintf("%s: found %q, so that kustomize ignores the patch; expected the %s of a resource%s", field, value, field, nearest.Suggestion(value, known))
}

// readKustomization returns the path and the content of the kustomization in a directory. The path is empty if there
// is none.
func readKustomization(dir string) (string, types.Kustomization) {
	var k types.Kustomization
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && sigsyaml.Unmarshal(content, &k) == nil {
			return filepath.Join(dir, name), k
		}
	}
	return "", k
}

// matchesAll reports whether a pattern of a target matches a whole value. An empty pattern matches each value.
func matchesAll(pattern, value string) bool {
	compiled, err := regexp.Compile("^(?:" + pattern + ")$")
	return pattern == "" || err != nil || compiled.MatchString(value)
}

// matchesPart reports whether a pattern of a target matches a part of a name. The fields namePrefix and nameSuffix may have
// added other parts.
func matchesPart(pattern, name string) bool {
	compiled, err := regexp.Compile(strings.Trim(pattern, "^$"))
	return err != nil || compiled.MatchString(name)
}

// remotePattern matches the error of kustomize about a resource that is a URL. Kustomize takes the URL
// for the path of a file.
var remotePattern = regexp.MustCompile(`\bhttps?:/|/https?::`)

// nestedPattern matches the error of kustomize about another kustomization in the field resources. The groups
// are the directory of that kustomization, and its error.
var nestedPattern = regexp.MustCompile(`(?s)^accumulating resources: accumulation err='accumulating resources from '[^']*': read [^:]*: is a directory': (?:recursed accumulation of|couldn't make target for) path '([^']*)': (.*)$`)

// directoryPattern matches the errors of kustomize about a directory in the field resources. The group of the
// first form is a directory that contains the kustomization, and that of the second one has no kustomization.
var directoryPattern = regexp.MustCompile(`cycle detected: candidate root '([^']*)'|unable to find one of .* in directory '([^']*)'`)

// accumulatedPattern matches the beginning of an error of kustomize about a file in the field resources.
// The group is the path.
var accumulatedPattern = regexp.MustCompile(`^.*?accumulating resources from '([^']*)': `)

// unknownPattern matches the error of kustomize about an unknown field. The group is the field.
var unknownPattern = regexp.MustCompile(`^invalid Kustomization: unknown field "([^"]*)"`)

// kustomizeTexts has patterns that match errors of kustomize, and texts that replace them.
var kustomizeTexts = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`(?s)^.*\b(?:lstat|open|read) (/[^:]+): ([^:"']+).*$`), "$1: $2"},
	{regexp.MustCompile(`^found array at patches\.patch; expected a text$`), "the field patches: found a list in the field patch; expected a text: write patch: |- and the operations in the lines below"},
	{regexp.MustCompile(`^found object at patches\.patch; expected a text$`), "the field patches: found an object in the field patch; expected a text: write patch: |- and the fields in the lines below"},
	{regexp.MustCompile(`^found string at patches; expected an object(.*)$`), "the field patches: found a text as an item; expected an object such as {path: patch.yaml}${1}; if only an older version of kustomize accepts the kustomization, list its files in subject.manifests instead"},
	{regexp.MustCompile(`^(?:\w+ operation does not apply: doc is missing (?:path|key)|[^:]*add operation does not apply: doc is missing path): "?(/[^:"]*).*$`), "the field patches: found the path $1, which the object does not have; expected an existing path, or op: add of its last part"},
	{regexp.MustCompile(`^Unexpected kind: (.*)$`), `the field patches: found the op "$1"; expected add, copy, move, remove, replace or test`},
	{regexp.MustCompile(`^a (?:configmap|secret) must have a name.*$`), "found a generator without a name; expected the name of the ConfigMap or Secret"},
	{regexp.MustCompile(`^.*invalid literal source (.*), expected key=value$`), `found the literal "$1"; expected key=value`},
	{regexp.MustCompile(`^Found multiple kustomization files under: (.*)$`), "found several kustomization files; expected one"},
	{regexp.MustCompile("^fieldPath `([^`]*)` is missing for replacement (source|target) (\\S*?)(?:/\\[noName\\])?(?::.*)?$"), "the field replacements: found the fieldPath $1, which the $2 $3 does not have"},
	{regexp.MustCompile(`(?s)^(?:.*: )?kind should be Kustomization or Component.*$`), "found another kind in the kustomization; expected Kustomization or Component"},
	{regexp.MustCompile(`patch and path can't be set at the same time.*$`), "found patch and path; expected one of them"},
	{regexp.MustCompile(`(?s)^resource with name (\S+) does not match a config with the following GVK .*$`), "the field replicas: found the name $1; expected the name of a Deployment, StatefulSet, ReplicaSet or ReplicationController of the resources"},
	{regexp.MustCompile(`(?s)^.*merging resources from '([^']*)': may not add resource with an already registered id: (\S+?)\.\[noNs\].*$`), "$1: found $2 for the second time; expected each object once"},
	{regexp.MustCompile(`(?:^\S+: )?MalformedYAMLError: (.*) in File: (\S+)`), "$2: $1"},
	{regexp.MustCompile("(?s)^trouble configuring builtin (?:PatchTransformer|PatchStrategicMergeTransformer) with config: `.*?`: "), "the field patches: "},
	{regexp.MustCompile("(?s)^trouble configuring builtin (\\S+) with config: `.*?`: "), "$1: "},
	{regexp.MustCompile(`(?s)^no resource matches strategic merge patch "([^"]*)".*$`), "the field patches: found a patch of $1, but no such object in the resources"},
	{regexp.MustCompile(`(?s)^var '\{(\S+) .*$`), "the field vars: found $1, whose object is not in the resources"},
	{regexp.MustCompile(`(?s)^(.*)unable to parse SM or JSON patch from \[(?:patch: )?(".*(?:\[|- ).*")\]$`), "${1}found $2; expected a list of operations in JSON, or in YAML with each operation in a line such as - {op: remove, path: /spec}"},
	{regexp.MustCompile(`(?s)^(.*)unable to parse SM or JSON patch from \[(?:patch: )?(".*\bop: .*")\]$`), "${1}found $2; expected a list of operations: begin the text with -"},
	{regexp.MustCompile(`(?s)^(.*)unable to parse SM or JSON patch from \[(?:patch: )?(.*)\]$`), "${1}found $2; expected a patch in valid JSON or YAML: a list of operations such as replace, or a part of a manifest with its apiVersion, kind and metadata.name"},
	{regexp.MustCompile(`^nothing selected by (\S+)$`), "the field replacements: found the source $1, but no such object in the resources"},
	{regexp.MustCompile(`\.?\[no(?:Ver|Grp|Ns)\]`), ""}, // parts of the name of an object that the user does not give
	{regexp.MustCompile(`^Failed to read kustomization file under \S+: `), ""},
	{regexp.MustCompile(`(?s)^(?:accumulating components: )?loader\.New "must build at directory: '([^']*)': file is not directory".*$`), "found the file $1; expected a directory with a kustomization"},
	{regexp.MustCompile(`missing kind in object .*$`), "found an object without the field kind; expected the manifest of a Kubernetes object"},
	{regexp.MustCompile(`missing Resource metadata`), "found no object; expected the manifest of a Kubernetes object"},
	{regexp.MustCompile(`^(invalid Kustomization: unknown field .*|found (?:string|number|bool) at .*)$`), "$1; if only an older version of kustomize accepts the kustomization, list its files in subject.manifests instead"},
}

// kustomizeReason returns the text of an error of kustomize, and the next step of the user. For a missing
// file, the error says the same several times; kustomizeReason says it once.
func kustomizeReason(err error) string {
	text := inputfile.JSONReason(err)
	if strings.Contains(text, "HelmChartInflationGenerator") {
		return `found helmCharts, which gauntlet does not support; render the charts with "helm template", and name the results in resources`
	}
	if remotePattern.MatchString(text) {
		return "found the URL of a remote resource; expected files on this machine: download the resource, and name its files in the kustomization"
	}
	if match := directoryPattern.FindStringSubmatch(text); match != nil {
		if match[1] != "" {
			return fmt.Sprintf("found a cycle: the resources of the kustomization in %s lead back to it; expected resources that do not contain the kustomization itself", match[1])
		}
		return fmt.Sprintf("found the directory %s without a kustomization; expected a file, or a directory with a kustomization", match[2])
	}
	directory := ""
	for match := nestedPattern.FindStringSubmatch(text); match != nil; match = nestedPattern.FindStringSubmatch(text) {
		directory, text = match[1], match[2]
	}
	if match := accumulatedPattern.FindStringSubmatch(text); match != nil {
		text, _, _ = strings.Cut(text[len(match[0]):], "': ") // the rest is why the path is no directory either
		text = match[1] + ": " + text
	}
	if match := unknownPattern.FindStringSubmatch(text); match != nil {
		if similar := inputfile.SimilarField(&types.Kustomization{}, match[1]); similar != "" {
			return strings.TrimPrefix(directory+": "+match[0]+similar, ": ")
		}
	}
	for _, known := range kustomizeTexts {
		text = known.pattern.ReplaceAllString(text, known.text)
	}
	if path, ok := strings.CutSuffix(text, ": no such file or directory"); ok {
		text += "; expected a file or directory that the kustomization names"
		if similar := inputfile.SimilarFile(path); similar != "" {
			text += "; did you mean " + similar + "?"
		}
	}
	if !strings.Contains(text, directory) {
		return directory + ": " + text
	}
	return text
}
